"""A worker that the kernel killed because memory was short for all is no crash of its backend."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from isolated import CASES, GIGABYTE, walk_all

from harness.backend.process import memory, system
from harness.running import endings, limits
from harness.running.coordinator import Coordinator
from harness.running.limits import Limits, memory_notes, most_workers
from harness.running.work import Work, memory_lines

pytestmark = pytest.mark.usefixtures("importable_miniatures")

LIMITS = Limits(20.0, GIGABYTE)
BOOM = [case for case in CASES if case["description"] == "boom"]


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> list[Work]:
    """The works that are walked, once they are."""
    seen: list[Work] = []
    refuse = Coordinator.refuse_missing

    def noted(coordinator: Coordinator) -> None:
        seen.extend(coordinator._works)
        assert coordinator._places == (1 if seen[0].starved else sys.maxsize)
        refuse(coordinator)

    monkeypatch.setattr(Coordinator, "refuse_missing", noted)
    return seen


def short_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the kernel say each time that it has killed one more process."""
    kills = iter(range(10**6))
    monkeypatch.setattr(memory, "kills_for_memory", lambda: next(kills))


def test_a_child_that_the_kernel_killed_has_its_case_again_with_a_worker_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: list[Work]
) -> None:
    monkeypatch.setenv("MINIATURE_KILLED", str(tmp_path / "killed"))
    short_of_memory(monkeypatch)
    rows = walk_all(tmp_path, "miniatures.unruly:KilledOnce", CASES, LIMITS)
    assert {row.status for row in rows.values()} == {"ok"} and not any(row.delayed for row in rows.values())
    (work,) = works
    (line,) = memory_lines(works, GIGABYTE, 1)
    said = "the kernel killed its process 1 time because there was no memory left; 1 case came to an end"
    assert work.starved == 1 and line.endswith(f"{said} when walked again")
    assert memory_lines(works, GIGABYTE, 2) == [f"{line}, with fewer workers"]


def test_what_never_finds_memory_is_not_the_backends_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: list[Work]
) -> None:
    short_of_memory(monkeypatch)
    rows = walk_all(tmp_path, "miniatures.unruly:KillsItself", BOOM, LIMITS)
    first = rows["boom", 0]
    assert first.status == "harness_error" and first.signal == "SIGKILL"
    assert endings.NO_MEMORY_LEFT in first.text and first.text.endswith(", 3 times")
    assert works[0].starved == 3
    (line,) = memory_lines(works, GIGABYTE, 1)
    assert line.endswith("because there was no memory left; given up, as failures of ours: mini: boom")
    assert "give more memory, or fewer --jobs where there are several" in first.text


def test_who_kills_himself_while_there_is_memory_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: list[Work]
) -> None:
    monkeypatch.setattr(memory, "kills_for_memory", lambda: 7)
    rows = walk_all(tmp_path, "miniatures.unruly:KillsItself", BOOM, LIMITS)
    assert rows["boom", 0].status == "crash" and works[0].starved == 0 and not works[0].given_up
    assert not memory_lines(works, GIGABYTE, 1)


@pytest.mark.parametrize(
    ("groups", "files", "kills", "bytes_there"),
    [
        ("0::/a/b\n", {"a/b/memory.events": "low 0\noom 3\noom_kill 2\n", "a/b/memory.max": "max\n"}, 2, 64),
        (
            "0::/a/b\n",
            {"a/b/memory.events": "oom_kill 5\n", "a/memory.max": "7\n", "a/b/memory.max": "9"},
            5,
            7,
        ),
        ("3:cpu:/x\n2:memory:/m\n", {"memory/m/memory.oom_control": "under_oom 0\noom_kill 4\n"}, 4, 64),
        ("2:memory:/gone\n", {"memory/memory.limit_in_bytes": "5\n"}, 9, 5),
        ("2:memory:/m\n", {"memory/m/memory.limit_in_bytes": f"{2**63 - 4096}\n"}, 9, 64),
        ("", {}, 9, 64),
    ],
)
def test_what_the_system_tells_of_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: str,
    files: dict[str, str],
    kills: int,
    bytes_there: int,
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    read = system.proc_content
    told = {"/proc/self/cgroup": groups.encode(), "/proc/vmstat": b"oom_kill_disable 1\noom_kill 9\n"}
    monkeypatch.setattr(memory, "CGROUPS", str(tmp_path))
    monkeypatch.setattr(memory, "proc_content", lambda path: told[path] if path in told else read(path))
    monkeypatch.setattr(memory, "_of_machine", lambda: 64)
    assert (memory.kills_for_memory(), memory.memory_to_be_had()) == (kills, bytes_there)


def test_a_system_that_tells_nothing_is_asked_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr(memory, "proc_content", refused)
    monkeypatch.setattr(memory, "_of_machine", lambda: 0)
    assert (memory.kills_for_memory(), memory.memory_to_be_had()) == (0, 0)
    assert memory_notes(100, 10**15) == [] and most_workers(10**15) >= 1


def test_more_workers_than_find_memory_are_told_before_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "memory_to_be_had", lambda: 8 * GIGABYTE)
    monkeypatch.setattr(limits, "usable_processors", lambda: 6)
    assert memory_notes(2, 4 * GIGABYTE) == [] and most_workers(4 * GIGABYTE) == 2
    assert (most_workers(GIGABYTE), most_workers(9 * GIGABYTE)) == (6, 1)
    (said,) = memory_notes(3, 4 * GIGABYTE)
    assert said.startswith("each of 3 workers may take 4 GB (--memory), and there are 8 GB: ")
    assert said.endswith("; give fewer --jobs")
    (said,) = memory_notes(1, 9 * GIGABYTE)
    assert said.startswith("a worker may take 9 GB") and said.endswith("; give a smaller --memory")
