"""Vocabularies as GGUF files: how each token is spelled, and that the same file is written each time."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf_model import write_model

from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.backend.vocabulary.gguf_file import Shape, token_texts, write_vocabulary
from harness.errors import BadInput

NAMES = ["bytes", "probe", "mistral-v3", "tekken"]


def bytes_of(text: bytes) -> bytes:
    """What a reader makes of a spelling: two digits behind `\\x`, line ends and tabs by letter, else the
    character itself."""
    content = bytearray()
    at = 0
    while at < len(text):
        escape = text[at : at + 2]
        if escape == b"\\x":
            if at + 4 <= len(text):
                content.append(int(text[at + 2 : at + 4], 16))
            at += 4
        elif escape[:1] == b"\\":
            content += {b"t": b"\t", b"n": b"\n", b"r": b"\r"}.get(escape[1:], escape[1:])
            at += 2
        else:
            content += escape[:1]
            at += 1
    return bytes(content)


@pytest.mark.parametrize("name", NAMES)
def test_every_id_has_its_own_text_and_its_own_bytes(name: str) -> None:
    vocabulary = load_vocabulary(name)
    texts = token_texts(vocabulary)
    assert len(set(texts)) == vocabulary.size and all(text and b"\0" not in text for text in texts)
    for token, text in enumerate(texts):
        if token in vocabulary.special_tokens:
            assert bytes_of(text) == vocabulary.special_tokens[token].encode()
        elif token in vocabulary.padding_tokens:
            assert bytes_of(text).startswith(b"\0")
        else:
            assert bytes_of(text) == vocabulary.tokens[token]


def test_no_plain_token_is_spelled_like_a_special_one() -> None:
    vocabulary = load_vocabulary("probe")
    texts = token_texts(vocabulary)
    assert b"</s>" in vocabulary.tokens  # as plain text
    assert texts.index(b"</s>") == vocabulary.eos_token


def test_more_ids_than_spellings_are_refused() -> None:
    vocabulary = Vocabulary("many", (*[b"\0"] * 2, b""), eos_tokens=(2,), special_tokens={2: "</s>"})
    with pytest.raises(BadInput, match="more ids have the bytes of token 1"):
        token_texts(vocabulary)


def test_the_same_seed_writes_the_same_file(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf is not installed (extra llama)")
    shape = Shape(width=16, layers=1, heads=2, inner=16)
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        write_model(byte_vocabulary(), tmp_path / name, shape, seed)
    write_vocabulary(byte_vocabulary(), tmp_path / "bare")
    one, again, other = ((tmp_path / name).read_bytes() for name in ("one", "again", "other"))
    assert one == again != other and len(one) == len(other)
    assert (tmp_path / "bare").stat().st_size < len(one)
