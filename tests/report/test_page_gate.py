"""`report --against BASE`: the page, its summary and the forms for other tools say the same gate; of several
runs the summary says the gate that the page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from html_page import Page
from junitparser import JUnitXml
from synthetic import ARMS, info, row, write_run

from harness.cli.main import main
from harness.outcomes.expected import write_record
from harness.rows.row import Row

ONE, TWO, THREE = (f"{number:012x}" for number in (1, 2, 3))
RIGHT, WRONG = [row(case_id=ONE), row(case_id=TWO)], [row(case_id=ONE, valid=False), row(case_id=TWO)]


def stored(folder: Path, rows: list[Row], run: str = "run1") -> Path:
    return write_run(folder, [[(each, b"")] for each in rows], info(ARMS[:1], run=run))


@pytest.mark.parametrize("is_record", [True, False], ids=["record", "run"])
@pytest.mark.parametrize(
    ("before", "after", "verdict", "word"),
    [
        (RIGHT, RIGHT, "ok", "PASS"),
        (RIGHT, WRONG, "failed", "REGRESSED"),
        (WRONG, RIGHT, "mended", "NOT AS RECORDED"),
        (RIGHT, [row(case_id=THREE)], "unproven", "UNPROVEN"),
    ],
    ids=["same", "worse", "mended", "others"],
)
def test_every_form_says_the_same_gate(
    before: list[Row], after: list[Row], verdict: str, word: str, is_record: bool, tmp_path: Path
) -> None:
    base, run, out = stored(tmp_path / "a", before), stored(tmp_path / "b", after, "run2"), tmp_path / "out"
    if verdict == "mended":  # only a record fails on what is right now
        verdict, word = ("failed", word) if is_record else ("ok", "PASS")
    if is_record:
        write_record(base, base := tmp_path / "base.json")
    words = ["report", str(run), "--against", str(base), "--out", str(out)]
    for forms, names in (([], ()), (["--format", "html,junit,json"], ("junit", "json"))):
        assert main([*words, *forms]) == 0
        page, summary = Page((out / "report.html").read_text()), (out / "summary.md").read_text()
        assert f"the gate against {base}: {verdict}" in page.text and word in page.text
        assert summary.startswith("## GrammarBench: ") and f"{verdict} against" in summary.splitlines()[0]
        assert "comparison" not in page.ids and "#comparison" not in (out / "report.html").read_text()
        if names:
            assert json.loads((out / "result.json").read_text())["gate"]["verdict"] == verdict
            gate = [each for each in JUnitXml.fromfile(str(out / "junit.xml")) if each.name == "gate"]
            assert [each.failures for each in gate] == [int(verdict != "ok")]
    assert main(["report", str(run), "--out", str(out)]) == 0
    assert "the gate against" not in (out / "report.html").read_text()
    assert "nothing to compare the run with" in (out / "summary.md").read_text()


def test_the_summary_of_several_runs_says_of_each_later_one_the_gate_of_the_page(tmp_path: Path) -> None:
    runs = [
        stored(tmp_path / "a", RIGHT),
        stored(tmp_path / "b", WRONG, "run2"),
        stored(tmp_path / "c", RIGHT, "run3"),
    ]
    assert main(["report", *map(str, runs), "--out", str(tmp_path / "out")]) == 0
    titles = [
        line for line in (tmp_path / "out" / "summary.md").read_text().splitlines() if line[:3] == "## "
    ]
    assert [title.partition(": ")[2].partition(" against run1 ")[0] for title in titles] == [
        "nothing to compare the run with",
        "❌ failed",
        "✅ ok",
    ]


def test_runs_with_other_settings_are_unproven_in_the_summary_too(tmp_path: Path) -> None:
    one = stored(tmp_path / "a", RIGHT)
    other = write_run(tmp_path / "b", [[(each, b"")] for each in RIGHT], info(ARMS[:1], effort=4))
    assert main(["report", str(one), str(other), "--out", str(tmp_path / "out")]) == 0
    summary, page = ((tmp_path / "out" / name).read_text() for name in ("summary.md", "report.html"))
    assert "⚠️ unproven" in summary and "effort" in summary and "cannot be compared" in page


def test_a_run_without_end_is_held_against_nothing(tmp_path: Path) -> None:
    base = stored(tmp_path / "a", RIGHT)
    run = write_run(tmp_path / "b", [[(RIGHT[0], b"")]], info(ARMS[:1]), complete=False)
    words = ["report", str(run), "--against", str(base), "--out", str(tmp_path / "out")]
    assert main(words) == 3
    assert "INCOMPLETE" in (tmp_path / "out" / "report.html").read_text()
    assert "incomplete" in (tmp_path / "out" / "summary.md").read_text().splitlines()[0]
