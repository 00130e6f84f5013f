"""Tables out of runs: right values, right types, and hostile strings that stay in their cells."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.cli.main import main
from harness.errors import BadInput
from harness.outcomes.summary import read_arms
from harness.report.tables import instances as table
from harness.report.values import number
from harness.rows.row import Finding
from harness.text import csv_text

WANTED = {
    "backend", "backend_version", "vocabulary", "suite", "case", "instance", "status", "valid", "accepted",
    "verdict", "stopped_at",
    "compile_ns", "matcher_new_ns", "first_fill_ns", "tokens", "peak_rss_bytes", "options", "case_id",
    "dialect", "instance_name", "phase",
    "signal", "text", "findings", "wall_ns", "bytes", "mode",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = synthetic.synthetic_run(tmp_path_factory.mktemp("run"))
    return path


@pytest.fixture
def tiny(synthetic: ModuleType, tmp_path: Path) -> Path:
    """Two walks: one that went well, one that was never begun."""
    well = synthetic.row(
        case='=1+1,"a"\nb|c',
        findings=(Finding("one", 0, "x"), Finding("two", None, "y"), Finding("one", 2, "z")),
    )
    lost = synthetic.row(
        instance=1, status="crash", phase="compile", signal="SIGSEGV", text="a\r\nb \ud800", accepted=None,
        compile_ns=None,
        matcher_new_ns=None, first_fill_ns=None, wall_ns=None, peak_rss_bytes=None,
    )  # fmt: skip
    path: Path = synthetic.write_run(
        tmp_path / "tiny", [[(well, b""), (lost, b"")]], synthetic.info(synthetic.ARMS[:1])
    )
    return path


def test_one_line_per_instance_with_the_published_columns(run: Path, synthetic: ModuleType) -> None:
    frame = table.instance_frame(run)
    assert len(frame) == 24 * 4 * 3
    assert not WANTED - set(frame.columns)
    assert {"pass", "over_constrained", "under_constrained", "declined", "broken"} & set(frame["verdict"])


def test_json_is_flat_objects_with_integers_and_nulls(tiny: Path) -> None:
    well, lost = json.loads(table.to_text(table.instance_frame(tiny), "json"))
    assert (well["compile_ns"], well["valid"], well["verdict"], well["findings"]) == (
        1_000_000,
        True,
        "pass",
        "one two",
    )
    assert isinstance(well["compile_ns"], int) and well["stopped_at"] is None
    assert lost["compile_ns"] is lost["accepted"] is lost["peak_rss_bytes"] is None
    assert (lost["verdict"], lost["text"]) == ("broken", "a\r\nb \ud800")


def test_csv_gives_back_every_cell_but_what_a_spreadsheet_would_run(tiny: Path) -> None:
    text = table.to_text(table.instance_frame(tiny), "csv")
    text.encode("utf-8")
    well, lost = csv.DictReader(io.StringIO(text, newline=""))
    assert well["case"] == '\'=1+1,"a"\nb|c'
    assert (well["compile_ns"], well["valid"], lost["compile_ns"], lost["accepted"]) == (
        "1000000",
        "true",
        "",
        "",
    )
    assert lost["text"] == "a\r\nb \ufffd"


def test_a_carriage_return_begins_no_line_of_csv() -> None:
    """Python's csv quotes it only where lines end with one, and what follows would be a cell to run."""
    rows: list[list[object]] = [["a\r@SUM(1)", 1], ["b\nc", None]]
    assert list(csv.reader(io.StringIO(csv_text(rows), newline=""))) == [["a\r@SUM(1)", "1"], ["b\nc", ""]]


def test_markdown_keeps_every_walk_on_one_line(tiny: Path) -> None:
    lines = table.to_text(table.instance_frame(tiny), "markdown").splitlines()
    assert len(lines) == 4
    columns = len(table.INSTANCE_COLUMNS)
    assert all(line.replace("\\|", "").count("|") == columns + 1 for line in lines)


def test_hostile_runs_become_tables_in_every_format(run: Path) -> None:
    for form in table.FORMATS:
        table.to_text(table.instance_frame(run), form).encode("utf-8")
    assert len(json.loads(table.to_text(table.instance_frame(run), "json"))) == 288
    text = table.to_text(table.instance_frame(run), "csv")
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == 289


def test_an_unknown_format_is_refused_with_the_nearest(tiny: Path) -> None:
    with pytest.raises(BadInput, match='unknown format "jsn"; did you mean "json"'):
        table.to_text(table.instance_frame(tiny), "jsn")


