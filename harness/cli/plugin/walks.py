"""The walks behind the items: one run of the harness over all that was chosen, isolated as every run is."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path

import pytest

from harness.backend.arm import arm
from harness.cases.case import Case
from harness.checks import is_policy
from harness.errors import BadInput
from harness.outcomes import expected
from harness.outcomes.delayed import Delayed, DelayedCases, in_words
from harness.outcomes.outcome import CaseOutcome, CaseRows, is_documented, walk_verdict
from harness.outcomes.repro_command import repro_words
from harness.rows.folder import locked
from harness.rows.row import CHECKS_MODE, DECLINED, OURS, Row
from harness.rows.store import read_rows
from harness.running.session import SEED, Request, run
from harness.text import one_line

MOST_LINES = 12

SESSIONS = 3
"""Sessions of pytest whose runs are kept."""

TEMPORARY = "grammarbench-pytest-"
"""How the name of a session's temporary folder begins."""


@contextmanager
def fresh_folder(cache: pytest.Cache | None) -> Iterator[Path]:
    """Makes a folder for this session's runs, and holds it, so that no other session removes it meanwhile.

    It lies in pytest's cache, where there is one that can be written, else where temporary files do. All but
    the last sessions' folders are removed there.
    """
    folder = _folder_in(cache)
    try:
        with locked(folder):
            yield folder
    finally:
        with suppress(OSError):  # it holds a run, as a rule
            folder.rmdir()


def _folder_in(cache: pytest.Cache | None) -> Path:
    """Makes a folder in the cache, else a temporary one. Raises BadInput if neither can be made."""
    if cache is not None:
        with suppress(OSError):
            kept = cache.mkdir("grammarbench")
            for old in sorted(folder for folder in kept.iterdir() if folder.is_dir())[: -(SESSIONS - 1)]:
                _remove(old)
            folder = kept / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
            folder.mkdir(exist_ok=True)
            return folder
    try:
        for old in _temporary(Path(tempfile.gettempdir()))[: -(SESSIONS - 1)]:
            _remove(old)
        return Path(tempfile.mkdtemp(prefix=TEMPORARY))
    except OSError as error:
        raise BadInput(f"there is no room for the runs of this session: {error}") from error


def _temporary(place: Path) -> list[Path]:
    """Returns the folders of this user's sessions there, the oldest first. What holds more than runs, whose
    names are numbers, is none."""
    found = []
    for folder in place.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            status = folder.lstat()
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
            if is_ours and all(run.name.isdecimal() for run in folder.iterdir()):
                found.append((status.st_mtime, folder))
    return [folder for _, folder in sorted(found)]


def _remove(folder: Path) -> None:
    """Removes the folder of another session, unless that one is still going on."""
    with suppress(BadInput, OSError), locked(folder):
        shutil.rmtree(folder, ignore_errors=True)


