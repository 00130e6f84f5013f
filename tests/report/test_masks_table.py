"""The table of masks: places that are right, counted over the cases that have a reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic

from harness.checks.documents import TOKENS_LEAD
from harness.checks.exact_mask import MASK_IS_EXACT
from harness.checks.layouts import LAYOUT_IS_WRITTEN
from harness.cli.main import main
from harness.report.tables.masks import masks_frame
from harness.rows.row import CHECKS_MODE, Finding


def test_places_are_counted_by_dialect(tmp_path: Path) -> None:
    cases = [
        {"description": "a regex", "regex": "ab", "tests": [{"text": "ab", "valid": True}]},
        {"description": "a schema", "schema": {"const": [1]}, "tests": [{"text": "[1]", "valid": True}]},
        {
            "description": "spelled so",
            "schema": {"const": 2},
            "tests": [{"text": " 2", "valid": True}],
        },
        {"description": "no reference", "schema": {"$ref": "http://x/"}, "tests": [{"data": 1}]},
    ]
    (tmp_path / "few.json").write_text(json.dumps(cases))
    run = tmp_path / "run"
    asked = [
        "--backends",
        "reference,unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "all",
        "--out",
        str(run),
    ]
    assert main(["run", str(tmp_path / "few.json"), *asked]) == 0
    lines = [tuple(line.values()) for line in masks_frame(run).to_dict("records")]
    assert lines == [
        ("bytes", "reference", "json_schema", 2, 2, 7, 7, 7, 7),
        ("bytes", "reference", "regex", 1, 1, 3, 3, 3, 3),
        ("bytes", "unconstrained", "json_schema", 2, 0, 0, 7, 0, 0),
        ("bytes", "unconstrained", "regex", 1, 0, 0, 3, 3, 3),
    ]


def test_what_a_layout_lacks_is_counted(tmp_path: Path) -> None:
    """xgrammar writes a constant without the white space that it says may stand anywhere."""
    pytest.importorskip("xgrammar")
    case = {"schema": {"const": [1]}, "tests": [{"text": "[1]", "valid": True}]}
    (tmp_path / "one.json").write_text(json.dumps(case))
    run = tmp_path / "run"
    asked = ["--backends", "xgrammar", "--vocabularies", "bytes", "--effort", "all", "--out", str(run)]
    assert main(["run", str(tmp_path / "one.json"), *asked]) in (0, 1)
    (line,) = masks_frame(run).to_dict("records")
    assert (line["sound"], line["places"], line["complete"], line["layout_places"]) == (4, 4, 2, 4)


def test_a_case_counts_where_it_is_known_whether_its_masks_are_exact(tmp_path: Path) -> None:
    """Looked at by both checks; by one, which finds nothing; and by one, which finds a fault."""
    places = {"places": 2, "sound": 2, "complete": 2}
    late = "skipped: the reference automaton takes more than 6 s of processor time"
    rows = [
        synthetic.row(
            case_id=f"{number:012x}",
            mode=CHECKS_MODE,
            instance=None,
            checks={MASK_IS_EXACT: "skipped: no", TOKENS_LEAD: leads, LAYOUT_IS_WRITTEN: written},
            counted={TOKENS_LEAD: places, LAYOUT_IS_WRITTEN: places},
            findings=[Finding(TOKENS_LEAD, cause="value", under=1)] if leads == "failed" else [],
        )
        for number, (leads, written) in enumerate([("passed", "passed"), ("passed", late), ("failed", late)])
    ]
    run = synthetic.write_run(tmp_path, [[(row, b"")] for row in rows])
    (line,) = masks_frame(run).to_dict("records")
    assert (line["cases"], line["exact"], line["places"]) == (2, 1, 6)
