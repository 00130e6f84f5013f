"""A run that goes on believes its plan, and no other cases that stand in its folder meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.rows.row import untimed
from harness.rows.store import read_rows
from harness.running.session import Request, run

CASES = [
    {
        "description": f"letters {number}",
        "regex": f"a{{{number}}}",
        "tests": [{"text": "a" * number, "valid": True}, {"text": "b", "valid": False}],
    }
    for number in range(1, 7)
]


def walk(folder: Path, resume: bool = False) -> str:
    """Walks the cases into a folder beside them; returns what is said."""
    said: list[str] = []
    request = Request(
        suites=(str(folder.with_name("letters.json")),),
        backends="reference",
        vocabularies=("bytes",),
        profile="quick",
        out=folder,
        resume=resume,
        timeout_s=30.0,
        effort=0,
    )
    run(request, said.append, lambda _: None)
    return "\n".join(said)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "whole"
    folder.with_name("letters.json").write_text(json.dumps(CASES))
    walk(folder)
    return folder


@pytest.fixture
def killed(whole: Path, tmp_path: Path) -> Path:
    """Returns a copy of the whole run that was ended after two cases."""
    shutil.copy(whole.with_name("letters.json"), tmp_path)
    folder = Path(shutil.copytree(whole, tmp_path / "killed"))
    rows = folder / "rows.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:5]))
    return folder


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:-50]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a line too few": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(True)[1:])),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_cases_are_put_back(whole: Path, killed: Path, name: str) -> None:
    DAMAGE[name](killed / "cases.jsonl")
    assert "cases.jsonl was not as planned, or missing: it is put back" in walk(killed, resume=True)
    assert (killed / "cases.jsonl").read_bytes() == (whole / "cases.jsonl").read_bytes()
    both = [sorted(map(str, map(untimed, read_rows(folder)))) for folder in (whole, killed)]
    assert both[0] == both[1]


@pytest.mark.parametrize("damaged", [False, True])
def test_a_case_that_was_not_planned_is_refused(killed: Path, damaged: bool) -> None:
    """Its own id and name stand above another grammar, which a backend that is right would be accused by."""
    path = killed / "cases.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    changed = b"".join(others).replace(b"a{5}", b"a{6}")
    path.write_bytes((b"xx\n" if damaged else first) + changed)
    rows = (killed / "rows.jsonl").read_bytes()
    with pytest.raises(BadInput, match=r"cases\.jsonl:5: another case than its run was planned with"):
        walk(killed, resume=True)
    assert (killed / "rows.jsonl").read_bytes() == rows and changed in path.read_bytes()


def test_cases_as_planned_are_left_alone(killed: Path) -> None:
    assert "cases.jsonl" not in walk(killed, resume=True)


def test_cases_that_cannot_be_read_are_told_in_one_line(killed: Path) -> None:
    (killed / "cases.jsonl").unlink()
    (killed / "cases.jsonl").mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        walk(killed, resume=True)
