"""The coordinator of a sweep over tasks that get lost, with a stand-in for Ray;
tests/running/test_ray.py has the real one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from stand_in_ray import RayError, RayTaskError, StandIn, WorkerCrashedError

import harness
import harness.running.coordinator
from harness.backend.arm import Arm
from harness.backend.describe import describe
from harness.cases.case_line import case_from_line
from harness.cases.plan import PROFILES, Plan, write_plan
from harness.cases.suite import find_suite
from harness.cli.main import main
from harness.errors import BAD_INPUT, BadInput, Incomplete
from harness.rows.row import RunInfo, identity, untimed
from harness.rows.store import read_end, read_rows
from harness.rows.writer import Writer
from harness.running import worker_process as process
from harness.running.case_rows import rows_of
from harness.running.coordinator import run_all
from harness.running.limits import Limits
from harness.running.progress import RunProgress
from harness.running.ray import sweep as sweeping
from harness.running.ray import task
from harness.running.ray.cluster import parse_executor
from harness.running.ray.sweep import Deal, Part, sweep
from harness.running.work import Assignment, Ending, Task, Work
from harness.running.worker_process import Worker

ARMS = tuple(Arm(name, "", "", "", ("regex",), "bitmask") for name in ("reference", "unconstrained"))
VOCABULARIES = {"bytes": {"size": 257, "sha256": "0"}}
LIMITS = Limits(30.0, 10**9)
CASES = 40

Fate = Callable[[int, Iterator[Any]], Iterator[Any]]


def walk_in_no_time(piece: task.Piece) -> Iterator[list[task.Walks] | str]:
    """A case at a time, as if everything had been seen."""
    work = Work(piece.arm, piece.vocabulary, deque())
    for number, line in enumerate(piece.cases.splitlines()):
        ending = Ending("unsupported", "compile", "as if")
        yield [rows_of(work, Task(number, *case_from_line(line)), ending, checks=False)]


def walk_in_chunks(piece: task.Piece) -> Iterator[list[task.Walks] | str]:
    """Seven cases at a time, unless care is asked for."""
    cases: list[task.Walks] = [
        walks for chunk in walk_in_no_time(piece) for walks in chunk if not isinstance(walks, str)
    ]
    size = 1 if piece.careful else 7
    yield from (cases[start : start + size] for start in range(0, len(cases), size))


@pytest.fixture(autouse=True)
def no_worker_waits() -> Iterator[None]:
    """The tasks run in this process here."""
    yield
    task.end_workers()


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    cases = [
        {
            "description": str(number),
            "regex": f"a{{{number}}}",
            "tests": [{"text": "a", "valid": number == 1}, {"text": "b", "valid": False}],
        }
        for number in range(CASES)
    ]
    (tmp_path / "mini.json").write_text(json.dumps(cases))
    return write_plan(
        [find_suite(str(tmp_path / "mini.json"))], PROFILES["default"], 0, tmp_path / "cases.jsonl"
    )


@pytest.fixture
def swept(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StandIn]:
    """A sweep over tasks of which `fate` says what becomes of them, in four tasks at first, two at a time."""

    def swept(fate: Fate, walk: Callable[..., Any] = walk_in_no_time, shards: int | None = 2) -> StandIn:
        ray = StandIn(fate)
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setattr(sweeping, "walk", walk)
        info = RunInfo("test", "", "", (), 0, "default", 30.0, 10**9, 2, ARMS, VOCABULARIES, plan.suites, {})
        works = [Work(arm, "bytes", deque(range(len(plan.offsets)))) for arm in ARMS]
        with Writer(tmp_path, info) as writer:
            told: list[RunProgress] = []
            assignment = Assignment(plan, tmp_path / "cases.jsonl", works, LIMITS, writer, told.append)
            sweep(assignment, 2, shards=shards, vocabularies=VOCABULARIES)
            writer.finish("")
        assert (told[-1].done, told[-1].total) == (2 * CASES, 2 * CASES)
        return ray

    return swept


def keys(folder: Path) -> list[tuple[str, str, int | None]]:
    """Sorted; `read_rows` raises for a row that is there twice."""
    return sorted((row.backend, row.case_id, row.instance) for row in read_rows(folder))


def whole(number: int, chunks: Iterator[Any]) -> Iterator[Any]:
    return chunks


def test_all_is_walked_a_bounded_number_of_tasks_at_a_time(
    swept: Callable[..., StandIn], tmp_path: Path
) -> None:
    ray = swept(whole)
    assert len(keys(tmp_path)) == 2 * 2 * CASES and read_end(tmp_path) is not None
    assert len(ray.streams) == 4 and ray.most_at_a_time == 2
    assert (
        ray.options_given["max_retries"] == 0
        and ray.options_given["_generator_backpressure_num_objects"] == sweeping.IN_FLIGHT
    )


@pytest.mark.parametrize("seed", range(8))
def test_whatever_becomes_of_the_tasks_no_row_is_lost_and_none_comes_twice(
    swept: Callable[..., StandIn], tmp_path: Path, seed: int
) -> None:
    random = Random(seed)

    def fate(number: int, chunks: Iterator[Any]) -> Iterator[Any]:
        """Ended early with or without an error; or a chunk comes twice, or the chunk of a case that is not
        its own."""
        for chunk in chunks:
            yield chunk
            harm = random.random()
            if harm < 0.1:
                yield chunk
            elif harm < 0.15:
                raise RayError("the node is gone")
            elif harm < 0.2:
                raise RayTaskError(OSError("disk full"))
            elif harm < 0.25:
                return
            elif harm < 0.3:
                yield [
                    [(replace(row, case_id="0" * 12), samples) for row, samples in walks] for walks in chunk
                ]

    ray = swept(fate)
    expected = keys(tmp_path)
    assert len(expected) == 2 * 2 * CASES and len(ray.streams) > 8
    assert all(row.text == "as if" for row in read_rows(tmp_path))
    assert any(each.is_cancelled for each in ray.streams)


@pytest.mark.parametrize("walk", [walk_in_no_time, walk_in_chunks])
def test_a_case_that_costs_its_task_three_times_is_booked_and_the_rest_goes_on(
    swept: Callable[..., StandIn], tmp_path: Path, walk: Callable[..., Any]
) -> None:
    """That case, and not one whose rows were on their way with it."""

    def fate(number: int, chunks: Iterator[Any]) -> Iterator[Any]:
        for chunk in chunks:
            if any(
                row.backend == "reference" and row.case == "mini: 7" for walks in chunk for row, _ in walks
            ):
                raise WorkerCrashedError("the process is gone")
            yield chunk

    swept(fate, walk)
    booked = [row for row in read_rows(tmp_path) if row.status == "harness_error"]
    assert {(row.backend, row.case, row.text) for row in booked} == {
        ("reference", "mini: 7", "the task with this case at its head was lost 3 times")
    }
    assert len(keys(tmp_path)) == 2 * 2 * CASES


@pytest.mark.parametrize("error", [WorkerCrashedError("the process is gone"), RayError("the node is gone")])
def test_where_ray_loses_every_task_the_run_has_no_end_and_no_case_is_blamed(
    swept: Callable[..., StandIn], tmp_path: Path, error: Exception
) -> None:
    def fate(number: int, chunks: Iterator[Any]) -> Iterator[Any]:
        if number < 2:
            yield next(chunks)
        raise error

    with pytest.raises(Incomplete, match=r"^Ray loses every task.*; what was walked is stored, and --resume"):
        swept(fate)
    assert read_end(tmp_path) is None
    assert [row.status for row in read_rows(tmp_path)] == ["unsupported"] * 4


def test_a_lost_node_blames_no_case_however_often(swept: Callable[..., StandIn], tmp_path: Path) -> None:
    """The task with the case at its head is lost with its node, while others are heard of."""

    def fate(number: int, chunks: Iterator[Any]) -> Iterator[Any]:
        for place, chunk in enumerate(chunks):
            if number % 5 and place == 0:
                raise RayError("the node is gone")
            yield chunk

    swept(fate)
    assert {row.status for row in read_rows(tmp_path)} == {"unsupported"}


def test_a_task_that_fails_by_itself_ends_the_run_with_a_line(
    swept: Callable[..., StandIn], tmp_path: Path
) -> None:
    def fate(number: int, chunks: Iterator[Any]) -> Iterator[Any]:
        if number == 0:
            yield next(chunks)
        raise RayTaskError(OSError("no space left on device"))

    with pytest.raises(
        BadInput,
        match=r"^a task failed 3 times: no space left on device; what was walked "
        r"is stored",
    ) as told:
        swept(fate)
    assert "\n" not in str(told.value) and len(keys(tmp_path)) == 2 and read_end(tmp_path) is None


def test_a_node_that_cannot_walk_rightly_is_named(swept: Callable[..., StandIn], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="another version here"):
        swept(lambda number, chunks: iter(["another version here (on node-7)"]))


def test_the_rows_are_those_of_this_machine(
    swept: Callable[..., StandIn], plan: Plan, tmp_path: Path
) -> None:
    """With the tasks' own code and real workers."""
    swept(whole, task.walk)
    rows = {identity(row): untimed(row) for row in read_rows(tmp_path)}
    here = tmp_path / "here"
    here.mkdir()
    info = RunInfo("test", "", "", (), 0, "default", 30.0, 10**9, 1, ARMS, VOCABULARIES, plan.suites, {})
    works = [Work(arm, "bytes", deque(range(len(plan.offsets)))) for arm in ARMS]
    with Writer(here, info) as writer:
        run_all(Assignment(plan, tmp_path / "cases.jsonl", works, LIMITS, writer, lambda _: None), 2)
    assert rows == {identity(row): untimed(row) for row in read_rows(here)}
    assert {row.status for row in rows.values()} == {"ok"}


