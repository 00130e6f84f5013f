"""Sweeps on Ray itself, on this machine: the rows of a local run, whatever is killed.

`tox run -e ray` has what it needs.
"""

from __future__ import annotations

import json
import os
import re
import socketserver
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from places import SUPPORT

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}  # as the command has it before it imports Ray
pytest.importorskip("ray", reason='needs Ray: pip install "grammarbench[ray]", or tox run -e ray')

import psutil
import toy_releases
from isolated import lines_in
from miniatures.killing import FLAG, HOLD

from harness.errors import BAD_INPUT, BadInput
from harness.rows.row import Row, identity, untimed
from harness.rows.store import read_end, read_info, read_rows
from harness.running.progress import RunProgress
from harness.running.ray import sweep as sweeping
from harness.running.ray.cluster import connected
from harness.running.session import Request, run

pytestmark = pytest.mark.usefixtures("importable_miniatures")

STORE_BYTES = 80_000_000
"""Of each node: machines of CI have a small /dev/shm."""
CASES = [
    {
        "description": f"letters {number}",
        "regex": f"a{{{number}}}b*",
        "tests": [{"text": "a" * number, "valid": True}, {"text": "b", "valid": False}],
    }
    for number in range(1, 25)
]
BOOM = {
    "description": "boom",
    "regex": "boom+",
    "tests": [{"text": "boom", "valid": True}, {"text": "boo", "valid": False}],
}
TREE = {"description": "ebnf", "ebnf": 'root ::= "x"', "tests": [{"text": "x", "valid": True}]}

Rows = dict[tuple[object, ...], Row]


@pytest.fixture(scope="module", autouse=True)
def nothing_remains() -> Iterator[None]:
    """No process of Ray's outlives these tests, also if they fail."""
    yield
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=60)
    told = [" ".join(each.cmdline())[:200] for each in alive if each.is_running()]
    for each in alive:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    assert not told


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "mini.json"
    path.write_text(json.dumps([*CASES[:12], BOOM, TREE, *CASES[12:]]))
    return path


def request(cases: Path, out: Path, backends: str, **changes: Any) -> Request:
    made = Request(
        suites=(str(cases),),
        backends=backends,
        vocabularies=("bytes",),
        profile="default",
        out=out,
        jobs=2,
        timeout_s=20.0,
        memory_gb=2.0,
        effort=0,
        argv=("grammarbench", "run"),
    )
    return replace(made, **changes)


def walked(asked: Request, report: Callable[[RunProgress], None] = lambda _: None) -> Rows:
    folder = run(asked, lambda _: None, report).folder
    assert read_end(folder) is not None
    return rows_of(folder)


def rows_of(folder: Path) -> Rows:
    """By identity, without what differs from run to run: times, and the addresses in what a dying process
    prints."""
    return {
        identity(row): replace(untimed(row), text=row.text.partition("it printed")[0])
        for row in read_rows(folder)
    }


def until(what: Callable[[], bool], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)


@contextmanager
def started() -> Iterator[Any]:
    """A cluster of a head with two processors."""
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False, "object_store_memory": STORE_BYTES},
    )
    try:
        yield made
    finally:
        made.shutdown()


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A command of ours; one that a failing test leaves running is ended, and its Ray with it."""
    words = [sys.executable, "-P", "-m", "harness", *command]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, **options) as process:
        try:
            yield process
            process.wait(240)
        finally:
            process.terminate()


class Told(NamedTuple):
    """What processes are."""

    names: set[str]
    arguments: list[str]
    listening: set[str]
    """Addresses."""


def told_of(processes: list[psutil.Process]) -> Told:
    """Those that are still there: children of workers come and go."""
    told = Told(set(), [], set())
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            told.names.add(process.name())
            told.arguments.extend(process.cmdline())
            listening = [
                each.laddr.ip for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN
            ]
            told.listening.update(each.removeprefix("::ffff:") for each in listening)
    return told


@pytest.fixture(scope="module")
def flag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flag") / "killed"


@pytest.fixture(scope="module")
def cluster(flag: Path) -> Iterator[Any]:
    """One that is there; its tasks have the environment that it was started in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SUPPORT))
        patch.setenv(FLAG, str(flag))
        with started() as made:
            yield made


