"""A run whose last line speaks of other rows than are there passes no gate and makes no table; the page shows
it, and concludes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compared import OLD, write_run

from harness.cli.main import main
from harness.errors import BadInput
from harness.rows.folder import ROWS
from harness.rows.resume import stored
from harness.rows.store import PACKED, packed, read_end, read_rows


def cut(run: Path, rows: int = 1) -> Path:
    """Leaves out so many of the last rows, and keeps the last line."""
    lines = (run / ROWS).read_bytes().splitlines(keepends=True)
    (run / ROWS).write_bytes(b"".join([*lines[: -1 - rows], lines[-1]]))
    (run / "cases.jsonl").touch()
    return run


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write_run(tmp_path / "whole", {OLD: {}}, effort=2)


@pytest.fixture
def missing(tmp_path: Path) -> Path:
    return cut(write_run(tmp_path / "missing", {OLD: {}}, effort=2))


@pytest.mark.parametrize(
    "words",
    [
        "compare WHOLE MISSING --gate", "compare MISSING WHOLE --gate", "compare MISSING --record OUT.json",
        "table MISSING", "table MISSING summary", "table MISSING faults", "table MISSING --format csv",
        "history OUT --add MISSING",
    ],
)  # fmt: skip
def test_it_is_refused_in_one_line(
    words: str, whole: Path, missing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {
        "WHOLE": whole, "MISSING": missing, "OUT": tmp_path / "out", "OUT.json": tmp_path / "out.json"
    }  # fmt: skip
    assert main([str(paths.get(word, word)) for word in words.split()]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1
    assert "its last line speaks of 2 rows, 1 is there; the file was changed or damaged" in said.err
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.json").exists()


def test_a_report_shows_it_and_concludes_nothing(missing: Path, tmp_path: Path) -> None:
    assert main(["report", str(missing), "--format", "html,json,latex", "--out", str(tmp_path / "page")]) == 3
    page = (tmp_path / "page" / "report.html").read_text("utf-8")
    assert "This run is inconsistent:" in page and "so nothing is recommended yet" in page
    assert (tmp_path / "page" / "summary.md").read_text("utf-8").startswith("## GrammarBench: ⚠️ incomplete")
    for folder in ("page", "alone"):
        if folder == "alone":
            assert main(["report", str(missing), "--format", "json", "--out", str(tmp_path / folder)]) == 3
        gate = json.loads((tmp_path / folder / "result.json").read_text("utf-8"))["gate"]
        assert gate["verdict"] == "incomplete"
        assert gate["reasons"][0].endswith("its last line speaks of 2 rows, 1 is there")


def test_more_rows_than_the_end_says_are_refused_too(whole: Path) -> None:
    lines = (whole / ROWS).read_text("utf-8").splitlines(keepends=True)
    end = json.loads(lines[-1]) | {"rows": 1}
    (whole / ROWS).write_text("".join([*lines[:-1], json.dumps(end) + "\n"]), "utf-8")
    with pytest.raises(BadInput, match="speaks of 1 row, 2 are there"):
        list(read_rows(whole))


def test_a_run_without_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {OLD: {}}, finish=False)
    assert len(list(read_rows(run))) == 2 and read_end(run) is None
    assert not stored(run, {}).is_complete, "it can be resumed"


def test_a_published_run_may_leave_rows_out(missing: Path, tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.mkdir()
    (published / PACKED).write_bytes(packed((missing / ROWS).read_bytes()))
    assert len(list(read_rows(published))) == 1
    assert main(["table", str(published), "faults"]) == 0
