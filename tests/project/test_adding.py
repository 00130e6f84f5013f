"""A backend, a check, a metric, a section of the report, a suite and a strategy are each one new file or one
new function: a copy of the project gets one of each, and nothing else in it is edited.

A dialect is not: its name is a value of a Literal in harness/backend/grammar.py, by which a case's keys, the
judge and the oracle are typed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from places import ROOT

import harness

NEW = {
    "adapters/novel.py": """
from harness.oracle import reference


class Novel(reference.Reference):
    pass
""",
    "checks/novel.py": """
from harness import Finding, NotApplicable, Subject

CATEGORY = "novelty"


def check_every_case_is_old(subject: Subject):
    if subject.case.grammar.dialect != "regex":
        raise NotApplicable("no regular expression")
    yield Finding(position=0, text="it is new", cause="novelty")
""",
    "suites/novel.jsonl": """{"suite": "novel", "version": "1", "description": "one case of each kind"}
{"description": "an a", "regex": "a", "tests": [{"text": "a", "valid": true}]}
{"description": "a b", "choice": ["b"], "tests": [{"text": "b", "valid": true}]}
""",
    "suites/novel_when_named.jsonl": """{"suite": "novel_when_named", "version": "1", "default": false}
{"description": "an a", "regex": "a", "tests": [{"text": "a", "valid": true}]}
""",
    "report/page/sections/novel.py": """
from harness.report.page.section import Section

SECTION = Section(id="novel", title="Novelties", place=145, values=lambda page: {"what": "all is new"})
""",
    "reports/novel.html.j2": """
<section id="novel"><h2>Novelties</h2><p>{{ what }}</p></section>
""",
    "walk/loop/strategies/novel.py": """
from harness import Strategy


class Novel(Strategy):
    name = "novel"
""",
}

METRIC = """

@metric("Novel cases", unit="cases", better="neither")
def novel_cases(arm: ArmSummary) -> int:
    \"\"\"Twice the cases.\"\"\"
    return 2 * cases(arm)
"""

PROGRAM = """
import json
from pathlib import Path
from harness.backend.registry import names
from harness.cases.suite import suite_names, walked_by_default
from harness.checks import checks
from harness.cli.main import main
from harness.outcomes.faults import fault_frame
from harness.outcomes.metrics import values_of
from harness.outcomes.summary import read_arms
from harness.rows.store import read_rows

if __name__ == "__main__":
    options = ["--backends", "novel", "--vocabularies", "bytes", "--effort", "1", "--out", "run"]
    code = main(["run", "novel", *options])
    assert main(["report", "run"]) == 0
    (arm,) = read_arms(Path("run"))
    findings = [vars(finding) for row in read_rows(Path("run")) for finding in row.findings]
    outcomes = [row.checks["every_case_is_old"] for row in read_rows(Path("run")) if row.checks]
    seen = {
        "code": code, "names": list(names()), "suites": suite_names(), "default": walked_by_default(),
        "checks": list(checks()), "findings": findings, "outcomes": outcomes, "metrics": values_of(arm),
        "faults": fault_frame(Path("run"))["category"].tolist(),
        "page": Path("run", "report", "report.html").read_text(),
    }
    Path("seen.json").write_text(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a copy of the project with the new files knows and does."""
    home = tmp_path_factory.mktemp("home")
    leave_out = shutil.ignore_patterns("__pycache__", "runs")
    shutil.copytree(ROOT / "harness", home / "harness", ignore=leave_out)
    for folder in ("adapters", "suites", "results", "reports"):
        shutil.copytree(ROOT / folder, home / "harness" / folder, ignore=leave_out)
    for path, text in NEW.items():
        (home / "harness" / path).write_text(text.lstrip("\n"))
    with (home / "harness" / "outcomes" / "metrics.py").open("a") as file:
        file.write(METRIC)
    (home / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=home, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((home / "seen.json").read_text())
    return found


def test_a_backend_is_a_file(seen: dict[str, Any]) -> None:
    assert "novel" in seen["names"] and seen["code"] == 0


def test_a_suite_is_a_file_and_its_header_says_whether_it_must_be_named(seen: dict[str, Any]) -> None:
    assert {"novel", "novel_when_named"} <= set(seen["suites"])
    assert "novel" in seen["default"] and "novel_when_named" not in seen["default"]


def test_a_check_is_a_function_whose_name_stands_in_its_findings(seen: dict[str, Any]) -> None:
    assert seen["outcomes"] == ["failed", "skipped: no regular expression"]
    (finding,) = seen["findings"]
    assert (finding["check"], finding["cause"], finding["documented"]) == (
        "every_case_is_old",
        "novelty",
        False,
    )
    assert seen["faults"] == ["novelty"]


def test_a_metric_is_a_function(seen: dict[str, Any]) -> None:
    assert seen["metrics"]["novel_cases"] == 4


def test_a_section_of_the_report_is_a_module_and_its_template(seen: dict[str, Any]) -> None:
    assert '<section id="novel"><h2>Novelties</h2><p>all is new</p>' in seen["page"]
    assert '<a href="#novel">' in seen["page"]


def test_a_strategy_is_a_file_and_has_its_check(seen: dict[str, Any]) -> None:
    assert "novel_writes_the_instance" in seen["checks"]


def test_what_extends_the_harness_is_exported_by_it() -> None:
    for name, module in harness.LATER.items():
        assert getattr(harness, name) is getattr(sys.modules[module], name)
    with pytest.raises(AttributeError, match="has no attribute 'Novelty'"):
        _ = harness.Novelty
