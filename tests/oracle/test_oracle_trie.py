"""Facts about the masks that a vocabulary's trie gives, for automata of any kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regex_patterns import patterns

from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.oracle import trie as trie_module
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.regex.automaton import regex_automaton
from harness.oracle.trie import TokenSet, TokenTrie, trie_of

patiently = settings(max_examples=100, deadline=None, derandomize=True)

Masker = Callable[[TokenTrie, Automaton[Any], int], TokenSet]


class Table(Automaton[int]):
    """Any automaton: rows of next states by byte, 0 = dead.

    Not every state can be finished; masks need not care.
    """

    def __init__(self, rows: dict[int, dict[int, int]], accepting: frozenset[int]) -> None:
        self.rows, self.final = rows, accepting
        super().__init__(1)

    def _successors(self, key: int) -> Iterator[tuple[int, int, int]]:
        return ((byte, byte, after) for byte, after in self.rows.get(key, {}).items())

    def _is_accepting(self, key: int) -> bool:
        return key in self.final


def tables(letters: bytes) -> st.SearchStrategy[Table]:
    rows = st.dictionaries(st.integers(1, 5), st.dictionaries(st.sampled_from([*letters]), st.integers(1, 5)))
    return st.builds(Table, rows, st.frozensets(st.integers(1, 5)))


def vocabularies(pieces: list[bytes]) -> st.SearchStrategy[Vocabulary]:
    """Small ones with empty tokens, duplicates, specials in the middle, and padding."""
    texts = st.lists(st.lists(st.sampled_from(pieces), max_size=5).map(b"".join), min_size=1, max_size=40)
    return st.builds(vocabulary, texts, st.randoms(use_true_random=False))


def vocabulary(texts: list[bytes], chance: random.Random) -> Vocabulary:
    kinds = [chance.choice(["text"] * 6 + ["special", "padding"]) for _ in texts]
    kinds[chance.randrange(len(kinds))] = "eos"
    specials = {token: f"<{token}>" for token, kind in enumerate(kinds) if kind in ("special", "eos")}
    padding = frozenset(token for token, kind in enumerate(kinds) if kind == "padding")
    return Vocabulary(
        "small", tuple(texts), (kinds.index("eos"),), specials, padding
    )  # with text even where none belongs


def wrong_token(masker: Masker, words: Vocabulary, automaton: Automaton[Any], state: int) -> int | None:
    """A token whose bit is not what reading it byte by byte says."""
    mask = masker(TokenTrie(words), automaton, state)
    assert mask.shape == (words.size,) and mask.dtype == np.bool_
    for token, text in enumerate(words.tokens):
        if token == words.eos_token:
            right = automaton.accepting(state)
        elif token in words.special_tokens or token in words.padding_tokens or not text:
            right = False
        else:
            right = automaton.run(state, text) != DEAD
        if mask[token] != right:
            return token
    return None


@patiently
@given(
    vocabularies([b"a", b"b", b"\xc3", b"\xa9", b"\n", b"ab", b"\x00", b"\xff"]),
    tables(b"ab\xc3\xa9\n\x00\xff"),
    st.integers(0, 3),
)
def test_a_mask_is_what_reading_each_token_says(words: Vocabulary, automaton: Table, steps: int) -> None:
    state = automaton.run(automaton.start, b"ab\n"[:steps])
    if state != DEAD:
        assert wrong_token(TokenTrie.mask, words, automaton, state) is None


@patiently
@given(
    vocabularies([b"a", b"b", "é".encode(), b"\xc3", b"\xa9", b"\n", b"ba", "日".encode()[:2]]),
    patterns(True),
    st.data(),
)
def test_masks_along_a_text_of_a_pattern(words: Vocabulary, pattern: Any, data: st.DataObject) -> None:
    try:
        automaton = regex_automaton(pattern.text, "python")
    except NoOracle:
        return
    state = automaton.start
    while state != DEAD:
        assert wrong_token(TokenTrie.mask, words, automaton, state) is None
        byte = data.draw(st.sampled_from([*b"ab\n\xc3\xa9"]))
        state = automaton.step(state, byte) if data.draw(st.integers(0, 4)) else DEAD


@pytest.mark.parametrize("sparse", [1, 4, 10**9])
def test_dense_and_sparse_levels_agree(sparse: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie_module, "SPARSE", sparse)
    words = load_vocabulary("probe")
    for pattern, text in (
        ('[^"]*', b""),
        (r"\w+", "日".encode()[:1]),
        (r'"[^"\\]{0,9}"', b'"abc'),
        ("(?:true|false|null)", b""),
    ):
        automaton = regex_automaton(pattern, "python")
        assert wrong_token(TokenTrie.mask, words, automaton, automaton.run(automaton.start, text)) is None, (
            pattern
        )


def test_states_are_those_after_each_token() -> None:
    words = load_vocabulary("probe")
    automaton = regex_automaton(r"(?:[a-z]{1,3} ?)*|[日本語]+", "python")
    states = TokenTrie(words).states(automaton, automaton.start)
    plain = [token for token, text in enumerate(words.tokens) if text and token not in words.special_tokens]
    assert states[plain].tolist() == [automaton.run(automaton.start, words.tokens[token]) for token in plain]
    assert not states[[*words.special_tokens, *words.padding_tokens]].any()


def test_nothing_follows_a_dead_state() -> None:
    automaton = regex_automaton("(?!)", "python")
    assert not TokenTrie(byte_vocabulary()).mask(automaton, automaton.start).any()


def test_a_vocabulary_without_text_has_masks_too() -> None:
    words = Vocabulary("none", (b"", b""), (0,), {0: "</s>"})
    automaton = regex_automaton("a?", "python")
    assert TokenTrie(words).mask(automaton, automaton.start).tolist() == [True, False]


def test_long_tokens_reach_their_end() -> None:
    words = Vocabulary("long", (b"a" * 3000, b"a" * 2999 + b"b", b""), (2,), {2: "</s>"})
    automaton = regex_automaton("a*", "python")
    assert TokenTrie(words).mask(automaton, automaton.start).tolist() == [True, False, True]


def test_a_trie_is_made_once_for_a_vocabulary() -> None:
    words = byte_vocabulary()
    assert trie_of(words) is trie_of(words)


# Masks that are wrong in one way: each is caught by the comparison above.


def without_end(trie: TokenTrie, automaton: Automaton[Any], state: int) -> TokenSet:
    mask = trie.mask(automaton, state)
    mask[trie.vocabulary.eos_token] = False
    return mask


def first_of_duplicates(trie: TokenTrie, automaton: Automaton[Any], state: int) -> TokenSet:
    mask = trie.mask(automaton, state)
    for token, text in enumerate(trie.vocabulary.tokens):
        mask[token] &= token in (trie.vocabulary.ids_by_bytes.get(text), trie.vocabulary.eos_token)
    return mask


def specials_by_their_text(trie: TokenTrie, automaton: Automaton[Any], state: int) -> TokenSet:
    mask = trie.mask(automaton, state)
    for token in trie.vocabulary.special_tokens:
        mask[token] |= bool(automaton.run(state, trie.vocabulary.tokens[token]))
    return mask


def only_whole_sentences(trie: TokenTrie, automaton: Automaton[Any], state: int) -> TokenSet:
    after = trie.states(automaton, state)
    mask = np.array([automaton.accepting(each) for each in after.tolist()])
    mask[trie.vocabulary.eos_token] = automaton.accepting(state)
    return mask


def last_byte_unread(trie: TokenTrie, automaton: Automaton[Any], state: int) -> TokenSet:
    mask = trie.mask(automaton, state)
    for token, text in enumerate(trie.vocabulary.tokens):
        mask[token] |= len(text) > 1 and automaton.run(state, text[:-1]) != DEAD
    return mask


@pytest.mark.parametrize(
    "masker",
    [without_end, first_of_duplicates, specials_by_their_text, only_whole_sentences, last_byte_unread],
)
def test_a_wrong_mask_is_seen(masker: Masker) -> None:
    words = Vocabulary("small", (b"a", b"ab", b"a", b"aa", b"", b"aa", b"ax"), (4,), {4: "</s>", 5: "aa"})
    automaton = regex_automaton("(?:ab?){2,}|a?", "python")
    assert wrong_token(TokenTrie.mask, words, automaton, automaton.start) is None
    assert wrong_token(masker, words, automaton, automaton.start) is not None
