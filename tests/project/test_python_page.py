"""The Python of docs/python.md runs from top to bottom, prints what the page shows, and names every column.
Its commands are run by tests/docs_commands."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pages
import pytest
from pages import text_of
from places import ROOT

from harness.report.frames import rows, scores, times

PAGE = "docs/python.md"


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    blocks = [block for block in pages.blocks(text_of(PAGE)) if block.language in ("python", "text")]
    names: dict[str, Any] = {}
    printed, compared = "", 0
    for block in blocks:
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, f"{PAGE}:{block.line}", "exec"), names)
            printed = out.getvalue()
        else:
            assert [line.rstrip() for line in printed.splitlines()] == [
                line.rstrip() for line in block.text.splitlines()
            ], f"{PAGE}:{block.line}"
            compared += 1
    assert compared == 4
    assert (tmp_path / "mine.pdf").read_bytes().startswith(b"%PDF-")
    assert "llguidance & 246 & 0" in (tmp_path / "mine.tex").read_text()


@pytest.mark.parametrize("table", ["cases", "instances", "findings", "times", "scores"])
def test_the_page_names_every_column(table: str) -> None:
    columns = {
        "times": times.TIMES,
        "scores": scores.SCORES,
        "cases": rows.CASES,
        "findings": rows.FINDINGS,
    }.get(table, rows.INSTANCES)
    part = re.search(rf"^\*\*`{table}`\*\*.*?(?=^\*\*`|\Z)", text_of(PAGE), re.MULTILINE | re.DOTALL)
    assert part is not None
    told = [
        name
        for cells in re.findall(r"^\| (`.*?) \|", part[0], re.M)
        for name in re.findall(r"`(\S+?)`", cells)
    ]
    common = [*rows.WHOSE, *(() if table in ("times", "scores") else rows.WHICH)]
    assert sorted([*common, *told]) == sorted(columns)
    beginning = text_of(PAGE).partition("## The columns")[2].partition("**`cases`**")[0]
    assert all(f"`{name}`" in beginning for name in common)