def test_the_rows_are_those_of_this_machine_and_ray_keeps_to_itself(cases: Path, tmp_path: Path) -> None:
    """A hang and a crash in native code included; and what a cluster of our own listens to, and leaves
    behind."""
    backends = "llguidance,reference,miniatures:SegfaultsInFill,miniatures:Hangs"
    command = [
        "run",
        str(cases),
        "--backends",
        backends,
        "--vocabularies",
        "bytes",
        "--timeout",
        "10",
        "--effort",
        "1",
    ]
    ours = [sys.executable, "-m", "harness", *command, "--out", "ours", "--jobs", "2"]
    assert subprocess.run(ours, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
    # A file of this name in the user's folder must not be taken for the library's.
    (tmp_path / "tempfile.py").write_text("raise SystemExit('a neighbour of the cases was imported')")
    with running([*command, "--out", "theirs", "--executor", "ray", "--jobs", "2"], cwd=tmp_path) as process:
        until(lambda: lines_in(tmp_path / "theirs") > 3 or process.poll() is not None)
        below = psutil.Process(process.pid).children(recursive=True)
        told = told_of(below)
    assert process.returncode == 0
    assert "raylet" in told.names
    assert told.listening and told.listening <= {"127.0.0.1", "::1"}, told.listening
    assert not psutil.wait_procs(below, timeout=60)[1], "its processes end with the run"
    scratch = {found[0] for each in told.arguments if (found := re.search(r"/[^ =:,]*/gb-[^/ =:,]+", each))}
    assert scratch and not any(Path(each).exists() for each in scratch), "nor do its files stay"
    assert rows_of(tmp_path / "ours") == rows_of(tmp_path / "theirs")
    crashed = {row.status for row in rows_of(tmp_path / "theirs").values() if row.case == "mini: boom"}
    assert crashed >= {"ok", "crash", "timeout"}
    here, there = read_info(tmp_path / "ours"), read_info(tmp_path / "theirs")
    assert (here.executor, there.executor, there.jobs) == ("", "ray", 2)
    assert (here.suites, here.arms, here.vocabularies) == (there.suites, there.arms, there.vocabularies)


def test_decoding_is_spread_too(cluster: Any, cases: Path, tmp_path: Path) -> None:
    backends = "reference,llguidance"
    local = walked(request(cases, tmp_path / "local", backends, decode=True, jobs=1))
    spread = walked(
        request(cases, tmp_path / "spread", backends, decode=True, executor=f"ray:{cluster.address}")
    )
    assert spread == local
    counted = [row.counted["jump_forward_writes_the_instance"] for row in local.values() if row.counted]
    assert len(counted) > len(CASES) and sum(each["forced"] for each in counted) > 100


def test_a_task_that_segfaults_loses_nothing(
    cluster: Any, flag: Path, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FLAG, str(flag))
    asked = request(
        cases,
        tmp_path / "once",
        "miniatures.killing:KillsTheTaskOnce",
        executor=f"ray:{cluster.address}",
        shards=2,
    )
    there = walked(asked)
    assert flag.exists()
    assert len(there) == 2 * 25 + 1 and {row.status for row in there.values()} == {"ok", "unsupported"}
    here = walked(request(cases, tmp_path / "here", "miniatures.killing:KillsTheTaskOnce"))
    assert here == there


def test_a_task_that_always_segfaults_costs_one_case(cluster: Any, cases: Path, tmp_path: Path) -> None:
    asked = request(
        cases,
        tmp_path / "run",
        "miniatures.killing:KillsTheTask",
        executor=f"ray:{cluster.address}",
        shards=2,
    )
    rows = walked(asked).values()
    booked = [row for row in rows if row.status == "harness_error"]
    assert {row.case for row in booked} == {"mini: boom"} and "lost 3 times" in booked[0].text
    assert len(rows) == 2 * 25 + 1 and sum(row.status == "ok" for row in rows) == 2 * 24


def test_a_node_that_is_killed_loses_nothing(cluster: Any, flag: Path, cases: Path, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    killed: list[int] = []
    hold = flag.with_name(HOLD)
    hold.touch()

    def report(progress: RunProgress) -> None:
        if progress.done >= 2 and not killed:
            killed.append(progress.done)
            cluster.remove_node(node, allow_graceful=False)
            hold.unlink()

    asked = request(
        cases,
        tmp_path / "run",
        "miniatures.killing:TakesItsTime",
        executor=f"ray:{cluster.address}",
        jobs=0,
        shards=3,
    )
    there = walked(asked, report)
    assert killed and killed[0] < 26 and read_info(tmp_path / "run").jobs == 3
    assert there == walked(request(cases, tmp_path / "here", "miniatures.killing:TakesItsTime"))


def test_a_run_goes_on_here_after_ray_died_and_on_ray_after_that(
    cluster: Any, cases: Path, tmp_path: Path
) -> None:
    asked = request(cases, tmp_path / "run", "miniatures.killing:TakesItsTime")
    command = ["run", str(cases), "--backends", asked.backends, "--vocabularies", "bytes", "--timeout", "20"]
    more = ["--memory", "2", "--effort", "0", "--out", str(asked.out), "--executor"]
    with (
        started() as own,
        running([*command, *more, f"ray:{own.address}"], stderr=subprocess.PIPE) as process,
    ):
        until(lambda: lines_in(tmp_path / "run") > 6 or process.poll() is not None)
        own.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        _, said = process.communicate(timeout=240)
    assert process.returncode not in (0, None) and read_end(tmp_path / "run") is None, said.decode()[-500:]
    left = lines_in(tmp_path / "run")
    there = walked(replace(asked, resume=True))
    assert 6 < left < len(there) + 1
    here = walked(replace(asked, out=tmp_path / "here"))
    assert there == here
    # And the other way: begun here and killed, completed on Ray.
    path = tmp_path / "here" / "rows.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:8]) + '{"kind":"ro')
    assert (
        walked(replace(asked, out=tmp_path / "here", resume=True, executor=f"ray:{cluster.address}")) == there
    )


def test_nobody_at_the_address(cases: Path, tmp_path: Path) -> None:
    begun = time.monotonic()
    command = [
        "run",
        str(cases),
        "--backends",
        "reference",
        "--vocabularies",
        "bytes",
        "--out",
        "run",
        "--executor",
        "ray:127.0.0.1:1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "harness", *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == BAD_INPUT and time.monotonic() - begun < 90
    assert "no Ray cluster at 127.0.0.1:1" in done.stderr.splitlines()[-1]


def test_something_else_at_the_address(cases: Path, tmp_path: Path) -> None:
    """Ray ends the process that asks a server of another kind."""
    with socketserver.TCPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        command = ["run", str(cases), "--backends", "reference", "--vocabularies", "bytes", "--out", "run"]
        address = f"ray:127.0.0.1:{server.server_address[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "harness", *command, "--executor", address],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        server.shutdown()
    assert done.returncode == BAD_INPUT, done.stderr
    assert "no Ray cluster at 127.0.0.1" in done.stderr.splitlines()[-1]


def test_a_full_disk_of_a_node_is_told(
    cluster: Any, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(piece: object) -> Iterator[object]:
        yield []
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sweeping, "walk", disk_full)
    with pytest.raises(BadInput, match=r"a task failed 3 times: .*No space left"):
        walked(request(cases, tmp_path / "run", "reference", executor=f"ray:{cluster.address}"))


def test_versions_are_arms_on_ray_and_are_built_on_a_node_that_lacks_them(tmp_path: Path) -> None:
    """Two releases of a toy backend: on this machine as they are, and on another node built there."""
    index, cache = tmp_path / "index", tmp_path / "cache"
    installed = toy_releases.wheel(index, "1.0", requires=["grammarbench"])
    toy_releases.wheel(
        index, "2.0", toy_releases.SOURCE.replace(toy_releases.RIGHT, toy_releases.FAULT), ["grammarbench"]
    )
    python = toy_releases.environment(tmp_path / "env", installed)
    case = {"choice": ["ab", "abc"], "tests": [{"text": "ab", "valid": True}, {"text": "a", "valid": False}]}
    (tmp_path / "case.json").write_text(json.dumps(case))
    words = [
        "run",
        str(tmp_path / "case.json"),
        "--backends",
        "toy-choice,toy-choice==2.0",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    done = toy_releases.grammarbench(
        python,
        *words,
        "--out",
        str(tmp_path / "run"),
        "--executor",
        "ray",
        "--jobs",
        "2",
        index=index,
        cache=cache,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    accepted = {(row.backend_version, row.instance): row.accepted for row in read_rows(tmp_path / "run")}
    assert accepted == {("1.0", 0): True, ("1.0", 1): False, ("2.0", 0): True, ("2.0", 1): True}
    program = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from harness.running.ray import task\n"
        "from harness.running.limits import Limits; from harness.rows.store import read_info\n"
        "info = read_info(Path(sys.argv[1])); lines = (Path(sys.argv[1]) / 'cases.jsonl').read_bytes()\n"
        "sha256 = info.vocabularies['bytes']['sha256']\n"
        "for arm in info.arms:\n"
        "    piece = task.Piece(arm, 'bytes', sha256, Limits(5.0, 10**9), lines, info.harness, "
        "('elsewhere',))\n"
        "    for chunk in task.walk(piece):\n"
        "        print(chunk if isinstance(chunk, str) else [(row.backend_version, row.accepted) for walks "
        "in chunk for row, _ in walks])\n"
    )
    elsewhere = toy_releases.environ(index, tmp_path / "cache of the other node")
    said = subprocess.run(
        [python, "-P", "-c", program, tmp_path / "run"], env=elsewhere, capture_output=True, text=True
    )
    assert said.stdout.splitlines() == [
        "[('1.0', True), ('1.0', False)]",
        "[('2.0', True), ('2.0', True)]",
    ], said.stdout + said.stderr
    assert list((tmp_path / "cache of the other node").glob("toy-backend-2.0-*/bin/python"))


def test_a_cluster_of_our_own_has_as_many_places_as_asked_for() -> None:
    with connected("local", 3) as jobs:
        assert jobs == 3 and os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
