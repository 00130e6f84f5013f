"""A word that names a suite of ours and a folder of the user's: no command takes one for the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cases.suite import LARGEST_FILE, MOST_NAMES, find_suite, refuse_two_meanings
from harness.cli.main import main
from harness.errors import BadInput

COMMANDS = (
    ["run", "json-schema", "--backends", "reference"],
    ["run", "--backends", "reference", "regex", "json-schema"],
    ["measure", "json-schema", "--backends", "reference"],
    ["decode", "json-schema", "--backends", "reference"],
    ["live", "http://127.0.0.1:9", "json-schema"],
    ["bisect", "xgrammar", "0.2.8..0.2.9", "json-schema", "--case", "x"],
)


OTHERS = {
    "broken.json": '{"type": ',
    "empty.json": "{}",
    "large.json": json.dumps({"regex": "a" * LARGEST_FILE}),
    "log.jsonl": '{"level": "info", "message": "began"}\n',
    "late.jsonl": "\n" * 20 + '{"regex": "a"}\n',
    "package.json": '{"name": "x", "type": "module", "dependencies": {"a": "^1.0"}}',
    "package-lock.json": '{"lockfileVersion": 2, "dependencies": {"a": {"version": "1.0"}}}',
    "tsconfig.json": '{"$schema": "http://json.schemastore.org/tsconfig", "compilerOptions": {}}',
}
"""Files of a folder of programs, by name: none is a case that anybody means, or that is looked for."""

MEANT = {
    "a.json": '{"type": "object"}',
    "b.json": '{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {}}',
    "c.json": '[{"name": "tool", "parameters": {}}]',
    "d.json": '{"schema": {}, "tests": [{"data": 1, "valid": true}]}',
    "e.jsonl": '{"suite": "mine"}\n{"regex": "a"}\n',
    "f.lark": 'start: "a"',
    "below/g.json": '{"enum": [1]}',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder that is called as a suite of ours is, below the folder that we are in; it is empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json-schema").mkdir()
    return tmp_path / "json-schema"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_refuses_it_and_says_what_to_write(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.json").write_text('{"type": "object"}')
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "json-schema is a suite of ours, and a folder of cases here; write ./json-schema for" in line


def test_a_program_is_told_the_same(folder: Path) -> None:
    (folder / "mine.json").write_text('{"type": "object"}')
    with pytest.raises(BadInput, match="is a suite of ours, and a folder of cases here"):
        harness.run("json-schema", backends="reference")


def test_what_has_one_meaning_is_taken(folder: Path) -> None:
    refuse_two_meanings(["json-schema"])  # a folder without cases, such as one of programs
    (folder / "main.py").write_text("pass")
    refuse_two_meanings(["json-schema"])
    for name, text in OTHERS.items():
        (folder / name).write_text(text)
    refuse_two_meanings(["json-schema"])
    (folder / "mine.json").write_text('{"type": "object"}')
    refuse_two_meanings(["./json-schema", "regex", str(folder)])
    assert not find_suite("./json-schema").is_ours
    assert find_suite("json-schema").is_ours, "what nobody wrote, as the suites of a record, stays ours"


@pytest.mark.parametrize("name", MEANT)
def test_one_case_among_other_files_is_enough(folder: Path, name: str) -> None:
    for other, text in OTHERS.items():
        (folder / other).write_text(text)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(MEANT[name])
    with pytest.raises(BadInput, match=r"write \./json-schema for the folder"):
        refuse_two_meanings(["json-schema"])


def test_a_huge_folder_is_not_walked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mine.json").write_text('{"type": "object"}')
    monkeypatch.setattr("harness.cases.suite.MOST_NAMES", 1)
    (folder / "a.py").write_text("")
    refuse_two_meanings(["json-schema"])
    (folder / "a.py").unlink()
    with pytest.raises(BadInput):
        refuse_two_meanings(["json-schema"])
    assert MOST_NAMES > 1000


@pytest.mark.parametrize(("word", "here"), [("known-bugs", "known_bugs"), ("known_bugs", "known-bugs")])
def test_the_other_spelling_is_the_same_name(
    word: str, here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / here).mkdir()
    (tmp_path / here / "mine.json").write_text('{"type": "object"}')
    with pytest.raises(BadInput) as caught:
        refuse_two_meanings([word])
    assert str(caught.value).startswith(
        f"{word} is a suite of ours, and {here} is a folder of cases here; write ./{here} for the folder"
    )


def test_a_run_that_goes_on_is_of_what_its_record_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = ["run", "lark", "--backends", "reference", "--effort", "0", "--shard", "1/40", "--out"]
    assert main([*ours, "ours"]) == 0
    Path("lark").mkdir()
    Path("lark", "mine.json").write_text('{"type": "object"}')
    assert main([*ours, "new"]) == 2 and main([*ours, "new", "--resume"]) == 2
    assert capsys.readouterr().err.count("lark is a suite of ours, and a folder of cases here") == 2

    made = Path("ours", "rows.jsonl").read_bytes().splitlines(keepends=True)
    Path("ours", "rows.jsonl").write_bytes(b"".join(made[:2]))  # as of a run that was killed
    assert main([*ours, "ours", "--resume"]) == 0
    options: dict[str, Any] = {"backends": "reference", "effort": 0, "shard": "1/40", "resume": True}
    Path("ours", "rows.jsonl").write_bytes(b"".join(made[:2]))
    assert harness.run("lark", out="ours", **options).cases["suite"].eq("lark").all()

    mine = [*ours, "mine"]
    mine[1] = "./lark"
    assert main(mine) == 0
    Path("mine", "rows.jsonl").write_bytes(
        b"".join(Path("mine", "rows.jsonl").read_bytes().splitlines(keepends=True)[:1])
    )
    capsys.readouterr()
    assert main([*ours, "mine", "--resume"]) == 2
    assert "was started with other options" in capsys.readouterr().err
