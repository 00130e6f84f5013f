"""`repro --script` writes a script that shows the failure, or none, and says which; what cannot be is refused
before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic
from failing import CASES, OUTLINES, row

from harness.backend.arm import Arm
from harness.cli.main import main
from harness.diagnose.repro import show

pytestmark = pytest.mark.usefixtures("importable_miniatures")

CRASHES = Arm("miniatures:SegfaultsInFill", "", "", "regex", ("regex",), "bitmask")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lost: dict[str, Any] = {"status": "crash", "phase": "fill", "signal": "SIGSEGV", "accepted": None}
    rows = [
        row(0, OUTLINES, 0, accepted=False, stopped_at=6),  # it never was refused
        row(0, OUTLINES, 1, accepted=False, stopped_at=9),
        row(2, CRASHES, 0, **lost),
    ]
    cases = [("mine", each) for each in CASES]
    return synthetic.write_run(
        tmp_path / "run", [[(each, b"")] for each in rows], synthetic.info((OUTLINES, CRASHES)), cases
    )


@pytest.mark.parametrize(
    "words",
    [
        ["boom", "--backends", "miniatures:SegfaultsInFill"],
        ["star", "--backends", "outlines-core", "--instance", "0", "--shrink", "--json"],
    ],
    ids=["the adapter has none", "not seen again"],
)
def test_no_script_is_written_where_there_is_none(
    run: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = run.parent / "fault.py"
    assert main(["repro", str(run), *words, "--script", str(path)]) == 0
    told = capsys.readouterr()
    assert not path.exists() and f"script: {path}" not in told.out + told.err
    assert f"no script was written to {path}" in told.err


def test_the_script_is_that_of_the_walk_that_was_shown(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    walks: list[object] = []
    replay = show.__globals__["replay"]

    def counted(failure: object) -> object:
        walks.append(failure)
        return replay(failure)

    monkeypatch.setitem(show.__globals__, "replay", counted)
    path = run.parent / "fault.py"
    words = ["repro", str(run), "star", "--backends", "outlines-core", "--instance", "1"]
    assert main([*words, "--script", str(path)]) == 0
    shown = capsys.readouterr().out
    assert len(walks) == 1 and path.read_text("utf-8").strip() in shown and f"script: {path}" in shown


@pytest.mark.parametrize(("name", "said"), [("none/x.py", "there is no folder"), (".", "it is a folder")])
def test_a_path_that_cannot_be_written_is_refused_before_the_walk(
    run: Path, name: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(show.__globals__, "replay", None)  # calling it would raise
    path = run.parent / name
    assert main(["repro", str(run), "star", "--backends", "outlines-core", "--script", str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and said in told.err and "stored" not in told.err
