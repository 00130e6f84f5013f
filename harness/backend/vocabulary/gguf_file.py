"""Writes a vocabulary as a GGUF file, alone or with the tensors of a small model.

The file says that its tokenizer is RWKV's: of the kinds that GGUF knows it is the only one whose tokens are
any bytes, each of them spelled in more than one way. Two ids may therefore have the same bytes, and no plain
token reads like one of the special tokens that readers of such files look for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from harness.backend.vocabulary.model import Vocabulary
from harness.errors import BadInput

NORMAL, CONTROL = 1, 3
"""Kinds of tokens, as the format numbers them."""

NOTHING = b"\\x"
"""An escape that is cut short: the token's text is not empty, which the format forbids, but its bytes are
none."""

NEVER = b"\\x00"
"""How the text of a padding id begins. Its bytes begin with NUL then, and no reader's grammar lets such a
token through."""


@dataclass(frozen=True)
class Shape:
    """The shape of a small Llama model: widths in numbers, `context` in tokens."""

    width: int = 64
    layers: int = 2
    heads: int = 4
    inner: int = 128
    context: int = 2048


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Writes a file without a model. Raises BadInput for a vocabulary that the format cannot hold."""
    write_tensors(vocabulary, path, Shape(), ())


def token_texts(vocabulary: Vocabulary) -> list[bytes]:
    """Returns how each id is spelled in the file; no two alike, none empty and none with a NUL."""
    taken: set[bytes] = set()
    texts = []
    for token, content in enumerate(vocabulary.tokens):
        for text in _spellings(vocabulary, token, content):
            if text not in taken:
                break
        else:
            raise BadInput(
                f"vocabulary {vocabulary.name}: more ids have the bytes of token {token} than a "
                "GGUF file can spell"
            )
        taken.add(text)
        texts.append(text)
    return texts


def _spellings(vocabulary: Vocabulary, token: int, content: bytes) -> Iterator[bytes]:
    if token in vocabulary.special_tokens:
        name = vocabulary.special_tokens[token].encode().replace(b"\\", b"\\\\")
        yield name
        yield b"%s\\x00%d" % (name, token)
    elif token in vocabulary.padding_tokens:
        yield b"%s[PAD%d]" % (NEVER, token)
    elif not content:
        yield NOTHING
        yield from (NOTHING + bytes([digit]) for digit in b"0123456789abcdef")
    else:
        rest = b"".join(b"\\x%02x" % byte for byte in content[2:])
        yield from (b"".join(first) + rest for first in product(*map(_byte_spellings, content[:2])))


def _byte_spellings(byte: int) -> list[bytes]:
    """Returns the byte as an escape, as itself, and behind a backslash that means nothing there."""
    plain = bytes([byte])
    ways = [b"\\x%02x" % byte]
    if plain not in b"\0\\":
        ways.append(plain)
    if plain not in b"\0tnrx":
        ways.append(b"\\" + plain)
    return ways


def write_tensors(
    vocabulary: Vocabulary,
    path: Path,
    shape: Shape,
    tensors: Iterable[tuple[str, np.ndarray[Any, np.dtype[np.float32]]]],
) -> None:
    """Writes a file of a Llama model of this shape with these tensors, each with its name; without any it
    holds the vocabulary only."""
    from gguf import GGUFWriter

    file = GGUFWriter(path, "llama")
    file.add_name(f"grammarbench {vocabulary.name}")
    file.add_context_length(shape.context)
    file.add_embedding_length(shape.width)
    file.add_block_count(shape.layers)
    file.add_feed_forward_length(shape.inner)
    file.add_head_count(shape.heads)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(shape.width // shape.heads)
    file.add_vocab_size(vocabulary.size)
    file.add_tokenizer_model("rwkv")
    file.add_token_list(token_texts(vocabulary))
    never = vocabulary.special_tokens.keys() | vocabulary.padding_tokens
    file.add_token_types([CONTROL if token in never else NORMAL for token in range(vocabulary.size)])
    # A file has places for three ids of end-of-sequence; llama.cpp knows others by their names only.
    adds = (file.add_eos_token_id, file.add_eot_token_id, file.add_eom_token_id)
    for add, end in zip(adds, vocabulary.eos_tokens, strict=False):
        add(end)
    file.add_add_bos_token(False)
    for name, weights in tensors:
        file.add_tensor(name, weights)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
