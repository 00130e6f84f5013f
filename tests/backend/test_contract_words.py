"""What `check` says of adapters that are wrong in one way which ends every check: the rule that is broken,
where, and once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import miniatures
import pytest
from miniatures.reference import ReferenceGrammar, ReferenceObject, small_vocabulary

from harness.backend.contract import CheckResult, check_adapter
from harness.backend.grammar import Adapter, Grammar, GrammarObject
from harness.cli.check import _conclusion, _line


class CompilesNothing(miniatures.Reference):
    def compile(self, grammar: Grammar) -> Any:
        super().compile(grammar)


class _StartsNothing(ReferenceGrammar):
    def start(self) -> Any:
        return None


class StartsNothing(miniatures.Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return _StartsNothing(self, super().compile(grammar).pattern)


class ListsItsDialects(miniatures.Reference):
    dialects: ClassVar[Any] = ["regex"]


class LeavesAnOptionOpen(miniatures.Reference):
    def __init__(self, vocabulary: Any, *, upper=False) -> None:  # type: ignore[no-untyped-def]
        super().__init__(vocabulary)


class NamesNoType(miniatures.Reference):
    def __init__(self, vocabulary: Any, *, upper: Boolean = False) -> None:  # type: ignore[name-defined]  # noqa: F821
        super().__init__(vocabulary)


class _Late(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        if len(self.taken) == 2:
            raise RuntimeError("too late")
        return super().accept_token(token)


class _Plain(_Late):
    """Has none of the methods that are optional."""

    copy, rollback = GrammarObject.copy, GrammarObject.rollback  # type: ignore[assignment]
    jump_forward = GrammarObject.jump_forward
    fast_forward_tokens = GrammarObject.fast_forward_tokens
    fill_bool_mask = GrammarObject.fill_bool_mask


class RaisesLate(miniatures.Reference):
    object_class = _Late


class RaisesLateAndHasLittle(miniatures.Reference):
    object_class = _Plain


def results_of(adapter: type[Adapter]) -> dict[str, CheckResult]:
    return {result.check: result for result in check_adapter(adapter(small_vocabulary()))}


@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        (CompilesNothing, "regex [ab][0-9]+: compile gives None, not a CompiledGrammar"),
        (StartsNothing, "regex [ab][0-9]+: start() gives None, not a GrammarObject"),
    ],
)
def test_what_compile_and_start_give_is_named_and_spelled_once(adapter: type[Adapter], said: str) -> None:
    """It was an AttributeError of ours, in 34 lines."""
    results = list(results_of(adapter).values())
    wrong = [result for result in results if result.status not in ("passed", "skipped")]
    assert {(result.status, result.text) for result in wrong} == {("failed", said)} and len(wrong) > 20
    lines = [_line(result, results[:number]) for number, result in enumerate(results)]
    assert sum(said in line for line in lines) == 1
    assert _conclusion("mine", results, False) == (
        f"mine breaks the contract in 1 check; {len(wrong) - 1} more checks end with the same error"
    )


def test_dialects_that_are_no_set_break_one_rule() -> None:
    """Another check raised a TypeError of our own."""
    results = results_of(ListsItsDialects)
    wrong = {name: result.text for name, result in results.items() if result.status in ("failed", "error")}
    assert list(wrong) == ["distribution_and_dialects_are_declared"], wrong
    assert wrong["distribution_and_dialects_are_declared"].startswith("dialects must be a set of names")


@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        (LeavesAnOptionOpen, 'option "upper" has no annotation'),
        (NamesNoType, "NameError: name 'Boolean' is not defined"),
    ],
)
def test_an_option_against_the_contract_is_found_before_it_is_used(adapter: type[Adapter], said: str) -> None:
    results = results_of(adapter)
    wrong = [result for result in results.values() if result.status in ("failed", "error")]
    assert [result.check for result in wrong] == ["distribution_and_dialects_are_declared"]
    assert said in wrong[0].text


def test_an_adapter_is_blamed_for_no_method_that_it_does_not_have() -> None:
    without = ("copy", "rollback", "jump_forward", "fast_forward", "bool_mask")
    results = results_of(RaisesLateAndHasLittle)
    of_these = {name: result for name, result in results.items() if any(each in name for each in without)}
    assert len(of_these) > 8
    assert {result.status for result in of_these.values()} == {"skipped"}
    assert {result.status for name, result in results.items() if name not in of_these} >= {"error"}
    assert "error" in {result.status for name, result in results_of(RaisesLate).items() if name in of_these}


def test_an_error_is_told_with_the_grammar_and_once() -> None:
    results: Sequence[CheckResult] = list(results_of(RaisesLate).values())
    raised = [result for result in results if result.status == "error"]
    assert {result.text for result in raised} == {"RuntimeError: too late"} and len(raised) > 20
    assert {result.where for result in raised} <= {"regex [ab][0-9]+", "regex (abc|abd)[0-9]"}
    lines = [_line(result, results[:number]) for number, result in enumerate(results)]
    (told,) = [line for line in lines if "too late" in line]
    assert told.endswith("RuntimeError: too late (with regex [ab][0-9]+)")


def test_two_losses_are_two_errors() -> None:
    lost = [CheckResult(name, "error", "killed by SIGABRT") for name in ("one", "other")]
    assert _line(lost[1], lost[:1]) == "error    other: killed by SIGABRT"
    assert _conclusion("mine", lost, False) == "mine breaks the contract in 2 checks"