def test_a_worker_that_has_loaded_walks_the_cases_of_many_tasks(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another one after it was lost between two tasks, and where another backend is asked for; and
    nothing of it stays."""
    started: list[Worker] = []

    def start_worker(*arguments: Any, **options: Any) -> Worker:
        started.append(process.start_worker(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(
        harness.running.coordinator,
        "worker_process",
        SimpleNamespace(**{**vars(process), "start_worker": start_worker}),
    )
    lines = (tmp_path / "cases.jsonl").read_bytes().splitlines(keepends=True)
    home, parts = task.here(), (slice(0, 3), slice(3, 4), slice(4, 6), slice(6, 9))
    for number, part in enumerate(parts):
        piece = task.Piece(ARMS[0], "bytes", "", LIMITS, b"".join(lines[part]), harness.__version__, home)
        rows = [
            row
            for chunk in task.walk(piece)
            for walks in chunk
            if not isinstance(walks, str)
            for row, _ in walks
        ]
        assert sorted(row.case_id for row in rows) == sorted(
            2 * [case_from_line(line)[2].id for line in lines[part]]
        )
        assert {row.status for row in rows} == {"ok"} and len(started) == (1 if number < 3 else 2)
        if number == 2:
            started[0].process.popen.kill()
            started[0].process.popen.wait()
    abandoned = task.walk(replace(piece, arm=ARMS[1], careful=True))
    next(abandoned)
    assert len(started) == 3 and started[1].process.popen.returncode is not None, (
        "one worker waits, not one for each backend"
    )
    abandoned.close()  # type: ignore[attr-defined]
    assert started[2].process.popen.returncode is not None


def test_no_case_is_dealt_twice_and_the_last_parts_are_small() -> None:
    works = [Work(arm, "bytes", deque(range(count))) for arm, count in zip(ARMS, (300, 50), strict=True)]
    deal = Deal(works, 2, None)
    parts: list[Part] = []
    last: list[Work | None] = [None, None]
    while (part := deal.part(last[len(parts) % 2])) is not None:
        last[len(parts) % 2] = part.work
        parts.append(part)
    for work, count in zip(works, (300, 50), strict=True):
        mine = [list(part.numbers) for part in parts if part.work is work]
        assert sorted(number for each in mine for number in each) == list(range(count))
        sizes = list(map(len, mine))
        assert sizes == sorted(sizes, reverse=True) and sizes[0] == -(-count // 6) and sizes[-5:] == [1] * 5
    assert sum(one.work is not two.work for one, two in zip(parts[::2], parts[2::2], strict=False)) <= 1, (
        "a place keeps to what it has loaded"
    )


def test_parts_are_bounded_and_as_many_as_asked_for() -> None:
    assert (
        len(Deal([Work(ARMS[0], "bytes", deque(range(100_000)))], 2, None).part(None).numbers)  # type: ignore[union-attr]
        == sweeping.MOST
    )
    for shards, sizes in ((4, [2, 1, 1, 1]), (2, [3, 2]), (9, [1] * 5)):
        deal = Deal([Work(ARMS[0], "bytes", deque(range(5)))], 2, shards)
        assert [len(part.numbers) for part in iter(partial(deal.part, None), None)] == sizes


def test_there_are_no_more_places_than_cases_to_load_for() -> None:
    assert Deal([Work(ARMS[0], "bytes", deque(range(9)))], 64, None).places == 2
    assert Deal([Work(ARMS[0], "bytes", deque())], 64, None).places == 1


# ---------------------------------------------------------------------------------------------- another node


def test_another_node_is_looked_at_first() -> None:
    described = describe(["reference"], ["bytes"])
    (arm,) = described.arms
    sha256 = described.vocabularies["bytes"]["sha256"]
    right = task.Piece(arm, "bytes", sha256, LIMITS, b"", harness.__version__, ("elsewhere",))
    assert list(task.walk(right)) == []
    for change, said in (
        ({"harness": "0.0.1"}, "the run is made by 0.0.1"),
        ({"vocabulary_sha256": "1"}, "vocabulary bytes is another one here"),
        ({"arm": replace(arm, dialects=("regex",))}, "the run is of reference"),
        ({"arm": replace(arm, version="1+local.abcdef01")}, "built from a path"),
        ({"arm": replace(arm, version="1.0")}, "belongs to no distribution"),
    ):
        (told,) = task.walk(replace(right, **change))
        assert isinstance(told, str) and said in told and "(on " in told


@pytest.mark.usefixtures("importable_miniatures", "plan")
def test_a_task_whose_backend_lacks_a_library_says_so_and_books_no_case(tmp_path: Path) -> None:
    arm = replace(ARMS[0], backend="miniatures.unruly:LacksALibrary")
    (line, *_) = (tmp_path / "cases.jsonl").read_bytes().splitlines(keepends=True)
    piece = task.Piece(arm, "probe", "", LIMITS, line, harness.__version__, task.here())
    (told,) = task.walk(piece)
    assert isinstance(told, str) and "needs a library that cannot be imported" in told


def test_the_coordinators_own_machine_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "_looked_at", lambda *_: pytest.fail("looked"))
    mine = task.Piece(ARMS[0], "bytes", "", LIMITS, b"", harness.__version__, task.here())
    assert list(task.walk(mine)) == []


# -------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ray", "local"),
        ("ray:auto", "auto"),
        ("ray:10.0.0.1:6379", "10.0.0.1:6379"),
        ("ray:[::1]:6379", "[::1]:6379"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert parse_executor(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "dask",
        "ray:",
        "ray:host",
        "ray:host:port",
        "ray:a b:1",
        "ray:ray://host:10001",
        "ray://host:10001",
        "ray:http://x:1",
        "Ray",
    ],
)
def test_what_is_no_executor_is_told(text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert (
        main(["run", "--backends", "reference", "--executor", text, "--out", str(tmp_path / "run")])
        == BAD_INPUT
    )
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "ray:auto" in said and not (tmp_path / "run").exists()
    assert ("client" in said) == ("//host" in text)


def test_auto_is_what_the_variable_of_ray_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert parse_executor("ray:auto") == "10.0.0.1:6379" and parse_executor("ray") == "local"
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with pytest.raises(BadInput, match=r'^ray:auto follows RAY_ADDRESS, and "local" is no address of a head'):
        parse_executor("ray:auto")


@pytest.mark.parametrize(
    "command",
    [
        ["measure", "--backends", "reference"],
        ["decode", "--backends", "reference"],
        ["measure", "doctor"],
    ],
    ids=lambda words: words[0],
)
def test_what_measures_times_stays_on_one_machine(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (["--executor", "ray"], ["--shard", "1/2"]):
        assert main([*command, *option]) == BAD_INPUT
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "on one machine" in said


def test_shards_are_for_ray(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--backends", "reference", "--shards", "4"]) == BAD_INPUT
    assert "--shard I/N" in capsys.readouterr().err


def test_without_ray_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "c.json").write_text(json.dumps({"regex": "a"}))
    command = [
        "run",
        str(tmp_path / "c.json"),
        "--backends",
        "reference",
        "--vocabularies",
        "bytes",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main([*command, "--executor", "ray"]) == BAD_INPUT
    assert 'pip install "grammarbench[ray]"' in capsys.readouterr().err


def test_ray_is_imported_only_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"regex": "a", "tests": [{"text": "a", "valid": True}]}))
    program = (
        "import sys; from harness.cli.main import main\n"
        "sys.exit(main(['run', 'c.json', '--backends', 'reference', '--vocabularies', 'bytes', '--effort', "
        "'0', '--out', 'run'])"
        " or sum(name.partition('.')[0] == 'ray' for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
