"""The checks on drafts, on ids that are taken up anew and on reasoning: silent on the reference, and each
wrong backend is found by exactly those that are about its fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import miniatures
import pytest
from miniatures.wrong_boundaries import ANOTHER_WAY, MUTANTS

from harness.backend.bridge.reasoning import ReasoningGrammar, ReasoningObject
from harness.backend.bridge.thinking import NAMES, SPELLED, Thinking, ends_to_try
from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, GrammarObject, UnsupportedGrammar
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import (
    Check,
    Subject,
    checks_of,
    drafts,
    going_back,
    independence,
    reasoning,
    run_check,
    thoughts,
)
from harness.checks.seams import Seam, seams
from harness.oracle.reference import Reference, ReferenceObject
from harness.rows.row import Finding

SMALL = miniatures.small_vocabulary()
MODULES = (drafts, reasoning)
CHECKS: dict[str, Check] = {
    check.__name__.removeprefix("check_"): check for module in MODULES for check in checks_of(module)
}


def case(dialect: Any, grammar: Any, *outputs: str) -> Case:
    value = Grammar(dialect, grammar if isinstance(grammar, str) else json.dumps(grammar))
    instances = tuple(Instance(output, output.encode(), True) for output in outputs)
    return Case(case_id(value), "", value, instances)


OLD = case(
    "structural_tag",
    {
        "triggers": ["<f"],
        "structures": [{"begin": "<f=a>", "schema": {"type": "integer"}, "end": "</f>"}],
    },
    "x<f=a>12</f>y",
    "é\n<f=a>7</f>",
)
NEW = case(
    "structural_tag",
    {
        "format": {
            "type": "triggered_tags",
            "triggers": ["<f="],
            "tags": [{"begin": "<f=a>", "content": {"type": "regex", "pattern": "[ab]+"}, "end": "</f>"}],
        }
    },
    "<f=a>ab</f> and <f=a>a</f>",
)
TEXT = case("regex", "(日本|日光|é)[0-9]{1,3}\n?(ab|ac)?", "日本12\nab", "é1")
CASES = (OLD, NEW, TEXT)


def outcomes(adapter: Adapter, chosen: Case, effort: int | None = 4) -> dict[str, tuple[str, list[Finding]]]:
    subject = Subject(adapter, chosen, adapter.compile(chosen.grammar), effort)
    return {name: run_check(name, check, subject) for name, check in CHECKS.items()}


class Thinks(Reference):
    """It thinks by itself, and as it should."""

    def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
        class Own(CompiledGrammar):
            start = ReasoningGrammar(compiled, Thinking(self.vocabulary, end)).start

        return Own()


def thinking_by(kind: type[ReasoningObject]) -> Adapter:
    """Returns the reference, whose objects that think are of this class."""

    class Own(CompiledGrammar):
        def __init__(self, inner: CompiledGrammar, thinking: Thinking) -> None:
            self.inner, self.thinking = inner, thinking

        def start(self) -> GrammarObject:
            return kind(self.inner.start(), self.thinking, (), None)

    class ThinksSo(Reference):
        def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
            return Own(compiled, Thinking(self.vocabulary, end))

    return ThinksSo(SMALL)


@pytest.mark.parametrize("effort", [1, 4, None])
@pytest.mark.parametrize("chosen", CASES, ids=["old", "new", "text"])
def test_nothing_is_found_in_the_reference(chosen: Case, effort: int | None) -> None:
    seen = outcomes(Thinks(SMALL), chosen, effort)
    assert {name: outcome for name, outcome in seen.items() if outcome != ("passed", [])} == {}


def test_masks_of_the_second_format_are_looked_at_too() -> None:
    assert {outcome for outcome, _ in outcomes(Thinks(SMALL, mask="bool"), OLD).values()} == {"passed"}


@pytest.mark.parametrize("kind", [Thinks, Reference])
def test_an_output_may_begin_with_the_last_id_of_the_end(kind: type[Reference]) -> None:
    """Taken back to before that id, one that thinks on with the first tokens of the output ends at once."""
    seen = outcomes(kind(SMALL), case("choice", [">", "<", ">="], ">"))
    assert {name: found for name, (_, found) in seen.items() if found} == {}
    assert seen["rollback_crosses_the_end_of_reasoning"][0] == "passed"


TOOL = case(
    "structural_tag",
    {
        "format": {
            "type": "sequence",
            "elements": [{"type": "token", "token": "<tool>"}, {"type": "const_string", "value": "xy"}],
        }
    },
)
TOOL = replace(TOOL, instances=(Instance("a special id", b"xy", True, tokens=("<tool>", "x", "y")),))


def test_no_special_id_of_an_output_stands_in_the_thinking() -> None:
    """docs/reasoning.md: only tokens of text, and the end, may come there."""
    passed: dict[str, tuple[str, list[Finding]]] = dict.fromkeys(CHECKS, ("passed", []))
    assert outcomes(Thinks(SMALL), TOOL) == passed
    seen = outcomes(Reference(SMALL), TOOL)
    for name in ("a_draft_may_cross_the_end_of_reasoning", "rollback_crosses_the_end_of_reasoning"):
        assert seen[name] == passed[name], "not skipped because the thinking is refused"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_adapter_fails_exactly_its_own_checks(mutant: Any) -> None:
    seen = [each for chosen in (OLD, TEXT) for each in outcomes(mutant(SMALL), chosen, 2).items()]
    assert {name for name, (outcome, _) in seen if outcome == "failed"} == MUTANTS[mutant]
    findings = [each for _, (_, found) in seen for each in found]
    assert not [each for each in findings if each.cause == "backend_error"]
    assert all(each.position is not None and 0 <= each.position <= len(each.walk) for each in findings)


def test_every_check_fails_on_some_wrong_adapter() -> None:
    assert set().union(*MUTANTS.values()) == set(CHECKS)


def test_a_way_that_is_remembered_is_seen_only_where_another_one_is_taken() -> None:
    (mutant,) = [each for each in MUTANTS if each.__name__ == "RemembersTheWayTakenBack"]
    adapter: Adapter = mutant(SMALL)
    subject = Subject(adapter, OLD, adapter.compile(OLD.grammar), 4)
    older = [check for module in (going_back, independence) for check in checks_of(module)]
    assert {run_check("", check, subject)[0] for check in older} == {"passed"}
    (found, *_) = run_check(ANOTHER_WAY, CHECKS[ANOTHER_WAY], subject)[1]
    fresh = adapter.compile(OLD.grammar).start()
    assert fresh.accept_tokens(found.walk) == len(found.walk), "the walk leads where it went wrong"


STEPS = case("regex", "(ax|by){4}", "axbyaxby")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("fault", ["too far", "always too far", "remembers"])
def test_each_number_of_drafted_tokens_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, fault: str, count: int
) -> None:
    """A backend that goes wrong only where so many tokens are taken back at once is found, and once."""

    class GoesWrong(ReferenceObject):
        behind: int | None = None

        def rollback(self, number: int) -> None:
            before = self._states.copy()
            super().rollback(number)
            whole = fault == "always too far" or len(before) == 7  # the whole draft was taken
            if fault != "remembers" and number == count and whole and len(self._states) > 1:
                self._states.pop()
            elif fault == "remembers" and number > 1:
                self.behind = before[len(self._states)] if number == count else None

        def accept_token(self, token: int) -> bool:
            taken = super().accept_token(token)
            if taken and self.behind is not None:
                self._states[-1], self.behind = self.behind, None
            return taken

    class Bent(Reference):
        def compile(self, grammar: Grammar) -> Any:
            compiled = super().compile(grammar)
            compiled.start = lambda: GoesWrong(self, compiled._language)  # type: ignore[method-assign]
            return compiled

    tokens = tuple(SMALL.ids_by_bytes[bytes([byte])] for byte in b"axbyaxby")
    monkeypatch.setattr(drafts, "seams", lambda *_: [Seam(0, tokens, 2, 6, "any")])
    monkeypatch.setattr(drafts, "_take_drawn_drafts", lambda *_: iter(()))
    adapter = Bent(SMALL)
    subject = Subject(adapter, STEPS, adapter.compile(STEPS.grammar), 4)
    found = run_check(ANOTHER_WAY, CHECKS[ANOTHER_WAY], subject)[1]
    if fault == "too far":
        assert [each.position for each in found] == [6 - count]
        assert f"rollback({count}), it looks different from a fresh object" in found[0].text
    elif fault == "always too far":
        (one,) = found
        assert f"rollback({count}), it " in one.text
    elif count == 3:
        (one,) = found
        assert "it takes 1 of the 4 tokens that it took before" in one.text
    elif count in (2, 4):  # elsewhere only one token may come
        assert [each.position for each in found] == [6 - count]
        assert "leads elsewhere than in a fresh object" in found[0].text
    else:
        assert not found


@pytest.mark.parametrize("short", [0, 1])
def test_a_draft_may_raise_for_what_comes_behind_its_end_and_must_take_what_is_before(short: int) -> None:
    class RaisesBehindTheEnd(ReferenceObject):
        def accept_tokens(self, tokens: Sequence[int]) -> int:
            if SMALL.eos_token in tokens[:-1]:
                raise ValueError("the output has ended")
            ends = SMALL.eos_token in tokens
            return super().accept_tokens(tokens[: len(tokens) - short * ends])

    class Raising(Thinks):
        def compile(self, grammar: Grammar) -> Any:
            compiled = super().compile(grammar)
            compiled.start = lambda: RaisesBehindTheEnd(self, compiled._language)  # type: ignore[method-assign]
            return compiled

    seen = outcomes(Raising(SMALL), TEXT)
    about_ends = {"a_draft_ends_at_end_of_sequence", "a_draft_may_cross_the_end_of_reasoning"}
    found = {name: found for name, (_, found) in seen.items() if found}
    assert set(found) == (about_ends if short else set())
    for each in (one for several in found.values() for one in several):
        assert "as number" in each.text and each.walk[-1] == SMALL.eos_token


def test_no_drawn_draft_holds_an_end() -> None:
    adapter, chosen = Reference(SMALL), case("regex", "a*", "aa")
    subject = Subject(adapter, chosen, adapter.compile(chosen.grammar))
    drawn = drafts._goes_on(subject, subject.compiled.start()).tolist()
    assert SMALL.ids_by_bytes[b"a"] in drawn and SMALL.eos_token not in drawn


@pytest.mark.parametrize("effort", [4, None])
def test_without_a_limit_ids_are_taken_up_anew_at_each_position(
    monkeypatch: pytest.MonkeyPatch, effort: int | None
) -> None:
    class GoesWrongWithThree(ReferenceObject):
        def accept_tokens(self, tokens: Sequence[int]) -> int:
            taken = super().accept_tokens(tokens)
            if len(tokens) == 3:
                self._states.pop()
            return taken

    tokens = tuple(SMALL.ids_by_bytes[bytes([byte])] for byte in b"axbyaxby")
    monkeypatch.setattr(drafts, "seams", lambda *_: [Seam(0, tokens, 1, 7, "any")])
    adapter = Reference(SMALL)
    compiled: Any = adapter.compile(STEPS.grammar)
    compiled.start = lambda: GoesWrongWithThree(adapter, compiled._language)
    name = "ids_taken_up_anew_lead_to_the_same_place"
    found = run_check(name, CHECKS[name], Subject(adapter, STEPS, compiled, effort))[1]
    assert [each.position for each in found] == ([3] if effort is None else [])


def test_what_else_is_forced_is_told() -> None:
    (mutant,) = [each for each in MUTANTS if each.__name__ == "ForcesOnlyOnceItWentBack"]
    (found, *_) = outcomes(mutant(SMALL), TEXT)["ids_taken_up_anew_lead_to_the_same_place"][1]
    assert "looks different: (b'', " in found.text and " is forced, and not (b'" in found.text


def test_what_an_object_that_thinks_is_worth_behind_a_refusal_is_no_matter() -> None:
    class Breaks(ReasoningObject):
        is_broken = False

        def accept_token(self, token: int) -> bool:
            taken = super().accept_token(token)
            self.is_broken = self.is_broken or not taken
            return taken

        def fill_bitmask(self, bitmask: Any) -> None:
            super().fill_bitmask(bitmask)
            bitmask[:] = 0 if self.is_broken else bitmask

    seen = outcomes(thinking_by(Breaks), TEXT)
    assert seen["only_the_first_end_of_reasoning_counts"] == ("passed", [])


def test_any_number_of_drafted_tokens_may_be_taken_in_one_call() -> None:
    class RefusesOneAlone(ReasoningObject):
        def accept_tokens(self, tokens: Sequence[int]) -> int:
            return 0 if len(tokens) == 1 else super().accept_tokens(tokens)

    found = outcomes(thinking_by(RefusesOneAlone), OLD)["a_draft_may_cross_the_end_of_reasoning"][1]
    assert found and all("0 of 1 drafted tokens are taken" in each.text for each in found)


def test_drafts_begin_right_before_the_end_of_the_thinking_and_at_the_start_of_an_empty_one() -> None:
    (mutant,) = [each for each in MUTANTS if each.__name__ == "LooksForNoEndInDrafts"]
    found = outcomes(mutant(SMALL), OLD)["a_draft_may_cross_the_end_of_reasoning"][1]
    begun = {int(each.text.partition("in a draft from ")[2].split()[0]) for each in found}
    assert 0 in begun and max(begun) > 2


def test_a_token_that_may_not_come_in_a_draft_is_told_where_it_stands() -> None:
    class TriesTwo(ReasoningObject):
        def fill_draft(self, tokens: Sequence[int], bitmasks: Any) -> int:
            for place in (0, 1):
                self.fill_bitmask(bitmasks[place])
                assert self.accept_token(tokens[place])
            self.fill_bitmask(bitmasks[2])
            self.rollback(2)
            return 2

    found = outcomes(thinking_by(TriesTwo), OLD)["a_draft_may_cross_the_end_of_reasoning"][1]
    assert {each.text.rpartition(" ")[2] for each in found} == {"come"}
    for each in found:
        begun = int(each.text.partition("in a draft from ")[2].split()[0])
        assert each.position == begun + 2 == len(each.walk) - 1


def test_only_a_mask_that_is_open_is_called_unconstrained() -> None:
    class NeverAnswers(ReasoningObject):
        def fill_bitmask(self, bitmask: Any) -> None:
            bitmask[:] = self._thinking.bitmask

    class ForbidsOne(ReasoningObject):
        def fill_bitmask(self, bitmask: Any) -> None:
            super().fill_bitmask(bitmask)
            if not self.thinks:
                bitmask[:] &= ~(1 << 3)

    for kind, cause in ((NeverAnswers, "unconstrained"), (ForbidsOne, "")):
        found = outcomes(thinking_by(kind), OLD)["the_answer_begins_behind_the_end_of_reasoning"][1]
        assert {each.cause for each in found} == {cause}


@pytest.mark.parametrize(("effort", "instances"), [(1, 1), (4, 1), (8, 2), (None, 3)])
def test_outputs_that_think_nothing_come_once_and_others_for_several_instances(
    effort: int | None, instances: int
) -> None:
    chosen, ends = case("regex", "[ab]{2}", "ab", "ba", "bb"), len(list(ends_to_try(SMALL)))
    for kind, all_of_it in ((Thinks, (instances + 1) * ends), (Reference, 1)):
        adapter = kind(SMALL)
        subject = Subject(adapter, chosen, adapter.compile(chosen.grammar), effort)
        seen = list(thoughts.thoughts(subject, "test", ours=True))
        assert len(seen) == all_of_it
        assert len({each.answer.instance for each in seen}) == (instances if kind is Thinks else 1)
        assert sum(not each.thinking for each in seen) == (ends if kind is Thinks else 0)


def test_without_an_instance_the_start_is_looked_at() -> None:
    (mutant,) = [each for each in MUTANTS if each.__name__ == "ConstrainsTheThinking"]
    seen = outcomes(mutant(SMALL), replace(TEXT, instances=()))
    assert seen["reasoning_is_not_constrained"][0] == "failed"


def test_stretches_lie_around_tags_and_characters_and_anywhere() -> None:
    adapter = Reference(SMALL)
    subject = Subject(adapter, OLD, adapter.compile(OLD.grammar), None)
    found = seams(subject, "test")
    texts = {(seam.what, SMALL.decode(seam.tokens[seam.first : seam.last])) for seam in found}
    assert ("tag", b"x<f=a>12") in texts and ("tag", b"x<f=") in texts, "with a token on either side"
    assert {what for what, _ in texts} == {"tag", "character", "any"}
    assert any(b"</f>" in text for _, text in texts)


def test_of_a_backend_that_does_not_think_only_the_ways_back_to_its_start_are_checked() -> None:
    seen = outcomes(Reference(SMALL), OLD)
    asked = {name for name, (outcome, _) in seen.items() if outcome == "passed"}
    about_thinking = {check.__name__.removeprefix("check_") for check in checks_of(reasoning)}
    assert asked & about_thinking == {
        "a_draft_may_cross_the_end_of_reasoning",
        "rollback_crosses_the_end_of_reasoning",
    }
    assert {outcome for outcome, _ in seen.values()} == {
        "passed",
        "skipped: the backend does not think by itself",
    }


# Where a backend cannot do all of it


def cut_short(*lacking: str) -> Adapter:
    """The reference, whose objects lack these methods."""
    methods = {name: getattr(GrammarObject, name) for name in lacking}
    kind = type("CutShort", (ReferenceObject,), methods)

    class Lacking(Thinks):
        def compile(self, grammar: Grammar) -> Any:
            compiled = super().compile(grammar)
            compiled.start = lambda: kind(self, compiled._language)  # type: ignore[method-assign]
            return compiled

    return Lacking(SMALL)


def test_what_never_goes_back_is_asked_the_rest() -> None:
    seen = outcomes(cut_short("rollback"), OLD)
    skipped = {name for name, (outcome, _) in seen.items() if outcome.startswith("skipped")}
    assert skipped == {ANOTHER_WAY, "rollback_crosses_the_end_of_reasoning"}
    assert all(outcome == "passed" for name, (outcome, _) in seen.items() if name not in skipped)


def test_what_nobody_reaches_is_not_passed() -> None:
    class RefusesTheEnd(ReasoningObject):
        def accept_token(self, token: int) -> bool:
            return not (self.thinks and token in self._thinking.end) and super().accept_token(token)

    class NeverAnswers(Reference):
        def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
            thinking = Thinking(self.vocabulary, end)

            class Own(CompiledGrammar):
                def start(self) -> GrammarObject:
                    return RefusesTheEnd(compiled.start(), thinking, (), None)

            return Own()

    seen = {name: outcome for name, (outcome, _) in outcomes(NeverAnswers(SMALL), OLD).items()}
    assert seen["the_answer_begins_behind_the_end_of_reasoning"] == "failed"
    assert seen["reasoning_is_not_constrained"] == "failed"
    for name in ("only_the_first_end_of_reasoning_counts", "rollback_crosses_the_end_of_reasoning"):
        assert seen[name] == "skipped: a token of the thinking, of its end or of the answer is refused"


def test_an_end_that_a_backend_cannot_have_is_left_out() -> None:
    class OneId(Thinks):
        def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
            if len(end) > 1:
                raise UnsupportedGrammar("one id ends it")
            return super().reasoning(compiled, end)

    class Never(Reference):
        def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
            raise UnsupportedGrammar("it never thinks")

    assert {outcome for outcome, _ in outcomes(OneId(SMALL), OLD).values()} == {"passed"}
    name = "reasoning_is_not_constrained"
    assert outcomes(Never(SMALL), OLD)[name][0] == "skipped: it never thinks"
    bare = Vocabulary("bare", (b"a", b"b", b""), (2,), {2: "</s>"})
    chosen = case("regex", "a+", "aa")
    assert (
        outcomes(Reference(bare), chosen)[name][0]
        == "skipped: the vocabulary has no token to end the thinking"
    )


@pytest.mark.parametrize("name", [*NAMES, "\n"])
def test_an_end_of_sequence_ends_no_thinking_whatever_its_name(name: str) -> None:
    """Some tokenizers name the end of the thinking among the ends of the output."""
    texts = tuple(bytes([byte]) for byte in range(256) if bytes([byte]) != b"\n" or name != "\n")
    size = len(texts)
    known = Vocabulary("ends", (*texts, b"", b""), (size, size + 1), {size: "</s>", size + 1: name})
    ends = list(ends_to_try(known))
    assert [known.decode(end) for end in ends] == [*([] if name == "\n" else [b"\n"]), SPELLED]
    seen = outcomes(Thinks(known), case("regex", "[ab]{2}", "ab"))
    assert {name: outcome for name, outcome in seen.items() if outcome != ("passed", [])} == {}
