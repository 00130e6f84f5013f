"""benchmarks/gpu.sh: what it refuses before it spends anything of a machine that is lent."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gpu_records import ENVIRONMENT, store
from places import ROOT

from harness.errors import BAD_INPUT, OK

SCRIPT = ROOT / "benchmarks" / "gpu.sh"
MACHINE = platform.machine()
HERE = f"{sys.version_info.major}{sys.version_info.minor}"
(NAMED,) = re.findall(r"^packages=\(\n(.+?)\n\)", SCRIPT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
PROJECTS = [name.replace("-", "_") for name in NAMED.split()]


def shell(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Returns how the script ended that was given these arguments."""
    known = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, env=known | environment
    )


def wheels_in(folder: Path, *others: str, tag: str = f"cp{HERE}-abi3-manylinux_2_28_{MACHINE}") -> Path:
    """Returns the folder, filled with empty wheels: the others, as `name-version` or whole, and version 9 of
    each project that none of them is of."""
    folder.mkdir()
    named = {other.partition("-")[0] for other in others}
    for name in [*others, *(f"{project}-9" for project in PROJECTS if project not in named)]:
        (folder / (name if name.endswith(".whl") else f"{name}-{tag}.whl")).touch()
    return folder


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["wheels"], "give the folder to fill"),
        (["--out"], "--out needs a folder"),
        (["--within", "soon"], "--within needs a number of seconds"),
        (["--within=soon"], "--within needs a number of seconds"),
        (["--device"], "--device needs cuda or cpu"),
        (["check", "--out", "here"], "check needs --wheels and --out"),
        (["check", "--wheels", "/nowhere", "--out", "here"], "/nowhere holds no wheel"),
        (["--wheels", "/nowhere", "share"], "/nowhere holds no wheel"),
    ],
)
def test_the_shell_script_says_what_is_wrong(arguments: list[str], says: str) -> None:
    done = shell(*arguments)
    assert done.returncode == BAD_INPUT and says in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["check"], ["decode"]])
