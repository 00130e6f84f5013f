"""The strip on top of the page, as it is read; and the exit code of `report`, which says the same."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from html_page import render
from measured import Factor, arm, steady, write_measurement
from report_folders import played, write_decoding, write_rows

from harness.backend.arm import Arm
from harness.cli.main import main
from harness.outcomes.compare.sides import read_told
from harness.report.page.inputs import Inputs
from harness.report.page.page import write_report
from harness.report.page.verdict import WORDS, verdict


def strip(*folders: Path) -> str:
    """The words of section 0."""
    found = re.search(r'<section id="verdict".*?</section>', render(folders), flags=re.DOTALL)
    assert found
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found[0])).split())


def measured_run(
    synthetic: ModuleType, folder: Path, head: Factor, control: Factor, finish: bool = True
) -> Path:
    """Two versions of one backend, measured, and a copy of the first."""
    arms = (Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask") for version in ("1", "2"))
    write_rows(synthetic, folder, tuple(arms), cases=4)
    sides = {
        arm("alpha==1", "reference"): steady(1.0),
        arm("alpha==1 (again)", "a/a"): control,
        arm("alpha==2", version="2"): head,
    }
    write_measurement(folder, sides, forks=8, finish=finish)
    return folder


SAME = steady(1.0, seed=2)


@pytest.mark.parametrize(
    ("head", "control", "word"),
    [
        (steady(1.0, seed=1), SAME, "PASS"),
        (steady(1.0, 0.15, seed=1), SAME, "INCONCLUSIVE"),
        (steady(1.0, seed=1), steady(1.3, seed=2), "UNPROVEN"),
        (steady(1.0, 0.15, seed=1), steady(1.3, seed=2), "UNPROVEN"),
    ],
    ids=["equal", "noisy", "unproven", "noisy and unproven"],
)
def test_the_strip_says_whether_the_measurement_can_be_believed(
    synthetic: ModuleType, tmp_path: Path, head: Factor, control: Factor, word: str
) -> None:
    said = strip(measured_run(synthetic, tmp_path / "run", head, control))
    glyph, _, meaning = WORDS[word]
    assert said.startswith(f"{glyph} {word} {meaning}")
    if word == "UNPROVEN":
        told = re.search(r"A/A unproven: identical code equivalent in (\d+) of (\d+) figures", said)
        assert told and int(told[1]) < int(told[2])
        assert "A/A proven" not in said
    else:
        assert (
            re.search(r"A/A proven: identical code equivalent in all \d+ figures", said)
            and "unproven" not in said.lower()
        )


def test_a_page_compares_its_runs_and_its_versions_once(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []

    def counted(*sides: Any) -> Any:
        times.append(1)
        return read_told(*sides)

    monkeypatch.setattr("harness.outcomes.compare.pairs.read_told", counted)
    rows = [write_rows(synthetic, tmp_path / name, cases=4) for name in ("one", "other")]
    for runs in (rows, [measured_run(synthetic, tmp_path / "run", SAME, SAME)]):
        times.clear()
        write_report(runs, tmp_path / "page")
        assert len(times) == 1


def without_end(run: Path) -> Path:
    """The run as it was when somebody killed it before its last line."""
    lines = (run / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (run / "rows.jsonl").write_bytes(b"".join(lines[:-1]))
    return run


def test_report_exits_with_3_where_the_page_says_incomplete(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []

    def write(inputs: Inputs, out: Path, *_: object) -> Path:
        words.append(
            verdict(inputs).word
        )  # whole pages take long, and the other tests of this file look at them
        out.write_text("<title>GrammarBench", "utf-8")
        return out

    monkeypatch.setattr("harness.report.page.page.write_report", write)
    rows = write_rows(synthetic, tmp_path / "rows", cases=4)
    lost = write_rows(synthetic, tmp_path / "lost", cases=4)
    text = (lost / "rows.jsonl").read_text("utf-8").splitlines(keepends=True)
    (lost / "rows.jsonl").write_text(
        "".join([*text[:-2], text[-1]]), "utf-8"
    )  # the end speaks of a row more than there are
    whole = [
        rows,
        measured_run(synthetic, tmp_path / "measured", SAME, SAME),
        write_decoding(tmp_path / "decoded", played(forks=2)),
    ]
    broken = [
        without_end(shutil.copytree(rows, tmp_path / "killed")),
        lost,
        measured_run(synthetic, tmp_path / "half measured", SAME, SAME, finish=False),
        write_decoding(tmp_path / "half decoded", played(forks=2), finish=False),
    ]
    for folder, code in [*((each, 0) for each in whole), *((each, 3) for each in broken)]:
        why = "its last line speaks of" if folder == lost else "no end"
        assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == code, folder.name
        assert (
            (f"is incomplete ({why}" in capsys.readouterr().err) == (words[-1] == "INCOMPLETE") == bool(code)
        ), folder.name


def test_a_measurement_without_end_is_no_answer_for_scripts_either(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = str(measured_run(synthetic, tmp_path / "half", SAME, SAME, finish=False))
    assert main(["table", half, "times"]) == 3
    assert "incomplete" in capsys.readouterr().err
    assert main(["report", half, "--format", "json", "--out", str(tmp_path / "exported")]) == 3
    assert "the measurement in" in capsys.readouterr().err
