"""A backend that harms its process costs its own case and nothing else."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from isolated import CASES, GIGABYTE, SHORT, lines_in, others_are_right, walk_all
from miniatures.harmful import MARK, leftovers

from harness.backend.arm import Arm
from harness.backend.process import process, system
from harness.backend.process.lost import Lost, lost_in_memory
from harness.backend.process.process import Process
from harness.cases.plan import PROFILES, write_plan
from harness.cases.suite import find_suite
from harness.errors import BadInput
from harness.rows.row import CHECKS_MODE, TIMINGS, Row, RunInfo, identity
from harness.rows.store import read_end, read_rows
from harness.rows.writer import Writer
from harness.running import coordinator, endings, slot, worker_process
from harness.running.coordinator import run_all
from harness.running.limits import Limits
from harness.running.slot import Slot
from harness.running.work import Assignment, Ending, Suspicion, Task, Work
from harness.running.worker_process import Worker
from harness.walk.watched import IS_OURS, LOADS, OURS_BYTES, PHASES

pytestmark = pytest.mark.usefixtures("importable_miniatures")

PATIENT = Limits(30.0, GIGABYTE)
"""Where no deadline is the subject: a busy machine may take seconds over a gigabyte."""


@pytest.fixture
def no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[int]]]:
    monkeypatch.setenv(MARK, str(tmp_path))
    yield leftovers
    for pid in leftovers():
        os.kill(pid, signal.SIGKILL)


HARM = {
    "Hangs": ("timeout", "compile"),
    "HangsDeaf": ("timeout", "compile"),
    "HangsInStart": ("timeout", "start"),
    "HangsInFill": ("timeout", "fill"),
    "HangsInAccept": ("timeout", "accept"),
    "Segfaults": ("crash", "compile"),
    "SegfaultsInFill": ("crash", "fill"),
    "EatsMemory": ("oom", "compile"),
    "AbortsOutOfMemory": ("crash", "compile"),
    "Raises": ("backend_error", "compile"),
    "RaisesInAccept": ("backend_error", "accept"),
    "RaisesSystemExit": ("backend_error", "compile"),
    "RaisesKeyboardInterrupt": ("backend_error", "compile"),
    "ExitsSilently": ("crash", "compile"),
    "WritesIntoPipes": ("backend_error", "answer"),
    "ClosesDescriptors": ("crash", "compile"),
}


WAITED_FOR = ("HangsDeaf", "HangsInStart", "HangsInAccept")
"""Hangs that take the same road as the others, each with a deadline that has to be waited for."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in WAITED_FOR)) for name in HARM]
)
def test_harm_costs_its_own_case_and_is_named(name: str, tmp_path: Path) -> None:
    status, phase = HARM[name]
    rows = walk_all(tmp_path, f"miniatures:{name}", limits=SHORT if status == "timeout" else PATIENT)
    assert (rows["boom", 0].status, rows["boom", 0].phase) == (status, phase), rows["boom", 0]
    assert rows["boom", 0].accepted is None
    assert others_are_right(rows)
    assert len(rows) == 6 and read_end(tmp_path) is not None


@pytest.mark.parametrize("name", ["Hangs", "Segfaults", "EatsMemory", "ExitsSilently"])
def test_without_fork_the_same_is_seen(name: str, tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"miniatures:{name}", limits=SHORT if name == "Hangs" else PATIENT, fork=False)
    assert (rows["boom", 0].status, rows["boom", 0].phase) == HARM[name]
    assert others_are_right(rows)


