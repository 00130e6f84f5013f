"""A history compares no release across checks that GrammarBench has got between them, and says so."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from histories import add_outcomes
from synthetic import ARMS, info, row, write_run

from harness.cli.main import main
from harness.outcomes.history import conformance
from harness.report.site.dashboard import write_dashboard
from harness.rows.row import CHECKS_MODE, Finding

OLD, NEW = "the_mask_is_exact", "a_draft_ends"
CASES = [f"{number:012x}" for number in range(1, 4)]


def add(past: Path, version: str, day: int, made: tuple[str, ...], failing: str = "") -> None:
    """Adds a run of three cases on a day, with these checks, of which one may fail in all."""
    found = (Finding(failing, None, "it is wrong"),) if failing else ()
    results = {name: "failed" if name == failing else "passed" for name in made}
    fields = {"mode": CHECKS_MODE, "instance": None, "valid": None, "accepted": None, "checks": results}
    rows = [
        each
        for case_id in CASES
        for each in (
            row(case_id=case_id, backend_version=version),
            row(case_id=case_id, backend_version=version, findings=found, **fields),
        )
    ]
    header = info(
        [replace(ARMS[0], version=version)], effort=1, run=f"run{day}", started=f"2026-11-{day}T09:00:00Z"
    )
    run = write_run(past.parent / f"run{day}", [[(each, b"")] for each in rows], header)
    add_outcomes(past, run)


def losses(past: Path) -> list[tuple[str, str, int]]:
    found = conformance.losses(conformance.read_histories(past))
    return [(each.before.version, each.after.version, each.lost) for each in found]


def pages(past: Path) -> str:
    return write_dashboard(past, past.parent / "site").read_text()


def test_what_a_new_check_finds_is_no_loss_of_a_release_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "past"
    add(past, "1.0", 10, (OLD,))
    add(past, "1.1", 11, (OLD, NEW, "another"), NEW)
    assert losses(past) == []
    said = "alpha 1.1 on first is not compared with 1.0: 2 checks were made of 1.1 only"
    named = f"({NEW} in 3 cases, another)"
    assert main(["history", str(past)]) == 0
    assert f"{said} {named}" in " ".join(capsys.readouterr().out.split())
    page = pages(past)
    assert f"{said} {named}" in page and "other cases, effort or checks" in page and "at least" not in page
    assert "<entry" not in (tmp_path / "site" / "feed.xml").read_text()


def test_a_release_is_compared_by_its_runs_with_the_checks_of_the_release_before(tmp_path: Path) -> None:
    """The nights before the new check, and the releases behind it, are compared as ever."""
    past = tmp_path / "past"
    add(past, "1.0", 10, (OLD,))
    add(past, "1.1", 11, (OLD,), OLD)
    add(past, "1.1", 12, (OLD, NEW))
    add(past, "1.2", 13, (OLD, NEW), NEW)
    assert losses(past) == [("1.0", "1.1", 3), ("1.1", "1.2", 3)]
    assert "at least 3" in pages(past)


def test_the_same_checks_are_compared_and_nothing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "past"
    add(past, "1.0", 10, (OLD, NEW))
    add(past, "1.1", 11, (OLD, NEW), NEW)
    assert losses(past) == [("1.0", "1.1", 3)]
    assert main(["history", str(past)]) == 0
    told = capsys.readouterr().out
    assert "not compared" not in told and "is not known" not in told


def test_a_history_that_does_not_tell_its_checks_is_compared_and_says_so(tmp_path: Path) -> None:
    past = tmp_path / "past"
    add(past, "1.0", 10, (OLD,))
    (file,) = (past / conformance.FOLDER).iterdir()
    header, line = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
    assert line.pop("checks") == {OLD: 0}
    file.write_bytes(gzip.compress(f"{json.dumps(header)}\n{json.dumps(line)}\n".encode()))
    assert conformance.histories_text(past) == "outcomes: 1 run"
    add(past, "1.1", 11, (OLD, NEW))
    assert losses(past) == [] and "not known" not in conformance.histories_text(past)
    add(past, "1.1", 12, (OLD, NEW), NEW)
    assert losses(past) == [("1.0", "1.1", 3)]
    said = "alpha 1.1 on first is compared with 1.0, but which checks 1.0 had is not known"
    assert said in conformance.histories_text(past) and said in pages(past)
