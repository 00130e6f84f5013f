"""Faults that show in a corner only, each in a backend that is right but for it; the right one is silent."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NoReturn

import numpy as np
import pytest
from check_cases import case

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    are_documented,
)
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.checks import OurFailure, Subject, checks, run_check
from harness.oracle import language
from harness.oracle.reference import Reference
from harness.outcomes.case_state import UNASKED, CaseState, only_where
from harness.outcomes.outcome import fault_of
from harness.rows.row import Finding

TEXTS = (
    *(bytes([byte]) for byte in range(256)), b"", b"", b"", b"12", b"23", b"ab", b"</f>", b'{"a": ', b"",
)  # fmt: skip
VOCABULARY = Vocabulary(
    "edges", TEXTS, (257, 256), {256: "<s>", 257: "</s>", 258: "<tool>"}, frozenset((len(TEXTS) - 1,))
)
END = 257


class Right(GrammarObject):
    """What the reference says, without methods that are not tried here."""

    of: CompiledGrammar

    def __init__(self, inner: GrammarObject, adapter: Wrapping) -> None:
        self.inner, self.adapter = inner, adapter

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.inner.fill_bitmask(bitmask)

    def accept_token(self, token_id: int) -> bool:
        self.adapter.patience -= 1
        if self.adapter.patience < 0:
            raise RuntimeError("no more")
        return self.inner.accept_token(token_id)

    def is_accepting(self) -> bool:
        return self.inner.is_accepting()

    def is_terminated(self) -> bool:
        return self.inner.is_terminated()


class GivesSomethingWrongToOurs(Right):
    """Its fault surfaces in a function of ours."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.inner.is_accepting():
            self.adapter.vocabulary.decode([self.adapter.vocabulary.size])
        self.inner.fill_bitmask(bitmask)


class ForcesTheEnd(Right):
    """Says that end-of-sequence is forced wherever it is allowed."""

    def fast_forward_tokens(self) -> list[int]:
        return [END] if self.inner.is_accepting() and not self.inner.is_terminated() else []


class GoesFurtherInADraft(Right):
    """In the middle of an output, `accept_tokens` skips what it refuses."""

    moved = False

    def accept_token(self, token_id: int) -> bool:
        taken = self.inner.accept_token(token_id)
        self.moved |= taken
        return taken

    def accept_tokens(self, token_ids: Sequence[int]) -> int:
        if not self.moved:
            return super().accept_tokens(token_ids)
        count = super().accept_tokens(token_ids)
        for token in token_ids[count + 1 :]:
            self.inner.accept_token(token)
        return count


class MovesBeyondTheVocabulary(Right):
    """Refusing the first id outside moves it; a negative one is an error, as with unsigned integers."""

    def accept_token(self, token_id: int) -> bool:
        if token_id < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if token_id == self.adapter.vocabulary.size:
            any(map(self.inner.accept_token, range(token_id)))
            return False
        return self.inner.accept_token(token_id)


class GoesOnBehindTheEnd(Right):
    """This object takes every token behind its end, and raises for another end-of-sequence."""

    def accept_token(self, token_id: int) -> bool:
        if not self.inner.is_terminated():
            return self.inner.accept_token(token_id)
        if token_id in self.adapter.vocabulary.eos_tokens:
            raise RuntimeError("the output has ended")
        return True


class CannotGoBack(Right):
    """It forces text, and has a `rollback` that says it is none."""

    def jump_forward(self) -> bytes:
        return self.inner.jump_forward()

    def rollback(self, count: int) -> None:
        raise NotImplementedError


class ForcesInAnArray(Right):
    """Gives an array where a list is asked for."""

    def fast_forward_tokens(self) -> Any:
        return np.array(self.inner.fast_forward_tokens())


class ForcesByNumpysIntegers(Right):
    """Gives a list of numpy's integers, and once an id that is not forced."""

    def fast_forward_tokens(self) -> Any:
        return list(np.array(self.inner.fast_forward_tokens() or [ord("z")]))


