"""What a page prints for readers with tools of their own runs as it is printed, and gives outcomes
by name.
"""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import synthetic as synthetic_runs
from html_page import Page
from report_folders import played, write_decoding, write_kernels, write_rows
from reported import on_page

from harness.backend.arm import Arm
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report

ARMS = tuple(Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask") for version in ("1", "2"))


def printed(page: Path) -> list[str]:
    """The words of all commands of the section about data."""
    section = re.search(r'<section id="data">.*?<pre[^>]*>(.*?)</pre>', page.read_text("utf-8"), re.DOTALL)
    assert section
    return shlex.split(html.unescape(section[1]))


def test_the_data_frame_has_the_outcomes_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        write_rows(synthetic_runs, tmp_path / arm.version, (arm,), cases=20, wrong=wrong)
        for arm, wrong in zip(ARMS, (0, 9), strict=True)
    ]
    page = write_report(runs, tmp_path / "page")
    words = printed(page)
    scripts = [after for word, after in pairwise(words) if word == "-c" and "report.json" in after]
    monkeypatch.chdir(page.parent)
    for each in scripts:
        made: dict[str, object] = {}
        exec(each, made)  # our own page, of a run of our own
        frame = made["frame"]
        assert list(frame.columns) == ["suite", "name", "alpha · 1", "alpha · 2"]  # type: ignore[attr-defined]
        assert frame["alpha · 1"].value_counts().to_dict() == {"works": 20}  # type: ignore[index]
        assert frame["alpha · 2"].value_counts().to_dict() == {"works": 11, "silently_wrong": 9}  # type: ignore[index]
        assert len(frame) == 20 and set(frame["suite"]) == {"first"} and frame.index.is_unique  # type: ignore
    assert len(scripts) == 1


def test_a_page_to_be_published_names_only_what_lies_beside_it(tmp_path: Path) -> None:
    run = write_rows(synthetic_runs, tmp_path / "secret", ARMS[:1], cases=4, wrong=1)
    page = write_report(read_inputs([run], to_be_published=True), tmp_path / "page" / "report.html")
    text = page.read_text("utf-8")
    assert str(tmp_path) not in text and "grammarbench repro" not in html.unescape(Page(text).text)
    index, _ = on_page(text)
    assert index["runs"][0]["folder"] == "." and index["page"]["repro"] == [False]
    assert index["page"]["walked_as"] == ["CORPUS/first"], "no reader has the path"
    words = printed(page)
    assert words[:3] == ["xz", "-dc", "rows.jsonl.xz"]
    assert words[-5:] == ["grammarbench", "table", ".", "--format", "csv"]
    told = " ".join(Page(text).text.split())
    assert "Each walk is a line of rows.jsonl.xz beside this page. In the folder of this page:" in told
    assert "Raw rows: rows.jsonl.xz beside it." in told
    assert not any(name in told for name in ("report.json", "summary.md", "samples.i64"))
    assert "grammarbench measure CORPUS/first --backends" in told


def test_a_page_that_is_one_file_names_no_files_beside_it(tmp_path: Path) -> None:
    run = write_rows(synthetic_runs, tmp_path / "run", ARMS[:1], cases=4)
    for out, is_told in ((tmp_path / "page.html", False), (tmp_path / "page", True)):
        assert ("report.json" in Page(write_report([run], out).read_text("utf-8")).text) == is_told


@pytest.mark.parametrize("name", ["my run", "run@v1+x:2", 'it\'s "mine" $(reboot)', "[a]*?"])
def test_rows_are_read_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run = write_rows(synthetic_runs, tmp_path / name, ARMS[:1], cases=4, wrong=1)
    words = printed(write_report([run], tmp_path / "page"))
    (script,) = [
        after
        for word, after in pairwise(words)
        if word == "-c" and "read_json(" in after and "pandas" in after
    ]
    exec(script, {})
    assert "alpha" in capsys.readouterr().out
    assert words[-5:] == ["grammarbench", "table", str(run), "--format", "csv"]
    rows = str(run / "rows.jsonl")
    (query,) = [after for word, after in pairwise(words) if word == "-c" and after.startswith("SELECT")]
    if "*" in name:  # DuckDB would take it for a pattern
        assert words[:3] == ["cat", rows, "|"] and "'/dev/stdin'" in query
    else:
        assert words[0] == "duckdb" and f"'{rows.replace(chr(39), 2 * chr(39))}'" in query


@pytest.mark.parametrize("kinds", [("decode",), ("kernels",), ("decode", "kernels")])
def test_a_page_without_rows_names_the_records_that_are_there(kinds: tuple[str, ...], tmp_path: Path) -> None:
    write: dict[str, Callable[[Path], Path]] = {
        "decode": lambda folder: write_decoding(folder, played()),
        "kernels": write_kernels,
    }
    folders = [write[kind](tmp_path / f"my {kind}") for kind in kinds]
    page = write_report(folders, tmp_path / "page")
    told = " ".join(Page(page.read_text("utf-8")).text.split())
    names = [f"{kind}.jsonl" for kind in kinds]
    assert f"is in the lines of {' and of '.join(names)} in the folder" in told
    assert f"Raw data: {', '.join(names)} in the run's folder." in told
    assert not any(name in told for name in ("rows.jsonl", "samples.i64", "RUN", "grammarbench table"))
    words = printed(page)
    assert words[::3] == ["python"] * len(kinds)
    for kind, command in zip(kinds, words[2::3], strict=True):
        shown = subprocess.run(
            [sys.executable, "-c", command], capture_output=True, text=True, check=True
        ).stdout
        assert {"decode": "batch", "kernels": "probe"}[kind] in shown
