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


def load_model(vocabulary: Vocabulary) -> Any:
    """Returns a model that is nothing but the vocabulary. Raises RuntimeError if the library refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocabulary.gguf")
        write_vocabulary(vocabulary, path)
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        model = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
    if not model:
        messages = " ".join(_messages)
        raise RuntimeError(f"llama.cpp does not load the vocabulary {vocabulary.name}: {messages}"[:500])
    return model


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
