"""A deadline is one call's; what a backend gives or raises, from any method and in any check, is its own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from adapter_tools import maker
from isolated import GIGABYTE, walk_all
from miniatures.injected import ANSWERS
from miniatures.reference import Reference, ReferenceGrammar, ReferenceObject

from harness.backend.contract.place import NotApplicable
from harness.backend.grammar import Grammar, overrides
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import BACKEND_ERROR, Subject, checks, made, run_check
from harness.rows.row import OUT_OF_TIME
from harness.running import slot
from harness.running.limits import Limits
from harness.walk.watched import PHASES, WatchedObject

pytestmark = pytest.mark.usefixtures("importable_miniatures")


GRAMMAR = Grammar("regex", "ab+c|é")
CASE = Case(
    case_id(GRAMMAR), "a case", GRAMMAR, (Instance("one", b"abbc", True), Instance("two", "é".encode(), True))
)
METHODS = (
    "accept_token",
    "is_accepting",
    "is_terminated",
    "rollback",
    "copy",
    "jump_forward",
    "fast_forward_tokens",
    "accept_tokens",
)


def test_calls_that_are_long_together_miss_no_deadline(tmp_path: Path) -> None:
    case = {"regex": "a+", "tests": [{"text": "a" * 30, "valid": True}]}
    (row,) = walk_all(tmp_path, "miniatures.slow_in_sum:SlowInSum", [case], Limits(1.5, GIGABYTE)).values()
    assert (row.status, row.accepted) == ("ok", True) and (row.wall_ns or 0) > 2_000_000_000


def test_walks_of_slow_calls_have_an_end(tmp_path: Path) -> None:
    tests = [{"text": "a" * count, "valid": True} for count in (50, 51)]
    rows = walk_all(
        tmp_path, "miniatures.slow_in_sum:SlowInSum", [{"regex": "a+", "tests": tests}], Limits(0.3, GIGABYTE)
    )
    first, second = (rows[key] for key in sorted(rows, key=str))
    assert (first.status, first.phase) == ("timeout", "walk") and "s together after token" in first.text
    assert (second.status, second.phase) == ("skipped", "walk")


def test_walks_that_end_just_as_their_time_does_leave_a_timeout_too(tmp_path: Path) -> None:
    """Else nobody would say why the other instances were not walked, and it would count as our failure."""
    tests = [
        {"text": "a" * count, "valid": True} for count in (8, 50, 51)
    ]  # nine fills of 0.1 s, the end's too
    rows = walk_all(
        tmp_path, "miniatures.slow_in_sum:SlowInSum", [{"regex": "a+", "tests": tests}], Limits(0.3, GIGABYTE)
    )
    first, second, third = (rows[key] for key in sorted(rows, key=str))
    assert (first.status, second.status, third.status) == ("ok", "timeout", "skipped")
    assert "the walks before it had taken all the 0.9 s" in (second.text or "")


@pytest.mark.parametrize("name", ["HangsAndIsOurs", "RaisesAndIsOurs"])
def test_what_is_ours_is_never_accused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot, "OUR_SECONDS", 2.0)
    case = {"regex": "a+", "tests": [{"text": "aa", "valid": True}]}
    (row,) = walk_all(tmp_path, f"miniatures.slow_in_sum:{name}", [case], Limits(0.2, GIGABYTE)).values()
    assert row.status == "harness_error", row


def test_the_reference_says_that_it_is_ours() -> None:
    assert maker("reference", "Reference")(byte_vocabulary()).is_ours


def test_each_call_is_told_and_between_them_we_are_at_work() -> None:
    subject = Subject(Reference(byte_vocabulary()), CASE, Reference(byte_vocabulary()).compile(GRAMMAR))
    before = subject.progress[4]
    grammar_object = subject.compiled.start()
    subject.allowed(grammar_object)
    grammar_object.accept_token(ord("a"))
    assert subject.progress[4] == before + 3 and PHASES[subject.progress[0]] == "oracle"
    assert overrides(grammar_object, "rollback") and overrides(grammar_object, "copy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("answer", [*ANSWERS, "not_applicable"])
def test_in_no_check_is_a_wrong_answer_ours(method: str, answer: str) -> None:
    def not_applicable() -> None:
        raise NotApplicable("says the backend")

    calls = {**ANSWERS, "not_applicable": not_applicable}

    class Wrong(ReferenceObject):
        pass

    setattr(Wrong, method, lambda *_: calls[answer]())

    class Grammars(ReferenceGrammar):
        def start(self) -> ReferenceObject:
            return Wrong(self)

    adapter = Reference(byte_vocabulary())
    subject = Subject(adapter, CASE, Grammars(adapter, adapter.compile(GRAMMAR).pattern), 1)
    found: dict[str, Any] = {
        name: run_check(name, check, subject) for name, check in made(1, False).items()
    }  # raises OurFailure
    if answer != "none" or method != "rollback":
        assert any(each.cause for _, findings in found.values() for each in findings)
    if method == "accept_token":
        assert any(each.cause == BACKEND_ERROR for _, findings in found.values() for each in findings)
        assert not any("says the backend" in outcome for outcome, _ in found.values())


def test_a_check_that_takes_ten_times_the_time_of_all_is_ended() -> None:
    adapter = Reference(byte_vocabulary())
    subject = Subject(adapter, CASE, adapter.compile(GRAMMAR), 1, seconds=-1.0)
    name = "the_mask_says_what_accept_does"
    assert run_check(name, checks()[name], subject) == (OUT_OF_TIME, [])
    assert subject.watch.until == math.inf


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_what_was_never_made_is_given_up_silently() -> None:
    """A constructor that is interrupted leaves such an object."""
    WatchedObject.__new__(WatchedObject).__del__()
