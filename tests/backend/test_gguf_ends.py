"""The ids with which an output ends in a GGUF file: those that llama.cpp takes, asked of the library too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from adapter_tools import maker
from gguf_bytes import write_gguf

from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.backend.vocabulary.byte_level import letters_of_bytes
from harness.backend.vocabulary.gguf import FIM_ENDS, NAMES_OF_ENDS
from harness.errors import BadInput

END = 257
WITHOUT: Mapping[str, object] = {}
PAD, REPOSITORY, SEPARATOR = FIM_ENDS
KEYS: list[dict[str, object]] = [
    {PAD: END + 1},
    {REPOSITORY: END + 1},
    {SEPARATOR: END + 1},
    {PAD: END + 3, REPOSITORY: END + 2},
    {PAD: 1 << 20},
]


def named(path: Path, names: list[str], more: Mapping[str, object] = WITHOUT, kind: int = 3) -> Vocabulary:
    """Returns the vocabulary of a file with these tokens behind an end, which is token 257."""
    pieces = [*(letters_of_bytes(bytes([byte])) for byte in range(256)), "ab", "<end>", *names]
    metadata: dict[str, object] = {
        "general.architecture": "qwen2",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [*[1] * END, 3, *[kind] * len(names)],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": END,
    }
    return load_vocabulary(str(write_gguf(path, {**metadata, **more})))


def ends_of_library(vocabulary: Vocabulary) -> tuple[Any, set[int]]:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed (extra llama)")
    adapter = maker("llama_cpp", "LlamaCpp")(vocabulary)
    assert adapter.loader == "library"
    return adapter, vars(adapter)["ends"]


@pytest.mark.parametrize("kind", [1, 3, 4])
@pytest.mark.parametrize("place", range(5))
def test_a_token_between_files_ends_an_output_by_its_name(tmp_path: Path, place: int, kind: int) -> None:
    names = [names[place % len(names)] for names in FIM_ENDS.values()]
    vocabulary = named(tmp_path / "one.gguf", ["<|fim_prefix|>", *names], kind=kind)
    assert vocabulary.eos_tokens == (END, END + 2, END + 3, END + 4)
    assert ends_of_library(vocabulary)[1] == set(vocabulary.eos_tokens)


@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_a_key_goes_before_the_names(tmp_path: Path, keys: dict[str, object]) -> None:
    names = ["<x>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]
    vocabulary = named(tmp_path / "one.gguf", names, keys)
    by_name = {PAD: END + 2, REPOSITORY: END + 3, SEPARATOR: END + 4}
    wanted = {END, *(by_name | {key: token for key, token in keys.items() if token != 1 << 20}).values()}
    assert set(vocabulary.eos_tokens) == wanted and vocabulary.eos_token == END
    assert ends_of_library(vocabulary)[1] == wanted


def test_of_several_names_the_adapter_keeps_the_one_that_the_library_takes(tmp_path: Path) -> None:
    vocabulary = named(tmp_path / "one.gguf", [name for names in FIM_ENDS.values() for name in names])
    assert len(vocabulary.eos_tokens) == 1 + 5 + 5 + 1
    adapter, ends = ends_of_library(vocabulary)
    assert len(ends) == 4 and set(adapter.vocabulary.eos_tokens) == ends < set(vocabulary.eos_tokens)


def test_the_names_stand_once() -> None:
    names = [*NAMES_OF_ENDS, *(name for names in FIM_ENDS.values() for name in names)]
    assert len(set(names)) == len(names)


def test_an_end_is_a_whole_number(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it names no token with which an output ends"):
        named(tmp_path / "one.gguf", [], {"tokenizer.ggml.eos_token_id": True})
