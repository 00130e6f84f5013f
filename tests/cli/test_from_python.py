"""`harness.run` is the command `run`: the same options, defaults and rows, and the run as tables."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
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


CLOSED = io.StringIO()
CLOSED.close()


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


def refused(call: Callable[[], object]) -> str:
    """Returns the one line with which what is asked for is refused, before anything is begun."""
    before = sorted(os.listdir())
    with pytest.raises(harness.BadInput) as caught:
        call()
    assert sorted(os.listdir()) == before and "\n" not in str(caught.value)
    return str(caught.value)


def test_an_advice_on_nothing_is_not_one_on_our_suites() -> None:
    """A pattern that fits no file gives no source."""
    assert refused(lambda: harness.advise(*[])).startswith("harness.advise: no source is given")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jobs": -1}, "jobs: "),
        ({"jobs": 0}, "jobs: "),
        ({"jobs": "many"}, "jobs: "),
        ({"backends": []}, 'backends: backend "" cannot be read'),
        ({"backends": ""}, 'backends: backend "" cannot be read'),
        ({"backends": [1]}, "backends: a number where a text or a list of texts is expected"),
        ({"backends": b"reference"}, "backends: a value of the type bytes where"),
        ({"backends": 5}, "backends: a number where"),
        ({"engine": 5}, '"5"'),
        ({"tokenizer": b"bytes"}, "tokenizer: a value of the type bytes where"),
        ({"out": 5}, "out: a number where a text is expected"),
        ({"out": "a\0b"}, "out: a text with a null character"),
    ],
)
def test_the_values_of_an_advice_are_read_as_the_command_reads_them(
    cases: str, given: dict[str, Any], said: str
) -> None:
    assert said in refused(lambda: harness.advise(cases, **{"backends": "reference", **given}))


def test_an_advice_is_what_the_command_is_asked_for(
    cases: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[argparse.Namespace] = []
    noted: list[Sequence[str]] = []

    def advised(options: argparse.Namespace, argv: Sequence[str]) -> None:
        seen.append(options)
        noted.append(argv)

    monkeypatch.setattr(from_python, "advised", advised)
    given: dict[str, Any] = {"tokenizer": None, "backends": ["reference", "unconstrained"], "jobs": "2"}
    harness.advise(Path(cases), "-odd.json", out=Path("o"), **given)
    words = f"advise {cases} ./-odd.json --backends reference,unconstrained --out ./o --jobs 2"
    assert vars(seen[0]) == vars(parser().parse_args(words.split()))
    assert vars(parser().parse_args(list(noted[0]))) == vars(seen[0]), "the run notes it as a command"


def test_no_backend_is_not_every_backend(cases: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A script whose variable is empty does not ask for all that are installed."""
    assert main(["advise", cases, "--backends", ""]) == 2
    assert 'backend "" cannot be read' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("load", "a\0b", "harness.load: a text with a null character"),
        ("load", None, "harness.load: None where a text or a path is expected"),
        ("load", b"run", "harness.load: a value of the type bytes where"),
        ("run", 5, "harness.run: suites: a number where a text or a path is"),
        ("run", None, "harness.run: suites: None where"),
        ("run", "a\0b", "harness.run: suites: a text with a null character"),
        (
            "run",
            ["cases.json"],
            "harness.run: suites: a list where a text or a path is expected; write *suites",
        ),
        (
            "advise",
            ["cases.json"],
            "harness.advise: sources: a list where a text or a path is expected; write",
        ),
        ("advise", "a\0b", "harness.advise: sources: a text with a null character"),
    ],
)
def test_what_is_no_path_is_told(cases: str, name: str, given: object, said: str) -> None:
    assert said in refused(lambda: getattr(harness, name)(given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backends": {"reference"}}, "backends: a value of the type set where a text or a list of texts is"),
        ({"backends": (name for name in ["reference"])}, "backends: a value of the type generator where"),
        ({"backends": [None]}, "backends: None where a text or a list of texts is expected"),
        ({"bare": np.bool_(True)}, "bare: a value of the type numpy.bool"),
        ({"seed": date(2026, 11, 29)}, "seed: a date where"),
        ({"take_ovr": "run"}, 'there is no key "take_ovr"; did you mean "take_over"?'),
    ],
)
def test_a_value_of_another_type_is_told_as_what_it_is(cases: str, given: dict[str, Any], said: str) -> None:
    assert said in refused(lambda: harness.run(cases, **{"backends": "reference", **given}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": np.int64(3)}, "--seed 3"),
        ({"take_over": "before", "check_timeout": 2}, "--take-over ./before --check-timeout 2"),
    ],
)
def test_names_and_numbers_are_those_of_python(
    asked: list[argparse.Namespace], given: dict[str, Any], words: str
) -> None:
    harness.run(**given)
    assert vars(asked[-1]) == of_the_command(*words.split())


@pytest.mark.parametrize("stream", [None, SimpleNamespace(write=len, flush=int), CLOSED])
def test_a_program_need_not_have_a_stream_for_errors(
    cases: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stream: Any
) -> None:
    """pythonw and services have none, or one that only logs."""
    monkeypatch.setattr(sys, "stderr", stream)
    made = harness.run(cases, backends="reference", vocabularies="bytes", effort=0, out="run")
    assert made.cases["state"].tolist() == ["works"] and sys.stderr is stream
    assert capsys.readouterr().out == "", "stdout is the program's own"


@pytest.mark.parametrize("name", ["run", "advise", "load"])
def test_an_empty_path_is_not_the_folder_that_we_are_in(cases: str, name: str) -> None:
    assert f"harness.{name}: " in (said := refused(lambda: getattr(harness, name)("")))
    assert "the path is empty" in said
    if name != "load":
        given = {"backends": "reference", "out": ""}
        said = refused(lambda: getattr(harness, name)(cases, **given))
        assert said.startswith(f"harness.{name}: out: the path is empty")
