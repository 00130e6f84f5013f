"""A rewrite counts as a gain only where it mends what was at fault."""

from __future__ import annotations

import pytest

from harness.backend.grammar import Grammar
from harness.cases.case import Case, case_id
from harness.cases.rewrites import Rewritten
from harness.diagnose.advise import rewritten as rewrites
from harness.outcomes.answer import CaseAnswer
from harness.outcomes.case_state import CaseState

GRAMMAR = Grammar("json_schema", '{"enum": [1]}')
CASE = Case(case_id(GRAMMAR), "c", GRAMMAR)
NO_TEXT = "tokens that are no UTF-8"


def best(
    before: dict[str, CaseState], faults: dict[str, set[str]], is_cut: bool = False
) -> rewrites.Change | None:
    """Returns the change to a rewrite that works on all arms."""
    after = CaseAnswer("s", CASE.id, "c", CaseState.WORKS, was_cut_short=is_cut)
    answers = {(CASE.id, arm): after for arm in before}
    return rewrites._best("s", CASE, [Rewritten((), CASE)], rewrites._Seen(before, faults), answers)


@pytest.mark.parametrize(
    ("before", "is_cut", "helps"),
    [
        (CaseState.SILENTLY_WRONG, False, True),
        (CaseState.SILENTLY_WRONG, True, False),
        (CaseState.REFUSED, True, True),
    ],
)
def test_a_fault_is_mended_only_where_all_was_looked_at_again(
    before: CaseState, is_cut: bool, helps: bool
) -> None:
    assert (best({"a": before}, {"a": {"x.enum"}}, is_cut) is not None) == helps


@pytest.mark.parametrize("state", [CaseState.OTHER_FAULT, CaseState.SILENTLY_WRONG])
def test_a_fault_that_no_rewrite_mends_is_not_called_mended(state: CaseState) -> None:
    """A rewrite that shows none was only tried on a sample."""
    faults = {"a": set[str](), "b": {NO_TEXT}, "c": set[str]()}
    assert best({"b": state, "c": CaseState.WORKS}, faults) is None
    change = best({"a": CaseState.REFUSED, "b": state, "c": CaseState.WORKS}, faults)
    assert change is not None and (change.gained, change.works_on) == (("a",), ("a", "c"))
