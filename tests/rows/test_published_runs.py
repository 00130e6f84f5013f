"""A published run (`rows.jsonl.xz`, mostly without samples and cases) is read by every command that only
reads, and never written."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from synthetic import synthetic_run

from harness.cli.main import main
from harness.errors import OK
from harness.rows.folder import ROWS
from harness.rows.store import PACKED, has_begun, packed, read_end, read_info, read_rows


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "written", cases=6, hostile=False)


@pytest.fixture
def published(written: Path, tmp_path: Path) -> Path:
    """The same run as it is published, in a folder that only root could write to."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / PACKED).write_bytes(packed((written / ROWS).read_bytes()))
    os.chmod(folder, 0o555)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def test_a_published_run_holds_what_the_run_held_but_for_samples(written: Path, published: Path) -> None:
    assert (
        read_info(published) == read_info(written)
        and read_end(published) == read_end(written)
        and has_begun(published)
    )
    rows = list(read_rows(written))
    assert any(row.samples for row in rows) and [row.samples for row in read_rows(published)] == [None] * len(
        rows
    )
    assert [row.case_id for row in read_rows(published)] == [row.case_id for row in rows]


@pytest.mark.parametrize(
    "words",
    [
        "table RUN", "table RUN summary", "table RUN faults", "table RUN --format csv", "compare RUN RUN",
        "report RUN --out OUT", "history OUT --add RUN",
    ],
)  # fmt: skip
def test_commands_that_read_take_a_published_run(
    words: str, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(published)
    given = {"RUN": str(published), "OUT": str(tmp_path / "out")}
    assert main([given.get(word, word) for word in words.split()]) == OK
    assert "cannot" not in capsys.readouterr().err
    assert files(published) == before


def test_what_is_to_be_done_next_needs_nothing_that_a_published_run_lacks(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files(published)
    assert main(["table", str(published), "summary", "--json"]) == 0
    commands = json.loads(capsys.readouterr().out)["next"]
    assert set(commands) == {"table", "report", "forms"} and commands["forms"][-2:] == ["--format", "all"]
    assert all(main(words[1:]) == 0 for words in commands.values())
    assert "cannot" not in capsys.readouterr().err and files(published) == before


def test_figures_that_need_no_samples_are_the_same(
    written: Path, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shares(run: Path) -> list[str]:
        main(["table", str(run), "summary"])
        return [
            line
            for line in capsys.readouterr().out.splitlines()
            if line.split("  ")[0] in ("Conformance", "Declared coverage", "Compliance")
        ]

    assert shares(published) == shares(written) != []


def test_the_page_of_a_published_run_says_what_it_cannot_show(published: Path, tmp_path: Path) -> None:
    assert main(["report", str(published), "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.html").read_text("utf-8")
    assert "published without its cases" in page and "it has no samples" in page


@pytest.mark.parametrize(
    "words",
    [
        "report RUN",
        "adjudicate RUN",
        "run --backends reference --resume --out RUN",
        "merge OUT RUN RUN",
        "repro RUN x --backends a",
    ],
)
def test_what_would_write_or_walk_is_refused_in_one_line(
    words: str, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(published)
    code = main(
        [{"RUN": str(published), "OUT": str(tmp_path / "out")}.get(word, word) for word in words.split()]
    )
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and len(said) == 1 and "is a published run, which is only read" in said[0]
    assert files(published) == before


def test_nobody_is_told_to_measure_into_a_published_run(
    written: Path, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(run: Path) -> str:
        assert main(["table", str(run), "times"]) == 2
        return capsys.readouterr().err.strip()

    assert said(published) == f"grammarbench: {published}: no measurement here (no rounds.jsonl)"
    assert said(written).endswith(f"; `grammarbench measure --out {written}` makes one")


@pytest.mark.parametrize("damage", ["cut", "garbled", "no archive"])
def test_a_damaged_archive_is_told_in_one_line(
    damage: str, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(published, broken, copy_function=shutil.copyfile)
    os.chmod(broken, 0o755)
    whole = (published / PACKED).read_bytes()
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:middle],
        "garbled": whole[:middle] + bytes(40) + whole[middle + 40 :],
        "no archive": b"rows",
    }[damage]
    (broken / PACKED).write_bytes(damaged)
    assert main(["table", str(broken)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and re.search(
        r"no whole xz file|not JSON .*; the file was changed or damaged", said[0]
    )
