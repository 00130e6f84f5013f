"""A small MaskBench and JSON-Schema-Test-Suite of our own making, and options of benchmarks/reference.py that
walk them at once."""

from __future__ import annotations

import json
from pathlib import Path

DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")


def made_corpora(folder: Path) -> Path:
    """Writes five files as MaskBench has them, and a group in each draft; returns the folder."""
    (folder / "maskbench").mkdir()
    for number in range(5):
        tests = [
            {"description": "it", "valid": True, "data": number},
            {"description": "another", "valid": False, "data": number + 1},
        ]
        case = {"description": f"case {number}", "schema": {"const": number}, "tests": tests}
        (folder / "maskbench" / f"file_{number}.json").write_text(json.dumps(case))
    for draft in DRAFTS:
        (folder / "json-schema-test-suite" / "tests" / draft).mkdir(parents=True)
        group = {
            "description": draft,
            "schema": {"type": "null"},
            "tests": [{"description": "null", "data": None, "valid": True}],
        }
        (folder / "json-schema-test-suite" / "tests" / draft / "type.json").write_text(json.dumps([group]))
    return folder


def unwrapped(page: Path) -> str:
    """Returns the page's words: where its lines break hangs on how long the names of folders are."""
    return " ".join(page.read_text().split())


def arguments(corpora: Path, out: Path, *more: str) -> list[str]:
    """Returns options that walk the corpora into `out`, with a backend that allows everything."""
    fixed = ["--backends", "unconstrained", "--vocabularies", "bytes", "--jobs", "1", "--sample", "0"]
    return ["--out", str(out), "--corpora", str(corpora), *fixed, "--effort", "0", *more]
