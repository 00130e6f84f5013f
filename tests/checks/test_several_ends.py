"""Several ids of end-of-sequence: right adapters pass, and one that is wrong about the second id fails
exactly its own checks, of the contract and on cases."""

from __future__ import annotations

import pytest
from adapter_tools import failed
from miniatures.reference import Reference
from miniatures.wrong_ends import FIRST, MUTANTS, SECOND, KnowsOneEnd, several_ends

from harness.backend.grammar import Adapter, Grammar
from harness.backend.registry import make, parse_spec
from harness.cases.case import Case, Instance, case_id
from harness.checks import (
    Check,
    Subject,
    checks_of,
    exact_mask,
    going_back,
    independence,
    lifecycle,
    masks,
    run_check,
)
from harness.oracle.reference import Reference as OurReference
from harness.rows.row import Finding
from harness.walk.replay import compile_grammar, walk
from harness.walk.watched import unwatched

CHECKS: dict[str, Check] = {
    check.__name__.removeprefix("check_"): check
    for module in (exact_mask, going_back, independence, lifecycle, masks)
    for check in checks_of(module)
}
GRAMMAR = Grammar("regex", "[ab][0-9]{2,24}c+")
CASE = Case(
    case_id(GRAMMAR),
    "digits",
    GRAMMAR,
    tuple(Instance(text, text.encode(), None) for text in ("a12cc", "b345")),
)


def failed_on_the_case(adapter: Adapter) -> dict[str, list[Finding]]:
    subject = Subject(adapter, CASE, adapter.compile(GRAMMAR), None)
    found = {name: run_check(name, check, subject)[1] for name, check in CHECKS.items()}
    return {name: findings for name, findings in found.items() if findings}


@pytest.mark.parametrize("adapter", [Reference, KnowsOneEnd, OurReference])
def test_a_right_adapter_passes(adapter: type[Adapter]) -> None:
    made = adapter(several_ends())
    assert made.vocabulary.eos_tokens == ((FIRST,) if adapter is KnowsOneEnd else (FIRST, SECOND))
    assert failed(made) == set()
    assert failed_on_the_case(made) == {}


def test_no_constraint_at_all_allows_each_id_everywhere() -> None:
    assert failed(make(parse_spec("unconstrained"), several_ends())) == set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_adapter_fails_exactly_its_own_checks(mutant: type[Adapter]) -> None:
    adapter = mutant(several_ends())
    found = failed_on_the_case(adapter)
    assert failed(adapter) | found.keys() == MUTANTS[mutant]


@pytest.mark.parametrize(
    ("mutant", "said"),
    [
        ("NeverAllowsTheSecond", ["end-of-sequence <tool>: mask refuses, is_accepting True"]),
        ("ForbidsTheSecondInItsMask", ["end-of-sequence <tool>: mask refuses, is_accepting True"]),
        ("AllowsTheSecondTooEarly", []),
        ("KnowsMoreThanItSays", []),
    ],
)
def test_a_walk_looks_at_each_id_where_it_ends(mutant: str, said: list[str]) -> None:
    adapter = next(wrong for wrong in MUTANTS if wrong.__name__ == mutant)(several_ends())
    assert [finding.text for finding in findings_of_a_walk(adapter, b"a12c")] == said


def test_a_walk_that_may_not_end_names_the_id_that_the_mask_allows() -> None:
    adapter = next(wrong for wrong in MUTANTS if wrong.__name__ == "AllowsTheSecondTooEarly")(several_ends())
    assert [finding.text for finding in findings_of_a_walk(adapter, b"a12")] == [
        "end-of-sequence <tool>: mask allows, is_accepting False"
    ]


def findings_of_a_walk(adapter: Adapter, text: bytes) -> tuple[Finding, ...]:
    compiled = compile_grammar(adapter, GRAMMAR, unwatched())
    assert compiled.grammar is not None
    tokens = adapter.vocabulary.encode(text)
    return walk(compiled.grammar, adapter.vocabulary, tokens, adapter.mask_format, unwatched()).findings
