"""A kernel that passes every probe and is wrong at sizes that only a timing has is not without fault."""

from __future__ import annotations

import json
from pathlib import Path

from report_folders import write_kernels

from harness.measure.kernels.stored import read
from harness.measure.kernels.table import kernels_text
from harness.report.page.inputs import read_inputs
from harness.report.page.kernels import applied


def written(folder: Path, wrong_batch: int) -> Path:
    """Returns a record in which alpha passes its probes, and is wrong where that batch is timed."""
    path = write_kernels(folder) / "kernels.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "probe":
            line["outcome"] = "passed"
        if line["kind"] == "time" and (line["kernel"], line["batch"]) == ("alpha/torch", wrong_batch):
            line |= {"outcome": "wrong", "text": "3 of 8000"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def probes_of(text: str) -> list[list[str]]:
    """Returns the rows of the table of probes, without its line, split where two blanks are."""
    table = text.split("PROBES\n")[1].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in (table[0], *table[2:])]


def test_the_table_of_probes_counts_the_timed_points_that_were_wrong(tmp_path: Path) -> None:
    stored = read(written(tmp_path / "wrong", wrong_batch=8))
    assert probes_of(kernels_text(stored, None)) == [
        ["passed", "wrong when timed"],
        ["alpha/torch", "3", "2"],
    ]
    assert "FAILED" in kernels_text(stored, None)
    (shown,) = applied(read_inputs([tmp_path / "wrong"]))
    assert shown.probes == (("alpha/torch", (3,), "its result at 2 timed points"),)


def test_where_every_timed_point_was_right_there_is_no_such_column(tmp_path: Path) -> None:
    stored = read(written(tmp_path / "right", wrong_batch=0))
    assert probes_of(kernels_text(stored, None)) == [["passed"], ["alpha/torch", "3"]]
    (shown,) = applied(read_inputs([tmp_path / "right"]))
    assert shown.probes == (("alpha/torch", (3,), ""),)
