"""The words of the command line: what is wrong is one line that says what was meant; what a tab key
completes; which backends are taken where none is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from refused import refused_line

from harness.backend.installed import chosen_backends
from harness.cli import options as of_options
from harness.cli.main import main, parser
from harness.errors import BadInput


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("rnu", "run"),
        ("mesure", "measure"),
        ("run --bakends x", "--backends"),
        ("run --vocabulary probe", "--vocabularies"),
        ("run regx --backends reference", "regex"),
        ("run --profile ful --backends reference", "full"),
        ("run --backends referense", "reference"),
        ("run --backends reference --vocabularies tekkn", "tekken"),
        ("run --backends reference:layuot=compact", "layout"),
        ("decode sqll --backends reference", "sql"),
        ("decode --backends reference --strategies stepwize", "stepwise"),
        ("table run fauls", "faults"),
        ("table run --format cvs", "csv"),
        ("report run --format htm", "html"),
        ("list sutes", "suites"),
        ("fetch maskbnch", "maskbench"),
        ("measure kernels --show x --devise cpu", "--device"),
    ],
)
def test_one_line_says_what_was_perhaps_meant(
    words: str,
    meant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    line = refused_line(words, capsys)
    assert "did you mean " in line and f'"{meant}"' in line


def test_where_nothing_is_near_the_known_words_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["list", "xyz"])
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and "known: backends, suites, vocabularies, corpora" in line


# ------------------------------------------------------------------------------- what a tab key completes


def completed(line: str, folder: Path) -> list[str]:
    """What a shell would offer behind this line, asked as the shell's script asks."""
    answer = folder / "answer"
    environ = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    program = [sys.executable, "-c", "from harness.cli.main import main; main()"]
    subprocess.run(program, env=environ, cwd=folder, check=False, capture_output=True)
    return answer.read_text().split("\n") if answer.exists() else []


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("grammarbench r", ["run", "report", "repro"]),
        ("grammarbench measure d", ["doctor", "decode"]),
        ("grammarbench measure doctor --ba", ["--backends"]),
        ("grammarbench run reg", ["regex"]),
        ("grammarbench run my", ["my_cases.json"]),
        ("grammarbench run --prof", ["--profile"]),
        ("grammarbench run --profile g", ["gate"]),
        ("grammarbench run --backends reference,llg", ["reference,llguidance"]),
        ("grammarbench run --vocabularies te", ["tekken"]),
        ("grammarbench check --vocabularies te", ["tekken"]),
        ("grammarbench decode --strategies inter", ["interleaved"]),
        ("grammarbench decode sq", ["sql"]),
        ("grammarbench table my fa", ["faults"]),
        ("grammarbench report --format jun", ["junit"]),
        ("grammarbench fetch mask", ["maskbench"]),
    ],
)
def test_the_tab_key_completes(line: str, offered: list[str], tmp_path: Path) -> None:
    (tmp_path / "my_cases.json").write_text("{}")
    assert sorted(completed(line, tmp_path)) == sorted(offered)


def test_a_command_of_two_words_is_not_offered_as_one(tmp_path: Path) -> None:
    assert {"run", "measure", "list"} <= set(completed("grammarbench ", tmp_path))
    assert not [word for word in completed("grammarbench ", tmp_path) if " " in word]


def test_completion_costs_nothing_where_no_shell_asks() -> None:
    program = "import sys; from harness.cli.main import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "harness.cli.main" in loaded
    assert not {"argcomplete", "harness.cli.completion", "harness.cli.experiment", "tomllib"} & set(loaded)


# ------------------------------------------------------------ which backends are taken where none is named


def entry(name: str, distribution: str = "", version: str = "", problem: str = "") -> dict[str, Any]:
    return {"name": name, "distribution": distribution, "version": version, "problem": problem}


CATALOGUE = [
    entry("first", "first-core", "1.2"),
    entry("gone", "gone", "", "gone is not installed"),
    entry("broken", problem='backend "broken" cannot be imported: no'),
    entry("second", "second", "0.3"),
    entry("control"),
]


def test_all_that_are_installed_are_taken_and_one_line_says_so() -> None:
    said: list[str] = []
    assert chosen_backends(CATALOGUE, said.append) == "first,second"
    assert said == [
        "backends installed here: first 1.2, second 0.3; not installed or not importable: gone, broken; "
        "only by name: control"
    ]


def test_where_nothing_is_installed_one_line_says_what_to_do() -> None:
    with pytest.raises(BadInput, match=r'no backend is installed; pip install "grammarbench\[backends\]"'):
        chosen_backends(CATALOGUE[1:3], lambda line: None)


@pytest.mark.parametrize("command", ["run", "measure", "decode"])
def test_a_command_without_backends_takes_what_is_installed(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.backend.installed.catalogue", lambda: CATALOGUE)
    assert of_options.asked_backends(parser().parse_args([command]), lambda line: None) == "first,second"
    named = parser().parse_args([command, "--backends", "control"])
    assert of_options.asked_backends(named, lambda line: None) == "control"
    empty = parser().parse_args([command, "--backends", ""])
    assert of_options.asked_backends(empty, lambda line: None) == ""


@pytest.mark.long
def test_a_run_without_backends_walks_those_that_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text('{"regex": "a", "tests": [{"text": "a", "valid": true}]}')
    assert main(["run", "a.json", "--vocabularies", "bytes", "--effort", "0", "--out", "walked"]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("backends installed here: ") and "llguidance 1." in first
    assert "only by name: reference, unconstrained" in first
