"""`--json`: one document on stdout, nothing else, with the keys of docs/ci.md.

The slow commands: tests/docs_commands/test_json.py.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from decode_runs import Played, decoding
from failing import CASES, OUTLINES, row
from json_keys import check, documented, keys, strict
from measured import arm, steady, write_measurement
from miniatures.wrong_walks import READING
from pages import verbs
from places import SUPPORT

from harness.backend.arm import Arm
from harness.backend.environments import build as environments
from harness.backend.environments.source import Source
from harness.backend.grammar import Grammar
from harness.backend.registry import MARKER
from harness.cases.case import Case, Instance, case_id
from harness.cases.corpora import CORPORA, Corpus
from harness.cli.main import main
from harness.serve.decode.record import DecodeRecorder
from harness.serve.decode.setting import Setting


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """What the command says on stdout."""
    assert main([*map(str, words), "--json"]) == code
    return capsys.readouterr().out


def test_the_page_speaks_of_every_command() -> None:
    # `list` has a row for each thing that it lists.
    assert {"list" if name.startswith("list ") else name for name in documented()} == set(verbs())
    assert keys("report") == {"written"} and keys("compare", "--record") == {"recorded", "file"}
    assert (
        keys("run") >= {"folder", "next"}
        and keys("run", "--record") == {"recorded"}
        and keys("run", "--expect") == {"expected"}
    )


def test_a_key_that_is_missing_is_seen() -> None:
    with pytest.raises(AssertionError, match="folder"):
        check('{"corpus": "x"}', "fetch")
    with pytest.raises(ValueError, match="Extra data"):
        check('{"corpus": "x", "folder": "y"}\n{}', "fetch")


@pytest.fixture(scope="module")
def measured(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions in one run, measured."""
    folder: Path = tmp_path_factory.mktemp("measured")
    old, new = (Arm("toy", version, "", "toy", ("regex",), "bitmask") for version in ("1", "2"))
    walks = [[(synthetic.row(backend="toy", backend_version=each.version), b"")] for each in (old, new)]
    synthetic.write_run(folder, walks, synthetic.info((old, new)))
    arms = {
        arm("toy==1", "reference", "toy", "1"): steady(1, seed=1),
        arm("toy==2", "arm", "toy", "2"): steady(1.2, seed=2),
        arm("toy==1 (again)", "a/a", "toy", "1"): steady(1, seed=3),
    }
    write_measurement(folder, arms)
    return folder


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decode record, played."""
    folder = tmp_path_factory.mktemp("decoded")
    texts = {"a": (1,) * 6}
    record = decoding(
        {Setting("calls", batch=1, texts=1): {"alpha": Played(texts, 11.0)}},
        plain=Played(texts, 10.0),
        forks=2,
    )
    with DecodeRecorder(folder, record.setup) as recorder:
        for child in record.children:
            recorder.child(child)
        for batch in record.batches:
            recorder.batch(batch)
        recorder.finish("2026-11-22T01:00:00Z")
    return folder


def test_times_and_comparisons(measured: Path, decoded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = strict(told(capsys, "table", measured, "times"))
    assert times and {"arm", "cases", "of"} <= set(times[0])
    pairs = check(told(capsys, "compare", measured), "compare")
    assert any(each["verdict"] == "regressed" for each in pairs[0]["times"])
    check(told(capsys, "decode", "--show", decoded), "decode")
    changes = strict(told(capsys, "compare", decoded, decoded))
    assert {"setting", "figure", "verdict"} <= set(changes[0])


def test_a_page_of_comparisons_is_told_on_stderr(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(measured), "--html", str(tmp_path / "page.html"), "--json"]) == 0
    out, err = capsys.readouterr()
    strict(out)
    assert f"written: {tmp_path / 'page.html'}" in err


def test_a_history_and_its_site(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(told(capsys, "history", tmp_path / "past", "--add", measured), "history")
    written = check(
        told(capsys, "report", "--history", tmp_path / "past", "--out", tmp_path / "site"), "report"
    )["written"]
    assert {Path(each["path"]).name for each in written} >= {"index.html", "feed.xml"}
    assert all(Path(each["path"]).stat().st_size == each["bytes"] for each in written)


def test_each_file_of_a_page_is_named_once(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "exported"
    told_of = told(capsys, "report", measured, "--format", "html,summary,csv", "--out", out)
    names = [Path(each["path"]).name for each in check(told_of, "report")["written"]]
    assert "report.json" in names and sorted(names) == sorted(each.name for each in out.iterdir())
    alone = tmp_path / "page.html"
    written = check(told(capsys, "report", measured, "--out", alone), "report")["written"]
    assert [each["path"] for each in written] == [str(alone)]


def test_forms_for_other_tools(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "exported"
    written = check(
        told(capsys, "report", measured, "--format", "json,csv", "--time", "--out", out), "report"
    )["written"]
    assert {Path(each["path"]).name for each in written} == {
        "result.json", "cases.csv", "figures.csv", "failing.csv"
    }  # fmt: skip
    assert json.loads((out / "result.json").read_text())["gate"]["verdict"] == "failed"
    check(told(capsys, "compare", measured, "--time", "--gate", code=1), "compare")


def test_kernels_that_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = {"kind": "run", "format": 1, "started": "2026-11-22T01:00:00Z", "device": "cpu", "backends": []}
    run |= {"on": {"name": "", "torch": "2.13"}, "machine": {"cpus_usable": 2}}
    (tmp_path / "kernels.jsonl").write_text(json.dumps(run) + "\n", "utf-8")
    said = check(told(capsys, "measure", "kernels", "--show", tmp_path, code=3), "measure kernels")
    assert said["end"] is None


def test_a_corpus_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        line = ["git", "-C", str(tmp_path / "source"), *identity, *arguments]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "source" / "data").mkdir(parents=True)
    (tmp_path / "source" / "data" / "one.json").write_text('{"schema": {"const": 1}}')
    for line in (
        "init --quiet",
        "config uploadpack.allowAnySHA1InWant true",
        "add .",
        "commit --quiet -m first",
    ):
        git(*line.split())
    monkeypatch.setitem(
        CORPORA, "maskbench", Corpus(str(tmp_path / "source"), git("rev-parse", "HEAD"), "data")
    )
    said = check(told(capsys, "fetch", "maskbench", "--out", tmp_path / "corpora"), "fetch")
    assert said["corpus"] == "maskbench" and (Path(said["folder"]) / "one.json").is_file()


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever version is asked for is built anew, and this environment is what is built."""

    def build(source: Source, folder: Path, lock: int) -> None:
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        python.chmod(0o755)
        made_for = {"distribution": source.distribution, "version": source.version, "from": source.target}
        (folder / MARKER).write_text(json.dumps(made_for))

    monkeypatch.setenv(environments.CACHE, str(tmp_path / "environments"))
    monkeypatch.setattr(environments, "places", lambda names: {name: (name, "0") for name in names})
    monkeypatch.setattr(environments, "_build", build)


