"""What a run has to walk, the cases of one arm, the case that a worker has in hand, and how it ended."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from harness.backend.arm import Arm, arm
from harness.backend.process.lost import Lost
from harness.cases.case import Case
from harness.cases.plan import Plan
from harness.rows.row import Before, Finding, Row, Status
from harness.running.limits import Limits
from harness.running.progress import RunProgress
from harness.text import counted

CASES_FOR_A_SECOND_WALK = 200
"""One of so many cases is walked a second time for being wrong, where such cases were wrong alone too."""


NAMES = 3
"""How many cases are named that were given up for lack of memory."""


class Sink(Protocol):
    """Where rows go: a run's file, or the way to it."""

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """Take all rows of one case, each with its samples."""


@dataclass(frozen=True)
class Assignment:
    """All that is to be walked, within which limits, and where its rows go."""

    plan: Plan
    cases: Path
    """The run's `cases.jsonl`, into which the plan points."""
    works: Sequence[Work]
    limits: Limits
    writer: Sink
    report: Callable[[RunProgress], None]
    """Is told now and then how far the run is."""


@dataclass(eq=False)
class Work:
    """The cases that one arm still has to walk with one vocabulary."""

    arm: Arm
    vocabulary: str
    cases: deque[int]
    workers: int = 0
    load_seconds: float = 0.0
    """How long its first worker took to load; 0 until it has."""
    begun: float = 0.0
    """When that worker had loaded, by the monotonic clock."""
    done: int = 0
    """How many of its cases are done since."""
    attempts: Counter[int] = field(default_factory=Counter)
    """How often a case was in the hands of a worker that was lost."""
    losses: int = 0
    """How many workers were lost without a case in hand since the last case was done."""
    again: dict[int, Suspicion] = field(default_factory=dict)
    """The cases that failed behind others, and are to be walked once more, each in a process of its own."""
    ahead: tuple[int, Task | None] = (-1, None)
    """The case that was read while a worker was busy with another one, behind its place in the file of cases:
    mostly the next one."""
    starved: int = 0
    """How often the kernel has killed a child of it for lack of memory."""
    starved_cases: set[int] = field(default_factory=set)
    """The cases that such a child had in hand."""
    given_up: list[str] = field(default_factory=list)
    """The names of those of them that were killed so each time."""
    steady: int = 0
    """How many cases that were wrong behind others were wrong alone too."""
    renewed: int = 0
    """How often a child had grown past half of the memory limit by the end of a case, and another one took
    its place."""
    load_failure: Ending | None = None
    """Why no worker of this arm can be started, once that is known: then every case of it ends so."""
    is_full: bool = False
    """Whether no worker is started beside another one: one could not load there, as where a licence or the
    memory is for one process."""
    missing: str = ""
    """What this arm needs and this machine lacks, as a library: its cases are then left for `--resume`."""

    def note_load_failure(self, ending: Ending) -> None:
        """Takes it that a worker could not load: every case ends so, unless another worker is there, which
        then walks them alone."""
        if self.workers > 1:
            self.is_full = True
        else:
            self.load_failure = ending

    def note_missing(self, text: str) -> None:
        """Takes it that a worker lacks something: no case is walked any more, and none is written, unless
        another worker is there, which then walks them alone."""
        if self.workers > 1:
            self.is_full = True
        else:
            self.missing = text
            self.cases.clear()

    def gains_by_another(self, now: float) -> bool:
        """Would another worker still find cases once it has loaded, by the time that cases took so far? A
        backend of which no worker has loaded yet may take longer to load than to walk all of them."""
        if not self.workers:
            return bool(self.cases)
        seconds = (now - self.begun) / max(1, self.done)
        return not self.is_full and self.load_seconds > 0 and len(self.cases) * seconds > self.load_seconds

    def may_ask_again(self) -> bool:
        """May a case that was wrong behind others be walked once more? Always, as long as such a walk shows
        something else; of a backend that is wrong alone too, one in so many of its cases, so that this costs
        little of the run."""
        return self.steady <= self.done // CASES_FOR_A_SECOND_WALK

    @property
    def who(self) -> tuple[str, ...]:
        """Returns the arm and the vocabulary as rows name them: `CASE_IDENTITY` but for the case."""
        return (self.arm.backend, self.arm.version, self.arm.options, self.vocabulary)


