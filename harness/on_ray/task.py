"""What a task does on its node: walk the cases it was handed, in the isolated worker processes as anywhere, and yield their rows."""

from __future__ import annotations

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

import harness
from harness.booking import Work
from harness.case import case_from_line
from harness.describe import describe
from harness.environments import environment_of
from harness.errors import BadInput
from harness.plan import Plan
from harness.row import Arm, Row
from harness.run import Coordinator, Limits

Walks = list[tuple[Row, bytes]]
"""The rows of one case, each with its samples."""

CHUNK_ROWS = 200
CHUNK_BYTES = 1_000_000
CHUNK_SECONDS = 1.0
"""What is walked goes on its way when it is so much, or this old: all that a lost task costs is walked again."""


@dataclass(frozen=True)
class Piece:
    """What a task is handed."""

    arm: Arm
    vocabulary: str
    vocabulary_sha256: str
    limits: Limits
    cases: bytes
    """Lines of the run's `cases.jsonl`."""
    harness: str
    home: tuple[str, ...]
    """Of the coordinator, as `here` tells it."""
    careful: bool = False
    """A task was lost with these cases: the rows of each go on their way before the next is begun, so that the one at fault is found."""


def here() -> tuple[str, ...]:
    """The same for two processes that run the same files on the same machine."""
    source = os.stat(harness.__file__)
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        boot = ""
    return boot.strip(), socket.gethostname(), sys.prefix, str(source.st_dev), str(source.st_ino)


def walk(piece: Piece) -> Iterator[list[Walks] | str]:
    """Chunks of cases with their rows, as they come; a text instead if this node cannot walk them rightly, and why."""
    try:
        arm = _on_this_node(piece)
        yield from _walk(piece, arm)
    except BadInput as error:
        yield f"{error} (on {socket.gethostname()})"


def _walk(piece: Piece, arm: Arm) -> Iterator[list[Walks]]:
    with tempfile.TemporaryDirectory(prefix="grammarbench-") as scratch:
        path = Path(scratch) / "cases.jsonl"
        path.write_bytes(piece.cases)
        plan = _plan(piece.cases)
        chunk = Chunk()
        work = Work(arm, piece.vocabulary, deque(range(len(plan.offsets))))
        coordinator = Coordinator(plan, [work], piece.limits, chunk, path, lambda _: None, hasattr(os, "fork"))
        try:
            for _ in coordinator.turns(1):
                if chunk.is_due() or (piece.careful and chunk.waiting):
                    yield chunk.take()
            if chunk.waiting:
                yield chunk.take()
        finally:
            coordinator.close()


class Chunk:
    """Rows that wait to be sent."""

    def __init__(self) -> None:
        self.waiting: list[Walks] = []
        self.rows = self.bytes = 0
        self.began = 0.0

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """All rows of one case, each with its samples."""
        if not self.waiting:
            self.began = time.monotonic()
        self.waiting.append(list(walks))
        self.rows += len(walks)
        self.bytes += sum(len(samples) for _, samples in walks)

    def is_due(self) -> bool:
        """Enough of them, or old enough?"""
        if self.rows >= CHUNK_ROWS or self.bytes >= CHUNK_BYTES:
            return True
        return bool(self.waiting) and time.monotonic() - self.began > CHUNK_SECONDS

    def take(self) -> list[Walks]:
        """All of them."""
        taken, self.waiting, self.rows, self.bytes = self.waiting, [], 0, 0
        return taken


def _plan(cases: bytes) -> Plan:
    offsets, dialects = array("q"), []
    offset = 0
    for line in cases.splitlines(keepends=True):
        offsets.append(offset)
        offset += len(line)
        dialects.append(case_from_line(line)[2].grammar.dialect)
    return Plan(offsets, tuple(dialects), {})


def _on_this_node(piece: Piece) -> Arm:
    """The arm with the interpreter that holds its version here, built if need be.

    On another machine than the coordinator's it is made sure that everything is what the run's first line tells of.
    Raises BadInput.
    """
    if harness.__version__ != piece.harness:
        raise BadInput(f"GrammarBench is {harness.__version__} here, the run is made by {piece.harness}; install the same on every node")
    if here() == piece.home:
        return piece.arm
    arm, sha256 = _looked_at(piece.arm, piece.vocabulary)
    if arm != piece.arm:
        was, found = (
            f"{each.backend} {each.version}:{each.options} of {each.distribution or 'no distribution'}" for each in (piece.arm, arm)
        )
        raise BadInput(f"the run is of {was}, here is {found}; install the same on every node")
    if sha256 != piece.vocabulary_sha256:
        raise BadInput(f"vocabulary {piece.vocabulary} is another one here; copy its files to every node")
    return arm


@cache
def _looked_at(arm: Arm, vocabulary: str) -> tuple[Arm, str]:
    """The arm as it is on this node, and the vocabulary's digest; once for each process of Ray's."""
    if "+local." in arm.version:
        raise BadInput(f"{arm.backend} {arm.version} was built from a path, which only its machine has; give a version")
    wanted = f"{arm.backend}=={arm.version}" if arm.version else arm.backend
    spec, python = environment_of(wanted + (f":{arm.options}" if arm.options else ""), lambda _: None)
    described = describe([str(spec)], [vocabulary], [python])
    (found,) = described.arms
    return replace(found, documented=arm.documented), str(described.vocabularies[vocabulary]["sha256"])
