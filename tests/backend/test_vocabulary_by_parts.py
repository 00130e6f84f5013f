"""Texts that a tokenizer does not give back as they were: its own ids around what it changes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from made_tokenizers import byte_level, metaspace
from tokenizers import AddedToken, Tokenizer, normalizers

from harness.backend.vocabulary import Vocabulary, load_vocabulary

TEXTS = ["ab", "a", "b", "c", "e", "\u0301", "é", "A", " "]


def words(change: Callable[[str], str]) -> Vocabulary:
    """Returns a vocabulary whose tokenizer never writes `ab`, which is the longest match, and changes the
    text first."""
    tokens = (*(text.encode() for text in TEXTS), b"")
    end = len(TEXTS)

    def tokenize(text: str) -> list[int]:
        return [TEXTS.index(character) for character in change(text)]

    return Vocabulary("words", tokens, (end,), {end: "</s>"}, tokenize=tokenize)


def written(vocabulary: Vocabulary, text: str) -> list[str]:
    ids = vocabulary.encode(text.encode())
    assert vocabulary.decode(ids) == text.encode()
    return [vocabulary.tokens[token].decode() for token in ids]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("change", "text", "expected"),
    [
        (nfc, "abc", ["a", "b", "c"]),
        (nfc, "abe\u0301ab", ["a", "b", "e", "\u0301", "a", "b"]),
        (nfc, "e\u0301e\u0301ab", ["e", "\u0301", "e", "\u0301", "a", "b"]),
        (str.lower, "abAab", ["a", "b", "A", "a", "b"]),
        (lambda text: text.replace("c", ""), "abcab", ["a", "b", "c", "a", "b"]),
        (lambda text: text.replace("c", ""), "abc", ["a", "b", "c"]),
        (lambda text: text.rstrip(), "ab " * 60, ["a", "b", " "] * 60),
    ],
)
def test_only_what_the_tokenizer_changes_is_spelled_by_the_longest_match(
    change: Callable[[str], str], text: str, expected: list[str]
) -> None:
    assert written(words(change), text) == expected


def test_a_text_that_always_gets_something_before_it_is_the_longest_match() -> None:
    assert written(words(lambda text: f" {text}"), "abcab") == ["ab", "c", "ab"]


def test_a_character_for_which_the_tokenizer_raises_leaves_the_rest_its_own() -> None:
    def without_c(text: str) -> str:
        if "c" in text:
            raise ValueError("no unknown token")
        return text

    assert written(words(without_c), "abcab") == ["a", "b", "c", "a", "b"]


def test_a_character_that_only_a_longer_token_has_is_written_by_it() -> None:
    vocabulary = Vocabulary("tiny", (b"x", b"xc", b""), (2,), {2: "</s>"}, tokenize=lambda text: [0])
    assert vocabulary.encode(b"xxc") == [0, 1]


def test_characters_that_have_ids_alone_and_none_together_are_written_one_by_one() -> None:
    """Behind `a` the longest token takes half of the é, and no token goes on from there."""
    tokens = (b"", b"a", b"a\xc3", b"\xc3\xa9")
    vocabulary = Vocabulary("made", tokens, (0,), {0: "</s>"})
    with pytest.raises(ValueError, match="no token"):
        vocabulary.encode("aé".encode())
    assert vocabulary.encode_known("aéba".encode()) == [1, 3, 1]


def test_a_text_changed_everywhere_takes_no_quadratic_time() -> None:
    vocabulary = words(nfc)
    begun = process_time()
    written(vocabulary, "abe\u0301" * 5000)
    assert process_time() - begun < 20


def test_one_decomposed_character_leaves_the_rest_of_a_byte_level_text_its_own(tmp_path: Path) -> None:
    folder = byte_level(tmp_path / "made")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary = load_vocabulary(str(folder))
    own = tokenizer.encode(" ab aab").ids
    longest = Vocabulary("longest", vocabulary.tokens, vocabulary.eos_tokens, vocabulary.special_tokens)
    odd = longest.encode("e\u0301".encode())
    assert vocabulary.encode(" ab aabe\u0301 ab aab".encode()) == [*own, *odd, *own]


@pytest.fixture
def thinking(tmp_path: Path) -> Path:
    """A SentencePiece tokenizer with an added token that is normalized, which is the default."""
    folder = metaspace(tmp_path / "made")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken("<think>", normalized=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_a_normalized_added_token_stands_where_the_tokenizer_writes_it(thinking: Path) -> None:
    vocabulary = load_vocabulary(str(thinking))
    own = Tokenizer.from_file(str(thinking / "tokenizer.json"))
    for text in ("ab <think> ab", "ab<think>ab", "ab <think>", "ab ab"):
        lead = own.encode("\x01", add_special_tokens=False).ids
        expected = own.encode(f"\x01{text}", add_special_tokens=False).ids[len(lead) :]
        assert vocabulary.encode(text.encode()) == expected, text


def test_the_longest_match_writes_no_letter_as_its_byte(thinking: Path) -> None:
    document = json.loads((thinking / "tokenizer.json").read_text())
    document["normalizer"]["normalizers"].insert(0, {"type": "Lowercase"})
    (thinking / "tokenizer.json").write_text(json.dumps(document))
    vocabulary = load_vocabulary(str(thinking))
    letter, byte = (vocabulary.encode(b"a")[0], vocabulary.ids_by_bytes[b"a"])
    assert byte < letter and vocabulary.longest_match(b"a") == [letter]


def test_the_second_digest_tells_merges_and_names_of_special_tokens(tmp_path: Path) -> None:
    folder = byte_level(tmp_path / "made")
    document = json.loads((folder / "tokenizer.json").read_text())

    def loaded(**changed: object) -> Vocabulary:
        (folder / "tokenizer.json").write_text(json.dumps(document | changed))
        return load_vocabulary(str(folder))

    vocabulary = loaded()
    again = loaded()
    merged = loaded(model=document["model"] | {"merges": document["model"]["merges"][:1]})
    renamed = [
        token | ({"content": "<tool>"} if token["content"] == "<|start|>" else {})
        for token in document["added_tokens"]
    ]
    named = loaded(added_tokens=renamed)
    assert vocabulary.sha256 == again.sha256 == merged.sha256 == named.sha256
    assert vocabulary.tokenizer_sha256 == again.tokenizer_sha256
    assert len({one.tokenizer_sha256 for one in (vocabulary, merged, named)}) == 3
