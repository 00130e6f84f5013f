"""The walks behind the items: one run of the harness over all that was chosen, isolated as every run is."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness import ratchet
from harness.case import Case
from harness.errors import one_line
from harness.row import CONFORMANCE, OURS, Row
from harness.seen import outcome as outcome_of
from harness.session import Request, run
from harness.store import read_rows

MOST_LINES = 12


class Wrong(Exception):
    """A case that did not come out as it should; the lines say how."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines[0] if lines else "")
        self.lines = lines


@dataclass(frozen=True)
class CaseOutcome:
    """What came of a case."""

    case: Case
    faults: ratchet.Faults
    recorded: ratchet.Faults
    said: tuple[str, ...]
    """A line for each thing that is wrong."""
    ours: str
    """Why it was not walked through our own fault; empty if it was."""
    command: str
    """Shows it step by step."""

    def lines(self) -> list[str]:
        """For the report of a failed test."""
        new, gone = sorted(self.faults - self.recorded), sorted(self.recorded - self.faults)
        head = f"{self.case.grammar.dialect} {self.case.grammar.text[:400]}"
        changed = [f"recorded: {', '.join(sorted(self.recorded))}; new: {', '.join(new) or '-'}; gone: {', '.join(gone) or '-'}"]
        more = [f"and {len(self.said) - MOST_LINES} more"] if len(self.said) > MOST_LINES else []
        return [head, *(changed if self.recorded else []), *self.said[:MOST_LINES], *more, f"to see it: {self.command}"]


@dataclass(eq=False)
class Walks:
    """One backend over the chosen cases; walked when first asked."""

    spec: str
    suites: tuple[str, ...]
    vocabulary: str
    effort: int
    timeout_s: float
    jobs: int
    recorded: ratchet.Recorded | None
    chosen: set[str] = field(default_factory=set)
    rows: dict[tuple[str, str], list[Row]] | None = None

    def walk(self) -> None:
        """Run the harness, the first time. Raises BadInput."""
        if self.rows is not None:
            return
        self.rows = {}
        with tempfile.TemporaryDirectory(prefix="grammarbench-pytest-") as folder:
            request = Request(
                suites=self.suites,
                backends=self.spec,
                vocabularies=(self.vocabulary,),
                profile="full",
                out=Path(folder, "run"),
                resume=False,
                jobs=self.jobs,
                timeout_s=self.timeout_s,
                memory_gb=4.0,
                effort=self.effort,
                spellings=False,
                argv=("pytest",),
                only=tuple(sorted(self.chosen)),
            )
            for row in read_rows(run(request, lambda _: None, lambda _: None).folder):
                self.rows.setdefault((row.suite, row.case_id), []).append(row)

    @cached_property
    def known(self) -> dict[str, ratchet.Faults]:
        """What is recorded of this backend, by case."""
        rows = next(iter((self.rows or {}).values()), None)
        if self.recorded is None or rows is None:
            return {}
        return dict(ratchet.known_of(ratchet.name_of_arm(rows[0]), self.recorded.outcomes)[0] or {})

    def outcome(self, suite: str, case: Case) -> CaseOutcome:
        """Of one chosen case."""
        rows = (self.rows or {}).get((suite, case.id), [])
        lost = next((row.text or row.status for row in rows if row.status in OURS), "" if rows else "it was not walked")
        faults = frozenset().union(*(ratchet.faults(row) for row in rows))
        recorded = self.known.get(f"{suite}/{case.id}", frozenset())
        words = ["grammarbench", "run", *self.suites, "--backends", self.spec, "--vocabularies", self.vocabulary, "--out", "DIR"]
        show = ["grammarbench", "repro", "DIR", case.id, "--backend", self.spec]
        command = f"{shlex.join(words)}; {shlex.join(show)}"
        return CaseOutcome(case, faults, recorded, tuple(line for row in rows for line in _said(row)), lost, command)


def _said(row: Row) -> list[str]:
    lines = []
    if outcome_of(row) not in ("pass", "unjudged") and (row.mode != CONFORMANCE or row.status != "ok"):
        where = f" at token {row.stopped_at}" if row.stopped_at is not None else ""
        instance = (
            f"instance {row.instance} ({row.instance_name}), which is {_judged(row.valid)}" if row.instance is not None else "compile"
        )
        text = f": {row.text}" if row.text else ""
        lines.append(one_line(f"{outcome_of(row)}{where}, {instance}{text}"[:500]))
    lines += [one_line(f"{each.check}{':' if each.cause else ''}{each.cause}: {each.text}"[:500]) for each in row.findings]
    return lines


def _judged(valid: bool | None) -> str:
    return "valid" if valid else "invalid" if valid is False else "of no known verdict"