class AllowsWhatIsWrong(Right):
    """Its mask allows two letters that never come, and what is special."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.inner.fill_bitmask(bitmask)
        for token in (ord("y"), ord("z"), 258):
            bitmask[token // 32] |= np.int32(np.uint32(1 << token % 32).view(np.int32))


class TakesMore(Right):
    """Takes longer strings than it may."""

    def __init__(self, inner: GrammarObject, adapter: Wrapping) -> None:
        longer = adapter.reference.compile(Grammar("json_schema", '{"type": "string"}'))
        super().__init__(longer.start(), adapter)


class RefusesInTurns(Right):
    """Where objects of two grammars take turns, that of the second is refused a token."""

    def accept_token(self, token_id: int) -> bool:
        turns = self.adapter.turns
        turns.append(self.of)
        if turns[-3:] == [self.of, self.adapter.first, self.of] and self.of is not self.adapter.first:
            return False
        return self.inner.accept_token(token_id)


class Wrapped(CompiledGrammar):
    def __init__(self, inner: CompiledGrammar, adapter: Wrapping) -> None:
        self.inner, self.adapter = inner, adapter

    def start(self) -> GrammarObject:
        started = self.adapter.kind(self.inner.start(), self.adapter)
        started.of = self
        return started


class Wrapping(Adapter):
    distribution = ""
    dialects = Reference.dialects
    patience = 1_000_000
    """How many tokens an object is asked about until it raises."""
    first: CompiledGrammar | None = None

    def __init__(self, vocabulary: Vocabulary, kind: type[Right]) -> None:
        super().__init__(vocabulary)
        self.kind, self.reference = kind, Reference(vocabulary)
        self.layout = self.reference.layout
        self.turns: list[CompiledGrammar] = []

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        compiled = Wrapped(self.reference.compile(grammar), self)
        self.first = self.first or compiled
        return compiled


REGEX = case("regex", "[ab][0-9]{2,24}c?", "a1223c", "b3333")
DIGITS = case("regex", "[0-9]{3}", "123")
INTEGER = case("json_schema", {"type": "integer"}, "12", "123456")
FORCED = case("choice", ["yes, please", "yes, thanks"], "yes, please")


def findings(
    name: str, kind: type[Right], of: Case, vocabulary: Vocabulary = VOCABULARY
) -> tuple[str, list[Finding]]:
    adapter = Wrapping(vocabulary, kind)
    return run_check(name, checks()[name], Subject(adapter, of, adapter.compile(of.grammar), None))


@pytest.mark.parametrize(
    ("name", "kind", "of", "cause"),
    [
        ("fast_forward_tokens_are_truly_forced", ForcesTheEnd, INTEGER, "past_a_choice"),
        ("fast_forward_tokens_are_truly_forced", ForcesTheEnd, REGEX, "past_a_choice"),
        ("accept_tokens_stops_where_accept_token_does", GoesFurtherInADraft, REGEX, ""),
        ("an_id_outside_the_vocabulary_is_refused", MovesBeyondTheVocabulary, DIGITS, "outside"),
        ("a_terminated_object_takes_nothing", GoesOnBehindTheEnd, REGEX, ""),
        ("two_grammars_do_not_disturb_each_other", RefusesInTurns, REGEX, ""),
    ],
)
def test_a_fault_in_a_corner_is_found(name: str, kind: type[Right], of: Case, cause: str) -> None:
    assert findings(name, Right, of)[0] in ("passed", "skipped: no fast_forward_tokens")
    outcome, found = findings(name, kind, of)
    assert outcome == "failed" and {finding.cause for finding in found} - {"more"} == {cause}


class RaisesBehindARefusal(Right):
    """It is in order until it has refused a token; from then on it raises whatever it is asked."""

    has_refused = False

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.fail_behind_a_refusal()
        super().fill_bitmask(bitmask)

    def accept_token(self, token_id: int) -> bool:
        taken = super().accept_token(token_id)
        self.has_refused |= not taken
        return taken

    def is_terminated(self) -> bool:
        self.fail_behind_a_refusal()
        return super().is_terminated()

    def fail_behind_a_refusal(self) -> None:
        if self.has_refused:
            raise RuntimeError("the parser has failed")


class RaisesInAFill(Right):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        raise RuntimeError("the parser has failed")


@pytest.mark.parametrize("name", [*UNASKED])
def test_who_raises_for_what_no_engine_hands_over_breaks_no_output(name: str) -> None:
    assert findings("looking_does_not_move", RaisesBehindARefusal, DIGITS) == ("passed", [])
    _, found = findings(name, RaisesBehindARefusal, DIGITS)
    said = f"only where it is handed {UNASKED[name]}"
    assert [(each.cause, only_where(each), fault_of(each).state) for each in found] == [
        ("backend_error", said, CaseState.OTHER_FAULT)
    ]


def test_who_raises_for_what_engines_do_breaks() -> None:
    found = findings("looking_does_not_move", RaisesInAFill, DIGITS)[1]
    assert [(each.cause, only_where(each), fault_of(each).state) for each in found] == [
        ("backend_error", "", CaseState.BREAKS)
    ]


def test_what_a_backend_makes_a_function_of_ours_raise_is_its_own() -> None:
    outcome, found = findings("the_mask_says_what_accept_does", GivesSomethingWrongToOurs, REGEX)
    assert outcome == "failed" and found[-1].cause == "backend_error" and "IndexError" in found[-1].text


@pytest.mark.parametrize("where", ["harness.oracle.x", "a_library"])
def test_what_our_reference_raises_is_never_the_backends(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is what a library raises that it calls."""

    def fails(*_: object) -> NoReturn:
        raise AttributeError("'list' object has no attribute 'get'")

    name, adapter = "every_allowed_token_leads_to_a_document", Wrapping(VOCABULARY, Right)
    subject = Subject(adapter, INTEGER, adapter.compile(INTEGER.grammar), 4)
    monkeypatch.setattr(
        language, "documents_of", FunctionType(fails.__code__, {**globals(), "__name__": where})
    )
    language.outputs_of.cache_clear()
    with pytest.raises(OurFailure, match="AttributeError"):
        run_check(name, checks()[name], subject)


