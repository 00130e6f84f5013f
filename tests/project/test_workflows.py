"""The workflows under .github: read as YAML, what they run exists, and nothing of an input is pasted into a
shell line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT

from harness.cli.main import parser

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(path: Path) -> list[dict[str, Any]]:
    read = yaml.safe_load(path.read_text("utf-8"))
    return [step for job in read["jobs"].values() for step in job["steps"]]


def commands(text: str) -> list[list[str]]:
    """Our own commands in a shell script, without what the shell does with them."""
    found = []
    for line in text.splitlines():
        for part in re.split(r"&&|\|\||;", line):
            if part.strip().startswith("grammarbench "):
                words = [each for each in shlex.split(part) if not each.startswith(">")]
                found.append([{"$SUITES": "regex", "$EXPECT": "file"}.get(each, each) for each in words[1:]])
    return found


def test_there_are_three() -> None:
    assert [each.stem for each in FILES] == ["backend", "bench", "gate"]


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.stem)
def test_our_commands_in_it_are_commands_of_ours(path: Path) -> None:
    said = [words for step in steps(path) for words in commands(step.get("run", ""))]
    assert said
    for words in said:
        assert parser().parse_args(words).command in (words[0], " ".join(words[:2]))


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.stem)
def test_nothing_from_outside_is_pasted_into_a_shell_line(path: Path) -> None:
    assert not [step["run"] for step in steps(path) if "${{" in step.get("run", "")]


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.stem)
def test_it_may_do_no_more_than_it_says(path: Path) -> None:
    read = yaml.safe_load(path.read_text("utf-8"))
    assert read["permissions"] == {"contents": "read"}
    assert all("@" in step["uses"] for step in steps(path) if "uses" in step)


def test_tox_environments_named_there_exist() -> None:
    named = {
        name
        for path in FILES
        for step in steps(path)
        for name in re.findall(r"tox run -e (\w+)", step.get("run", ""))
    }
    assert named and all(f"[testenv:{name}]" in (ROOT / "tox.ini").read_text("utf-8") for name in named)
