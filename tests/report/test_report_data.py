"""What a page prints for readers with tools of their own runs as it is printed, and gives outcomes
by name.
"""

from __future__ import annotations

import html
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import synthetic as synthetic_runs
from report_folders import write_rows

from harness.backend.arm import Arm
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


def test_rows_are_read_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_rows(synthetic_runs, tmp_path / "my run", ARMS[:1], cases=4, wrong=1)
    words = printed(write_report([run], tmp_path / "page"))
    (script,) = [
        after
        for word, after in pairwise(words)
        if word == "-c" and "read_json(" in after and "pandas" in after
    ]
    exec(script, {})
    assert "alpha" in capsys.readouterr().out
    assert words[-5:] == ["grammarbench", "table", str(run), "--format", "csv"]
