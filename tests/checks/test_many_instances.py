"""What the checks keep of a case is bounded, however many and however long its instances are."""

from __future__ import annotations

import pytest

from harness.backend.grammar import CompiledGrammar, Grammar, GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case, Instance
from harness.checks import Subject, subject
from harness.checks.forced_text import places_and_insides
from harness.checks.looking import spread
from harness.checks.subject import LONGEST_WALK, MOST_INSTANCES, Place
from harness.oracle.reference import Reference

VOCABULARY = Vocabulary(
    "bytes", (*(bytes([byte]) for byte in range(256)), b""), (256,), {256: "</s>"}, frozenset()
)
ANY = Grammar("regex", "(.|\n)*")


class Counting(CompiledGrammar):
    """A grammar that counts its objects."""

    def __init__(self, inner: CompiledGrammar) -> None:
        self.inner, self.started = inner, 0

    def start(self) -> GrammarObject:
        self.started += 1
        return self.inner.start()


def looked_at(instances: list[Instance], effort: int | None = 1) -> tuple[Subject, Counting]:
    adapter = Reference(VOCABULARY)
    compiled = Counting(adapter.compile(ANY))
    return Subject(adapter, Case("0" * 12, "a case", ANY, tuple(instances)), compiled, effort), compiled


@pytest.mark.parametrize("valid", [0, 3, 2 * MOST_INSTANCES])
def test_no_more_instances_are_looked_at_than_some_hundred(valid: int) -> None:
    count = 5 * MOST_INSTANCES
    one, compiled = looked_at([Instance("", f"{at} x".encode(), at < valid) for at in range(count)])
    assert len(one.paths) == count and sum(map(bool, one.paths)) == MOST_INSTANCES == compiled.started
    assert min(valid, MOST_INSTANCES // 2) <= len(one.valid()) <= min(valid, MOST_INSTANCES)
    assert {place.instance for place in one.places("all", 10**6)} <= {0, *one.numbers}


def test_all_instances_are_looked_at_where_they_are_few() -> None:
    one, _ = looked_at([Instance("", b"ab", False)] * MOST_INSTANCES)
    assert one.numbers == list(range(MOST_INSTANCES)) and all(one.paths)


def test_only_the_places_that_are_chosen_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Place] = []

    def counted(instance: int, tokens: tuple[int, ...], text: bytes) -> Place:
        made.append(Place(instance, tokens, text))
        return made[-1]

    monkeypatch.setattr(subject, "Place", counted)
    text = "日本語のテキスト".encode() * 20
    one, _ = looked_at([Instance("", text, True), Instance("", b"x" + text, True)], 3)
    assert len(text) > LONGEST_WALK
    chosen = list(one.places("some"))
    assert made == chosen and len(chosen) == 3
    assert [place.text for place in chosen] == [VOCABULARY.decode(place.tokens) for place in chosen]
    assert len(spread(one, "some", 4)) == 4 and len(list(places_and_insides(one, "some"))) == 6
    assert len(made) == 3 + 4 + 3


def test_masks_beyond_those_that_are_kept_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = looked_at([Instance("", b"abcdef", True), Instance("", b"xyz", True)], None)
    all_of_them = [(place, mask.tobytes()) for place, mask in one.masks()]
    monkeypatch.setattr(subject, "MOST_MASKS", 3)
    other, _ = looked_at([Instance("", b"abcdef", True), Instance("", b"xyz", True)], None)
    for _ in range(2):
        assert [(place, mask.tobytes()) for place, mask in other.masks()] == all_of_them
    assert len(other._masks) == 3 and len(all_of_them) == 10
