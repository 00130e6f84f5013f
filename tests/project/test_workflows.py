"""The workflows under .github, the action, and the workflow of docs/ci.md: read as YAML, what they run
exists, and nothing of an input is pasted into a shell line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT

from harness.cli.main import parser

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"
FILES = [*WORKFLOWS, ACTION]


def steps(path: Path) -> list[dict[str, Any]]:
    read = yaml.safe_load(path.read_text("utf-8"))
    if path == ACTION:
        return list(read["runs"]["steps"])
    return [step for job in read["jobs"].values() for step in job["steps"]]


def commands(text: str) -> list[list[str]]:
    """Our own commands in a shell script, without what the shell does with them."""
    found = []
    for line in text.splitlines():
        for part in re.split(r"&&|\|\||;", line):
            if part.strip().startswith("grammarbench "):
                words = [each for each in shlex.split(part) if not each.startswith(">")]
                given = {"$SUITES": ["regex"], "${BACKEND:+--backends": [], "$BACKEND}": []}
                given |= {"${how[@]}": ["--profile", "gate"], "$JOBS": ["2"]}
                given |= {"${RECORD:+--against": [], "$RECORD}": []}
                given |= {name: [name.replace("$NAME", "grammarbench")] for name in words if "$NAME" in name}
                found.append([word for each in words[1:] for word in given.get(each, [each])])
    return found


def test_what_there_is() -> None:
    assert [each.stem for each in FILES] == ["bench", "gate", "latest", "action"]


@pytest.mark.parametrize(
    "path", [ACTION, ROOT / ".github" / "workflows" / "bench.yml"], ids=lambda each: each.stem
)
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
    if path != ACTION:
        assert yaml.safe_load(path.read_text("utf-8"))["permissions"] == {"contents": "read"}
    assert all("@" in step["uses"] or step["uses"] == "./" for step in steps(path) if "uses" in step)


def test_ours_install_the_small_build_of_torch() -> None:
    """With CUDA, the environments of one job are larger than the disk of a hosted runner."""
    for path in WORKFLOWS:
        index = yaml.safe_load(path.read_text("utf-8"))["env"]["PIP_EXTRA_INDEX_URL"]
        assert index == "https://download.pytorch.org/whl/cpu"


def test_the_action_installs_its_own_checkout_and_no_package_of_ours() -> None:
    installs = [step["run"] for step in steps(ACTION) if "pip install" in step.get("run", "")]
    assert installs == ['python -m pip install "$GITHUB_ACTION_PATH" $INSTALL']


def test_every_input_of_the_action_is_used() -> None:
    action = yaml.safe_load(ACTION.read_text("utf-8"))
    used = {
        value.strip("${} ").removeprefix("inputs.")
        for step in steps(ACTION)
        for value in step.get("env", {}).values()
    }
    assert used == set(action["inputs"])


def test_uses_of_the_action_with_their_own_names_have_their_own_folders_and_artifacts() -> None:
    (walk,) = [step for step in steps(ACTION) if "grammarbench run" in step.get("run", "")]
    (upload,) = [step for step in steps(ACTION) if step.get("uses", "").startswith("actions/upload-artifact")]
    assert walk["env"]["NAME"] == upload["with"]["name"] == "${{ inputs.name }}"
    assert not [line for line in walk["run"].splitlines() if "grammarbench/" in line]
    assert upload["with"]["path"] == "${{ steps.walk.outputs.folder }}" and walk["id"] == "walk"
    assert upload["if"] == "always() && steps.walk.outputs.folder", "what is refused is not published"


def test_the_workflows_give_the_action_what_it_takes() -> None:
    """Ours, and the one that docs/ci.md shows."""
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.DOTALL)
    known = set(yaml.safe_load(ACTION.read_text("utf-8"))["inputs"])
    for text in (shown, (ROOT / ".github" / "workflows" / "gate.yml").read_text("utf-8")):
        jobs = yaml.safe_load(text)["jobs"].values()
        (used,) = [
            step
            for job in jobs
            for step in job["steps"]
            if step.get("uses") in ("./", "OWNER/grammarbench@main")
        ]
        assert {"install", "record"} <= set(used["with"]) <= known


def test_tox_environments_named_there_exist() -> None:
    named = {
        name
        for path in FILES
        for step in steps(path)
        for name in re.findall(r"tox run -e (\w+)", step.get("run", ""))
    }
    assert named and all(f"[testenv:{name}]" in (ROOT / "tox.ini").read_text("utf-8") for name in named)
