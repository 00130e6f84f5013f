"""Environments for other versions of a backend: laid over this one, built once, and arms of one run."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import toy_releases
from refused import behind_progress
from toy_releases import FAULT, RIGHT, SOURCE, wheel

from harness.backend.arm import Arm, arm_names
from harness.backend.environments import build as environments
from harness.backend.environments.build import build, environment_of, python_of, resolve
from harness.backend.environments.installer import installer
from harness.backend.environments.source import Source
from harness.backend.registry import MARKER, BackendSpec, parse_spec
from harness.errors import BadInput
from harness.rows.store import read_info, read_rows

CASE = {
    "description": "a choice",
    "choice": ["ab", "abc"],
    "tests": [{"text": "ab", "valid": True}, {"text": "a", "valid": False}],
}

BUILD = (
    "from harness.backend.environments.build import *; print(build(source_of('toy-helper', '2.1'), print))"
)
"""A program that builds an environment, and prints first what it says of it and then its folder."""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of every release."""
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("index")
    wheel(folder, "1.0", requires=["grammarbench"])
    wheel(
        folder,
        "2.0",
        SOURCE.replace(RIGHT, FAULT) + "\nimport toy_helper\n",
        ["grammarbench", "toy-helper>=2", "absent; extra == 'x'"],
    )
    wheel(folder, "3.0", "raise ImportError('built for another machine')")
    wheel(folder, "4.0", requires=["numpy<1"])
    wheel(folder, "2.1", "", ["toy-deeper"], name="toy_helper")
    wheel(folder, "1.0", "", [], name="toy_deeper")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def python(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with version 1.0."""
    return toy_releases.environment(
        tmp_path_factory.mktemp("parent") / "env", index / "toy_backend-1.0-py3-none-any.whl"
    )


@pytest.fixture(scope="module")
def grammarbench(python: Path, index: Path, cache: Path) -> Command:
    return lambda *arguments: toy_releases.grammarbench(
        python, *map(str, arguments), index=index, cache=cache
    )


@pytest.fixture(scope="module")
def run(grammarbench: Command, index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions as arms: the installed one, a released one with a fault, and a local wheel that has the
    number of the installed."""
    folder = tmp_path_factory.mktemp("run")
    mine = wheel(folder / "dist", "1.0", SOURCE + "\n# mine\n", ["grammarbench"])
    (folder / "case.json").write_text(json.dumps(CASE))
    backends = f"toy-choice,toy-choice==2.0,toy-choice=={mine}"
    done = grammarbench(
        "run",
        folder / "case.json",
        "--backends",
        backends,
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
        "--out",
        folder / "run",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("building an environment") == 2
    return folder / "run"


def test_three_versions_are_arms_of_one_run(run: Path, python: Path) -> None:
    info = read_info(run)
    versions = [each.version for each in info.arms]
    assert versions[:2] == ["1.0", "2.0"] and versions[2].startswith("1.0+local.")
    assert [bool(each.python) for each in info.arms] == [False, True, True]
    accepted = {(row.backend_version, row.instance): row.accepted for row in read_rows(run)}
    assert accepted == {
        (version, number): number == 0 or version == "2.0" for version in versions for number in (0, 1)
    }


def test_the_environment_underneath_is_as_it_was(run: Path, python: Path) -> None:
    assert _version_in(str(python)) == "1.0"


def test_a_version_lies_over_what_is_installed(run: Path) -> None:
    """The import and the metadata are of the same, other version; what it does not bring comes from
    underneath."""
    folder = read_info(run).arms[1].python
    assert _version_in(folder) == "2.0"
    program = (
        "import toy_backend as a, toy_helper as b, toy_deeper as c, numpy as d; print(*(each.__file__ "
        "for each in (a, b, c, d)))"
    )
    files = subprocess.run(
        [folder, "-P", "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    prefix = str(Path(folder).parents[1])
    assert [each.startswith(prefix) for each in files] == [True, True, True, False]


def _version_in(python: str) -> str:
    program = "from importlib.metadata import version; print(version('toy-backend'))"
    return subprocess.run(
        [python, "-P", "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_run_that_was_killed_goes_on(run: Path, grammarbench: Command, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    for each in ("cases.jsonl", "samples.i64"):
        (again / each).write_bytes((run / each).read_bytes())
    lines = (run / "rows.jsonl").read_text().splitlines(keepends=True)
    (again / "rows.jsonl").write_text("".join(lines[:3]))
    backends = json.loads(lines[0])["argv"][3]
    case = run.parent / "case.json"
    asked = ("run", case, "--backends", backends, "--vocabularies", "bytes", "--effort", "0", "--out", again)
    done = grammarbench(*asked, "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "building" not in done.stderr
    assert [row.backend_version for row in read_rows(again)] == [
        row.backend_version for row in read_rows(run)
    ]


def test_repro_walks_the_version_that_failed(run: Path, grammarbench: Command) -> None:
    done = grammarbench("repro", run, "case", "--backends", "toy-choice")
    assert "toy-choice 2.0, vocabulary bytes" in done.stdout and "under_constrained" in done.stdout
    assert done.stdout.count("yes, yes") == 2, "the version with the fault accepts the end of the output"
    done = grammarbench("repro", run, "case", "--backends", "toy-choice==1.0", "--instance", "1")
    assert "toy-choice 1.0, vocabulary bytes" in done.stdout and "NO , NO " in done.stdout
    assert grammarbench("repro", run, "case", "--backends", "toy-choice==9").returncode == 2


def test_tables_and_reports_keep_the_versions_apart(run: Path, grammarbench: Command) -> None:
    local = read_info(run).arms[2].version
    table = json.loads(grammarbench("table", run, "--format", "json").stdout)
    assert {(each["backend_version"], each["verdict"]) for each in table} >= {
        ("1.0", "pass"),
        ("2.0", "under_constrained"),
        (local, "pass"),
    }
    assert not any(each["backend_version"] != "2.0" and each["verdict"] != "pass" for each in table)
    assert grammarbench("report", run, "--out", run / "page").returncode == 0
    assert "--backends toy-choice==2.0" in (run / "page" / "report.html").read_text()
    faults = grammarbench("table", run, "faults").stdout
    assert "toy-choice 2.0 bytes" in faults.splitlines()[0]


def test_check_uses_the_version(run: Path, grammarbench: Command) -> None:
    assert grammarbench("check", "toy-choice", "--vocabularies", "bytes").returncode == 0
    done = grammarbench("check", "toy-choice==2.0", "--vocabularies", "bytes")
    assert "toy-choice==2.0" in done.stdout and "passed" in done.stdout


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (
            "toy-choice==9.9",
            "toy-backend==9.9 cannot be installed: ERROR: No matching distribution found "
            "for toy-backend==9.9",
        ),
        (
            "toy-choice==3.0",
            "toy-backend==3.0 is installed, but cannot be imported: ImportError: built for another machine",
        ),
        ("toy-choice==4.0", "toy-backend==4.0 needs numpy<1; this environment has "),
        ("toy-choice==new", '"new" is no version of toy-backend'),
        ("toy-choice==./nowhere", "nowhere: no such file or folder to install toy-backend from"),
        ("reference==1.0", 'backend "reference==1.0" belongs to no distribution'),
        ("toy-choice==1.0:lower=true,toy-choice:lower=true", "toy-choice:lower=true 1.0 is asked for twice"),
    ],
)
def test_what_is_not_to_be_had_is_one_line(
    run: Path, grammarbench: Command, tmp_path: Path, backend: str, said: str
) -> None:
    done = grammarbench(
        "run",
        run.parent / "case.json",
        "--backends",
        backend,
        "--vocabularies",
        "bytes",
        "--out",
        tmp_path / "out",
    )
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = behind_progress(done.stderr)
    assert said in line
    if "==9.9" in backend:
        log = Path(line.rpartition(" ")[2])
        assert "No matching distribution" in log.read_text()


@pytest.mark.long
def test_a_killed_build_is_built_again_and_only_one_builds(index: Path, tmp_path: Path, python: Path) -> None:
    first = subprocess.run(
        [python, "-P", "-c", BUILD],
        env=toy_releases.environ(index, tmp_path),
        capture_output=True,
        text=True,
    )
    folder = Path(first.stdout.splitlines()[-1])
    (folder / MARKER).unlink()  # as a build leaves it that is killed before its end
    (folder / "rubbish").touch()
    both = [
        subprocess.Popen(
            [python, "-P", "-c", BUILD],
            env=toy_releases.environ(index, tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [each.communicate()[0] for each in both]
    assert sum("building" in each for each in said) == 1
    assert all(each.splitlines()[-1] == str(folder) for each in said)
    assert (folder / MARKER).exists() and not (folder / "rubbish").exists()


def test_whoever_waits_for_another_build_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(environments.CACHE, str(tmp_path))
    made: list[Path] = []
    monkeypatch.setattr(environments, "_build", lambda source, folder, lock: made.append(folder))
    source, said = Source("a", "a==1", "1", ""), list[str]()
    held = os.open(f"{environments.folder_of(source)}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)

    def say(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            os.close(held)

    build(source, say)
    assert said[0].startswith("another process is making an environment for a==1 (")
    assert said[1:] == ["building an environment for a==1 ..."] and made
    build(source, said.append)
    assert said[2:] == ["building an environment for a==1 ..."], "nobody else builds"


def test_the_reason_of_a_failed_installation_says_that_there_was_no_connection(tmp_path: Path) -> None:
    log, error = tmp_path / "log", "ERROR: No matching distribution found for a==9"
    log.write_text(f"Looking in indexes: x\n{error}\n")
    assert environments._reason(log) == error
    warning = "WARNING: Retrying after connection broken by 'NewConnectionError(x)': /simple/a/"
    log.write_text(f"{warning}\n{error}\n")
    assert environments._reason(log) == f"{error} (a connection to a package index failed)"


def test_a_file_of_constraints_around_us_forbids_no_version(
    index: Path, tmp_path: Path, python: Path
) -> None:
    (tmp_path / "constraints.txt").write_text("toy-helper==1.0\n")
    done = subprocess.run(
        [python, "-P", "-c", BUILD],
        env={
            **toy_releases.environ(index, tmp_path / "cache"),
            "PIP_CONSTRAINT": str(tmp_path / "constraints.txt"),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.splitlines()[-1]) / MARKER).exists()


def test_an_installed_version_needs_no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(environments.CACHE, str(tmp_path))
    monkeypatch.setattr(environments, "places", lambda names: {name: ("numpy", "2.3.0") for name in names})
    placed = resolve([BackendSpec("a"), BackendSpec("a", "2.3"), BackendSpec("a", "v2.3.0")], print)
    assert placed == [(BackendSpec("a"), sys.executable), *[(BackendSpec("a", "2.3.0"), sys.executable)] * 2]
    assert list(tmp_path.iterdir()) == []


def test_a_spec_without_version_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "places", lambda names: pytest.fail("asked"))
    assert environment_of("reference", print) == (BackendSpec("reference"), sys.executable)
    with pytest.raises(BadInput, match="names 2 backends; give one"):
        environment_of("reference,llguidance", print)


@pytest.mark.parametrize(
    "path", ["./dist/a-1.0.whl", "/tmp/a b/x", "~/checkout", ".", "a-1.0.whl", "../a@b%c"]
)
def test_a_version_may_be_a_path(path: str) -> None:
    spec = parse_spec(f"a=={path}:x=1")
    assert (spec.version, spec.options) == (path, (("x", "1"),))
    assert parse_spec(str(spec)) == spec


def test_what_is_imported_from_elsewhere_is_not_taken_for_it(
    index: Path, tmp_path: Path, python: Path
) -> None:
    """A folder on PYTHONPATH comes before every environment."""
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "toy_helper.py").touch()
    asked = {**toy_releases.environ(index, tmp_path), "PYTHONPATH": str(shadow)}
    done = subprocess.run([python, "-P", "-c", BUILD], env=asked, capture_output=True, text=True)
    assert "is installed, but toy_helper is imported from" in done.stderr.splitlines()[-1]


def test_where_uv_is_it_installs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installer("/env/python")[:3] == [str(uv), "pip", "install"]


def test_an_arm_of_a_stored_run_knows_its_interpreter(tmp_path: Path) -> None:
    arm = Arm("a", "1", "", "a", (), "bitmask")
    assert python_of(arm, print) == sys.executable
    with pytest.raises(BadInput, match='no backend "a"'):
        python_of(replace(arm, python=str(tmp_path / "gone")), print)


def test_names_have_the_version_only_where_there_are_two() -> None:
    arms = [
        Arm("a", "1", "", "", (), "bitmask"),
        Arm("a", "2", "x=1", "", (), "bitmask"),
        Arm("b", "1", "x=1", "", (), "bitmask"),
    ]
    assert list(arm_names(arms).values()) == ["a==1", "a==2:x=1", "b:x=1"]
    assert list(arm_names(arms[1:]).values()) == ["a:x=1", "b:x=1"]
    wrapped = [replace(arms[0], options=f"w={name}", version=f"1+{name}") for name in ("c", "d")]
    assert list(arm_names(wrapped).values()) == ["a:w=c", "a:w=d"], (
        "one version of the wrapper, two libraries"
    )
    again = [replace(wrapped[0], version=version) for version in ("1+c.1", "1+c.2")]
    assert list(arm_names(again).values()) == ["a==1+c.1:w=c", "a==1+c.2:w=c"]


def test_a_folder_that_cannot_be_written_is_bad_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(environments.CACHE, str(tmp_path / "file"))
    with pytest.raises(BadInput, match="cannot be built"):
        build(Source("a", "a==1", "1", ""), lambda _: None)