@pytest.mark.parametrize(
    ("brought", "fits"), [("xgrammar-1", True), ("xgrammar-2", False), ("outlines_core-3", False)]
)
def test_wheels_of_other_versions_than_a_folder_has_are_refused_before_anything_is_installed(
    arguments: list[str], brought: str, fits: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, version = brought.split("-")
    versions = {"xgrammar": "1", "outlines_core": "2", "llguidance": "7", name: version}
    wheels = wheels_in(tmp_path / "wheels", *map("-".join, versions.items()))
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setitem(ENVIRONMENT, "versions", {"xgrammar": "1", "outlines-core": "2", "llguidance": "7"})
    store("share", {}, path=out / "share.json").save()
    (out / "notes.json").write_text("[]")
    done = shell(*arguments, "--wheels", wheels, "--out", out, PYTHON_OF_WHEELS=f"{HERE[0]}.{HERE[1:]}")
    said = f"share.json is of {name.replace('_', '-')}"
    assert (said in done.stderr) is not fits
    if not fits:
        assert done.returncode == BAD_INPUT and len(done.stderr.splitlines()) == 1
        return
    known = "torch 2, xgrammar 1, outlines-core 2, llguidance 7"
    told = f"share.json of made up and of the same backends ({known})\n"
    assert done.stdout.endswith(told) and f"{len(PROJECTS)} wheels for Python" in done.stdout
    if arguments == ["check"]:
        assert done.returncode == OK and not done.stderr
    else:
        assert done.returncode == BAD_INPUT and len(done.stderr.splitlines()) == 1, "these are no wheels"
        assert "pip cannot install the wheels of" in done.stderr and "ERROR: " in done.stderr


@pytest.mark.parametrize(
    ("others", "tag", "says"),
    [
        (["attrs-9", "attrs-10"], "py3-none-any", "has two wheels of attrs (10 and 9)"),
        (
            ["xgrammar-9-cp39-cp39-any.whl"],
            "py3-none-any",
            "xgrammar-9-cp39-cp39-any.whl is not for Python 3.12",
        ),
        (["xgrammar-9-cp313-abi3-any.whl"], "py3-none-any", "*.whl; PYTHON_OF_WHEELS=3.12 gpu.sh wheels "),
        (["xgrammar.whl"], "py3-none-any", "xgrammar.whl has no name of a wheel"),
        (["torch-2"], "py2.py3-none-any", ""),
        (["xgrammar-9-cp39-abi3-any.whl", "rpds_py-9-1-cp312-cp312-any.whl"], "py3-none-any", ""),
        (["xgrammar-9-py38-none-any.whl", "rpds_py-9-cp312-cp312.cp312t-any.whl"], "py3-none-any", ""),
        (["xgrammar-9-py313-none-any.whl"], "py3-none-any", "py313-none-any.whl is not for Python 3.12"),
        (["xgrammar-9-cp312-cp312t-any.whl"], "py3-none-any", "cp312t-any.whl is not for Python 3.12"),
        (
            ["xgrammar-9-cp312-cp312-manylinux_2_28_aarch64.whl"],
            "py3-none-any",
            "aarch64.whl is not for Linux on x86_64; remove them",
        ),
        (["xgrammar-9-cp312-cp312-musllinux_1_2_x86_64.whl"], "py3-none-any", "is not for Linux on x86_64"),
        (["xgrammar-9-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"], "py3-none-any", ""),
    ],
)
def test_wheels_that_the_other_machine_cannot_install_are_refused(
    others: list[str], tag: str, says: str, tmp_path: Path
) -> None:
    wheels = wheels_in(tmp_path / "wheels", *others, tag=tag)
    done = shell("check", "--wheels", wheels, "--out", tmp_path / "out")
    assert done.returncode == (BAD_INPUT if says else OK) and says in done.stderr
    if says:
        assert len(done.stderr.splitlines()) == 1 and f"gpu.sh wheels {wheels}" in done.stderr
    else:
        assert done.stdout.endswith(f"are complete; there is no {tmp_path / 'out'} yet\n")
    (tmp_path / "out").mkdir()
    if not says:
        done = shell("check", "--wheels", wheels, "--out", tmp_path / "out")
        assert done.stdout.endswith("out holds no part yet\n")


def held_by(out: Path, changed: dict[str, dict[str, Any]]) -> None:
    """Fills the folder with parts whose environment, or whose kind of device, is changed so."""
    out.mkdir()
    for part, other in changed.items():
        environment = ENVIRONMENT | {"versions": {"xgrammar": "9"}} | other
        held = store(part, {}, environment.pop("kind", "cuda"), out / f"{part}.json")
        held.environment = environment
        held.save()


@pytest.mark.parametrize(
    ("changed", "arguments", "says"),
    [
        ({"decode": {}, "cold": {}}, [], ""),
        ({"decode": {"kind": "cpu"}}, [], "decode.json is of --device cpu, and --device cuda is asked for"),
        ({"decode": {"kind": "cpu"}}, ["--device", "cpu"], ""),
        ({"decode": {"kind": "cpu"}}, ["--device=cpu"], ""),
        ({"decode": {}}, ["--device", "cpu"], "decode.json is of --device cuda, and --device cpu is"),
        (
            {"decode": {}, "cold": {"device": "an H100"}},
            [],
            "cold.json is of another device (an H100, in decode.json made up)",
        ),
        ({"decode": {}, "cold": {"torch": "3"}}, [], "cold.json is of another torch (3, in decode.json 2)"),
        (
            {"decode": {}, "cold": {"versions": {"xgrammar": "9", "x": "1"}}},
            [],
            "cold.json is of other versions (",
        ),
        ({"decode": {"versions": {"xgrammar": ""}}}, [], "decode.json is of xgrammar none, and "),
    ],
)
def test_a_folder_that_the_call_would_refuse_is_refused_before_the_machine_is_lent(
    changed: dict[str, dict[str, Any]], arguments: list[str], says: str, tmp_path: Path
) -> None:
    wheels, out = wheels_in(tmp_path / "wheels", tag="py3-none-any"), tmp_path / "out"
    held_by(out, changed)
    done = shell("check", "--wheels", wheels, "--out", out, *arguments)
    assert done.returncode == (BAD_INPUT if says else OK), done.stderr
    assert says in done.stderr and len(done.stderr.splitlines()) == bool(says)
    assert bool(says) or ".json of made up and of the same backends (torch 2, xgrammar 9)\n" in done.stdout


@pytest.mark.parametrize(
    "torn", ["[]", "{", '{"format": 1, "part": "cold", "environment": {"versions": {}}}']
)
def test_a_torn_part_is_refused_before_the_machine_is_lent(torn: str, tmp_path: Path) -> None:
    wheels, out = wheels_in(tmp_path / "wheels", tag="py3-none-any"), tmp_path / "out"
    held_by(out, {"decode": {}})
    (out / "cold.json").write_text(torn)
    done = shell("check", "--wheels", wheels, "--out", out)
    assert done.returncode == BAD_INPUT and len(done.stderr.splitlines()) == 1
    assert (
        "cold.json is no file of benchmarks/gpu.py (" in done.stderr and "give another --out" in done.stderr
    )


def test_a_project_without_a_wheel_is_missed_before_the_machine_is_lent(tmp_path: Path) -> None:
    wheels = wheels_in(tmp_path / "wheels", tag="py3-none-any")
    (wheels / "pyperf-9-py3-none-any.whl").unlink()
    done = shell("check", "--wheels", wheels, "--out", tmp_path)
    assert done.returncode == BAD_INPUT and "has no wheel of pyperf; remove them" in done.stderr


def test_a_folder_with_wheels_is_not_filled_beside_them(tmp_path: Path) -> None:
    wheels = wheels_in(tmp_path / "wheels", tag="py3-none-any")
    before = sorted(wheels.iterdir())
    done = shell("wheels", wheels)
    assert done.returncode == BAD_INPUT and f"remove them: rm {wheels}/*.whl\n" in done.stderr
    assert sorted(wheels.iterdir()) == before


def test_what_is_stored_is_shown_where_there_is_no_torch(tmp_path: Path) -> None:
    """The interpreter's place is taken by a program that notes what is looked for."""
    python = tmp_path / "python"
    python.write_text(f'#!/usr/bin/env bash\necho "$*" | tail -n 1 >> {tmp_path}/asked\n')
    python.chmod(0o755)
    for given, asked in ((["--show"], ["harness"]), ([], ["torch transformers numpy", "harness xgrammar"])):
        (tmp_path / "asked").unlink(missing_ok=True)
        assert shell("--out", "here", *given, PYTHON=str(python)).returncode == OK
        *looks, _ = (tmp_path / "asked").read_text().splitlines()
        assert len(looks) == len(asked) and all(map(str.__contains__, looks, asked)), looks
        assert ("torch" in "".join(looks)) is (not given)


def test_it_measures_a_gpu_unless_told_otherwise_and_counts_from_its_own_start(tmp_path: Path) -> None:
    """The interpreter's place is taken by a program that prints what it is given."""
    python = tmp_path / "python"
    python.write_text('#!/usr/bin/env bash\n[[ " $* " == *" -P "* ]] && sleep 1 || echo "$@"\n')
    python.chmod(0o755)
    calls: list[tuple[list[str], list[str]]] = [
        (["decode"], ["--device", "cuda", "decode"]),
        (["--device", "cpu", "decode"], ["--device", "cpu", "decode"]),
        (["--device=cpu"], ["--device=cpu"]),
        (["--show"], ["--show"]),
        (["--within", "9", "cold"], ["--device", "cuda", "cold", "--within", "7"]),
        (["--within=9", "cold"], ["--device", "cuda", "cold", "--within", "7"]),
        (["--out=here", "cold"], ["--device", "cuda", "cold"]),
    ]
    for given, device in calls:
        done = shell("--out", "here", *given, PYTHON=str(python))
        words, whole = done.stdout.split()[1:], ["--out", "here", *device]
        assert words[:-1] == whole[:-1], done.stderr
        # Both looks at what is missing took a second; what is left of the call is told.
        assert words[-1] == whole[-1] or ("--within" in whole and int(words[-1]) < int(whole[-1]))
