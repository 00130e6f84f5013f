"""What rows mean: the faults and the outcome of a row, the outcome of a case, and what is in the denominator
of `conformance`."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from html_page import render

from harness.backend.grammar import Grammar
from harness.checks import checks, judging_dialects
from harness.oracle.automaton import NoOracle
from harness.oracle.language import language_of
from harness.outcomes.case_state import CaseState, state_of_fault
from harness.outcomes.outcome import (
    CaseRows,
    Counts,
    Outcome,
    counts_of,
    faults,
    in_words,
    is_documented,
    outcome,
    worst_fault,
)
from harness.outcomes.result import result_of
from harness.report import run_summary
from harness.report.cases.failing import OUTCOMES
from harness.rows.row import CHECKS_MODE, Finding
from harness.text import Console

BARE = {"instance": None, "valid": None, "accepted": None}
CHECKED = BARE | {"mode": CHECKS_MODE}
WALKS = "walks_end_and_validate"
MASKS = "the_mask_is_exact"
SPELLINGS = "spellings_are_accepted"
DOCUMENTED = Finding("a_check", 0, "said so", cause="policy", documented=True)
UNDOCUMENTED = Finding("a_check", 0, "wrong", cause="why")


@pytest.fixture
def came_to(synthetic: ModuleType) -> Any:
    """Folds rows of one case, given as dicts, and says what it came to and whether it was judged."""

    def fold(*rows: dict[str, Any]) -> tuple[str, bool]:
        case = CaseRows()
        for row in rows:
            case.add(synthetic.row(**row))
        return case.outcome.value, case.is_judged

    return fold


@pytest.mark.parametrize(
    ("rows", "said", "judged"),
    [
        ([{}], "works", True),
        ([{}, {"valid": False, "accepted": False}], "works", True),
        ([{"accepted": False}], "failed", True),
        ([{}, {"valid": None}], "works", True),
        ([{"valid": None}], "not_judged", False),
        ([BARE], "not_judged", False),
        ([BARE, CHECKED | {"checks": {WALKS: "passed"}}], "not_judged", False),
        ([BARE, CHECKED | {"checks": {WALKS: "failed"}, "findings": (Finding(WALKS, 3, "invalid",
        cause="invalid"),)}], "failed", True),
        # whole masks were compared with a reference automaton, which JSON Schema has none of
        ([BARE | {"dialect": "regex"}, CHECKED | {"dialect": "regex", "checks": {MASKS: "passed"}}], "works",
        True),
        ([BARE | {"dialect": "regex"}, CHECKED | {"dialect": "regex",
        "checks": {MASKS: "skipped: no oracle"}}], "not_judged", False),
        ([BARE, CHECKED | {"checks": {MASKS: "passed"}}], "not_judged", False),
        ([{}, CHECKED | {"checks": {"a_check": "failed"}, "findings": (UNDOCUMENTED,)}], "failed", True),
        # a spelling that is refused is policy, and costs nothing
        ([{}, CHECKED | {"checks": {SPELLINGS: "failed"}, "findings": (Finding(SPELLINGS, 0, "",
        "escaped_value"),)}], "works", True),
        ([{}, CHECKED | {"checks": {"a_check": "failed"}, "findings": (DOCUMENTED,)}], "works", True),
        ([{}, CHECKED | {"findings": (DOCUMENTED, Finding("a_check", None, "and 7 more places",
        cause="more"))}], "works", True),
        ([{"findings": (DOCUMENTED,)}], "works", True),
        ([BARE, CHECKED | {"findings": (DOCUMENTED,)}], "not_judged", False),
        *(([{}, CHECKED | {"status": each, "phase": "check"}], "failed", True) for each in ("crash",
        "timeout", "oom")),
        ([{}, CHECKED | {"status": "harness_error", "phase": "check"}], "not_measured", False),
        ([{}, CHECKED | {"checks": {"a_check": "skipped: the checks of this case had taken their time"}}],
        "works", True),
        ([{"status": "crash", "accepted": None}, {"status": "skipped", "accepted": None, "instance": 1}],
        "failed", True),
        ([BARE | {"status": "timeout", "phase": "compile"}], "failed", True),
        ([{"status": "harness_error", "accepted": None}], "not_measured", False),
        ([{"status": "unsupported", "phase": "compile", "accepted": None}], "refused", True),
        # nobody could have judged it, so that who takes it on is not judged either
        ([BARE | {"status": "unsupported", "phase": "compile"}], "refused", False),
        ([each | {"status": "invalid", "phase": "compile", "dialect": "ebnf"} for each in (BARE, CHECKED)],
        "refused", True),
        ([{"accepted": False, "findings": (Finding("verdict", None, "another dialect", "regex_dialect", True),
        )}], "works", True),
    ],
)  # fmt: skip
def test_what_a_case_comes_to(came_to: Any, rows: list[dict[str, Any]], said: str, judged: bool) -> None:
    assert came_to(*rows) == (said, judged)


@pytest.mark.parametrize(
    ("fields", "said", "name"),
    [
        ({}, "pass", None),
        ({"valid": None}, "unjudged", None),
        ({"accepted": False}, "over_constrained", "over_constrained"),
        ({"valid": False, "findings": (UNDOCUMENTED,)}, "under_constrained", "under_constrained"),
        ({"findings": (UNDOCUMENTED, DOCUMENTED)}, "finding", "a_check:why"),
        ({"findings": (DOCUMENTED,)}, "documented", None),
        ({"status": "unsupported", "phase": "compile", "accepted": None}, "declined", None),
        ({"status": "crash", "accepted": None, "findings": (UNDOCUMENTED,)}, "crash", "crash"),
        (CHECKED | {"status": "oom", "phase": "check"}, "oom", "oom_in_a_check"),
        (
            CHECKED | {"status": "harness_error", "phase": "check", "findings": (UNDOCUMENTED,)},
            "finding",
            "a_check:why",
        ),
        ({"status": "harness_error", "accepted": None}, "harness_error", None),
        ({"status": "skipped", "accepted": None}, "skipped", None),
    ],
)
def test_what_a_row_comes_to(
    synthetic: ModuleType, fields: dict[str, Any], said: str, name: str | None
) -> None:
    row = synthetic.row(**fields)
    fault = worst_fault(row)
    assert outcome(row) == said
    assert (fault.name if fault else None) == name


def test_a_verdict_that_is_documented_stays_visible(synthetic: ModuleType) -> None:
    row = synthetic.row(
        accepted=False, findings=(Finding("verdict", None, "Rust's", "regex_dialect_rust", True),)
    )
    assert is_documented(row)
    assert [(each.name, each.documented) for each in faults(row)] == [("over_constrained", True)]
    assert outcome(row) == "documented"


def test_one_order_of_gravity_and_a_word_for_each() -> None:
    assert list(OUTCOMES) == [each.value for each in Outcome]
    assert [each.value for each in Outcome if each.fails] == [
        "crash", "oom", "backend_error", "under_constrained", "over_constrained", "timeout", "finding",
    ]  # fmt: skip
    gravity = [state_of_fault(each, None).gravity for each in Outcome if each.fails and each != "finding"]
    assert gravity == sorted(gravity), "the order of faults is that of the states in which they put a case"


def test_who_judges_is_a_check_and_has_an_automaton() -> None:
    assert set(judging_dialects()) <= set(checks())
    texts = {
        "regex": "a",
        "ebnf": 'root ::= "a"',
        "choice": '["a"]',
        "json_schema": "{}",
        "structural_tag": "{}",
    }
    judged = {dialect for dialects in judging_dialects().values() for dialect in dialects}
    for dialect, text in texts.items():
        try:
            language_of(Grammar(dialect, text))  # type: ignore[arg-type]
        except NoOracle:
            assert dialect not in judged
        else:
            assert dialect in judged


def test_what_was_judged_in_words() -> None:
    def case(**fields: Any) -> CaseRows:
        return CaseRows(**fields)

    bare, right, wrong = (
        case(),
        case(judged=True, could_judge=True),
        case(states={CaseState.BREAKS}),
    )
    refused, beside, ours = case(refused=True, could_judge=True), case(refused=True), case(ours=True)
    counts = counts_of([bare, bare, right, wrong, refused, beside, ours])
    assert counts == Counts(
        cases=7, works=1, failed=1, refused=2, not_judged=2, not_measured=1, breaks=1, judged=3
    )
    assert counts.conformance == 1 / 3
    assert in_words(counts) == (
        "3 of 7 cases judged; 2 not judged (no instance with a known verdict); 1 refused, and nothing "
        "could have judged them; "
        "1 not measured (our failure)"
    )
    assert counts_of([bare]).conformance is None
    assert in_words(counts_of([right])) == "1 of 1 case judged"


def test_bare_schemas_are_no_success_on_any_screen(synthetic: ModuleType, tmp_path: Path) -> None:
    """Two backends that compile bare schemas, and judge nothing: no share, no star, and what to do
    about it.
    """
    arms = synthetic.ARMS[:2]
    groups = [
        [
            (
                synthetic.row(
                    **BARE,
                    case_id=f"{number:012x}",
                    backend=arm.backend,
                    backend_version=arm.version,
                    options=arm.options,
                ),
                b"",
            )
        ]
        for number in range(3)
        for arm in arms
    ]
    run = synthetic.write_run(tmp_path / "run", groups, synthetic.info(arms))
    said = run_summary.summary_text(run_summary.read_summary(run), Console(100))
    assert "0 of 3 cases judged; 3 not judged (no instance with a known verdict)" in said
    assert "write instances with their verdicts" in said and "--effort 2" in said
    assert (
        re.search(r"^Conformance +- +-$", said, re.MULTILINE)
        and "100.0 %" not in re.search(r"^Conformance.*$", said, re.MULTILINE)[0]  # type: ignore[index]
    )
    page = render([run])
    (row, _) = re.findall(r'<tr><th scope="row">.*?</tr>', page[page.index('id="overview"') :], re.DOTALL)[:2]
    assert "0 of 3 cases judged" in page and ">not judged" in row and "★" not in row
    (count, _) = result_of(run).counts
    assert (count.works, count.not_judged, count.conformance) == (0, 3, None)
