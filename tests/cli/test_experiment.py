"""`run experiment.toml`: a saved experiment is walked as it says, and every run holds one that repeats it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.rows.store import read_cases, read_info, read_rows

LETTERS = {
    "description": "letters",
    "regex": "[a-c]+",
    "tests": [{"text": "abc", "valid": True}, {"text": "x", "valid": False}],
}
DIGITS = {"description": "digits", "regex": "[0-9]{2}", "tests": [{"text": "12", "valid": True}]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that we are in, with cases in `cases/`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "letters.json").write_text(json.dumps(LETTERS))
    (tmp_path / "cases" / "digits.json").write_text(json.dumps(DIGITS))
    return tmp_path


def saved(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return os.path.relpath(path)


def test_a_file_says_what_a_run_walks_and_its_paths_are_relative_to_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(
        here / "saved" / "one.toml",
        """
        suites = ["../cases"]
        backends = ["reference:layout=compact", "unconstrained"]
        vocabularies = ["bytes", "probe"]
        effort = 0
        timeout = 7.5
        seed = 3
        out = "../walked"
        """,
    )
    assert main(["run", file]) == 0
    info = read_info(here / "walked")
    assert [(arm.backend, arm.options) for arm in info.arms] == [
        ("reference", "layout=compact"),
        ("unconstrained", ""),
    ]
    assert list(info.vocabularies) == ["bytes", "probe"]
    assert (info.effort, info.timeout_s, info.seed) == (0, 7.5, 3)
    assert info.suites["cases"]["cases"] == 2
    more = saved(here / "saved" / "two.toml", Path(file).read_text().replace("../walked", "../more"))
    Path(more).write_text(f'{Path(more).read_text()}take-over = "../walked"\n')
    assert main(["run", more]) == 0
    assert "8 cases taken over from walked" in capsys.readouterr().err


def test_the_command_line_is_stronger_than_the_file(here: Path) -> None:
    file = saved(
        here / "one.toml",
        'suites = ["cases"]\nbackends = "reference"\nvocabularies = "bytes"\neffort = 2\ndecode = true\n',
    )
    words = ["run", file, "cases/digits.json", "--effort", "0", "--no-decode", "--vocabularies", "probe"]
    assert main([*words, "--out", "walked"]) == 0
    info = read_info(here / "walked")
    assert (info.effort, info.decode, list(info.vocabularies)) == (0, False, ["probe"])
    assert list(info.suites) == ["digits"]
    assert [arm.backend for arm in info.arms] == ["reference"]


@pytest.mark.parametrize(
    "elsewhere",
    [
        pytest.param(False, id="from the same folder", marks=pytest.mark.long),
        pytest.param(True, id="from another folder"),
    ],
)
def test_the_file_in_a_run_repeats_it(here: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """The same cases, the same backends with their versions and options, the same seed, the same outcomes."""
    options = ["--vocabularies", "probe", "--profile", "quick", "--seed", "5", "--effort", "1"]
    first = ["run", "cases", "regex", "--backends", "llguidance,llguidance:whitespace=compact", *options]
    assert main([*first, "--out", "walked"]) == 0
    if elsewhere:
        (here / "else" / "where").mkdir(parents=True)
        monkeypatch.chdir(here / "else" / "where")
    again = here / "again"
    assert main(["run", os.path.relpath(here / "walked" / "experiment.toml"), "--out", str(again)]) == 0
    one, two = read_info(here / "walked"), read_info(again)
    for name in ("arms", "vocabularies", "suites", "seed", "effort", "profile", "timeout_s", "memory_bytes"):
        assert getattr(one, name) == getattr(two, name), name
    assert (here / "walked" / "cases.jsonl").read_bytes() == (again / "cases.jsonl").read_bytes()
    assert one.suites["regex"]["cases"] == 20 < one.suites["regex"]["cases_in_all"]
    outcomes = [
        [(row.backend, row.case_id, row.instance, row.status, row.accepted) for row in read_rows(folder)]
        for folder in (here / "walked", again)
    ]
    assert outcomes[0] == outcomes[1] and outcomes[0]


def test_the_file_in_a_run_names_every_version_and_every_default(here: Path) -> None:
    words = ["run", "cases", "--backends", "llguidance,reference", "--vocabularies", "probe"]
    assert main([*words, "--case", "digits", "--out", "walked"]) == 0
    value = tomllib.loads((here / "walked" / "experiment.toml").read_text())
    version = next(arm.version for arm in read_info(here / "walked").arms if arm.backend == "llguidance")
    assert value["backends"] == [f"llguidance=={version}", "reference"]
    assert value["suites"] == ["../cases"] and value["case"] == ["digits"]
    assert (value["profile"], value["effort"], value["timeout"], value["seed"]) == ("default", 2, 10.0, 0)
    assert [case.name for _, _, case in read_cases(here / "walked")] == ["digits"]


def test_shards_put_together_have_the_file_of_the_whole(here: Path) -> None:
    words = ["run", "cases", "--backends", "reference", "--vocabularies", "bytes", "--effort", "0"]
    for number in (1, 2):
        assert main([*words, "--shard", f"{number}/2", "--out", f"shard{number}"]) == 0
    assert tomllib.loads((here / "shard2" / "experiment.toml").read_text())["shard"] == "2/2"
    assert main(["merge", "whole/of", "shard1", "shard2"]) == 0
    value = tomllib.loads((here / "whole" / "of" / "experiment.toml").read_text())
    assert "shard" not in value and value["suites"] == ["../../cases"]
    assert main(["run", "whole/of/experiment.toml", "--out", "again"]) == 0
    assert read_info(here / "again").suites == read_info(here / "whole" / "of").suites


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('backend = "reference"', 'there is no key "backend"; did you mean "backends"?'),
        ("[options]\neffort = 1", 'there is no key "options"'),
        ('resume = "yes"', 'there is no key "resume"'),
        ('backends = ["referense"]', 'backends: there is no backend "referense"; did you mean "reference"?'),
        ("backends = 3", "backends: a number where a text or a list of texts is expected"),
        ("backends = []", "backends: "),
        ('suites = ["caces"]', "suites: unknown suite"),
        ('vocabularies = ["tekkn"]', 'vocabularies: unknown vocabulary "tekkn"; did you mean "tekken"?'),
        ("effort = -3", "effort: invalid whole number from 0 to 10,000, or all value: '-3'"),
        ("effort = " + "9" * 5000, "a number of more than 4,300 digits is not read"),
        ("seed = 0x" + "f" * 5000, "seed: a number beyond 2^62"),
        ("seed = 99999999999999999999", "seed: a number beyond 2^62"),
        ("memory = 1e300", "memory: invalid number from 0.000001 to 1,000,000,000 value: '1e+300'"),
        ('out = "a\\u0000b"', "out: a text with a null character"),
        ('expect = "a\\u0000b"', "expect: a text with a null character"),
        ('backends = ["reference==./a\\u0000b"]', "backends: a text with a null character"),
        ('vocabularies = "tiktoken:./a\\u0000b"', "vocabularies: a text with a null character"),
        ('suites = ["cases\\u0000"]', "suites: a text with a null character"),
        ("effort = [1]", "effort: a list where a text or a number is expected"),
        ("effort = 2026-11-23", "effort: a date where a text or a number is expected"),
        ("decode = 1", "decode: a number where true or false is expected"),
        ("timeout = true", "timeout: true or false where a text or a number is expected"),
        ('profile = "ful"', 'profile: "ful" is none of its values; did you mean "full"?'),
        ("effort = ", "malformed TOML: "),
        ("effort = 1\neffort = 2", "malformed TOML: "),
        ("x = " + "[" * 5000 + "]" * 5000, "malformed TOML: "),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_key(
    here: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(here / "one.toml", text)
    assert main(["run", file, "--out", "walked"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("grammarbench: one.toml: ") and told in line
    assert not (here / "walked").exists()


def test_a_file_that_cannot_be_read_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "latin.toml").write_bytes(b'suites = ["\xe9"]')
    for words, told in (
        (["run", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["run", "latin.toml"], "latin.toml: not UTF-8"),
        (["run", "latin.toml", "none.toml"], "name one file"),
        (["measure", "latin.toml", "--backends", "reference"], "is for `grammarbench run`"),
        (["advise", "latin.toml"], "is for `grammarbench run`"),
        (["decode", "latin.toml", "--backends", "reference"], "is for `grammarbench run`"),
    ):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line


def test_the_file_is_no_way_around_the_checks_of_names(here: Path) -> None:
    """A name that is no UTF-8 is written so that the file can be read, even if it then names nothing."""
    folder = here / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "letters.json").write_text(json.dumps(LETTERS))
    command: list[str | Path] = [sys.executable, "-m", "harness", "run", folder, "--backends", "reference"]
    command += ["--vocabularies", "bytes", "--effort", "0", "--out", here / "walked"]
    assert subprocess.run(command, cwd=here, capture_output=True).returncode == 0
    assert "suites" in tomllib.loads((here / "walked" / "experiment.toml").read_text("utf-8"))
