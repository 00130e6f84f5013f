"""A reader of two outputs of one run sees the same worst fault."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as xml

import pytest
from histories import add_outcomes

from harness.backend.grammar import Grammar
from harness.cases.case import Case
from harness.outcomes.case_state import CaseState, state_of_fault
from harness.outcomes.history import conformance
from harness.outcomes.outcome import FAILURES, Outcome
from harness.outcomes.result import result_of
from harness.report import run_summary
from harness.report.cases.failing import CASE_KINDS
from harness.report.export import FORMS
from harness.report.page.page import write_report
from harness.rows.row import CHECKS_MODE, Finding
from harness.text import PIPE

ROWS: dict[Outcome, dict[str, Any]] = {
    Outcome.CRASH: {"status": "crash", "phase": "fill", "accepted": None, "signal": "SIGSEGV"},
    Outcome.OOM: {"status": "oom", "phase": "fill", "accepted": None},
    Outcome.UNDER_CONSTRAINED: {"valid": False},
    Outcome.OVER_CONSTRAINED: {"accepted": False, "stopped_at": 1},
    Outcome.BACKEND_ERROR: {"status": "backend_error", "phase": "fill", "accepted": None},
    Outcome.TIMEOUT: {"status": "timeout", "phase": "fill", "accepted": None},
    Outcome.FINDING: {
        "mode": CHECKS_MODE,
        "instance": None,
        "valid": None,
        "accepted": None,
        "checks": {"a_check": "failed"},
        "findings": (Finding("a_check", None, "a fact does not hold"),),
    },
}
PAIRS = list(combinations(FAILURES, 2))
"""Each two kinds of fault, the worse one first; the run has a case with both, in the opposite order."""


@pytest.fixture(scope="module")
def run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    groups, cases = [], []
    for number, (worse, milder) in enumerate(PAIRS):
        name = f"{worse.value} and {milder.value}"
        case = Case(f"{number:012x}", name, Grammar("regex", f"[a-z]{{{number}}}"))
        of_case = {"case": case.name, "case_id": case.id, "dialect": "regex"}
        rows = [
            synthetic.row(**of_case, **{"instance": place, "text": f"text of {kind.value}"} | ROWS[kind])
            for place, kind in enumerate((milder, worse))
        ]
        groups.append([(row, b"") for row in rows])
        cases.append(("first", case))
    folder = tmp_path_factory.mktemp("worst") / "run"
    written: Path = synthetic.write_run(folder, groups, synthetic.info(synthetic.ARMS[:1]), cases)
    return written


def state_of(kind: Outcome) -> CaseState:
    """The state in which a row of ROWS puts its case."""
    return state_of_fault(kind, next(iter(ROWS[kind].get("findings", ())), None))


def expected_by_case() -> dict[str, str]:
    return {f"{worse.value} and {milder.value}": state_of(worse).value for worse, milder in PAIRS}


def test_every_kind_of_failure_is_in_the_run() -> None:
    assert set(ROWS) == set(FAILURES)


def test_the_terminal_names_the_worst(run: Path) -> None:
    found = run_summary.read_summary(run)
    assert found.worst is not None and found.worst.state == state_of(FAILURES[0])
    assert "worst failure (breaks): alpha" in run_summary.summary_text(found, PIPE)


def test_the_terminal_says_a_version_once(synthetic: ModuleType, tmp_path: Path) -> None:
    first = synthetic.ARMS[0]
    arms = (first, replace(first, version="0.9"))
    groups = [[(synthetic.row(backend_version=arm.version, accepted=False), b"")] for arm in arms[1:]]
    run = synthetic.write_run(tmp_path, groups, synthetic.info(arms))
    found = run_summary.read_summary(run)
    assert found.worst is not None and found.worst.backend == "alpha==0.9"
    assert found.worst.repro[4:6] == ("--backends", "alpha==0.9")


def test_each_export_names_the_worst(run: Path) -> None:
    result = result_of(run)
    lines = list(csv.DictReader(FORMS["csv"](result)["failing.csv"].splitlines()))
    assert {line["case"]: line["state"] for line in lines} == expected_by_case()
    worst = {line["case"]: line["case"].partition(" and ")[0] for line in lines}
    assert all(line["faults"].split()[0] == worst[line["case"]] for line in lines)
    assert all(line["said"] == f"text of {worst[line['case']]}" for line in lines)
    (text,) = FORMS["junit"](result).values()
    kinds = {
        case.get("name", "").partition(" [")[0]: failure.get("type")
        for case in xml.fromstring(text).iter("testcase")
        if (failure := case.find("failure")) is not None
    }
    assert kinds == expected_by_case()
    failing = json.loads(FORMS["json"](result)["result.json"])["failing"]
    assert {case["case"]: case["state"] for case in failing} == expected_by_case()


def test_the_page_names_the_worst(run: Path, tmp_path: Path) -> None:
    page = write_report([run], tmp_path / "page.html").read_text("utf-8")
    shown = re.findall(r'<summary><span class="\w+">([^<]*)</span> <span class="title">([^<]*)</span>', page)
    words = {words: kind for kind, words in CASE_KINDS.items()}
    assert {title: words[kind] for kind, title in shown} == expected_by_case()
    order = [list(words).index(kind) for kind, _ in shown]
    assert order == sorted(order), "the worst stand first"


def test_a_history_counts_each_case_by_its_state(run: Path, tmp_path: Path) -> None:
    add_outcomes(tmp_path, run)
    (entry,) = conformance.read_histories(tmp_path)
    counts: dict[str, int] = {}
    for name in expected_by_case().values():
        counts[name] = counts.get(name, 0) + 1
    assert entry.features[conformance.EVERY] == counts