def test_check_tells_of_a_build_on_stderr(
    builds: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.backend.contract.checkup.run_checks", lambda *_: ())
    assert main(["check", "xgrammar==0.1.19", "--json"]) == 0
    out, err = capsys.readouterr()
    assert strict(out)["backend"] == "xgrammar==0.1.19"
    assert "building an environment for xgrammar==0.1.19 ..." in err


def test_repro_tells_of_a_build_on_stderr(
    builds: None, synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = replace(OUTLINES, python=str(tmp_path / "gone" / "bin" / "python"))
    header = synthetic.info((gone,))
    run = synthetic.write_run(
        tmp_path / "run", [[(row(0, gone, 1, accepted=False), b"")]], header, [("mine", CASES[0])]
    )
    assert main(["repro", str(run), "star", "--backends", "outlines-core", "--json"]) == 0
    out, err = capsys.readouterr()
    assert strict(out)["backend"] == "outlines-core"
    assert f"building an environment for outlines-core=={gone.version} ..." in err


def test_whose_fault_it_is(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress and notes go to stderr, the counts to stdout."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    grammar = Grammar("json_schema", json.dumps(READING))
    case = Case(case_id(grammar), "the case", grammar, (Instance("good", b'{"n": 1, "s": "x"}', True),))
    arms = tuple(
        Arm(f"miniatures.wrong_walks:{name}", "", "", "", ("json_schema",), "bitmask")
        for name in ("Reading", "ForgetsRequired")
    )
    header = synthetic.info(arms, vocabularies={"bytes": {"size": 257, "sha256": ""}})
    rows = [
        synthetic.row(backend=each.backend, backend_version="", vocabulary="bytes", case_id=case.id)
        for each in arms
    ]
    run = synthetic.write_run(tmp_path / "run", [[(row, b"")] for row in rows], header, [("first", case)])
    said: Any = check(told(capsys, "adjudicate", run, "--effort", 4, "--tries", 1), "adjudicate")
    assert said["cases"] == 1 and {each["cause"] for each in said["blamed"]} == {"required"}


def test_tables_as_lists(
    measured: Path, synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = check(told(capsys, "table", measured), "table")
    assert main(["table", str(measured), "--format", "csv"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == len(lines)
    strict(told(capsys, "table", measured, "faults"))
    walk = synthetic.row(tags=("keyword:type", "decides:type"))
    decided = synthetic.write_run(tmp_path / "decided", [[(walk, b"")]])
    strict(told(capsys, "table", decided, "keywords"))
