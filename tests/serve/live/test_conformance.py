"""The verdict on a server whose answers were cut off at the limit, and the place of its invalid texts."""

from __future__ import annotations

import json
from pathlib import Path

import fault_server as faults
import pytest
from live.sessions import obeys, run, way, write_suite

from harness.cli.main import main
from harness.errors import GATE_FAILED, OK
from harness.serve.live.conformance import DialectCounts, Finding

pytestmark = pytest.mark.usefixtures("quick")


def test_texts_that_fit_and_were_cut_off_speak_against_a_server_that_ignores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight outputs keep the grammar and come to the limit, and one is wrong."""
    suite = write_suite(tmp_path / "mine.jsonl", {"words": {"regex": "[a-z ]+[.]"}})
    wrong = iter([True])

    async def behave(talk: faults.Talk) -> None:
        is_wrong = next(wrong, False)
        await talk.head()
        await talk.texts(["123" if is_wrong else "some words"])
        await talk.finish("stop" if is_wrong else "length")

    assert run(behave, tmp_path / "run", suite, "--gate", "--pairs", "off")[0] == GATE_FAILED
    said = capsys.readouterr().out
    assert "regex: BROKEN: 0/1 outputs valid, 8 truncated that fit" in said and "IGNORES" not in said
    assert main(["live", "--show", str(tmp_path / "run"), "--json"]) == OK
    (found,) = json.loads(capsys.readouterr().out)["kept"]
    assert (found["finding"], found["fitting"], found["without_fitting"]) == ("broken", 8, 0)


def test_a_gate_names_every_broken_dialect_however_many_reasons_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases: dict[str, dict[str, object]] = {
        "number": {"schema": {"type": "integer"}},
        "word": {"regex": "[a-c]{3}"},
        "side": {"choice": ["left", "right"]},
        "rule": {"ebnf": 'root ::= "x" root | "y"'},
    }
    suite = write_suite(tmp_path / "mine.jsonl", cases)
    assert run(faults.says("Sure"), tmp_path / "run", suite, "--gate")[0] == GATE_FAILED
    gate = capsys.readouterr().out.partition("\ngate: fails\n")[2]
    assert "…" not in gate
    for dialect in ("json_schema", "regex", "choice", "ebnf"):
        assert f"  {dialect}: THE SERVER IGNORES THE GRAMMAR: 0/3 outputs valid" in gate


@pytest.mark.parametrize(
    ("counts", "finding"),
    [
        # valid, judged, fitting; the same without a grammar
        ((0, 0, 0, 0, 0, 0), "unproven"),
        ((0, 0, 9, 0, 0, 0), "unproven"),
        ((3, 3, 0, 0, 3, 0), "kept"),
        ((3, 3, 9, 3, 3, 9), "kept"),
        ((0, 3, 0, 0, 0, 0), "ignored"),
        ((0, 3, 0, 0, 3, 0), "ignored"),
        ((0, 1, 20, 0, 0, 0), "broken"),
        ((0, 1, 20, 0, 20, 1), "broken"),
        ((2, 3, 0, 0, 3, 0), "broken"),
        ((1, 3, 0, 1, 3, 0), "ignored"),
        ((1, 3, 0, 1, 3, 30), "ignored"),
        ((1, 3, 30, 1, 3, 0), "broken"),
        ((0, 1, 20, 0, 1, 20), "ignored"),
    ],
)
def test_what_is_found_by_the_counts(counts: tuple[int, int, int, int, int, int], finding: Finding) -> None:
    assert DialectCounts("regex", *counts, examples=()).finding == finding


def test_invalid_texts_are_shown_below_their_dialect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(
        tmp_path / "mine.jsonl", {"side": {"choice": ["left", "right"]}, "word": {"regex": "[a-c]{3}"}}
    )
    run(
        faults.says(lambda body: "neither" if way(body) == "choice" else obeys(body)),
        tmp_path / "run",
        suite,
        *("--pairs", "off", "--grammars", "mixed"),
    )
    lines = capsys.readouterr().out.splitlines()
    places = [place for place, line in enumerate(lines) if line.endswith(": 'neither'")]
    choice, regex = (
        next(place for place, line in enumerate(lines) if line.startswith(name))
        for name in ("choice:", "regex:")
    )
    assert places and places == list(range(choice + 1, regex))
