"""llama.cpp's C functions, which llama-cpp-python only declares: candidate tokens, a model that is nothing
but a vocabulary, and the library's messages."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from harness.backend.grammar import UnsupportedVocabulary
from harness.backend.known_tokens import Loader, written_for_the_library
from harness.backend.layout import COMPACT
from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.gguf_file import write_vocabulary

# SPACE_RULE and _build_object_rule of llama_cpp/llama_grammar.py; grammars/README.md of llama.cpp.
LAYOUT = replace(
    COMPACT, separators=None, whitespace=b" ", longest_run=1, order="required_first", unlisted="never"
)

CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""The fields of `llama_token_data`."""

# Its answer to a failed assertion is to start a debugger, if there is one, before it ends the process.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

_messages: deque[str] = deque(maxlen=20)
"""The library's last messages; it has no other way to say why it refuses."""


def _listen(level: int, text: bytes, _: object) -> None:
    if level >= 2:  # warnings and errors
        _messages.append(text.decode("utf-8", "replace").strip())


_listener = llama_cpp.llama_log_callback(_listen)
"""Kept, because the library calls it for as long as the process lives."""

llama_cpp.llama_log_set(_listener, ctypes.c_void_p(0))


class Candidates:
    """An array of candidate tokens as the library takes it; logits are zero until a sampler has seen it."""

    def __init__(self, tokens: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        self.data = np.zeros(len(tokens), dtype=CANDIDATE)
        self.data["id"] = tokens
        self.ids, self.logits = self.data["id"], self.data["logit"]
        pointer = self.data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        self.pointer = ctypes.pointer(
            llama_cpp.llama_token_data_array(data=pointer, size=len(tokens), selected=-1, sorted=False)
        )


def load_model(vocabulary: Vocabulary, loader: Loader) -> tuple[Loader, Any]:
    """Returns how the library came to know the tokens, and a model that is nothing but the vocabulary.

    With `library` the GGUF file is loaded that the vocabulary was read from; where there is none, and with
    `bytes`, a file is written that has the bytes of each id. Raises UnsupportedVocabulary if the library
    refuses the model's own file or the format cannot hold the vocabulary, and RuntimeError if the library
    refuses ours.
    """
    if loader == "library" and vocabulary.gguf is not None:
        if model := _loaded(vocabulary.gguf):
            return "library", model
        raise UnsupportedVocabulary(f"llama.cpp does not load {vocabulary.gguf.name}: {_messages_so_far()}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocabulary.gguf")
        with written_for_the_library():
            write_vocabulary(vocabulary, path)
        if model := _loaded(path):
            return "bytes", model
    raise RuntimeError(f"llama.cpp does not load the vocabulary {vocabulary.name}: {_messages_so_far()}")


def _loaded(path: Path) -> Any:
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    return llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)


def _messages_so_far() -> str:
    return " ".join(_messages)[:400]


def ends_of(tokens: Any, size: int) -> frozenset[int]:
    """Returns the ids with which an output ends for the library: those that its file names as such, and
    control tokens by their names (`special_eog_ids` of src/llama-vocab.cpp)."""
    known = min(size, llama_cpp.llama_vocab_n_tokens(tokens))
    return frozenset(token for token in range(known) if llama_cpp.llama_vocab_is_eog(tokens, token))


def pieces_of(tokens: Any, size: int) -> list[bytes]:
    """Returns the bytes that the sampler of grammars takes each id for: its piece with the names of control
    tokens, and `b""` for what it never lets through, an end of generation or a piece that begins with NUL
    (`llama_grammar_apply_impl` of src/llama-grammar.cpp)."""
    buffer = ctypes.create_string_buffer(1 << 16)
    known = min(size, llama_cpp.llama_vocab_n_tokens(tokens))
    pieces = [b""] * size
    for token in set(range(known)) - ends_of(tokens, size):
        length = llama_cpp.llama_token_to_piece(tokens, token, buffer, len(buffer), 0, True)
        piece = buffer.raw[: max(length, 0)]
        pieces[token] = b"" if piece.startswith(b"\0") else piece
    return pieces


def messages_of(call: Callable[[], object]) -> str:
    """Returns in one line what the call logs, and what it writes to standard error, where the parser says
    what it could not read."""
    _messages.clear()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            call()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        printed = file.readline().decode("utf-8", "replace").strip()
    messages = " ".join([*([printed] if printed else []), *_messages])[:500]
    return messages or "the parser refuses it and does not say why"