def test_a_run_without_rows_is_an_empty_table(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", [])
    assert table.to_text(table.instance_frame(run), "json") == "[]\n"
    assert table.to_text(table.instance_frame(run), "csv").count("\n") == 1
    assert "Cases" in table.terminal_text(run)


def test_the_metrics_have_a_line_per_arm_and_vocabulary(synthetic: ModuleType, tmp_path: Path) -> None:
    rows = [
        synthetic.row(),
        synthetic.row(vocabulary="other", accepted=False),
        synthetic.row(backend="beta", options="a=b"),
        synthetic.row(backend="beta", options="a=b", vocabulary="other"),
    ]
    both = {name: {"size": 300, "sha256": "ab" * 32} for name in ("tiny", "other")}
    header = synthetic.info(synthetic.arms_of(rows), vocabularies=both)
    run = synthetic.write_run(tmp_path / "run", [[(row, synthetic.ns(1_000, 500))] for row in rows], header)
    frame = table.metrics_frame(read_arms(run))
    assert list(zip(frame["backend"], frame["vocabulary"], strict=True)) == [
        ("alpha", "tiny"),
        ("alpha", "other"),
        ("beta", "tiny"),
        ("beta", "other"),
    ]
    assert list(frame["validation_error"]) == [0, 1, 0, 0]
    assert list(frame["tbm_p50_us"]) == [1.5] * 4


def test_the_terminal_table_fits_80_columns_and_loses_no_arm(synthetic: ModuleType, tmp_path: Path) -> None:
    backends = [f"backend-{number}-with-a-long-name" for number in range(7)]
    rows = [synthetic.row(backend=each) for each in backends]
    run = synthetic.write_run(
        tmp_path / "run", [[(row, b"")] for row in rows], synthetic.info(synthetic.arms_of(rows))
    )
    text = table.terminal_text(run)
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"backend-{number}" in text for number in range(7))
    for metric in (
        "TBM p99.9",
        "TTFM avg",
        "Cases",
        "Works",
        "Conformance",
        "Not judged",
        "Compile error",
        "Out of memory",
        "Invalidation error",
        "Compliance",
    ):
        assert metric in text


def test_names_cannot_steer_the_terminal(synthetic: ModuleType, tmp_path: Path) -> None:
    hostile = synthetic.row(
        backend="evil\x1b[2J\x07\u202e\x9b31m[bold]x[/bold]", options="a\nb", backend_version="\ud800"
    )
    header = synthetic.info(synthetic.arms_of([hostile]))
    run = synthetic.write_run(tmp_path / "run", [[(hostile, b"")]], header)
    text = table.terminal_text(run)
    text.encode("utf-8")
    assert not set(text) & set("\x1b\x07\u202e\x9b\ud800")
    folded = text.replace("\n", "").replace(" ", "")
    assert "evil" in folded and "[bold]" in folded.replace("─", "")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "us", "-"), (float("nan"), "share", "-"), (0.0123, "us", "12 ns"), (12.34, "us", "12.3 µs"),
        (1234.5, "us", "1.23 ms"), (31_400, "ns", "31.4 µs"), (2.345, "ratio", "2.35"),
        (1.0, "share", "100.0 %"), (0.99999, "share", "99.9 %"), (0.0001, "share", "0.1 %"), (0.0, "share",
        "0.0 %"),
        (3 * 2**20, "bytes", "3 MiB"), (12345, "cases", "12,345"),
    ],
)  # fmt: skip
def test_numbers_are_for_people(value: Any, unit: str, text: str) -> None:
    assert number(value, unit) == text


def test_two_tables_at_once_are_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["table", str(tmp_path), "faults", "times"])
    assert end.value.code == 2 and "unrecognized arguments: times" in capsys.readouterr().err


def test_a_reading_that_says_little_is_shown_as_far_as_it_goes(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schema of a row asks for no more than these four of its fields."""
    who = {"backend": "alpha", "version": "1.2.3", "options": "", "vocabulary": "tiny"}
    header = synthetic.info(synthetic.ARMS[:1], readings=(who, who | {"stated": True}))
    run = synthetic.write_run(tmp_path, [[(synthetic.row(), b"")]], header)
    assert main(["table", str(run), "tokens", "--format", "json"]) == 0
    little, stated = json.loads(capsys.readouterr().out)
    assert (little["arm"], little["loader"], little["wrong"]) == ("alpha", "not said", None)
    assert stated["wrong"] == 0
