"""The added tokens of a Hugging Face tokenizer: their bytes, and those that only the files beside its
tokenizer.json list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_tokenizers import byte_level, metaspace
from tokenizers import AddedToken, Tokenizer

from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.backend.vocabulary.families import FAMILIES
from harness.backend.vocabulary.fetched import folder_of, is_fetched
from harness.errors import BadInput

# --- bytes ---


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return byte_level(tmp_path / "letters")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("é!", b"\xe9!"),
        ("Ġx", b" x"),
        ("<｜tool▁calls▁begin｜>", None),
        ("   three", None),
        ("<think>", None),
        ("日é", None),
    ],
)
def test_an_added_token_has_the_bytes_that_the_tokenizers_own_decoder_gives(
    folder: Path, text: str, content: bytes | None
) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken(text, special=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary, ids = load_vocabulary(str(folder)), tokenizer.get_vocab()
    token = ids[text]
    assert vocabulary.tokens[token] == (text.encode() if content is None else content)
    decoded = tokenizer.decode([ids["a"], token])
    assert decoded == "a" + vocabulary.tokens[token].decode("utf-8", "replace")
    assert vocabulary.decode(vocabulary.encode(text.encode())) == text.encode()


@pytest.mark.parametrize(("text", "normalized"), [("<x>", True), ("<y z>", True), ("<x>", False)])
def test_an_added_token_that_is_normalized_has_the_bytes_that_are_decoded(
    tmp_path: Path, text: str, normalized: bool
) -> None:
    """From version 0.23 on, the library decodes such a token with the space that the normalizer puts before
    every text."""
    folder = metaspace(tmp_path / "pieces")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=normalized)])
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary, ids = load_vocabulary(str(folder)), tokenizer.get_vocab()
    assert tokenizer.decode([ids["a"], ids[text]]).encode() == b"a" + vocabulary.tokens[ids[text]]
    for written in (f"a{text}b", f"a {text}b"):
        assert vocabulary.decode(vocabulary.encode(written.encode())) == written.encode()


def test_an_added_token_on_a_pieces_id_has_its_own_name(folder: Path) -> None:
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    pieces = document["model"]["vocab"]
    document["model"] |= {"vocab": {piece: 2 * token for piece, token in pieces.items()}, "merges": []}
    path.write_text(json.dumps(document))  # the library puts added tokens at the number of pieces
    added = Tokenizer.from_file(str(path)).get_added_tokens_decoder()
    specials = {token: entry.content for token, entry in added.items() if entry.special}
    assert any(token % 2 == 0 and token < 2 * len(pieces) for token in specials)
    for _ in range(8):  # the library's tables are in another order each time
        assert load_vocabulary(str(folder)).special_tokens == specials


def test_two_pieces_of_one_id_are_refused(folder: Path) -> None:
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    document["model"]["vocab"]["zz"] = document["model"]["vocab"]["a"]
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="two pieces have the id"):
        load_vocabulary(str(folder))


@pytest.mark.parametrize("name", ["deepseek", "qwen"])
def test_the_added_tokens_of_published_tokenizers_stand_for_their_text(name: str) -> None:
    if not is_fetched(FAMILIES[name]):
        pytest.skip(f"{name} was not fetched")
    own = Tokenizer.from_file(str(folder_of(FAMILIES[name]) / "tokenizer.json"))
    texts = [(token, entry.content) for token, entry in own.get_added_tokens_decoder().items()]
    vocabulary = load_vocabulary(name)
    plain = [(token, text) for token, text in texts if token not in vocabulary.special_tokens]
    assert len(plain) > 10
    for token, text in plain:
        assert vocabulary.tokens[token] == text.encode() == own.decode([token]).encode()


# --- those of tokenizer_config.json ---


def token(content: str, special: bool = False, **flags: bool) -> dict[str, Any]:
    plain = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
    return {"content": content, **plain, **flags, "special": special}


def configured(folder: Path, **entries: Any) -> Path:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return folder


START, END, NEXT = 265, 266, 267
"""The ids of `<|start|>` and of `<|endoftext|>`, and the first that the tokenizer does not have."""


def is_padding(vocabulary: Vocabulary, first: int) -> bool:
    return vocabulary.padding_tokens == frozenset(range(first, vocabulary.size))


CONFIGURED: list[dict[str, Any]] = [
    {"added_tokens_decoder": {str(NEXT + 1): token("<ctl>", True), str(NEXT): token("<html>")}},
    {"added_tokens_decoder": {str(NEXT): token("<|im_end|>", True)}, "eos_token": "<|im_end|>"},
    {"added_tokens_decoder": {str(NEXT): token("<pad>")}, "pad_token": "<pad>"},
    {"pad_token": "ab", "extra_special_tokens": ["Ġa"]},
    {"image_token": "<0x41>", "audio_token": token("  two") | {"__type": "AddedToken"}},
    {"model_specific_special_tokens": {"boi": "<0x41>"}, "chat_template": "  two"},
    {"added_tokens_decoder": {str(NEXT): token("<image>")}, "image_token": "<image>"},
    {"additional_special_tokens": ["<0x41>", token("  two", True) | {"__type": "AddedToken"}]},
    {"added_tokens_decoder": {str(START): token("<|start|>", True, lstrip=True)}},
    {"added_tokens_decoder": {str(START): token("<|start|>")}},
    {"additional_special_tokens": ["<0x41>"], "extra_special_tokens": ["  two"]},
    {"additional_special_tokens": ["<0x41>"], "extra_special_tokens": []},
    {"added_tokens_decoder": {str(NEXT): token("<pad>")}, "extra_special_tokens": ["<pad>"]},
    {"added_tokens_decoder": {str(NEXT): token("<pad>", lstrip=True)}, "pad_token": "<pad>"},
]


@pytest.mark.parametrize("entries", CONFIGURED, ids=[" ".join(entries) for entries in CONFIGURED])
def test_the_config_adds_the_tokens_that_transformers_adds(folder: Path, entries: dict[str, Any]) -> None:
    as_transformers_reads(configured(folder, **entries))


OLDER: list[dict[str, dict[str, Any]]] = [
    {"added_tokens": {"<think>": NEXT + 1, "</think>": NEXT}},
    {"added_tokens": {"<think>": NEXT, "<pad>": NEXT + 1}, "special_tokens_map": {"pad_token": "<pad>"}},
    {"added_tokens": {"<|start|>": START, "<html>": NEXT + 9}, "tokenizer_config": {"bos_token": "<html>"}},
    {"added_tokens": {"<html>": NEXT}, "tokenizer_config": {"added_tokens_decoder": {}}},
    {"special_tokens_map": {"eos_token": "<|start|>"}},
    {"special_tokens_map": {"eos_token": {"content": "<|start|>", "lstrip": False}}},
    {
        "special_tokens_map": {"eos_token": "<|start|>"},
        "tokenizer_config": {"added_tokens_decoder": {str(END): token("<|endoftext|>", True)}},
    },
    {"special_tokens_map": {"pad_token": "  two"}, "tokenizer_config": {"pad_token": "<0x41>"}},
    {"special_tokens_map": {"audio_token": "<0x41>"}},
    {"special_tokens_map": {"audio_token": "  two"}, "tokenizer_config": {"audio_token": "<0x41>"}},
    {"special_tokens_map": {"additional_special_tokens": ["  two"]}},
    {
        "special_tokens_map": {"additional_special_tokens": ["  two"]},
        "tokenizer_config": {"extra_special_tokens": ["<0x41>"]},
    },
    {"added_tokens": {"<html>": NEXT}, "tokenizer_config": {"additional_special_tokens": ["<html>"]}},
]
"""What the older files beside a tokenizer.json say, and which of them counts."""


@pytest.mark.parametrize("files", OLDER, ids=str)
def test_the_older_files_count_where_they_count_for_transformers(
    folder: Path, files: dict[str, dict[str, Any]]
) -> None:
    for name, document in files.items():
        if name != "tokenizer_config":
            (folder / f"{name}.json").write_text(json.dumps(document))
    as_transformers_reads(configured(folder, **files.get("tokenizer_config", {})))


@pytest.mark.parametrize(
    "entries",
    [
        {"extra_special_tokens": ["<plain>"]},
        {"additional_special_tokens": ["<plain>"]},
        {"pad_token": "<plain>"},
        {"image_token": "<plain>"},
        {"pad_token": "<plain>", "added_tokens_decoder": {}},
        {"image_token": "<plain>", "added_tokens_decoder": {}},
        {"image_token": "<plain>", "added_tokens_decoder": {str(NEXT): token("<plain>")}},
        {"image_token": "<plain>", "added_tokens_decoder": {str(NEXT): token("<plain>", rstrip=True)}},
    ],
    ids=str,
)
def test_a_token_that_is_plain_becomes_special_where_it_does_for_transformers(
    folder: Path, entries: dict[str, Any]
) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken("<plain>", special=False, normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert tokenizer.token_to_id("<plain>") == NEXT
    as_transformers_reads(configured(folder, **entries))


@pytest.mark.parametrize("document", [["<x>"], {"<x>": "1"}, {"<x>": None}, {"<x>": 1.5}, {"\ud800": 1}])
def test_a_spoilt_file_of_added_tokens_is_bad_input(folder: Path, document: object) -> None:
    (folder / "added_tokens.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match=r"added_tokens\.json: no") as caught:
        load_vocabulary(str(folder))
    assert "\n" not in str(caught.value)


def as_transformers_reads(folder: Path) -> None:
    """Asserts that the folder's special tokens, end and added tokens are those of transformers."""
    transformers = pytest.importorskip("transformers")
    vocabulary = load_vocabulary(str(folder))
    own = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    specials = {token for token, entry in own.added_tokens_decoder.items() if entry.special}
    specials |= {own.eos_token_id, own.unk_token_id} - {None}
    assert set(vocabulary.special_tokens) == specials
    assert vocabulary.eos_token == own.eos_token_id
    assert is_padding(vocabulary, len(own))
    for text, number in own.get_added_vocab().items():
        if number not in specials and text.isascii():
            assert vocabulary.tokens[number] == text.encode() and vocabulary.encode(text.encode()) == [number]


