"""All checks on structural tags whose tokens are meant by their ids: silent on right backends, and each wrong
one is found."""

from __future__ import annotations

import pytest
from miniatures.wrong_ids import (
    CALL,
    CALLS,
    EITHER,
    TOKEN,
    ForcesAnIdBesideText,
    ForcesAnIdTooMany,
    ForcesIds,
    ForcesTextBesideAnId,
    RightAboutIds,
    TakesAnyTextBehindAnId,
    calling_vocabulary,
    form,
)

from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance
from harness.checks import DECODING, Subject, category, checks, run_check
from harness.checks.looking import endings
from harness.checks.walks import lean_walk
from harness.oracle.reference import Reference

CALLING = calling_vocabulary()
OUTPUTS: dict[Grammar, tuple[tuple[int | str, ...], ...]] = {
    CALLS: (("<call>", "a", "b"),),
    EITHER: (("<call>",), ("a", "b")),
    form({"type": "tag", "begin": TOKEN, "content": {"type": "any_text"}, "end": ""}): (("<call>", "x"),),
    form({"type": "any_tokens", "exclude_tokens": ["ab"]}): (("a", "<call>", "b"),),
}


def subject(adapter: Reference, grammar: Grammar, effort: int | None = None) -> Subject:
    instances = tuple(Instance("one", b"", True, tokens=tokens) for tokens in OUTPUTS.get(grammar, ()))
    return Subject(adapter, Case("0" * 12, "a case", grammar, instances), adapter.compile(grammar), effort)


def failed(adapter: Reference, grammar: Grammar, effort: int | None = None) -> dict[str, set[str]]:
    """Returns the causes of what is found, by check."""
    walked = subject(adapter, grammar, effort)
    made = {
        name: run_check(name, check, walked)[1]
        for name, check in checks().items()
        if category(name) != DECODING
    }
    return {name: {finding.cause for finding in found} for name, found in made.items() if found}


@pytest.mark.parametrize("effort", [3, None])
@pytest.mark.parametrize("right", [RightAboutIds, ForcesIds])
@pytest.mark.parametrize("grammar", OUTPUTS, ids=str)
def test_a_right_backend_passes(grammar: Grammar, right: type[Reference], effort: int | None) -> None:
    assert failed(right(CALLING), grammar, effort) == {}


def test_a_walk_takes_ids_without_text() -> None:
    walked = subject(RightAboutIds(CALLING), CALLS)
    walk = lean_walk(walked, walked.compiled.start(), walked.random("walk"), 0)
    assert walk.end == "ended" and walk.tokens[0] == CALL and walk.text == b"ab"


def test_a_place_is_another_behind_an_id_and_behind_another_id_of_the_same_text() -> None:
    walked = subject(RightAboutIds(CALLING), CALLS)
    assert [place.tokens for place in walked.places("all")][:2] == [(), (CALL,)]
    grammar = form({"type": "any_tokens", "exclude_tokens": ["<call>"]})
    instances = tuple(Instance("one", b"", True, tokens=(token, "c")) for token in (258, 259, "a"))
    adapter = RightAboutIds(CALLING)
    several = Subject(adapter, Case("0" * 12, "a case", grammar, instances), adapter.compile(grammar))
    assert [place.tokens for place in several.places("all")] == [
        (), (258,), (258, 99), (259,), (259, 99), (97,), (97, 99)
    ]  # fmt: skip
    assert {(258, 99), (259, 99)} <= {place.tokens for place, _, _ in endings(several, "all")}


@pytest.mark.parametrize(
    ("wrong", "grammar", "check", "cause"),
    [
        (TakesAnyTextBehindAnId, CALLS, "every_allowed_token_leads_to_a_document", "token_id"),
        (TakesAnyTextBehindAnId, CALLS, "walks_end_and_validate", "invalid"),
        (ForcesTextBesideAnId, EITHER, "forced_bytes_are_truly_forced", "past_a_choice"),
        (ForcesTextBesideAnId, EITHER, "fast_forward_tokens_are_truly_forced", "past_a_choice"),
        (ForcesAnIdBesideText, EITHER, "fast_forward_tokens_are_truly_forced", "past_a_choice"),
        (ForcesAnIdTooMany, CALLS, "fast_forward_tokens_are_truly_forced", "past_a_possible_end"),
    ],
)
def test_a_wrong_backend_is_found(wrong: type[Reference], grammar: Grammar, check: str, cause: str) -> None:
    assert cause in failed(wrong(CALLING), grammar)[check]


def test_what_may_come_instead_of_what_is_called_forced_is_shown() -> None:
    found = {}
    for wrong, check in (
        (ForcesTextBesideAnId, "forced_bytes_are_truly_forced"),
        (ForcesAnIdBesideText, "fast_forward_tokens_are_truly_forced"),
    ):
        found[wrong] = run_check(check, checks()[check], subject(wrong(CALLING), EITHER))[1][0]
    assert found[ForcesTextBesideAnId].walk == (CALL,)
    assert found[ForcesTextBesideAnId].text.endswith("but its mask allows <call> instead")
    assert found[ForcesAnIdBesideText].walk == (ord("a"),)
