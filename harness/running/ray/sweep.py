"""The coordinator of a sweep: deals the cases to tasks, a bounded number at a time, and writes the rows that
stream back.

A task that is lost, with its process or its node, is sent again with the cases of which no rows have come; so
rows neither get lost nor come twice, whatever Ray does. Nothing is held but the places of cases. Where Ray
loses every task, the run ends without an end line, and no case is blamed.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any

import harness
from harness.cases.case_line import case_from_line
from harness.errors import BadInput, Incomplete, error_text
from harness.running.ray.task import Piece, Walks, here, walk
from harness.running.recorder import Recorder
from harness.running.slot import ATTEMPTS
from harness.running.work import Assignment, Ending, Work
from harness.text import one_line

ROUNDS = 3
"""A task takes one part in so many of its place's share of the cases that are left. The last tasks are of a
case each, so that all places end together."""
MOST = 256
"""The most cases of a task: the coordinator holds them until it is sent, and then their places."""
FEWEST = 4
"""The fewest cases for each of the places; more places would only load vocabularies and backends."""
IN_FLIGHT = 4
"""The most chunks of a task that wait to be written; then the task waits too."""
WAIT_SECONDS = 0.5
MOST_SILENT = 4 * ATTEMPTS
"""The run ends as Ray's fault once this many tasks for each place were lost in a row, while nothing was heard
of any other task."""
STORED = "what was walked is stored, and --resume goes on with it"


@dataclass(eq=False)
class Part:
    """The cases of one work that go to one task."""

    work: Work
    numbers: array[int]
    losses: int = 0
    """How many tasks in a row were lost with these cases, each by the end of its process, that had sent
    nothing."""


@dataclass(eq=False)
class RunningTask:
    """A task that runs."""

    part: Part
    stream: Any
    """Ray's generator of references to chunks."""
    owed: dict[tuple[str, str], int]
    """The places of the cases of which no rows have come, by suite and case id."""
    heard: bool = False
    failure: str = ""
    """What the task itself raised."""
    rays: str = ""
    """What Ray lost the task by, where that was not the end of the task's process: a node, the memory of a
    machine, Ray itself. No case is to blame for that."""


def sweep(
    assignment: Assignment,
    jobs: int,
    *,
    shards: int | None,
    vocabularies: Mapping[str, Mapping[str, Any]],
) -> None:
    """Walk all of it with the Ray that is connected, `jobs` tasks at a time.

    `shards` is the number of parts into which the cases of each backend and vocabulary are cut; with None,
    the sweep chooses. Raises BadInput.
    """
    with closing(Recorder(assignment)) as recorder:
        Sweep(recorder, vocabularies).run(Deal(assignment.works, jobs, shards))


