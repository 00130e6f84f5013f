"""benchmarks/maskbench_table.py: how MaskBench counts what we walked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import maskbench_counts
import pytest
from scripts import script_of

from harness.cli.main import main

TAKEN: dict[str, Any] = {"valid": True, "accepted": True, "tokens": 4, "stopped_at": None}
REFUSED: dict[str, Any] = {**TAKEN, "accepted": False, "stopped_at": 1}
LET_IN: dict[str, Any] = {**TAKEN, "valid": False}
UNFINISHED: dict[str, Any] = {**LET_IN, "accepted": False, "stopped_at": 4}
"""An invalid instance that is refused only at end-of-sequence, which MaskBench's runner does not ask for."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("maskbench_table")


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([TAKEN], "passing"),
        ([{"instance": None, "valid": None, "accepted": None}], "passing"),
        ([REFUSED], "validation error"),
        ([LET_IN], "invalidation error"),
        ([UNFINISHED], "invalidation error"),
        ([LET_IN, REFUSED], "validation error"),
        ([REFUSED, LET_IN, TAKEN], "invalidation error"),
        ([{**LET_IN, "valid": None, "contested": False}], "invalidation error"),
        ([{"status": "unsupported", "phase": "compile", "accepted": None}], "compile error"),
        ([{"status": "backend_error", "phase": "compile", "accepted": None}], "compile error"),
        ([{"status": "backend_error", "phase": "accept", "accepted": None}], "validation error"),
        ([{**TAKEN, "status": "backend_error", "phase": "end", "accepted": None}], "passing"),
        ([LET_IN, {"status": "timeout", "phase": "fill", "accepted": None}, REFUSED], "timeout"),
        ([{"status": "crash", "phase": "fill", "accepted": None}], "segmentation fault"),
        ([{"status": "oom", "phase": "compile", "accepted": None}], "out of memory"),
    ],
)
def test_what_maskbench_counts(synthetic: ModuleType, rows: list[dict[str, Any]], count: str) -> None:
    case = maskbench_counts.MaskBenchCase("a schema")
    for number, fields in enumerate(rows):
        case.add(synthetic.row(**{"instance": number, **fields}), True)
    assert case.count == count


def test_an_instance_that_we_made_is_not_counted(synthetic: ModuleType) -> None:
    case = maskbench_counts.MaskBenchCase("a schema")
    case.add(synthetic.row(**LET_IN), False)
    assert case.count == "passing" and case.ours.state == "silently_wrong"


def test_a_run_is_told_in_both_ways(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The invalid text is a beginning of a valid one: every token is allowed, and the end is not."""
    suite = tmp_path / "suite.json"
    file = {
        "description": "a number's beginning",
        "schema": {"type": "integer"},
        "tests": [{"data": 1, "valid": True}, {"text": "-", "valid": False}],
    }
    suite.write_text(json.dumps([file]))
    options = ["--backends", "reference", "--vocabularies", "bytes", "--effort", "0"]
    assert main(["run", str(suite), *options, "--out", str(tmp_path / "run")]) == 0
    found = tmp_path / "differences.jsonl"
    assert script.main([str(tmp_path / "run"), "--differences", str(found)]) == 0
    told = capsys.readouterr().out
    assert "1 of 11,306 files, a sample" in told
    assert "| schemas | invalidation error | in all |" in told
    assert "| schemas | works | in all |" in told
    assert told.count(", bytes | 1 (100.0%; 13.1 to 100.0) | 1 |") == 2
    (difference,) = map(json.loads, found.read_text().splitlines())
    assert (difference["maskbench"], difference["ours"]) == ("invalidation error", "works")


def test_vocabularies_are_counted_apart(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "suite.json"
    file = {"description": "one", "schema": {"type": "integer"}, "tests": [{"data": 1, "valid": True}]}
    suite.write_text(json.dumps([file]))
    options = ["--backends", "reference", "--vocabularies", "bytes,probe", "--effort", "0"]
    assert main(["run", str(suite), *options, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert script.main([str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    for vocabulary in ("bytes", "probe"):
        assert told.count(f", {vocabulary} | 1 (100.0%; 13.1 to 100.0) | 1 |") == 2


def test_of_a_published_run_the_rows_are_enough_where_nothing_was_made(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "suite.json"
    suite.write_text(json.dumps([{"description": "free", "schema": {"type": "integer"}, "tests": []}]))
    options = ["--backends", "reference", "--vocabularies", "bytes", "--effort", "0"]
    for bare in ([], ["--bare"]):
        run = tmp_path / f"run{len(bare)}"
        words = ["run", str(suite), *options, *bare, "--out", str(run)]
        monkeypatch.setattr(sys, "argv", ["grammarbench", *words])
        assert main(words) == 0
        (run / "cases.jsonl").unlink()
    capsys.readouterr()
    assert script.main([str(tmp_path / "run0")]) == 2
    assert "was not walked with --bare" in capsys.readouterr().err
    assert script.main([str(tmp_path / "run1")]) == 0
    assert "| schemas | passing | in all |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "is_known"),
    [
        (("run", "maskbench", "--bare"), True),
        (("run", "maskbench", "--out=DIR", "--case=--bare"), False),
        (("advise", "maskbench"), False),
        ((), False),
        (("--out", "DIR", "--most", "400"), True),
        (("--out", "DIR", "--corpora=PATH"), True),
    ],
)
def test_the_command_tells_whether_documents_were_made(argv: tuple[str, ...], is_known: bool) -> None:
    """The command of benchmarks/reference.py, which makes no documents, consists of options alone."""
    assert maskbench_counts.makes_none(argv) == is_known
