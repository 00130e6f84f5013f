"""A stored decoding is printed again: whole, without its end, after Ctrl-C, by other objectives, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from decode_runs import Played, decoding
from report_folders import write_decoding
from rich.cells import cell_len

from harness.cli.main import main
from harness.errors import BAD_INPUT, INCOMPLETE, OK
from harness.report.page.page import write_report
from harness.serve.decode import session, show, verdicts
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import LINES, Decoding, Loss, read_decoding
from harness.serve.decode.setting import Setting
from harness.serve.requests.latency import OBJECTIVES, Objectives
from harness.text import Console

STEP = Setting("calls", batch=2, texts=2)
ALL = {"a": [1, 1, 1, 1, 1, 1], "b": [1, 1, 1, 1]}
SLOW = Objectives(ttft_ms=1)
"""Kept by no request here: each has a TTFT of 10 ms."""

Run = Callable[..., tuple[int, str, str]]


def record(objectives: Objectives = OBJECTIVES) -> Decoding:
    made = decoding({STEP: {"x": Played(ALL)}}, plain=Played(ALL, 8), forks=2)
    return replace(made, setup=replace(made.setup, objectives=objectives, argv=("decode", "calls")))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def told(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return told


def goodput(document: dict[str, Any]) -> list[float]:
    return [cell["figures"]["goodput"] for cell in document["cells"]]


def test_a_decoding_is_printed_again(tmp_path: Path, run: Run) -> None:
    folder = write_decoding(tmp_path / "record", record())
    code, out, err = run("decode", "--show", folder)
    assert (code, err) == (OK, "") and out.endswith(f"\nstored in {folder}\n")
    assert "calls, batch 2: 2 requests" in out and "INCOMPLETE" not in out
    code, _, err = run("decode", "sql", "--show", folder)
    assert code == BAD_INPUT and "leave the workloads" in err
    assert run("decode", "--show", folder, "--out", tmp_path / "other")[0] == BAD_INPUT
    code, _, err = run("decode", "--show", tmp_path)
    assert (
        code == BAD_INPUT and "no decoding here" in err and f"`grammarbench decode --out {tmp_path}`" in err
    )


def test_one_without_an_end_says_so(tmp_path: Path, run: Run) -> None:
    folder = write_decoding(tmp_path / "record", record(), finish=False)
    code, out, _ = run("decode", "--show", folder)
    assert code == INCOMPLETE and "INCOMPLETE" in out and "calls, batch 2: 2 requests" in out
    code, out, _ = run("decode", "--show", folder, "--json")
    assert code == INCOMPLETE and json.loads(out)["is_complete"] is False


def test_goodput_is_by_the_objectives_that_were_asked_for(tmp_path: Path, run: Run) -> None:
    folder = write_decoding(tmp_path / "record", record(SLOW))
    assert read_decoding(folder).setup.objectives == SLOW
    assert "goodput: TTFT <= 1 ms what" in " ".join(run("decode", "--show", folder)[1].split())
    asked = json.loads(run("decode", "--show", folder, "--json")[1])
    assert asked["objectives"]["ttft_ms"] == 1 and goodput(asked) == [0, 0]
    other = json.loads(run("decode", "--show", folder, "--json", "--objectives", "ttft:500")[1])
    assert other["objectives"] == {"ttft_ms": 500, "tpot_ms": None, "e2e_ms": None} and all(goodput(other))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_lines_are_as_wide_as_what_they_are_shown_on(width: int) -> None:
    """In columns, of which a character may take two; a name with a line break makes no line of its own."""
    made = record()
    lost = Loss(0, "x", 0, "backend", "文" * 60)
    setup = replace(made.setup, model="tiny\nINCOMPLETE: forged")
    made = replace(made, losses=(lost,), setup=setup)
    lines = show.decoding_text(made, on=Console(width)).splitlines()
    assert width - 12 < max(map(cell_len, lines)) <= width
    assert not any(line.startswith("INCOMPLETE") for line in lines)
    changes = verdicts.changes_text(verdicts.compare_records(Decoded(made), Decoded(made)), Console(width))
    assert max(map(cell_len, changes.splitlines())) <= width


def test_one_of_an_older_protocol_is_to_be_made_anew(tmp_path: Path, run: Run) -> None:
    made = record()
    folder = write_decoding(tmp_path / "old", replace(made, setup=replace(made.setup, protocol=1)))
    said = f"grammarbench: {folder}: a decoding by protocol 1, this version reads 2; measure anew\n"
    assert run("decode", "--show", folder) == (BAD_INPUT, "", said)


def test_the_document_says_what_was_measured_with_what(tmp_path: Path, run: Run) -> None:
    folder = write_decoding(tmp_path / "record", record())
    setup = json.loads(run("decode", "--show", folder, "--json")[1])["setup"]
    assert {"harness", "vocabulary", "sha256", "device", "machine", "hardware", "profile"} <= set(setup)
    assert (setup["forks"], setup["rounds"], setup["argv"]) == (2, 2, ["decode", "calls"])
    assert [(arm["name"], arm["version"], arm["options"]) for arm in setup["arms"]] == [("x", "1", "")]
    assert "settings" not in setup, "they stand in the cells"


def test_what_was_measured_before_ctrl_c_is_printed(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(made: Decoding) -> tuple[int, str, str]:
        out = tmp_path / str(len(list(tmp_path.iterdir())))

        def decode(*_: object) -> Path:
            write_decoding(out, made, finish=False)
            raise session.Interrupted(out)

        monkeypatch.setattr(session, "decode", decode)
        return run("decode", "--backends", "reference", "--out", out)

    code, out, err = stops(record())
    assert code == INCOMPLETE and "INCOMPLETE" in out and "calls, batch 2: 2 requests" in out
    assert "interrupted; what was measured is stored" in err
    code, out, err = stops(replace(record(), batches=()))
    assert (code, out) == (INCOMPLETE, "") and "interrupted" in err


def test_a_session_that_is_interrupted_names_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "_run", stopped)
    request = session.DecodeRequest(
        workloads=("enums",), backends="reference", model="tiny", vocabulary="probe", profile="quick",
        usual=Setting(""), strategies=None, batches=None, texts=None, prompt_tokens=None, forks=1,
        rounds=None, device="cpu", dtype=None, out=tmp_path / "out", timeout_s=1.0, memory_gb=1.0, argv=(),
    )  # fmt: skip
    with pytest.raises(session.Interrupted) as found:
        session.decode(request, lambda _: None)
    assert found.value.folder == tmp_path / "out"


def test_who_wants_a_table_is_told_how_a_decoding_is_printed(tmp_path: Path, run: Run) -> None:
    folder = write_decoding(tmp_path / "record", record())
    for words in (("table", folder), ("table", folder, "faults")):
        code, _, err = run(*words)
        assert code == BAD_INPUT and f"`grammarbench decode --show {folder}`" in err
    (folder / LINES).unlink()
    assert "give the folder that `run --out` wrote" in run("table", folder)[2]


@pytest.mark.parametrize(
    ("asked", "holds", "prints"),
    [
        ("live", "decode.jsonl", "decode --show"),
        ("decode", "live.jsonl", "live --show"),
        ("decode", "rows.jsonl", "table"),
    ],
)
def test_who_asks_for_another_record_is_told_what_prints_it(
    asked: str, holds: str, prints: str, tmp_path: Path, run: Run
) -> None:
    """A folder with a record is never written to again, so that nothing else can be made in it."""
    (tmp_path / holds).touch()
    code, _, err = run(asked, "--show", tmp_path)
    assert code == BAD_INPUT and f"`grammarbench {prints} {tmp_path}` prints what is here" in err


@pytest.mark.parametrize("finish", [True, False])
def test_the_summary_of_a_report_has_what_the_terminal_says(finish: bool, tmp_path: Path) -> None:
    folder = write_decoding(tmp_path / "record", record(), finish)
    write_report([folder], tmp_path / "page")
    summary = (tmp_path / "page" / "summary.md").read_text()
    assert summary.startswith(f"## GrammarBench: {'decoding' if finish else '⚠️ incomplete'}, run run\n")
    assert "\n    calls, batch 2: 2 requests" in summary
