"""The further sessions of a run: how it went on after an interruption, and the run that rows were taken over
from. The first line of a run says only how it began."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import BadInput
from harness.rows.machine import all_machines
from harness.rows.row import RunInfo
from harness.text import one_line

FILE = "sessions.jsonl"

_KINDS: dict[str, type] = {"started": str, "jobs": int, "executor": str, "machine": dict}
_MOST_BYTES = 16_000_000


def add_session(folder: Path, info: RunInfo) -> None:
    """Note that a part of the run in the folder was walked as `info` says: when, with how many workers, by
    which executor, on which machine."""
    line = json.dumps({name: getattr(info, name) for name in _KINDS}, ensure_ascii=False)
    with open(folder / FILE, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def with_sessions(info: RunInfo, folder: Path) -> RunInfo:
    """Returns what the first line of the run says, with the most workers of all its sessions, the executor
    that any of them had, and all machines. Raises BadInput."""
    sessions = list(_sessions(folder))
    if not sessions:
        return info
    return replace(
        info,
        jobs=max(info.jobs, *(session["jobs"] for session in sessions)),
        executor=max(info.executor, *(session["executor"] for session in sessions)),
        machine=all_machines([info.machine, *(session["machine"] for session in sessions)]),
    )


def _sessions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the sessions that are noted; a last line that an interruption cut short is none."""
    path = folder / FILE
    try:
        content = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else None
    except FileNotFoundError:
        return
    if content is None:
        raise BadInput(f"{path}: larger than {_MOST_BYTES:,} bytes; the file was changed or damaged")
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            session = json.loads(line)
            if not all(type(session[name]) is kind for name, kind in _KINDS.items()):
                raise ValueError("a field is of another kind")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadInput(
                f"{path}:{number}: no session ({one_line(str(error), 100)}); the file was changed or damaged"
            ) from error
        yield session