def test_a_failure_of_ours_stays_ours() -> None:
    def broken(subject: Subject) -> Any:
        subject.allowed(subject.compiled.start())
        subject.vocabulary.decode([subject.vocabulary.size])
        yield from ()

    adapter = Wrapping(VOCABULARY, Right)
    with pytest.raises(OurFailure, match="IndexError"):
        run_check(
            "the_mask_says_what_accept_does",
            broken,
            Subject(adapter, REGEX, adapter.compile(REGEX.grammar), 4),
        )


def test_a_wrapper_that_cannot_go_back_is_not_asked_to() -> None:
    whole = case("choice", ["xab12, please", "xab12, thanks"], "xab12, please")
    outcome, _ = findings("retokenized_state_equals_a_replay", CannotGoBack, whole)
    assert outcome == "skipped: the adapter does not implement rollback"


def test_an_array_of_forced_tokens_is_no_failure_of_ours() -> None:
    assert findings("asking_for_forced_text_does_not_move", ForcesInAnArray, FORCED) == ("passed", [])
    (found, *_) = findings("forced_text_may_end_inside_a_character", ForcesInAnArray, FORCED)[1]
    assert found.cause == "not_tokens"


def test_numpys_integers_are_token_ids_and_stand_in_a_finding_as_integers() -> None:
    assert findings("forced_text_may_end_inside_a_character", ForcesByNumpysIntegers, FORCED)[1] == []
    (found, *_) = findings("fast_forward_tokens_are_truly_forced", ForcesByNumpysIntegers, FORCED)[1]
    assert "[122]" in found.text and {type(token) for token in found.walk} == {int}


def test_a_vocabulary_of_three_ids_has_its_end_looked_at() -> None:
    three = Vocabulary("three", (b"a", b"", b"b"), (1,), {1: "</s>"})
    outcome, _ = findings("a_terminated_object_takes_nothing", Right, case("regex", "a+", "aa"), three)
    assert outcome == "passed"


def test_a_special_token_explains_itself_and_nothing_else() -> None:
    causes = {finding.cause for finding in findings("the_mask_is_exact", AllowsWhatIsWrong, REGEX)[1]}
    assert causes - {"more"} == {""}


@pytest.mark.parametrize(
    ("cause", "documented", "wanted"),
    [
        ("keyword_maximum+minimum", {"keyword_maximum", "keyword_minimum"}, True),
        ("keyword_maximum+minimum", {"keyword_maximum"}, False),
        ("keyword_maximum+minimum", {"keyword_maximum", "minimum"}, True),
        ("special_token+whitespace", {"special_token", "whitespace"}, True),
        (
            "special_token+keyword_maximum+minimum",
            {"special_token", "keyword_maximum", "keyword_minimum"},
            True,
        ),
    ],
)
def test_each_part_of_a_cause_must_be_documented(cause: str, documented: set[str], wanted: bool) -> None:
    assert are_documented(cause, documented) is wanted


@pytest.mark.parametrize(
    ("name", "kind", "of"),
    [
        (
            "walks_end_and_validate",
            TakesMore,
            case("json_schema", {"type": "string", "maxLength": 3}, '"abc"'),
        ),
        ("the_mask_says_what_accept_does", AllowsWhatIsWrong, REGEX),
    ],
)
def test_what_was_found_before_the_backend_raised_is_told(name: str, kind: type[Right], of: Case) -> None:
    adapter = Wrapping(VOCABULARY, kind)
    outcome, found = run_check(name, checks()[name], Subject(adapter, of, adapter.compile(of.grammar), 4))
    assert outcome == "failed" and "backend_error" not in {finding.cause for finding in found}
    adapter.patience = 1_000_000 - adapter.patience - 1  # one less than it needs
    outcome, found = run_check(name, checks()[name], Subject(adapter, of, adapter.compile(of.grammar), 4))
    causes = {finding.cause for finding in found}
    assert outcome == "failed" and "backend_error" in causes and causes - {"backend_error"}
