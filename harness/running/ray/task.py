"""What a task does on its node: walk the cases it was handed, in the isolated worker processes as anywhere,
and yield their rows."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import tempfile
import time
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO

import harness
from harness.backend.arm import Arm, pinned
from harness.backend.describe import describe
from harness.backend.environments.build import environment_of
from harness.cases.case_line import case_from_line
from harness.cases.plan import Plan
from harness.errors import BadInput
from harness.rows.row import Row
from harness.running.coordinator import Coordinator
from harness.running.limits import Limits
from harness.running.work import Assignment, Work

Walks = list[tuple[Row, bytes]]
"""The rows of one case, each with its samples."""

CHUNK_ROWS = 200
CHUNK_BYTES = 1_000_000
CHUNK_SECONDS = 1.0
"""A chunk is sent when it has so many rows or bytes, or is this old in seconds. Whatever a lost task has not
sent is walked again."""


@dataclass(frozen=True)
class Piece:
    """The cases that a task is handed, and all that it needs to walk them."""

    arm: Arm
    vocabulary: str
    vocabulary_sha256: str
    limits: Limits
    cases: bytes
    """Lines of the run's `cases.jsonl`."""
    harness: str
    home: tuple[str, ...]
    """What `here` returns for the coordinator."""
    careful: bool = False
    """Whether a task was lost with these cases: then the rows of each go on their way before the next is
    begun, so that the one at fault is found."""


def here() -> tuple[str, ...]:
    """Returns what is the same for two processes that run the same files on the same machine."""
    source = os.stat(harness.__file__)
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        boot = ""
    return boot.strip(), socket.gethostname(), sys.prefix, str(source.st_dev), str(source.st_ino)


def walk(piece: Piece) -> Iterator[list[Walks] | str]:
    """Yields chunks of cases with their rows, as they come; or, if this node cannot walk them rightly, a text
    that says why."""
    try:
        arm = _on_this_node(piece)
        yield from _walk(piece, arm)
    except BadInput as error:
        yield f"{error} (on {socket.gethostname()})"


def _walk(piece: Piece, arm: Arm) -> Iterator[list[Walks]]:
    kept = _kept_for(piece, arm)
    try:
        chunk = kept.hand(piece.cases)
        for _ in kept.coordinator.turns(1):
            if chunk.is_due() or (piece.careful and chunk.waiting):
                yield chunk.take()
        if chunk.waiting:
            yield chunk.take()
        kept.coordinator.refuse_missing()
    except BaseException:
        kept.close()
        raise
    if kept.is_fit():
        _kept.append(kept)
    else:
        kept.close()


class Kept:
    """A worker that has loaded, with its coordinator: it waits in this process of Ray's for the next task of
    its kind."""

    def __init__(self, piece: Piece, arm: Arm) -> None:
        self.kind = arm, piece.vocabulary, piece.limits
        self.file, path = _file_of_cases()
        self.work = Work(arm, piece.vocabulary, deque())
        nothing = Plan(array("q"), (), {})
        assignment = Assignment(nothing, path, [self.work], piece.limits, Chunk(), lambda _: None)
        self.coordinator = Coordinator(assignment, keep=True)

    def hand(self, cases: bytes) -> Chunk:
        """Give it the lines of these cases; return the chunk that their rows will be in."""
        # Behind those of earlier tasks: the worker reads through a buffer, which would not see that they were
        # written over.
        offset = self.file.seek(0, os.SEEK_END)
        self.file.write(cases)
        self.file.flush()
        offsets, dialects = array("q"), []
        for line in cases.splitlines(keepends=True):
            offsets.append(offset)
            offset += len(line)
            dialects.append(case_from_line(line)[2].grammar.dialect)
        chunk = Chunk()
        self.coordinator.hand(Plan(offsets, tuple(dialects), {}), chunk)
        self.work.attempts.clear()
        self.work.losses = 0
        self.work.cases.extend(range(len(offsets)))
        return chunk

    def is_fit(self) -> bool:
        """Can it serve another task? A worker that cannot be started may be able to next time, or
        elsewhere."""
        return bool(self.coordinator.slots) and self.work.load_failure is None

    def close(self) -> None:
        """End the worker."""
        self.coordinator.close()
        self.file.close()


