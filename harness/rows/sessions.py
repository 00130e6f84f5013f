"""The further sessions of a run: how it went on after an interruption, and the run that rows were taken over
from. The first line of a run says only how it began."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import damaged
from harness.rows.appending import encoded, reopened, write_lines
from harness.rows.machine import all_machines
from harness.rows.row import RunInfo
from harness.shape import bounded_lines, shaped
from harness.text import one_line

FILE = "sessions.jsonl"


@dataclass(frozen=True)
class Session:
    """How a part of a run was walked; the fields are those of `RunInfo`."""

    started: str
    jobs: int
    executor: str
    machine: dict[str, Any]


def add_session(folder: Path, info: RunInfo) -> None:
    """Notes that a part of the run in the folder was walked as `info` says. A last line that an interruption
    cut short is cut away."""
    session = Session(info.started, info.jobs, info.executor, info.machine)
    with reopened(folder / FILE) as file:
        write_lines(file, [encoded(asdict(session))])


def with_sessions(info: RunInfo, folder: Path) -> RunInfo:
    """Returns what the first line of the run says, with the most workers of all its sessions, the executor
    that any of them had, and all machines. Raises BadInput."""
    sessions: list[RunInfo | Session] = [info, *_sessions(folder)]
    return replace(
        info,
        jobs=max(session.jobs for session in sessions),
        executor=max(session.executor for session in sessions),
        machine=all_machines([session.machine for session in sessions]),
    )


def _sessions(folder: Path) -> Iterator[Session]:
    """Yields the sessions that are noted; a last line that an interruption cut short is none."""
    path = folder / FILE
    if not path.exists():
        return
    with open(path, "rb") as file:
        for number, line in enumerate(bounded_lines(file, path), 1):
            if not line.endswith(b"\n"):
                return
            try:
                session = shaped(Session, json.loads(line))
                if session.jobs < 1 or session.executor not in ("", "ray"):
                    raise ValueError("no number of workers, or no executor")
            except (ValueError, RecursionError) as error:
                reason = one_line(str(error), 100)
                raise damaged(f"{path}:{number}: no session ({reason})") from error
            yield session
