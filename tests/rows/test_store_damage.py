"""Damage of a run's files that must not pass for a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic

from harness.errors import BadInput
from harness.rows import store
from harness.rows.folder import ROWS
from harness.rows.store import PACKED, packed, read_cases, read_end, read_info, read_rows


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_of(tmp_path / "run")


def run_of(folder: Path, **more: Any) -> Path:
    rows = [synthetic.row(case_id=f"{number:012x}", samples=None) for number in range(2)]
    made: Path = synthetic.write_run(folder, [[(row, synthetic.ns(1, 2))] for row in rows], **more)
    return made


def lines_of(run: Path) -> list[bytes]:
    return (run / ROWS).read_bytes().splitlines(keepends=True)


def publish(run: Path, content: bytes) -> None:
    """Leaves of the run what a published one has: its packed rows."""
    for file in run.iterdir():
        file.unlink()
    (run / PACKED).write_bytes(packed(content))


def test_a_published_run_has_no_rows_beside_those_that_its_end_counts(run: Path) -> None:
    *lines, end = lines_of(run)
    publish(run, b"".join([*lines, json.dumps(json.loads(end) | {"rows": 1}).encode() + b"\n"]))
    with pytest.raises(BadInput, match="speaks of 1 row"):
        list(read_rows(run))


def test_two_runs_in_one_file_are_none(run: Path) -> None:
    *lines, end = lines_of(run)
    (run / ROWS).write_bytes(b"".join([*lines, lines[0], end]))
    with pytest.raises(BadInput, match="header in the first line and only there"):
        list(read_rows(run))


@pytest.mark.parametrize("more", [1, -1])
def test_another_format_is_refused(run: Path, more: int) -> None:
    header, *lines = lines_of(run)
    head = json.loads(header)
    (run / ROWS).write_bytes(
        b"".join([json.dumps(head | {"format": head["format"] + more}).encode(), b"\n", *lines])
    )
    with pytest.raises(BadInput, match="format"):
        read_info(run)


@pytest.mark.parametrize("end", [b'{"kind":"end"}\n', None], ids=["empty", "torn"])
def test_an_end_that_is_none_ends_nothing(run: Path, end: bytes | None) -> None:
    *lines, last = lines_of(run)
    (run / ROWS).write_bytes(b"".join([*lines, last[:-1] if end is None else end]))
    assert read_end(run) is None


def test_without_its_samples_a_published_run_names_none(run: Path) -> None:
    assert [row.samples for row in read_rows(run)] == [(0, 2), (2, 2)]
    publish(run, (run / ROWS).read_bytes())
    assert [row.samples for row in read_rows(run)] == [None, None]


def test_a_case_that_stands_twice_is_refused(tmp_path: Path) -> None:
    case = synthetic.case(1, [("a", b"1", True)])
    run = run_of(tmp_path / "doubled", cases=[("first", case), ("first", case)])
    with pytest.raises(BadInput, match="twice"):
        list(read_cases(run))


def test_rows_that_unpack_to_too_much_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(run, (run / ROWS).read_bytes())
    monkeypatch.setattr(store, "MOST_UNPACKED", 10)
    with pytest.raises(BadInput, match="unpacks to more"):
        read_end(run)