class Wrong(Exception):
    """A case that did not come out as it should; the lines say how."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines[0] if lines else "")
        self.lines = lines


@dataclass(frozen=True)
class CaseReport:
    """What came of a case."""

    case: Case
    came_to: CaseOutcome
    faults: expected.Faults
    recorded: expected.Faults | None
    """What is recorded of it; None if the record does not know the case."""
    change: expected.Change | None
    """What fails a gate, because it is not as recorded; None if nothing does."""
    problems: tuple[str, ...]
    """A line for each thing that is wrong."""
    ours: str
    """Why it was not walked through our own fault; empty if it was."""
    command: str
    """Shows it step by step."""
    refusal: str
    """The words of the backend where it refuses the case."""
    delayed: tuple[Delayed, ...] = ()
    """What failed behind other cases and not alone."""
    new_checks: tuple[str, ...] = ()
    """The checks that it fails and that GrammarBench has got since the record was made; they fail no gate."""

    @property
    def differs_by_a_timeout(self) -> bool:
        """Is it not as recorded, but in nothing that a missed deadline does not hide? That fails nothing, as
        in a gate."""
        if self.recorded is None or self.change is not None:
            return False
        return self.faults != self.recorded and expected.TIMEOUT in self.faults | self.recorded

    def lines(self) -> list[str]:
        """Returns the lines for the report of a failed test; the first, which pytest repeats in its summary,
        says what is wrong."""
        head = f"{self.case.grammar.dialect} {self.case.grammar.text[:400]}"
        changed = []
        if self.change is not None:
            then, new, gone = (
                ", ".join(sorted(faults))
                for faults in (self.recorded or (), self.change.new, self.change.gone)
            )
            changed = [f"new: {new or '-'}; gone: {gone or '-'}; recorded: {then or 'no fault'}"]
        more = [f"and {len(self.problems) - MOST_LINES} more"] if len(self.problems) > MOST_LINES else []
        wrong = [*changed, *self.problems[:MOST_LINES]]
        more += [one_line(in_words(each)) for each in self.delayed if each.counts]
        return [*wrong[:1], head, *wrong[1:], *more, f"to see it: {self.command}"]


@dataclass(eq=False)
class Walks:
    """One backend over the chosen cases; walked when first asked."""

    name: str
    """Tells it from the others of the session: the backend, and the vocabulary if there are several."""
    spec: str
    suites: tuple[str, ...]
    vocabulary: str
    effort: int
    timeout_s: float
    jobs: int
    recorded: expected.Recorded | None
    folder: Path
    """Where the run is kept, so that what failed can be shown again."""
    chosen: set[str] = field(default_factory=set)
    cases_in_all: dict[str, int] = field(default_factory=dict)
    """How many cases each suite holds, chosen or not."""
    rows: dict[tuple[str, str], list[Row]] | None = None

    @property
    def delayed(self) -> list[Delayed]:
        """Returns what failed behind other cases and not alone."""
        return [failure for rows in (self.rows or {}).values() for failure in _delayed(rows)]

    def walk(self) -> None:
        """Runs the harness, the first time. Raises BadInput."""
        if self.rows is not None:
            return
        self.rows = {}
        request = Request(
            suites=self.suites,
            backends=self.spec,
            vocabularies=(self.vocabulary,),
            profile="gate",
            out=self.folder,
            jobs=self.jobs,
            timeout_s=self.timeout_s,
            effort=self.effort,
            argv=("pytest",),
            only=tuple(sorted(self.chosen)),
            decode=bool(self.recorded and self.recorded.decode),
            seed=self.recorded.seed if self.recorded else SEED,
        )
        for row in read_rows(run(request, lambda _: None, lambda _: None).folder):
            self.rows.setdefault((row.suite, row.case_id), []).append(row)

    @cached_property
    def known(self) -> dict[str, expected.Faults]:
        """Returns what is recorded of this backend, by case."""
        rows = next(iter((self.rows or {}).values()), None)
        if self.recorded is None or rows is None:
            return {}
        return dict(expected.recorded_faults(expected.arm_of_row(rows[0]), self.recorded.arms)[0] or {})

    def outcome(self, suite: str, case: Case) -> CaseReport:
        """Returns what came of one chosen case."""
        rows = (self.rows or {}).get((suite, case.id), [])
        folded = CaseRows()
        for row in rows:
            folded.add(row)
        came_to = folded.outcome if rows else CaseOutcome.NOT_MEASURED
        lost = next((row.text or row.status for row in rows if row.status in OURS), "it was not walked")
        lost = lost if came_to == CaseOutcome.NOT_MEASURED else ""
        now = expected.faults_of_rows(rows)
        faults = frozenset[str]().union(*(found for cases in now.arms.values() for found in cases.values()))
        recorded = self.known.get(f"{suite}/{case.id}")
        arms, checks = (self.recorded.arms, self.recorded.checks) if self.recorded else ({}, None)
        verdict = expected.compare_faults(arms, now, checks)
        change = verdict.changes[0] if verdict.changes else None
        new_checks = tuple(sorted(name for name, failed in verdict.new_checks.failed.items() if failed))
        backend = arm(rows[0]) if rows else self.spec
        command = shlex.join(repro_words(self.folder, suite, case.id, backend, self.vocabulary))
        problems = sorted((line for row in rows for line in _problems(row)), key=itemgetter(0))
        refusal = next((row.text for row in rows if row.status in DECLINED), "")
        lines = tuple(line for _, line in problems)
        return CaseReport(
            case,
            came_to,
            faults,
            recorded,
            change,
            lines,
            lost,
            command,
            refusal,
            tuple(_delayed(rows)),
            new_checks,
        )


def _delayed(rows: Iterable[Row]) -> list[Delayed]:
    every = DelayedCases()
    for row in rows:
        every.add(row)
    return every.cases


def _problems(row: Row) -> Iterator[tuple[bool, str]]:
    """Yields a line for each thing that the row shows, and before it whether that costs the backend
    nothing."""
    if walk_verdict(row) not in ("pass", "unjudged") and (row.mode != CHECKS_MODE or row.status != "ok"):
        where = f" at token {row.stopped_at}" if row.stopped_at is not None else ""
        instance = (
            f"instance {row.instance} ({row.instance_name}), which is {_judged(row.valid)}"
            if row.instance is not None
            else "compile"
        )
        text = f": {row.text}" if row.text else ""
        documented = is_documented(row)
        yield documented, one_line(f"{_free(documented)}{walk_verdict(row)}{where}, {instance}{text}"[:500])
    for finding in row.findings:
        name = f"{finding.check}{':' if finding.cause else ''}{finding.cause}"
        policy = is_policy(finding.check)
        free = _free(finding.documented, policy)
        yield bool(free), one_line(f"{free}{name}: {finding.text}"[:500])


def _free(documented: bool, policy: bool = False) -> str:
    """Returns the words that stand before what costs nothing."""
    return "no fault, its own choice: " if policy else "no fault, documented: " if documented else ""


def _judged(valid: bool | None) -> str:
    return "valid" if valid else "invalid" if valid is False else "of no known verdict"
