"""The failing cases, grouped so that thousands of them stay readable, and cut so that they stay small.

`Failures` is a collector beside `Cases` (cases.py) because the page without scripts shows it: at most a
hundred failing cases chosen by reason, with sentences for people, where `Cases` keeps every case with the
fields of its rows for the explorer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.cases.case_line import CASES_FILE
from harness.outcomes.case_state import CaseState
from harness.outcomes.delayed import Delayed, add_once, delayed_of
from harness.outcomes.outcome import NOT_COMPILED, CaseRows, Outcome, outcome
from harness.outcomes.summary import ArmKey, arm_key
from harness.rows.row import BROKEN, CHECKS_MODE, DECLINED, Row
from harness.rows.store import published_without, read_cases
from harness.text import beginning, counted

WORDS = {
    Outcome.CRASH: "✖ crash",
    Outcome.OOM: "✖ out of memory",
    Outcome.UNDER_CONSTRAINED: "▲ under-constrained: accepted an invalid output",
    Outcome.OVER_CONSTRAINED: "▼ over-constrained: refused a valid output",
    Outcome.BACKEND_ERROR: "✖ backend error",
    Outcome.TIMEOUT: "◔ timeout",
    Outcome.FINDING: "◆ finding",
    Outcome.DECLINED: "⊘ declined",
    Outcome.HARNESS_ERROR: "⚑ harness error (ours)",
    Outcome.SKIPPED: "– skipped (ours)",
    Outcome.DOCUMENTED: "◇ documented divergence",
    Outcome.PASS: "✓ pass",
    Outcome.UNJUDGED: "? unjudged",
}
OUTCOMES = {kind.value: WORDS[kind] for kind in Outcome}
"""What a row can come to, worst first: glyph and words."""

AS_DOCUMENTED = "works_as_documented"
"""A case that works, and diverges in a way that the backend documents."""

CASE_KINDS = {
    state.value: f"{state.words.glyph} {state.words.title}" for state in CaseState if state != CaseState.WORKS
} | {
    AS_DOCUMENTED: "◇ works, diverges as documented",
    CaseState.WORKS.value: f"{CaseState.WORKS.words.glyph} {CaseState.WORKS.words.title}",
}
"""What a case can come to on an arm, the gravest first: glyph and words. These are the states of cases."""

KINDS = {kind: words for kind, words in OUTCOMES.items() if kind not in ("skipped", "pass", "unjudged")}
"""The outcomes of which there is something to show."""

LOST = Outcome.HARNESS_ERROR.value
"""The one of them that is our own fault, and counted against nobody."""

SHOWN_CASES = 100
SHOWN_INSTANCES = 6
SHOWN_NOTES = 24
SHOWN_FINDINGS = 8
CUT = 4096
"""Characters of a grammar, bytes of an instance."""
CUT_TEXT = 600
EXAMPLES = 6

CaseKey = tuple[str, str]
Who = tuple[int, ArmKey]
"""Position of the run, and the arm in it."""


def kind_of(came_to: Outcome) -> str | None:
    """Returns the entry in KINDS of a row that came to this; None if there is nothing to show of it (or it
    was skipped, which its reason's row tells)."""
    return came_to.value if came_to.value in KINDS else None


@dataclass(frozen=True)
class Note:
    """What happened on one walk (or, from the compile on, on all of a case)."""

    who: Who
    kind: str
    phase: str
    signal: str
    text: str
    where: str
    findings: tuple[str, ...] = ()


@dataclass
class FailedInstance:
    """One instance and those who failed on it."""

    number: int
    name: str
    valid: bool | None
    notes: list[Note] = field(default_factory=list)
    content: str = ""
    left_off: int = 0
    """How many bytes of it are not shown."""


@dataclass
class FailedCase:
    """One case and all that went wrong with it, on any arm."""

    suite: str
    id: str
    name: str
    dialect: str
    tags: tuple[str, ...]
    rows: dict[Who, CaseRows] = field(default_factory=dict)
    """The rows of which there is something to show, folded by arm."""
    is_lost: bool = True
    """Is all that went wrong our own fault? Then it is no failing case."""
    whole: list[Note] = field(default_factory=list)
    instances: dict[tuple[str, int], FailedInstance] = field(default_factory=dict)
    """The failed instances, by suite version and number."""
    more: int = 0
    """Notes that are not kept."""
    grammar: str | None = None
    grammar_left_off: int = 0


@dataclass
class Reason:
    """The cases that fail on one arm in the same way."""

    who: Who
    kind: str
    message: str
    walks: int = 0
    cases: dict[CaseKey, None] = field(default_factory=dict)


@dataclass
class Failures:
    """Takes in rows, keeps what the page needs of the failing ones."""

    cases: dict[CaseKey, FailedCase] = field(default_factory=dict)
    """The failing cases, and those of which only we lost a part."""
    reasons: dict[tuple[Who, str, str], Reason] = field(default_factory=dict)
    lost: dict[tuple[Who, str, str], Reason] = field(default_factory=dict)
    """The reasons for which cases were not measured, through our own fault. No arm is blamed for them."""
    delayed: dict[CaseKey, list[tuple[Who, Delayed]]] = field(default_factory=dict)
    """What failed behind other cases and not alone: of failing cases and of others."""

    def add(self, row: Row, run: int) -> None:
        """Takes in one row of the run at this position; rows without failure are passed over."""
        if (later := delayed_of(row)) is not None:
            told = self.delayed.setdefault((row.suite, row.case_id), [])
            add_once(told, ((run, arm_key(row)), later))
        kind = kind_of(outcome(row))
        if kind is None or (
            row.mode == CHECKS_MODE and (row.status in DECLINED or row.phase in NOT_COMPILED)
        ):
            return  # nothing is wrong, or the walks of the case say it already
        who, key, message = (run, arm_key(row)), (row.suite, row.case_id), _message_of(row, kind)
        reasons = self.lost if kind == LOST else self.reasons
        reason = reasons.setdefault((who, kind, message), Reason(who, kind, message))
        reason.walks += 1
        reason.cases[key] = None
        case = self.cases.get(key)
        if case is None:
            case = self.cases[key] = FailedCase(
                row.suite, row.case_id, row.case[:400], row.dialect, row.tags[:12]
            )
        case.rows.setdefault(who, CaseRows()).add(row)
        case.is_lost = case.is_lost and kind == LOST
        findings = tuple(
            _finding(finding.check, finding.position, finding.text)
            for finding in row.findings[:SHOWN_FINDINGS]
        )
        note = Note(who, kind, row.phase, row.signal, row.text[:CUT_TEXT], _where(row, kind), findings)
        if row.instance is None or row.phase in NOT_COMPILED or kind == "declined":
            if note not in case.whole:
                _keep(case, case.whole, note)
            return
        place = row.suite_version, row.instance
        if place not in case.instances and len(case.instances) >= SHOWN_INSTANCES:
            case.more += 1
            return
        instance = case.instances.setdefault(
            place, FailedInstance(row.instance, row.instance_name[:200], row.valid)
        )
        _keep(case, instance.notes, note)


def case_kind(rows: CaseRows, is_documented: bool) -> str:
    """Returns the entry of CASE_KINDS for the rows of a case on an arm; `is_documented` says whether a row
    diverges as the backend documents."""
    return AS_DOCUMENTED if rows.state == CaseState.WORKS and is_documented else rows.state.value


def worst_kind(case: FailedCase, left_out: set[Who]) -> str:
    """Returns the gravest entry of CASE_KINDS that a failing case has on an arm, without the arms that are
    left out where there are others."""
    told = [rows for who, rows in case.rows.items() if who not in left_out] or list(case.rows.values())
    states = {rows.state for rows in told} - {CaseState.WORKS, CaseState.NOT_JUDGED, CaseState.NOT_MEASURED}
    # Only rows with something to show are here, so a case that did not fail diverges as documented.
    return min(states, key=lambda state: state.gravity).value if states else AS_DOCUMENTED


def _keep(case: FailedCase, notes: list[Note], note: Note) -> None:
    if len(notes) < SHOWN_NOTES:
        notes.append(note)
    else:
        case.more += 1


def _finding(check: str, position: int | None, text: str) -> str:
    return f"{check}{'' if position is None else f' before token {position}'}: {text[:CUT_TEXT]}"


def _where(row: Row, kind: str) -> str:
    if kind == "over_constrained" and row.stopped_at is not None:
        return (
            "end-of-sequence refused"
            if row.stopped_at >= row.tokens
            else (f"token {row.stopped_at} of {row.tokens} refused")
        )
    if kind == "under_constrained":
        return f"accepted to the end, {counted(row.tokens, 'token')}"
    return f"at token {row.stopped_at}" if row.status in BROKEN and row.stopped_at is not None else ""


def _message_of(row: Row, kind: str) -> str:
    """Returns the row's message with its particulars taken out, so that like failures fall together."""
    if kind == "over_constrained":
        return (
            "end-of-sequence refused"
            if row.stopped_at is not None and row.stopped_at >= row.tokens
            else "a token refused"
        )
    if kind == "under_constrained":
        return "accepted to the end"
    if kind in ("finding", "documented"):
        told = {finding.check + f" ({finding.cause})" * bool(finding.cause) for finding in row.findings}
        return ", ".join(sorted(told)).replace("_", " ")[:200]
    parts = (f"in {row.phase}" if row.phase else "", row.signal, shortened(row.text))
    return ": ".join(part for part in parts if part) or "no message"


def shortened(text: str) -> str:
    """Returns the first line of a message without its particulars; what a digit in a word such as `utf8` says
    stays."""
    first = text.strip().split("\n", 1)[0][:300]
    first = re.sub(r"0x[0-9a-fA-F]+|(?<![A-Za-z])(?<![Uu][Tt][Ff]-)\d+", "#", first)
    return re.sub(r"\{.*|\[.*", "…", first)[:120]


def ordered(reasons: Iterable[Reason]) -> list[Reason]:
    """Returns the reasons, worst first, then by how many cases they hold."""
    worst_first = list(KINDS)
    return sorted(
        reasons,
        key=lambda reason: (worst_first.index(reason.kind), -len(reason.cases), reason.who, reason.message),
    )


def choose(failures: Failures, solve_nothing: set[Who]) -> list[CaseKey]:
    """Returns which cases to show: from every reason in turn, so that none is crowded out; of arms that solve
    nothing only examples."""
    queues = [
        iter(list(reason.cases)[:EXAMPLES] if reason.who in solve_nothing else reason.cases)
        for reason in ordered(failures.reasons.values())
    ]
    chosen: dict[CaseKey, None] = {}
    while queues and len(chosen) < SHOWN_CASES:
        left = []
        for queue in queues:
            key = next((waiting for waiting in queue if waiting not in chosen), None)
            if key is not None:
                left.append(queue)
                if len(chosen) < SHOWN_CASES:
                    chosen[key] = None
        queues = left
    return list(chosen)


def fill_in(chosen: Iterable[FailedCase], runs: list[Path]) -> None:
    """Adds to the cases, from the runs' own files, their grammars and the contents of their instances, cut.

    Raises BadInput.
    """
    wanted = {(case.suite, case.id): case for case in chosen}
    for run in runs if wanted else ():
        for suite, version, source in () if published_without(run, CASES_FILE) else read_cases(run):
            case = wanted.get((suite, source.id))
            if case is None:
                continue
            if case.grammar is None:
                case.grammar = source.grammar.text[:CUT]
                case.grammar_left_off = max(0, len(source.grammar.text) - CUT)
            for number, instance in enumerate(source.instances):
                if failed := case.instances.get((version, number)):
                    failed.content, failed.left_off = beginning(instance.content, CUT)
