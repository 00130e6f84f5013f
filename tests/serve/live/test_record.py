"""A record of a session that was changed or damaged: it is refused in one line, and gates nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from html_page import Page
from live.sessions import obeys, run, write_suite

import harness
from harness.cli.main import main
from harness.errors import BAD_INPUT, INCOMPLETE, OK
from harness.serve.live import show
from harness.serve.live.asking import PROMPT
from harness.serve.live.record import LiveSetup

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def whole(quick: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of one load and its twin."""
    folder = tmp_path_factory.mktemp("whole")
    suite = write_suite(folder / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})
    assert run(faults.says(obeys), folder / "run", suite, "--grammars", "mixed", "--gate")[0] == OK
    return folder / "run"


def changed(whole: Path, folder: Path, change: Callable[[Lines], object]) -> Path:
    """Returns a copy of the session whose lines were changed."""
    shutil.copytree(whole, folder)
    file = folder / "live.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    change(lines)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def load(**fields: object) -> Callable[[Lines], object]:
    return lambda lines: lines[0]["loads"][0].update(fields)


def heard(**fields: object) -> Callable[[Lines], object]:
    return lambda lines: lines[1]["heard"].update(fields)


DAMAGED: dict[str, tuple[Callable[[Lines], object], str]] = {
    "a line is missing": (lambda lines: lines.pop(-2), "its last line speaks of 32 lines, 31 are there"),
    "nothing but the end is there": (
        lambda lines: lines.__delitem__(slice(1, -1)),
        "its last line speaks of 32 lines, 0 are there",
    ),
    "a line too many": (
        lambda lines: lines.insert(5, {"kind": "other"}),
        "its last line speaks of 32 lines, 33 are there",
    ),
    "a count that is none": (lambda lines: lines[-1].update(lines="32"), "where a whole number is expected"),
    "a line behind the end": (lambda lines: lines.append(lines[3]), "it stands behind the end"),
    "a second end": (lambda lines: lines.append(lines[-1]), "it stands behind the end"),
    "a second answer": (lambda lines: lines.__setitem__(2, lines[1]), "a second answer to one request"),
    "a second judgement": (lambda lines: lines.__setitem__(-2, lines[-3]), "a second one of the same"),
    "a judgement of no answer": (lambda lines: lines[-2].update(number=99), "a judgement of no answer"),
    "a load that is not there": (lambda lines: lines[1].update(load=7), "none of this session's"),
    "a number that is not there": (lambda lines: lines[1].update(number=8), "none of this session's"),
    "the other role": (lambda lines: lines[1].update(role="none"), "none of this session's"),
    "a rate that is missing": (load(kind="poisson"), "a load of the kind poisson without what"),
    "a concurrency that is missing": (load(concurrency=None), "a load of the kind closed without what"),
    "a trace that is missing": (load(kind="trace"), "a load of the kind trace without what"),
    "no requests": (load(requests=0), "a load of the kind closed without what"),
    "a time below 0": (lambda lines: lines[1].update(due_ns=-1), "its times are below 0"),
    "an end before its beginning": (heard(done_ns=1), "not one after the other"),
    "a last message before the first": (heard(last_ns=1), "not one after the other"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_record_that_was_changed_is_refused(
    name: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = DAMAGED[name]
    folder = changed(whole, tmp_path / "run", change)
    assert main(["live", "--show", str(folder), "--gate"]) == BAD_INPUT
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1
    assert "not a line of a live session" in errors and "the file was changed or damaged" in errors


def test_a_killed_session_says_how_much_of_it_is_not_judged(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It heard everything, and judged three outputs."""
    folder = changed(whole, tmp_path / "run", lambda lines: lines.__delitem__(slice(20, None)))
    assert main(["live", "--show", str(folder), "--gate"]) == INCOMPLETE
    said = capsys.readouterr().out
    assert "13 outputs not judged yet: the session was killed before its judges were done" in said
    assert "could be judged" not in said
    assert main(["live", "--show", str(folder), "--json"]) == INCOMPLETE
    assert json.loads(capsys.readouterr().out)["not_judged_yet"] == 13


def test_the_page_has_the_warnings_of_the_terminal(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open load that was late, whose server counted no tokens, and an answer that failed."""
    monkeypatch.setattr(show, "LATE_NS", 0)

    def late(lines: Lines) -> None:
        for each in lines[0]["loads"]:
            each.update(kind="poisson", rate=100.0, concurrency=None)
        for line in lines[1:]:
            if line["kind"] == "answer":
                line["due_ns"] = 0
                line["heard"]["usage"] = {}
        lines[1]["heard"].update(end="malformed", why="no JSON <at all>")

    folder = changed(whole, tmp_path / "run", late)
    assert main(["live", "--show", str(folder)]) == OK
    said = " ".join(capsys.readouterr().out.split())
    assert main(["report", str(folder), "--out", str(tmp_path / "page")]) == OK
    page = Page((tmp_path / "page" / "report.html").read_text("utf-8"))
    for note in (
        "THE CLIENT WAS LATE by",
        "at the median, so the load was not the stated one",
        "tokens of 15 answers are messages with text: the server counted none (7 with a grammar, 8 without)",
        "against the same load without a grammar, medians: TTFT",
        "(7 pairs)",
        "1: no JSON <at all>",
    ):
        assert note in said and note in page.text, note
    assert "100/s poisson, without: THE CLIENT WAS LATE by" in page.text
    capsys.readouterr()
    for place, known in ((folder, True), (whole, False)):
        assert main(["live", "--show", str(place), "--json"]) == OK
        assert {load["late"] for load in json.loads(capsys.readouterr().out)["loads"]} == {known}


# --------------------------------------------------------------------------------------------- the objectives

ASKED = "TTFT <= 1e+06 ms, E2E <= 0.001 ms"
"""No request ends within a microsecond."""


@pytest.fixture(scope="module")
def strict(quick: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with objectives of its own."""
    folder = tmp_path_factory.mktemp("strict")
    suite = write_suite(folder / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})
    options = ("--grammars", "mixed", "--pairs", "off", "--objectives", "ttft:1e6 e2e:0.001")
    assert run(faults.says(obeys), folder / "run", suite, *options)[0] == OK
    return folder / "run"


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, dict[str, Any]]:
    """Returns what `--show` prints of the session, and its JSON."""
    capsys.readouterr()
    assert main(["live", "--show", str(folder), *options]) == OK
    text = capsys.readouterr().out
    assert main(["live", "--show", str(folder), "--json", *options]) == OK
    return text, json.loads(capsys.readouterr().out)


def test_goodput_is_by_the_objectives_that_were_asked_for(
    strict: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, found = shown(strict, capsys)
    assert f"goodput: {ASKED}\n" in text and found["loads"][0]["goodput"] == 0
    assert found["objectives"] == {"ttft_ms": 1e6, "tpot_ms": None, "e2e_ms": 0.001}
    assert main(["report", str(strict), "--out", str(tmp_path)]) == OK
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    assert f"Goodput: {ASKED}." in page.text and "TPOT <= 50 ms" not in page.text


def test_the_json_says_how_the_session_was_asked(strict: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setup = shown(strict, capsys)[1]["setup"]
    assert setup["harness"] == harness.__version__
    assert setup["sampling"] == {"limit": 256, "temperature": 0, "prompt": PROMPT, "seed": 0}
    assert setup["deadlines"] == {"connect_s": 5, "first_s": 60, "stall_s": 30, "total_s": 120}
    assert setup["left_out"] == [] and setup["machine"] and setup["started"]
    assert setup["objectives"] == {"ttft_ms": 1e6, "tpot_ms": None, "e2e_ms": 0.001}


def test_no_field_of_the_setup_is_missing_in_the_json(
    strict: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(strict, capsys)[1]
    assert set(show.ELSEWHERE) <= found.keys() | found["server"].keys()
    assert {field.name for field in fields(LiveSetup)} == found["setup"].keys() | set(show.ELSEWHERE)


def test_others_may_be_named_where_a_session_is_shown(
    strict: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, found = shown(strict, capsys, "--objectives", "e2e:1e6")
    assert "goodput: E2E <= 1e+06 ms\n" in text and found["loads"][0]["goodput"] > 0


def test_a_session_of_an_older_protocol_is_to_be_made_anew(
    strict: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = changed(strict, tmp_path / "old", lambda lines: lines[0].update(protocol=1))
    assert main(["live", "--show", str(folder)]) == BAD_INPUT
    said = f"grammarbench: {folder}: a live session by protocol 1, this version reads 2; measure anew\n"
    assert capsys.readouterr().err == said
