"""Facts about the automaton of a choice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from harness.backend.vocabulary import byte_vocabulary
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.choice import ChoiceAutomaton, Key, choice_automaton
from harness.oracle.trie import TokenTrie

SUITE = ROOT / "suites" / "choice_and_tags.jsonl"
CASES = [
    case for case in map(json.loads, SUITE.read_text(encoding="utf-8").splitlines()[1:]) if "choice" in case
]

texts = st.text("abé€", max_size=4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["description"]))
def test_the_suite_is_judged_as_it_says(case: dict[str, Any]) -> None:
    automaton = choice_automaton(json.dumps(case["choice"]))
    for instance in case["tests"]:
        output = bytes.fromhex(instance["bytes"]) if "bytes" in instance else instance["text"].encode()
        assert automaton.accepts(output) == instance["valid"], instance["description"]


def disagreement(automaton: Automaton[Any], choices: list[str], output: bytes) -> str:
    """What is wrong about the output, empty if nothing."""
    sentences = [choice.encode() for choice in choices]
    if automaton.accepts(output) != (output in sentences):
        return "verdict"
    begun = [
        size
        for size in range(len(output) + 1)
        if any(sentence.startswith(output[:size]) for sentence in sentences)
    ]
    if automaton.viable(output) != max(begun, default=-1):
        return "beginning"
    state = automaton.run(automaton.start, output)
    following = {
        sentence[len(output)]
        for sentence in sentences
        if sentence.startswith(output) and len(sentence) > len(output)
    }
    if {byte for byte in range(256) if automaton.step(state, byte) != DEAD} != following:
        return "following"
    return ""


@given(st.lists(texts), texts, st.binary(max_size=2))
def test_random_choices_are_themselves_and_nothing_else(choices: list[str], text: str, more: bytes) -> None:
    automaton = choice_automaton(json.dumps(choices))
    for output in (
        text.encode(),
        text.encode()[:-1],
        text.encode() + more,
        *(choice.encode() for choice in choices),
    ):
        assert not disagreement(automaton, choices, output)


class Greedy(ChoiceAutomaton):
    """Forgets that a string may go on where another one ends."""

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        return iter(()) if self._is_accepting(key) else super()._successors(key)


class Hasty(ChoiceAutomaton):
    """Forgets that a string that goes on may end."""

    def _is_accepting(self, key: Key) -> bool:
        return super()._is_accepting(key) and key[0] == key[1]

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        return ChoiceAutomaton(frozenset(self._choices))._successors(key)


def test_wrong_automata_are_seen() -> None:
    choices = ["1", "10", "2"]
    right = frozenset(choice.encode() for choice in choices)
    assert not disagreement(ChoiceAutomaton(right), choices, b"1")
    assert disagreement(Greedy(right), choices, b"10") == "verdict"
    assert disagreement(Greedy(right), choices, b"1") == "following"
    assert disagreement(Hasty(right), choices, b"1") == "verdict"
    assert disagreement(ChoiceAutomaton(right | {b"3"}), choices, b"3x") == "beginning"
    assert disagreement(ChoiceAutomaton(right | {b"3"}), choices, b"") == "following"


def test_the_mask_has_the_next_bytes_and_the_end() -> None:
    trie = TokenTrie(byte_vocabulary())
    automaton = choice_automaton('["no", "not", "né", ""]')
    assert trie.mask(automaton, automaton.start).nonzero()[0].tolist() == [ord("n"), 256]
    assert trie.mask(automaton, automaton.run(automaton.start, b"n")).nonzero()[0].tolist() == [
        ord("o"),
        0xC3,
    ]
    assert trie.mask(automaton, automaton.run(automaton.start, b"no")).nonzero()[0].tolist() == [
        ord("t"),
        256,
    ]


def test_forced_text_ends_where_strings_part_or_end() -> None:
    automaton = choice_automaton('["prefix-one", "prefix-two", "prefix-two!"]')
    assert automaton.forced(automaton.start) == b"prefix-"
    assert automaton.forced(automaton.run(automaton.start, b"prefix-t")) == b"wo"


def test_no_choice_is_the_empty_language() -> None:
    automaton = choice_automaton("[]")
    assert automaton.start == DEAD and automaton.viable(b"") == -1 and not automaton.accepts(b"")


def test_many_long_strings_cost_what_is_read_of_them() -> None:
    automaton = choice_automaton(json.dumps(["x" * 2000 + str(number) for number in range(1000)]))
    assert len(automaton) == 2
    assert automaton.accepts(b"x" * 2000 + b"731") and not automaton.accepts(b"x" * 2000 + b"1000")
    assert len(automaton) < 2100


@pytest.mark.parametrize(
    "text", ["", "[", '"ab"', '{"a": 1}', "null", '["a", 1]', '[["a"]]', r'["\ud800"]', "[" * 100_000]
)
def test_what_is_no_array_of_strings_has_no_oracle(text: str) -> None:
    with pytest.raises(NoOracle):
        choice_automaton(text)