def memory_lines(works: Sequence[Work], limit_bytes: int, jobs: int) -> list[str]:
    """Returns a sentence for each arm and vocabulary whose processes had to be renewed for their memory: a
    leak shows in nothing else, because no process lives long enough to reach the limit. And one for each of
    which the kernel has killed a process, of at most `jobs` at a time."""
    lines = [
        f"{arm(work.arm)} on {work.vocabulary}: its process held more than {limit_bytes / 2e9:.3g} GB "
        f"(half of --memory) {counted(work.renewed, 'time')} between two cases, and was renewed: "
        "memory that it keeps on purpose, or a leak"
        for work in works
        if work.renewed
    ]
    return lines + [
        f"{arm(work.arm)} on {work.vocabulary}: the kernel killed its process "
        f"{counted(work.starved, 'time')} because there was no memory left; {_after_kills(work, jobs)}"
        for work in works
        if work.starved
    ]


def _after_kills(work: Work, jobs: int) -> str:
    """Returns what became of the cases of which the kernel has killed a process."""
    parts = []
    if again := len(work.starved_cases) - len(work.given_up):
        with_fewer = ", with fewer workers" if jobs > 1 else ""
        parts.append(f"{counted(again, 'case')} came to an end when walked again{with_fewer}")
    if work.given_up:
        more = [f"{len(work.given_up) - NAMES} more"] * (len(work.given_up) > NAMES)
        parts.append(f"given up, as failures of ours: {', '.join([*work.given_up[:NAMES], *more])}")
    return "; ".join(parts)


@dataclass(eq=False)
class Task:
    """The case that a worker has in hand, and what was heard of it."""

    number: int
    suite: str
    suite_version: str
    case: Case
    sent: float = 0.0
    """When it was sent, or when it was seen last to get on: the deadline counts from here."""
    place: tuple[int, ...] = ()
    """The place where it was seen then."""
    collection: int = 0
    """The collection of cycles in which it was seen last; 0 in none."""
    collected: float = 0.0
    """When it was seen first in that collection."""
    peak_rss_bytes: int = 0
    rss_bytes: int = 0
    """The resident bytes of the child when it was looked at last."""
    our_growth_bytes: int = 0
    """The bytes by which they have grown while code of ours was at work, that is, between two looks in which
    no call of the backend began."""
    compiled: dict[str, Any] | None = None
    walked: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    checking: str = ""
    """The check that was begun last."""
    checked: list[dict[str, Any]] = field(default_factory=list)
    killed: Lost | None = None
    """Why we killed the child, if we did: it missed a deadline, took too much memory, or answered for another
    case."""
    strangers: int = 0
    """Answers that came from another process than the child."""

    @cached_property
    def grammar_bytes(self) -> int:
        """Returns the size of the grammar, which each row of the case has: once, as it may have megabytes."""
        return len(self.case.grammar.text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Ending:
    """How a case ended: ok, or the status and circumstances of the walk (or compile) that ended it."""

    status: Status
    phase: str = ""
    text: str = ""
    signal: str = ""
    token: int = 0
    """The position of the token at which a child was lost, of `tokens`."""
    tokens: int = 0
    findings: tuple[Finding, ...] = ()
    """What was found of the case as a whole; it goes into the last row."""


@dataclass(frozen=True)
class Suspicion:
    """How the first walk of a case failed, in a process that had served others."""

    failure: str
    """The failure in a word, as `failure_of` gives it."""
    text: str
    """The failure in a sentence."""
    behind: tuple[Before, ...]
    """The last cases that the process had served."""
    walks: tuple[tuple[Row, bytes], ...] = ()
    """The rows of the first walk where it came to its end and only was wrong: they stand where the second one
    shows nothing worse, and it tells whether that comes behind other cases alone."""