def test_a_token_that_only_the_config_has_is_no_padding(folder: Path) -> None:
    configured(folder, **CONFIGURED[0])
    vocabulary = load_vocabulary(str(folder))
    assert vocabulary.tokens[NEXT] == b"<html>" and vocabulary.encode(b"<html>") == [NEXT]
    assert vocabulary.special_tokens[NEXT + 1] == "<ctl>" and is_padding(vocabulary, NEXT + 2)


def test_an_end_that_only_the_config_has_comes_first(folder: Path) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END]}))
    assert load_vocabulary(str(configured(folder, **CONFIGURED[1]))).eos_tokens == (NEXT, END)


def test_a_name_without_a_token_gets_no_id(folder: Path) -> None:
    before = load_vocabulary(str(folder)).sha256
    after = load_vocabulary(str(configured(folder, pad_token="[PAD]", sep_token=7, cls_token=None))).sha256
    assert after == before


def test_older_files_name_special_tokens_in_a_map(folder: Path) -> None:
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": {"content": "<0x41>"}}))
    assert "<0x41>" in load_vocabulary(str(folder)).special_tokens.values()
    configured(folder, added_tokens_decoder={})
    assert "<0x41>" not in load_vocabulary(str(folder)).special_tokens.values()


@pytest.mark.parametrize(
    "entries",
    [
        ["<x>"],
        {"1": "<x>"},
        {"x": token("<x>")},
        {"1": {"special": True}},
        {"1": {"content": 1}},
        {"1": {"content": "<x>", "special": "yes"}},
        {"1": {"content": "\ud800"}},
        {"1": None},
        7,
    ],
    ids=str,
)
def test_a_spoilt_table_of_added_tokens_is_bad_input(folder: Path, entries: object) -> None:
    with pytest.raises(BadInput, match=r"tokenizer_config\.json: \"added_tokens_decoder\"") as caught:
        load_vocabulary(str(configured(folder, added_tokens_decoder=entries)))
    assert "\n" not in str(caught.value)