def test_a_crash_names_its_signal_and_what_was_printed(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures:AbortsOutOfMemory")
    assert rows["boom", 0].signal == "SIGABRT"
    assert "std::bad_alloc" in rows["boom", 0].text
    assert walk_all(tmp_path / "again", "miniatures:SegfaultsInFill")["boom", 0].signal == "SIGSEGV"


def test_printing_very_much_costs_no_time(tmp_path: Path) -> None:
    """A full pipe would hold a backend up until the coordinator looks, and here until the deadline."""
    rows = walk_all(tmp_path, "miniatures.unruly:PrintsVeryMuch")
    assert rows["boom", 0].status == "ok" and others_are_right(rows)


def test_what_was_seen_before_a_crash_is_kept_and_the_rest_is_skipped(tmp_path: Path) -> None:
    texts = ["x", "boom", "boomm"]
    cases = [
        {
            "description": "boom",
            "regex": "x|boom+",
            "tests": [{"text": text, "valid": True} for text in texts],
        }
    ]
    rows = walk_all(tmp_path, "miniatures.unruly:SegfaultsInAcceptOfB", cases)
    assert [rows["boom", number].status for number in range(3)] == ["ok", "crash", "skipped"]
    assert rows["boom", 1].stopped_at == 0


def test_garbage_on_stdout_harms_nothing(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures:PrintsGarbage")
    assert len(rows) == 6 and all(row.status == "ok" and row.accepted == row.valid for row in rows.values())


def test_a_megabyte_on_stderr_is_no_hang(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures.unruly:PrintsMuch")
    assert len(rows) == 6 and all(row.status == "ok" and row.accepted == row.valid for row in rows.values())


@pytest.mark.parametrize("effort", [0, 1])
def test_a_crash_after_the_last_walk_is_found(effort: int, tmp_path: Path) -> None:
    """Where checks follow, it is found behind them."""
    limits = replace(PATIENT, effort=effort, only=("the_mask_is_exact",))
    rows = walk_all(tmp_path, "miniatures.unruly:DiesAtTheEnd", limits=limits)
    assert [finding.check for finding in rows["boom", 1].findings] == ["lost_after_walk"]
    assert "SIGSEGV" in rows["boom", 1].findings[0].text
    assert others_are_right({key: row for key, row in rows.items() if row.mode != CHECKS_MODE})
    checked = [row for row in rows.values() if row.mode == CHECKS_MODE]
    assert len(checked) == (3 if effort else 0) and all(row.status == "ok" and row.checks for row in checked)


def test_a_crash_in_giving_up_an_object_of_a_check_is_the_backends(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures.unruly:DiesWithACopy", limits=replace(PATIENT, effort=1))
    (checked,) = (row for (case, _), row in rows.items() if case == "boom" and row.mode == CHECKS_MODE)
    assert (checked.status, checked.phase, checked.signal) == ("crash", "check", "SIGSEGV")


def test_a_child_that_somebody_kills_has_its_case_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first time it may have been anybody; a backend that does it has done it twice."""
    monkeypatch.setenv("MINIATURE_KILLED", str(tmp_path / "killed"))
    cases = [case for case in CASES if case["description"] == "boom"]
    once = walk_all(tmp_path / "once", "miniatures.unruly:KilledOnce", cases)
    assert once["boom", 0].status == "ok" and "SIGKILL (not by us" in once["boom", 0].delayed
    twice = walk_all(tmp_path / "twice", "miniatures.unruly:KillsItself", cases)
    assert (twice["boom", 0].status, twice["boom", 0].signal) == ("crash", "SIGKILL")


def test_a_worker_that_cannot_load_is_tried_again_and_then_booked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = walk_all(tmp_path / "never", "miniatures.unruly:DiesWhileLoading")
    assert {(row.status, row.phase) for row in rows.values()} == {("crash", "load")}
    lives = tmp_path / "lives"
    lives.mkdir()
    for number in range(2):
        (lives / str(number)).touch()
    monkeypatch.setenv("MINIATURE_LOADS_FROM", str(lives))
    assert {
        row.status for row in walk_all(tmp_path / "third", "miniatures.unruly:DiesWhileLoading").values()
    } == {"ok"}


def test_a_child_that_is_killed_in_the_middle_of_an_answer_costs_its_case_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torn frame must not swallow what the worker says next."""
    # Answers of 1.3 MB each: a pipe takes less at once.
    texts = [{"text": "a" * 80_000, "valid": True}] * 3
    small = {"tests": [{"text": "a", "valid": True}]}
    cases = [
        {"description": "before", "regex": "a", **small},
        {"description": "boom", "regex": "a+", "tests": texts},
        {"description": "after", "regex": "a|b", **small},
    ]
    take_answers = Process.take_answers
    killed: list[int] = []

    def torn(process: Process) -> list[tuple[dict[str, Any], bytes]]:
        heard = take_answers(process)
        if process.child and not killed and process.answers.buffer and process.page[1] > 0:
            time.sleep(0.2)  # meanwhile the child blocks in the middle of an answer
            killed.append(process.child)
            os.kill(process.child, signal.SIGKILL)
        return heard

    monkeypatch.setattr(Process, "take_answers", torn)
    rows = walk_all(tmp_path, "unconstrained", cases, Limits(20.0, GIGABYTE))
    assert killed and others_are_right(rows) and len(rows) == 5
    assert {rows["boom", number].status for number in range(3)} == {"ok"}
    assert "crash" in rows["boom", 0].delayed and "SIGKILL (not by us" in rows["boom", 0].delayed


def test_the_end_of_a_case_wakes_the_coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [{"regex": f"a{{{number}}}"} for number in range(1, 11)]
    monkeypatch.setattr(coordinator, "POLL_SECONDS", 30.0)
    began = time.monotonic()
    rows = walk_all(tmp_path, "unconstrained", cases, PATIENT)
    assert len(rows) == 10 and time.monotonic() - began < 30.0


def test_a_damaged_case_costs_none_of_the_cases_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next case is read while the one before it is walked."""

    def damaging(assignment: Assignment, jobs: int) -> None:
        damaged = bytearray(assignment.cases.read_bytes())
        damaged[assignment.plan.offsets[1]] = ord("?")
        assignment.cases.write_bytes(damaged)
        run_all(assignment, jobs)

    monkeypatch.setattr("isolated.run_all", damaging)
    with pytest.raises(BadInput, match=r"cases\.jsonl: not JSON"):
        walk_all(tmp_path, "miniatures:Reference")
    assert [row.case for row in read_rows(tmp_path)] == ["mini: before"] * 2


def test_time_in_which_the_coordinator_slept_is_not_the_backends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_case = worker_process.send_case
    naps = iter([1.5, 1.5])

    def late(worker: Worker, offset: int) -> None:
        send_case(worker, offset)
        time.sleep(next(naps, 0.0))

    monkeypatch.setattr(worker_process, "send_case", late)
    rows = walk_all(tmp_path, "miniatures:Reference", limits=Limits(1.0, GIGABYTE))
    assert {row.status for row in rows.values()} == {"ok"}


@pytest.mark.parametrize("name", ["LeavesChild", "DoubleForks"])
def test_a_process_left_behind_is_found_named_and_ended(
    name: str, tmp_path: Path, no_leftovers: Callable[[], list[int]]
) -> None:
    rows = walk_all(tmp_path, f"miniatures:{name}")
    found = {
        case
        for (case, _), row in rows.items()
        for finding in row.findings
        if finding.check == "left_process_behind"
    }
    assert found == {"boom"}
    assert all(row.status == "ok" and row.accepted == row.valid for row in rows.values())
    assert no_leftovers() == []


def test_who_forks_and_ends_between_two_looks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle one of a double fork is seen, and has ended when it is looked at; the last one has come
    meanwhile."""
    popen = SimpleNamespace(pid=1)
    watched = Process(popen, 0, 0, 0, -1, -1, memoryview(bytearray(8)).cast("q"), child=2)  # type: ignore[arg-type]
    looks: Iterator[dict[int, list[int]]] = iter([{2: [3], 1: [2]}, {2: [], 1: [2, 4]}])
    below: dict[int, list[int]] = {}

    def descendants(pid: int, but: int | None = None) -> Iterator[int]:
        if pid == 2:
            below.update(next(looks))
        yield from below[pid]

    monkeypatch.setattr(process, "descendants", descendants)
    monkeypatch.setattr(process, "is_running", lambda pid: pid == 4)
    assert watched.strays() == [4]


def test_what_befalls_our_own_code_before_a_backend_is_loaded_is_ours(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no interpreter >&2\nexit 3\n")
    python.chmod(0o755)
    rows = walk_all(tmp_path, "miniatures:Reference", python=str(python))
    assert {(row.status, row.phase) for row in rows.values()} == {("harness_error", "load")}
    assert all(
        "before it loaded the backend; it printed: no interpreter" in row.text for row in rows.values()
    )


def test_an_answer_for_another_case_is_never_booked_to_it(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures.unruly:AnswersForAnother")
    assert rows["boom", 0].status == "backend_error"
    assert others_are_right(rows)


def test_a_second_process_that_answers_too_is_not_believed(tmp_path: Path) -> None:
    for attempt in range(5):
        rows = walk_all(tmp_path / str(attempt), "miniatures:AnswersTwice")
        named = any(finding.check == "left_process_behind" for finding in rows["boom", 1].findings)
        assert named or rows["boom", 0].status == "backend_error"
        assert others_are_right(rows)


def test_a_worker_reaches_no_network(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        rows = walk_all(tmp_path, f"miniatures:Connects+port={listener.getsockname()[1]}")
        with pytest.raises(TimeoutError):
            listener.accept()
    assert rows["boom", 0].status == "backend_error"
    assert "no network" in rows["boom", 0].text


def test_a_backend_that_hoards_memory_gets_a_clean_child(tmp_path: Path) -> None:
    limits = Limits(10.0, 400_000_000)
    rows = walk_all(
        tmp_path,
        "miniatures.unruly:HoardsMemory",
        [{**CASES[1], "regex": f"boom{n}"} for n in range(8)],
        limits,
    )
    assert {row.status for row in rows.values()} == {"ok"}


def stable(rows: dict[tuple[str, int | None], Row]) -> list[Row]:
    untimed: dict[str, Any] = dict.fromkeys(TIMINGS)
    return sorted((replace(row, **untimed) for row in rows.values()), key=lambda row: str(identity(row)))


MANY = [
    {
        "description": str(n),
        "regex": f"a{{{n}}}b",
        "tests": [{"text": "a" * n + "b", "valid": True}, {"text": "a", "valid": False}],
    }
    for n in range(1, 41)
]


@pytest.mark.long
def test_killing_workers_at_random_moments_changes_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = walk_all(tmp_path / "quiet", "miniatures.unruly:Slow", MANY)
    killed: list[int] = []
    generator = random.Random(7)
    start_worker = worker_process.start_worker
    stop = threading.Event()

    def started(*arguments: object, **options: object) -> Worker:
        worker = start_worker(*arguments, **options)  # type: ignore[arg-type]

        def kill() -> None:
            # After it has loaded: a worker that is lost while loading is another thing.
            while worker.process.child is None and not stop.wait(0.005):
                pass
            if not stop.wait(generator.uniform(0.0, 0.15)) and len(killed) < 12:
                killed.append(worker.process.popen.pid)
                worker.process.popen.kill()

        threading.Thread(target=kill, daemon=True).start()
        return worker

    monkeypatch.setattr(worker_process, "start_worker", started)
    harried = walk_all(tmp_path / "harried", "miniatures.unruly:Slow", MANY)
    stop.set()
    assert len(killed) >= 3
    assert stable(harried) == stable(quiet)


def run_command(folder: Path, *more: str) -> list[str]:
    suite = folder.parent / "many.json"
    suite.write_text(json.dumps(MANY))
    command = [
        sys.executable,
        "-m",
        "harness",
        "run",
        str(suite),
        "--backends",
        "miniatures.unruly:Slow",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    return [*command, "--out", str(folder), "--jobs", "2", *more]


@pytest.mark.long
def test_killing_the_coordinator_at_random_moments_and_resuming_equals_an_undisturbed_run(
    tmp_path: Path,
) -> None:
    undisturbed = tmp_path / "undisturbed"
    subprocess.run(run_command(undisturbed), check=True, stdout=subprocess.DEVNULL)
    disturbed = tmp_path / "disturbed"
    generator = random.Random(11)
    kills = 0
    while True:
        before = lines_in(disturbed)
        command = run_command(disturbed, *["--resume"] * (before > 0))
        coordinator = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if kills < 6:
            # At a random moment after some more rows are there: in the middle of a case, of a line, or
            # between two.
            more = generator.randrange(1, 12)
            while lines_in(disturbed) < before + more and coordinator.poll() is None:
                time.sleep(0.002)
            time.sleep(generator.uniform(0.0, 0.03))
            coordinator.kill()
            kills += 1
        output, _ = coordinator.communicate()
        # A kill between the last line and the end of the process leaves a complete run.
        if coordinator.returncode == 0 or b"this run is complete" in output:
            break
        assert coordinator.returncode == -signal.SIGKILL, output.decode()
    assert kills >= 3 and read_end(disturbed) is not None
    rows = {
        folder: {(row.case, row.instance): row for row in read_rows(folder)}
        for folder in (undisturbed, disturbed)
    }
    assert stable(rows[disturbed]) == stable(rows[undisturbed])
    deadline = time.monotonic() + 5
    while orphans := [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_worker_of(pid, disturbed)
    ]:
        assert time.monotonic() < deadline, f"workers outlive their coordinator: {orphans}"
        time.sleep(0.05)


def _is_worker_of(pid: int, folder: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"harness.running.worker" in command and str(folder).encode() in command


def test_the_next_case_starts_soon_after_a_kill(tmp_path: Path) -> None:
    """The next child is to be there in well under half a second; benchmarks/overhead.py measures that,
    and this only catches a broken respawn."""
    times: list[float] = []

    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "mini.json").write_text(json.dumps(CASES))
    plan = write_plan([find_suite(str(folder / "mini.json"))], PROFILES["default"], 0, folder / "cases.jsonl")
    arm = Arm("miniatures:Segfaults", "", "", "", ("regex",), "bitmask")
    info = RunInfo("test", "", "", (), 0, "default", 2.0, GIGABYTE, 1, (arm,), {}, plan.suites, {})

    class Clocked(Writer):
        def append(self, walks: object) -> None:
            times.append(time.monotonic())
            super().append(walks)  # type: ignore[arg-type]

    with Clocked(folder, info) as writer:
        works = [Work(arm, "bytes", deque(range(3)))]
        limits = Limits(2.0, GIGABYTE)
        run_all(Assignment(plan, folder / "cases.jsonl", works, limits, writer, lambda _: None), 1)
    assert times[2] - times[1] < 2.0


# ------------------------------------------------------------------------------ whose fault an ending is


def stand_in(phase: str = "", *, ours: bool = False, loads: bool = False, printed: str = "") -> Any:
    """Returns a worker whose child is in this phase, at the third of four tokens of the second instance."""
    page = [PHASES.index(phase) if phase else -1, 1, 2, 4, 0, 0, 0, 0, 0]
    page[IS_OURS], page[LOADS] = ours, loads
    return SimpleNamespace(process=SimpleNamespace(page=page, printed_text=lambda: printed))


@pytest.mark.parametrize(
    ("lost", "is_ours", "status"),
    [
        (Lost("", cause="forged"), True, "backend_error"),
        (Lost("", whose="harness", cause="forged"), False, "backend_error"),
        (Lost("", cause="closed"), True, "crash"),
        (Lost("", cause="timeout"), False, "timeout"),
        (Lost("", cause="timeout"), True, "harness_error"),
        (Lost("", cause="oom"), False, "oom"),
        (Lost("", cause="oom"), True, "harness_error"),
        (Lost("", cause="crash"), False, "crash"),
        (Lost("", whose="harness", cause="crash"), False, "harness_error"),
    ],
)
def test_whose_fault_a_loss_is(lost: Lost, is_ours: bool, status: str) -> None:
    assert endings.status_of_loss(lost, is_ours) == status


@pytest.mark.parametrize(
    ("left", "changed", "checks"),
    [
        (0, [], []),
        (2, [], ["left_process_behind"]),
        (0, ["a signal", "the locale"], ["changed_its_process"]),
        (1, ["the locale"], ["left_process_behind", "changed_its_process"]),
    ],
)
def test_what_a_case_leaves_behind_stands_beside_how_it_ended(
    left: int, changed: list[str], checks: list[str]
) -> None:
    task: Any = SimpleNamespace(compiled={"status": "ok"})
    message: dict[str, Any] = {"changed": changed}
    for status, phase, text in (
        ("ok", "", ""),
        ("timeout", "compile", "killed after 1 s"),
        ("harness_error", "worker", "the file is gone"),
    ):
        if phase == "compile":
            task = SimpleNamespace(compiled={"status": status, "text": text})
        elif phase == "worker":
            message |= {"failed": status, "text": text}
        ending = endings.of_done_case(task, message, left)
        assert (ending.status, ending.phase, ending.text) == (status, phase, text)
        assert [each.check for each in ending.findings] == checks
        for each in ending.findings:
            said = f"{left} process" if each.check == "left_process_behind" else ", ".join(changed)
            assert said in each.text
    assert endings.of_done_case(SimpleNamespace(compiled=None), {"changed": []}, 0).status == "ok"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("killed", "status", "phase", "checking", "text"),
    [
        (None, signal.SIGSEGV, "fill", "", "killed by SIGSEGV in fill of token 2, instance 1"),
        (None, signal.SIGSEGV, "compile", "", "killed by SIGSEGV in compile"),
        (None, signal.SIGSEGV, "check", "a_check", "killed by SIGSEGV in check a_check"),
        (
            None,
            signal.SIGKILL,
            "end",
            "",
            "killed by SIGKILL (not by us: the system when out of memory, or a person) in end of token 2, "
            "instance 1",
        ),
        (
            Lost("killed after 2 s", cause="timeout"),
            signal.SIGKILL,
            "accept",
            "",
            "killed after 2 s in accept of token 2, instance 1",
        ),
    ],
)
def test_where_a_child_was_lost_is_told(
    killed: Lost | None, status: int, phase: str, checking: str, text: str
) -> None:
    task: Any = SimpleNamespace(killed=killed, checking=checking)
    for printed, said in (("", text), ("a last\nword", f"{text}; it printed: a last word")):
        ending = endings.of_lost_child(stand_in(phase, printed=printed), task, status)
        assert (ending.phase, ending.text, ending.token, ending.tokens) == (phase, said, 2, 4)
        assert ending.status == ("timeout" if killed else "crash")
        assert ending.signal == ("" if killed else signal.Signals(status).name)
    assert endings.of_lost_child(stand_in(phase, ours=True), task, status).status == "harness_error"


def test_a_lost_worker_and_a_load_that_failed_are_the_backends_only_where_it_was_at_work() -> None:
    for worker, status, phase in (
        (stand_in(), "harness_error", "worker"),
        (stand_in("fill"), "crash", "fill"),
        (stand_in("fill", ours=True), "harness_error", "fill"),
    ):
        for code, how in ((-signal.SIGABRT, "killed by SIGABRT"), (None, "closed the pipe")):
            ending = endings.of_lost_worker(worker, code)
            assert (ending.status, ending.phase) == (status, phase) and how in ending.text
    for loads, code, status in (
        (True, 3, "crash"),
        (True, None, "crash"),
        (True, -signal.SIGKILL, "harness_error"),
        (False, 3, "harness_error"),
    ):
        found, text = endings.of_lost_load(stand_in(loads=loads, printed="why"), code)
        assert found == status and text.endswith(" loaded the backend; it printed: why")
        assert ("while it loaded" in text) == loads
    for loads, failed, stuck in (
        (True, "backend_error", "timeout"),
        (False, "harness_error", "harness_error"),
    ):
        worker = stand_in(loads=loads)
        assert (endings.of_failed_load(worker, "why").status, endings.of_stuck_load(worker, 300).status) == (
            failed,
            stuck,
        )
        assert endings.of_failed_load(worker, "why").text == "why"
        assert endings.of_stuck_load(worker, 300).text.endswith(" in 300 s")


# -------------------------------------------------------------------- a worker or a case that says nothing


class Told:
    """A slot without processes, and what it has done to them."""

    def __init__(self, phase: str = "", **of_worker: Any) -> None:
        self.kills, self.ended = 0, list[Ending]()
        self.worker = stand_in(phase, **of_worker)
        quiet: dict[str, Any] = {
            "read_output": lambda: None,
            "take_answers": lambda: [],
            "hear": lambda: ([], False),
        }
        vars(self.worker.process).update(quiet, kill_children=self.kill, child=7)
        self.worker.process.popen = SimpleNamespace(poll=lambda: None, pid=6)
        self.worker.served, self.worker.behind = 0, deque()
        self.work = Work(Arm("toy", "1", "", "", ("regex",), "bitmask"), "bytes", deque([1, 2]))
        recorder: Any = SimpleNamespace(
            write_ending=lambda work, task, ending: self.ended.append(ending),
            assignment=SimpleNamespace(limits=Limits(2.0, GIGABYTE)),
        )
        self.slot = Slot(self.work, self.worker, recorder)

    def kill(self) -> None:
        self.kills += 1

    def give(self, number: int, **fields: Any) -> Task:
        case: Any = None
        place = worker_process.place(self.worker)
        self.slot.task = Task(number, "mini", "1", case, time.monotonic(), place, **fields)
        return self.slot.task

    def look_after(self, seconds: float) -> None:
        """Let that much time pass, and look."""
        self.slot.excuse(-seconds)
        self.slot.look_after()


def test_a_worker_that_does_not_load_in_time_is_ended() -> None:
    ours = Told()
    ours.look_after(slot.LOAD_SECONDS - 9)
    assert not ours.slot.is_closing and ours.work.load_failure is None
    ours.look_after(10)
    assert ours.slot.is_closing and ours.work.load_failure is not None
    assert ours.work.load_failure.status == "harness_error"
    backends = Told(loads=True)
    backends.look_after(slot.LOAD_SECONDS + 1)
    assert not backends.slot.is_closing, "the time before the backend loads is no part of its own"
    backends.look_after(slot.LOAD_SECONDS + 1)
    assert backends.slot.is_closing and backends.work.load_failure is not None
    assert backends.work.load_failure.status == "timeout"


def test_workers_that_have_no_child_are_given_up_after_some_in_a_row() -> None:
    told = Told()
    told.slot.ready = True
    told.look_after(slot.STUCK_SECONDS - 9)
    assert not told.slot.is_closing
    for number in range(1, slot.ATTEMPTS + 1):
        assert told.work.load_failure is None
        told.look_after(slot.STUCK_SECONDS + 1)
        told.slot.changed = time.monotonic()
        assert told.slot.is_closing and told.work.losses == number
    failure = told.work.load_failure
    assert failure is not None and failure.text == "the worker had no child after 30 s"
    assert (failure.status, failure.phase) == ("harness_error", "load")


@pytest.mark.parametrize("is_again", [False, True])
def test_a_case_that_no_child_has_taken_is_sent_to_three_workers(is_again: bool) -> None:
    told = Told()
    told.slot.ready = True
    if is_again:
        told.work.again[5] = Suspicion("", "", ())
    for _ in range(slot.ATTEMPTS - 1):
        told.give(5, killed=Lost("killed after 2 s", cause="timeout"))
        told.look_after(slot.STUCK_SECONDS + 1)
        assert told.slot.task is None and told.slot.is_closing and not told.ended
        assert list(told.work.cases) == ([5, 1, 2] if is_again else [1, 2, 5])
        told.work.cases.remove(5)
        told.slot.changed = time.monotonic()
    told.give(5, killed=Lost("killed after 2 s", cause="timeout"))
    told.look_after(slot.STUCK_SECONDS + 1)
    (ending,) = told.ended
    assert ending.text == "the child was lost before it took the case, 3 times"
    assert ending.status == "harness_error" and list(told.work.cases) == [1, 2]


@pytest.mark.parametrize(("ours", "status"), [(False, "oom"), (True, "harness_error")])
def test_a_backend_that_is_too_large_once_it_is_loaded_is_not_loaded_again(ours: bool, status: str) -> None:
    told = Told(ours=ours)
    told.slot.ready = True
    told.give(5, killed=lost_in_memory(GIGABYTE))
    told.look_after(slot.STUCK_SECONDS + 1)
    (ending,) = told.ended
    assert (ending.status, ending.phase) == (status, "load") and "GB of resident memory" in ending.text
    assert told.slot.is_closing and told.work.load_failure == ending
    served = Told()
    served.slot.ready, served.worker.served = True, 1
    served.give(5, killed=lost_in_memory(GIGABYTE))
    served.look_after(slot.STUCK_SECONDS + 1)
    assert not served.ended and served.work.load_failure is None, "it may be what the cases before have left"


@pytest.mark.parametrize(("ours", "status"), [(GIGABYTE - 1, "oom"), (GIGABYTE, "harness_error")])
def test_a_backend_is_not_blamed_for_memory_that_is_taken_without_it(
    monkeypatch: pytest.MonkeyPatch, ours: int, status: str
) -> None:
    monkeypatch.setattr(system, "rss_bytes", lambda pid: GIGABYTE + 1)
    for phase in ("", "compile"):
        told = Told(phase)
        told.worker.process.page[OURS_BYTES] = ours
        told.slot.ready = True
        task = told.give(5)
        told.look_after(0)
        assert told.kills == 1 and task.killed is not None
        assert endings.of_lost_child(told.worker, task, 0).status == status
        assert ("--memory is too small" in task.killed.text) is (status == "harness_error")
        assert endings.of_large_load(told.worker, task.killed).status == status


@pytest.mark.parametrize(
    ("phase", "calls", "status"),
    [
        ("oracle", 0, "harness_error"),
        ("oracle", 1, "oom"),
        ("check", 0, "oom"),
        ("encode", 0, "harness_error"),
    ],
)
def test_memory_that_grows_while_our_code_is_at_work_is_ours(
    monkeypatch: pytest.MonkeyPatch, phase: str, calls: int, status: str
) -> None:
    """Also where the limit is passed in a call of the backend later on."""
    rss = GIGABYTE // 5
    monkeypatch.setattr(system, "rss_bytes", lambda pid: rss)
    told = Told(phase)
    told.slot.ready = True
    task = told.give(5)
    for _ in range(5):
        told.look_after(0)
        told.worker.process.page[4] += calls
        rss += GIGABYTE // 7
    told.worker.process.page[0] = PHASES.index("check")
    rss = GIGABYTE + 1
    told.look_after(0)
    assert told.kills == 1 and task.killed is not None
    assert (task.killed.whose == "harness") is (status == "harness_error")
    assert endings.of_lost_child(told.worker, task, 0).status == status


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_memory_that_a_thread_of_the_backend_may_have_taken_is_said_to_be_in_doubt(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """It was said to be taken without the backend, which nobody knew."""
    monkeypatch.setattr(endings, "thread_count", lambda pid: threads)
    worker = stand_in("check")
    worker.process.child = 7
    text = endings.lost_in_memory_of(worker, GIGABYTE, GIGABYTE * 3 // 4).text
    assert "0.75 GB of it have come while code of ours was at work" in text and "without" not in text
    assert ("so --memory is too small" in text) is (threads == 1)
    assert ("whose they are is not known" in text) is (threads != 1)


def test_memory_that_our_code_gives_back_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [GIGABYTE // 10, GIGABYTE * 9 // 10, GIGABYTE // 10, GIGABYTE + 1]
    monkeypatch.setattr(system, "rss_bytes", lambda pid: seen.pop(0))
    told = Told("oracle")
    told.slot.ready = True
    task = told.give(5)
    for _ in range(3):
        told.look_after(0)
    told.worker.process.page[0] = PHASES.index("check")
    told.look_after(0)
    assert not seen and task.killed is not None and task.killed.whose == "backend"


def test_a_limit_below_what_is_taken_without_the_backend_blames_none(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures:Reference", limits=Limits(2.0, 15_000_000))
    assert {row.status for row in rows.values()} == {"harness_error"}
    assert all("--memory is too small" in row.text for row in rows.values())


def test_a_backend_that_is_larger_than_the_limit_is_no_failure_of_ours(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures.unruly:Large", limits=Limits(2.0, 200_000_000))
    assert {row.status for row in rows.values()} == {"oom"}, "in whatever phase it is looked at first"


@pytest.mark.parametrize(
    ("phase", "ours", "seconds", "text"),
    [
        ("fill", False, 1.5, ""),
        ("fill", False, 2.5, "killed after 2 s"),
        ("oracle", False, 59.0, ""),
        ("oracle", False, 61.0, "killed after 60 s"),
        ("fill", True, 59.0, ""),
        ("fill", True, 61.0, "killed after 60 s"),
    ],
)
def test_a_call_has_its_deadline_and_code_of_ours_a_longer_one(
    monkeypatch: pytest.MonkeyPatch, phase: str, ours: bool, seconds: float, text: str
) -> None:
    monkeypatch.setattr(system, "rss_bytes", lambda _: 0)
    told = Told(phase, ours=ours)
    task = told.give(5)
    told.look_after(seconds)
    assert (task.killed.text if task.killed else "", told.kills) == (text, bool(text))
    again = Told(phase, ours=ours)
    task = again.give(5)
    again.worker.process.page[2] += 1  # it got on to the next token
    again.look_after(seconds)
    assert task.killed is None and not again.kills


@pytest.mark.parametrize("more", [0, 1])
def test_a_child_that_takes_more_memory_than_it_may_is_killed(
    monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(system, "rss_bytes", lambda _: GIGABYTE + more)
    told = Told("fill")
    task = told.give(5)
    told.look_after(0)
    assert (task.killed.cause if task.killed else "", told.kills) == ("oom" if more else "", more)
    assert task.peak_rss_bytes == GIGABYTE + more
