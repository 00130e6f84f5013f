"""`harness.run` is the command `run`: the same options, defaults and rows, and the run as tables."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import harness
from harness.backend.describe import Description
from harness.cli import from_python
from harness.cli.experiment import NOT_SAVED
from harness.cli.main import main, parser
from harness.rows.row import untimed
from harness.rows.store import read_info, read_rows
from harness.running.session import Outcome

CASE = {
    "description": "letters",
    "regex": "[a-c]+",
    "tests": [{"text": "abc", "valid": True}, {"text": "x", "valid": False}],
}


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of one case, in the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    Path("cases.json").write_text(json.dumps(CASE))
    return "cases.json"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[argparse.Namespace]]:
    """The options of each run that is asked for, none of which is made."""
    options: list[argparse.Namespace] = []

    def walk(given: argparse.Namespace, *_: Any) -> Outcome:
        options.append(given)
        return Outcome(tmp_path, {}, Description((), {}))

    monkeypatch.setattr(from_python, "walk", walk)
    monkeypatch.setattr(from_python, "load", lambda folder: folder)
    yield options


def of_the_command(*words: str) -> dict[str, Any]:
    return vars(parser().parse_args(["run", *words]))


def test_a_run_is_what_the_command_makes(cases: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first line of its file to the words of its table."""
    made = harness.run(
        Path(cases), backends=["reference", "unconstrained"], vocabularies="bytes", effort=1, out=Path("ours")
    )
    assert capsys.readouterr().out == "", "stdout is the program's own"
    words = "--backends reference,unconstrained --vocabularies bytes --effort 1 --out theirs"
    assert main(["run", cases, *words.split()]) == 0
    theirs = harness.load("theirs")
    assert [untimed(row) for row in read_rows(Path("ours"))] == [
        untimed(row) for row in read_rows(Path("theirs"))
    ]
    same = ["arm", "case", "outcome", "state", "faults", "documented"]
    pd.testing.assert_frame_equal(made.cases[same], theirs.cases[same])
    assert dict(zip(made.cases["arm"], made.cases["state"], strict=True)) == {
        "reference": "works",
        "unconstrained": "silently_wrong",
    }
    noted = read_info(Path("ours")).argv
    assert vars(parser().parse_args(list(noted)))["backends"] == "reference,unconstrained"


def test_what_is_left_out_is_the_commands_default(asked: list[argparse.Namespace], cases: str) -> None:
    harness.run()
    harness.run(backends=None, effort=None)
    assert [vars(options) for options in asked] == [of_the_command()] * 2
    harness.run(cases, "regex")
    assert vars(asked[-1]) == of_the_command(f"./{cases}", "regex")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"backends": ["a", "b==1.2"]}, "--backends a,b==1.2"),
        ({"backends": "a,b:option=value"}, "--backends a,b:option=value"),
        ({"vocabularies": ("bytes", "probe")}, "--vocabularies bytes,probe"),
        ({"effort": "all", "profile": "full"}, "--effort all --profile full"),
        ({"timeout": 2.5, "memory": 8, "jobs": 2}, "--timeout 2.5 --memory 8 --jobs 2"),
        ({"decode": True, "spellings": False}, "--decode --no-spellings"),
        ({"case": ["one", "-2"], "seed": 7}, "--case=one --case=-2 --seed 7"),
        ({"executor": "ray", "shards": 3}, "--executor ray --shards 3"),
        ({"shard": "2/4", "out": Path("here")}, "--shard 2/4 --out ./here"),
        ({"resume": True}, "--resume"),
    ],
)
def test_an_option_is_that_of_the_command(
    asked: list[argparse.Namespace], given: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cli.experiment.parse_specs", lambda _: None)
    harness.run(**given)
    assert vars(asked[-1]) == of_the_command(*words.split())


def test_every_option_of_the_command_can_be_given(asked: list[argparse.Namespace]) -> None:
    shown = {name for name in parser().commands["run"].shown_options() if not name.startswith("--no-")}
    taken = []
    for name in sorted(shown - NOT_SAVED):
        option = name.removeprefix("--")
        given: dict[str, Any] = {option: "reference" if option == "backends" else "1"}
        try:
            harness.run(**given)
        except harness.BadInput as error:
            assert "there is no key" not in str(error)
            assert ("belongs to a gate" in str(error)) == (option in from_python.GATES)
        taken.append(option)
    assert {*from_python.GATES, "backends", "effort", "out"} <= set(taken)


def test_a_saved_experiment_is_walked_as_it_says(cases: str) -> None:
    """What is given beside it goes before it, as on the command line; a run's own file repeats the run."""
    Path("saved.toml").write_text(
        f'suites = ["{cases}"]\nbackends = ["reference"]\nvocabularies = ["bytes"]\neffort = 1\n'
    )
    made = harness.run("saved.toml", effort=0, out="first")
    assert made.cases["state"].tolist() == ["works"]
    again = harness.run(Path("first", "experiment.toml"), out="again")
    assert [untimed(row) for row in read_rows(Path("again"))] == [
        untimed(row) for row in read_rows(Path("first"))
    ]
    assert read_info(Path("first")).effort == read_info(Path("again")).effort == 0
    assert again.instances["outcome"].tolist() == ["pass", "pass"]


def test_an_interrupted_run_goes_on(cases: str) -> None:
    options: dict[str, Any] = {"backends": "reference", "vocabularies": "bytes", "effort": 0, "out": "run"}
    whole = harness.run(cases, **options)
    file = Path("run", "rows.jsonl")
    first = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(first[:1]))
    assert not harness.load("run").is_complete
    resumed = harness.run(cases, resume=True, **options)
    assert resumed.is_complete
    assert resumed.cases["state"].tolist() == whole.cases["state"].tolist() == ["works"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backend": "reference"}, 'there is no key "backend"; did you mean "backends"?'),
        ({"backends": "refrence"}, "backends: "),
        ({"effort": "lots"}, "effort: "),
        ({"decode": 3}, "decode: a number where true or false is expected"),
        ({"timeout": [1]}, "timeout: a list"),
        ({"expect": "x.json"}, "expect belongs to a gate"),
        ({"shards": 2}, "--shards cuts the cases for --executor ray"),
        ({"vocabularies": "no-such-vocabulary"}, "vocabularies: "),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(cases: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(harness.BadInput) as caught:
        harness.run(cases, **{"backends": "reference", **given})
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert os.listdir() == ["cases.json"], "nothing was begun"
