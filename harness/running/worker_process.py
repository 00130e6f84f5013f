"""One worker as the coordinator sees it: its process, what it has served, and how far its child has come with
the case in hand.

A worker is a `Process` and no `Service`: a `Service` waits for one answer, while the coordinator looks after
several workers at once, hears many answers to each case, and counts the deadline anew from each of them and
from each step that the shared page shows.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.backend.arm import pinned
from harness.backend.process.process import Process, Start, pipe_bytes, start
from harness.rows.row import Before
from harness.running.limits import Limits
from harness.running.work import Work
from harness.walk.watched import COLLECTION, IS_OURS, LOADS, OURS, OURS_BYTES, PHASES

NAMED = 3
"""How many of the cases that a child has served before another one are named where that one fails."""
PLACE = 5
"""The number of the page's first cells that tell of the case in hand."""


@dataclass(eq=False)
class Worker:
    """A running worker, and what its child has served."""

    process: Process
    served: int = 0
    """How many cases the child has been sent before the one that it has."""
    behind: deque[Before] = field(default_factory=lambda: deque(maxlen=NAMED))
    """The last cases that the child has served."""


def start_worker(work: Work, cases: Path, limits: Limits, jobs: int) -> Worker:
    """Start a worker for the work's backend and vocabulary, with the interpreter that holds the backend.
    There are at most `jobs` at a time.

    It tells of `ready` and `child`, or `failed`, in its own time.
    """
    arm = work.arm
    arguments = {
        "spec": pinned(arm, ""),
        "vocabulary": work.vocabulary,
        "cases": str(cases.absolute()),  # the backend may be in another folder once it is loaded
        "limits": vars(limits),
    }
    loader = "harness.running.worker:open_worker"
    python = arm.python or sys.executable
    asked = Start(
        loader,
        arguments,
        python,
        keeps_output=True,
        has_page=True,
        has_bell=True,
        pipe_bytes=pipe_bytes(jobs),
    )
    return Worker(start(asked))


def send_case(worker: Worker, offset: int) -> None:
    """Ask the child for the case that begins at this offset of `cases.jsonl`."""
    for cell in range(PLACE):
        worker.process.page[cell] = -1
    request = worker.process.request_bytes({"offset": offset})
    with suppress(BrokenPipeError):  # process and child were lost just now; its pipes say so
        os.write(worker.process.request, request)


def position(worker: Worker) -> tuple[str, int, int, int]:
    """Returns phase (empty if it had not begun), instance, token and number of tokens of the child, as far as
    it got.

    Where code of ours is at work and Python collects cycles, the phase is `check`: what is destroyed then and
    does harm is the backend's.
    """
    instance, token, tokens = (max(0, worker.process.page[cell]) for cell in range(1, 4))
    phase = _noted_phase(worker)
    return "check" if phase in OURS and collection(worker) else phase, instance, token, tokens


def _noted_phase(worker: Worker) -> str:
    phase = worker.process.page[0]
    return PHASES[phase] if 0 <= phase < len(PHASES) else ""


def collection(worker: Worker) -> int:
    """Returns the number of the collection of cycles that the child is making; 0 if it makes none."""
    return worker.process.page[COLLECTION]


def place(worker: Worker) -> tuple[int, ...]:
    """Returns all that the child tells of where it is: as long as this changes, it gets on."""
    return tuple(worker.process.page[cell] for cell in range(PLACE))


def works_for_us(worker: Worker, collecting: int | None = None) -> bool:
    """Is code of ours at work in the child? `collecting` is what `collection` has said, where that was asked
    before: collections come and go."""
    is_collecting = collection(worker) if collecting is None else collecting
    return bool(worker.process.page[IS_OURS]) or (_noted_phase(worker) in OURS and not is_collecting)


def loads_backend(worker: Worker) -> bool:
    """Is our own code in place, so that whatever happens while the worker loads is the backend's?"""
    return bool(worker.process.page[LOADS])


def bytes_of_ours(worker: Worker) -> int:
    """Returns the resident bytes that the worker held without the backend; 0 where it is not known."""
    return worker.process.page[OURS_BYTES]