class Deal:
    """The cases that no task has had yet, and how many tasks of each work there are."""

    def __init__(self, works: Sequence[Work], jobs: int, shards: int | None) -> None:
        self.left: dict[Work, array[int]] = {}
        for work in works:
            numbers = list(work.cases)
            Random(0).shuffle(numbers)  # cases that were made together, and take long together, are spread
            self.left[work] = array("q", numbers)
        self.places = jobs if shards else max(1, min(jobs, sum(map(len, self.left.values())) // FEWEST))
        self.cuts = dict.fromkeys(works, shards or 0)
        """The number of parts that are still to be cut; 0 where the sweep chooses."""
        self.lost: deque[Part] = deque()
        self.tasks = dict.fromkeys(works, 0)

    def part(self, last: Work | None) -> Part | None:
        """Returns what goes to a place next: more of its last work, which is loaded there; or else of the one
        with the most left for each task."""
        if self.lost:
            return self.lost.popleft()
        if last is None or not self.left[last]:
            last = max(
                self.left, key=lambda work: len(self.left[work]) / (self.tasks[work] + 1), default=None
            )
        if last is None or not (left := self.left[last]):
            return None
        if cuts := self.cuts[last]:
            size = ceil(len(left) / cuts)
            self.cuts[last] = max(1, cuts - 1)
        else:
            size = min(MOST, ceil(len(left) / (ROUNDS * self.places)))
        numbers = array("q", sorted(left[-size:]))
        del left[-size:]
        return Part(last, numbers)


class Sweep:
    """The loop over the tasks."""

    def __init__(self, recorder: Recorder, vocabularies: Mapping[str, Mapping[str, Any]]) -> None:
        import ray

        self.ray = ray
        self.recorder = recorder
        self.vocabularies, self.home = vocabularies, here()
        self.silent = 0
        """How many tasks were lost since anything was heard of one."""
        self.blamed: list[tuple[Work, int]] = []
        """The case that has cost its three tasks since then: it is booked once another task is heard of, or
        none is left. A second one would mean that Ray loses every task."""
        # Ray's own retries would count on a task that yields the same chunks again; ours count cases.
        self.options = {
            "num_returns": "streaming",
            "max_retries": 0,
            "num_cpus": 1,
            "scheduling_strategy": "SPREAD",
        }
        self.walk = ray.remote(walk)

    def run(self, deal: Deal) -> None:
        """Walk until no case is left."""
        tasks: list[RunningTask] = []
        patience = MOST_SILENT * deal.places
        free: deque[Work | None] = deque([None] * deal.places)
        while True:
            while free and (part := deal.part(free[0])) is not None:
                free.popleft()
                deal.tasks[part.work] += 1
                tasks.append(self._send(part))
            if not tasks:
                break
            for running in self._ready(tasks):
                if not self._listen(running):
                    tasks.remove(running)
                    free.append(running.part.work)
                    deal.tasks[running.part.work] -= 1
                    if running.owed:
                        self._lost(running, patience)
                        if len(running.part.numbers):
                            deal.lost.appendleft(running.part)
        self._book()
        self.recorder.report(at_once=True)

    def _send(self, part: Part) -> RunningTask:
        owed: dict[tuple[str, str], int] = {}
        lines = []
        for number in part.numbers:
            line = self.recorder.line_of(number)
            suite, _, case = case_from_line(line)
            owed[suite, case.id] = number
            lines.append(line)
        vocabulary = part.work.vocabulary
        sha256 = str(self.vocabularies[vocabulary]["sha256"])
        careful = part.losses > 0
        piece = Piece(
            part.work.arm,
            vocabulary,
            sha256,
            self.recorder.assignment.limits,
            b"".join(lines),
            harness.__version__,
            self.home,
            careful,
        )
        task = self.walk.options(
            **self.options, _generator_backpressure_num_objects=1 if careful else IN_FLIGHT
        )
        return RunningTask(part, task.remote(piece), owed)

    def _ready(self, tasks: Sequence[RunningTask]) -> list[RunningTask]:
        """Returns the tasks of which there is something to hear."""
        streams = [running.stream for running in tasks]
        ready, rest = self.ray.wait(streams, num_returns=1, timeout=WAIT_SECONDS)
        if rest:
            ready = [*ready, *self.ray.wait(rest, num_returns=len(rest), timeout=0)[0]]
        return [running for running in tasks if any(running.stream is stream for stream in ready)]

    def _listen(self, running: RunningTask) -> bool:
        """Write the next chunk; return False when there is none any more."""
        try:
            chunk: list[Walks] | str = self.ray.get(next(running.stream))
        except StopIteration:
            return False
        except self.ray.exceptions.RayTaskError as error:
            running.failure = one_line(str(error.cause or error))[:300]
            return False
        except self.ray.exceptions.WorkerCrashedError:
            return False
        except self.ray.exceptions.RayError as error:
            # Its node is gone, or a chunk with the node that held it.
            running.rays = one_line(error_text(error))[:200]
            return False
        if isinstance(chunk, str):
            raise BadInput(chunk)
        self.silent = 0
        self._book()
        for walks in chunk:
            row = walks[0][0]
            if running.owed.pop((row.suite, row.case_id), None) is not None:
                self.recorder.store(walks)
                running.heard = True
        return True

    def _lost(self, running: RunningTask, patience: int) -> None:
        """Send the cases that a lost task had in hand to another one.

        If the first of them costs three tasks in a row, it ends so.

        Raises BadInput where it is not the task's process that is lost three times, but what it does fails;
        Incomplete where `patience` tasks were lost while none was heard of.
        """
        self.ray.cancel(
            running.stream, force=True
        )  # if it lives after all, it would wait for ever to be heard
        part = running.part
        part.losses = 0 if running.heard else part.losses + (not running.rays)
        numbers = list(running.owed.values())
        self.silent += 1
        if part.losses >= ATTEMPTS:
            if running.failure:
                raise BadInput(f"a task failed {ATTEMPTS} times: {running.failure}; {STORED}")
            if self.blamed:
                raise Incomplete(f"Ray loses every task; {STORED}")
            part.losses = 0
            self.blamed.append((part.work, numbers.pop(0)))
        elif self.silent >= patience:
            raise Incomplete(f"Ray loses every task{f' ({running.rays})' if running.rays else ''}; {STORED}")
        part.numbers = array("q", numbers)

    def _book(self) -> None:
        """Write that the blamed case cost its tasks, if there is one."""
        while self.blamed:
            work, number = self.blamed.pop()
            text = f"the task with this case at its head was lost {ATTEMPTS} times"
            ending = Ending("harness_error", "worker", text)
            self.recorder.write_ending(work, self.recorder.task_of(work, number), ending)