_kept: list[Kept] = []
"""The workers that wait in this process: to load vocabulary and backend again for each task would take longer
than its cases."""


def _kept_for(piece: Piece, arm: Arm) -> Kept:
    """Returns the waiting worker of this kind, or a new one; one of another kind is ended first, because it
    holds memory."""
    while _kept:
        kept = _kept.pop()
        if kept.kind == (arm, piece.vocabulary, piece.limits):
            return kept
        kept.close()
    return Kept(piece, arm)


@atexit.register
def end_workers() -> None:
    """End the workers that wait in this process. (A process that is killed takes them along, on Linux.)"""
    while _kept:
        _kept.pop().close()


def _file_of_cases() -> tuple[IO[bytes], Path]:
    """Returns an empty file, and the path by which a worker finds it. The file has no name where that is
    possible, because processes of Ray's are killed and tidy nothing up."""
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
    path = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")
    if path.exists():
        return file, path
    file.close()
    named = tempfile.NamedTemporaryFile(prefix="grammarbench-")  # noqa: SIM115
    return named, Path(named.name)


class Chunk:
    """The rows that wait to be sent."""

    def __init__(self) -> None:
        self.waiting: list[Walks] = []
        self.rows = self.bytes = 0
        self.began = 0.0

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """Take all rows of one case, each with its samples."""
        if not self.waiting:
            self.began = time.monotonic()
        self.waiting.append(list(walks))
        self.rows += len(walks)
        self.bytes += sum(len(samples) for _, samples in walks)

    def is_due(self) -> bool:
        """Are there enough rows, or are they old enough?"""
        if self.rows >= CHUNK_ROWS or self.bytes >= CHUNK_BYTES:
            return True
        return bool(self.waiting) and time.monotonic() - self.began > CHUNK_SECONDS

    def take(self) -> list[Walks]:
        """Returns all rows that wait, which then wait no more."""
        taken, self.waiting, self.rows, self.bytes = self.waiting, [], 0, 0
        return taken


def _on_this_node(piece: Piece) -> Arm:
    """Returns the arm with the interpreter that holds its version here, built if need be.

    On another machine than the coordinator's it is made sure that everything is what the run's first line
    tells of. Raises BadInput.
    """
    if harness.__version__ != piece.harness:
        raise BadInput(
            f"GrammarBench is {harness.__version__} here, the run is made by {piece.harness}; "
            "install the same on every node"
        )
    if here() == piece.home:
        return piece.arm
    arm, sha256 = _looked_at(piece.arm, piece.vocabulary)
    if arm != piece.arm:
        was, installed = (
            f"{one.backend} {one.version}:{one.options} of {one.distribution or 'no distribution'}"
            for one in (piece.arm, arm)
        )
        raise BadInput(f"the run is of {was}, here is {installed}; install the same on every node")
    if sha256 != piece.vocabulary_sha256:
        raise BadInput(f"vocabulary {piece.vocabulary} is another one here; copy its files to every node")
    return arm


@cache
def _looked_at(arm: Arm, vocabulary: str) -> tuple[Arm, str]:
    """Returns the arm as it is on this node, and the vocabulary's digest; this is looked at once in each
    process of Ray's."""
    if "+local." in arm.version:
        raise BadInput(
            f"{arm.backend} {arm.version} was built from a path, which only its machine has; give a version"
        )
    spec, python = environment_of(pinned(arm, arm.version), lambda _: None)
    described = describe([str(spec)], [vocabulary], [python])
    (arm_here,) = described.arms
    return replace(arm_here, documented=arm.documented), str(described.vocabularies[vocabulary]["sha256"])
