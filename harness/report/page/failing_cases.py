"""The failing cases that a page shows without its script, and why each arm fails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from harness.outcomes.repro_command import repro_words
from harness.report.cases.failing import (
    CASE_KINDS,
    EXAMPLES,
    CaseKey,
    FailedCase,
    Failures,
    Reason,
    Who,
    choose,
    fill_in,
    ordered,
    worst_kind,
)
from harness.report.page.lines import Line, solving_nothing

CASES_BUDGET = 400_000
"""Bytes of the page that failing cases may fill without the case explorer, which has all of them."""

REASONS = 30
"""Most reasons of one arm that are listed."""


@dataclass(frozen=True)
class ReasonShown:
    """A way in which an arm fails, and links to some of the cases."""

    kind: str
    message: str
    cases: int
    walks: int
    examples: list[tuple[str, str]]
    """Anchor and name."""


@dataclass(frozen=True)
class LostShown:
    """A way in which we failed to measure cases on an arm."""

    line: Line
    message: str
    cases: int
    walks: int
    examples: list[tuple[str, str, str]]
    """Suite, id and name."""


@dataclass(frozen=True)
class FailingCases:
    """What the page says of failing cases."""

    total: int
    lost: list[LostShown]
    """What was not measured through our own fault, by arm and by what was said; no failure."""
    lost_left_off: int
    """How many such reasons are left off."""
    lost_cases: int
    """The cases of which a part was not measured so."""
    solve_nothing: list[Line]
    """Arms that solve nothing, while others do: a few of their cases stand for all."""
    shown: list[Markup]
    by_line: list[tuple[Line, list[ReasonShown], int]]
    """The reasons of each line, and the number of reasons left off."""
    anchors: dict[CaseKey, str]
    """Where each of those shown is on the page."""


def failing_cases(template: jinja2.Template, failures: Failures, lines: Sequence[Line]) -> FailingCases:
    """Returns the failing cases, as many as fit, each rendered; and the reasons of each arm. Raises
    BadInput."""
    by_who = {(line.run.place, line.arm.key): line for line in lines}
    solve_nothing = solving_nothing(lines)
    whose = {(line.run.place, line.arm.key) for line in solve_nothing}
    anchors, shown = _rendered(template, failures, by_who, whose)
    reasons: dict[int, list[ReasonShown]] = {line.position: [] for line in lines}
    for reason in ordered(failures.reasons.values()):
        reasons[by_who[reason.who].position].append(_reason(reason, failures, anchors))
    by_line = [
        (line, reasons[line.position][:REASONS], max(0, len(reasons[line.position]) - REASONS))
        for line in lines
    ]
    lost = ordered(failures.lost.values())
    return FailingCases(
        sum(not case.is_lost for case in failures.cases.values()),
        [_lost(reason, failures, by_who[reason.who]) for reason in lost[:REASONS]],
        max(0, len(lost) - REASONS),
        len({key for reason in lost for key in reason.cases}),
        solve_nothing,
        shown,
        by_line,
        anchors,
    )


def _rendered(
    template: jinja2.Template, failures: Failures, by_who: Mapping[Who, Line], solve_nothing: set[Who]
) -> tuple[dict[CaseKey, str], list[Markup]]:
    """Returns as many cases as fit, rendered, the gravest first, and where each is on the page."""
    chosen = choose(failures, solve_nothing)
    folders = dict.fromkeys(line.run.folder for line in by_who.values())
    fill_in([failures.cases[key] for key in chosen], list(folders))
    rendered: dict[CaseKey, Markup] = {}
    anchors: dict[CaseKey, str] = {}
    budget = CASES_BUDGET
    for number, key in enumerate(chosen):
        case = failures.cases[key]
        anchor = re.sub(r"[^a-z0-9]+", "-", f"case-{case.suite[:40]}-{case.id}".lower())
        anchor = f"{anchor}-{number}" if anchor in anchors.values() else anchor
        repro = [(by_who[who], command(by_who[who], case)) for who in case.rows if by_who[who].run.can_repro]
        html = Markup(
            template.render(
                case=case,
                anchor=anchor,
                lines=by_who,
                repro=repro,
                worst=worst_kind(case, solve_nothing),
                delayed=failures.delayed.get(key, ()),
            )
        )
        budget -= len(html.encode("utf-8", "replace"))
        if budget < 0:
            break
        rendered[key], anchors[key] = html, anchor
    worst_first = list(CASE_KINDS)

    def gravity(key: CaseKey) -> tuple[int, str, str, CaseKey]:
        case = failures.cases[key]
        return worst_first.index(worst_kind(case, solve_nothing)), key[0], case.name, key

    return anchors, [rendered[key] for key in sorted(rendered, key=gravity)]


def _reason(reason: Reason, failures: Failures, anchors: dict[CaseKey, str]) -> ReasonShown:
    shown = [key for key in reason.cases if key in anchors][:EXAMPLES]
    examples = [(anchors[key], failures.cases[key].name[:60]) for key in shown]
    return ReasonShown(reason.kind, reason.message, len(reason.cases), reason.walks, examples)


def _lost(reason: Reason, failures: Failures, line: Line) -> LostShown:
    examples = [(*key, failures.cases[key].name[:60]) for key in list(reason.cases)[:EXAMPLES]]
    return LostShown(line, reason.message, len(reason.cases), reason.walks, examples)


def command(line: Line, case: FailedCase) -> str:
    """Returns what a reader types to see the case for themselves."""
    vocabulary = line.arm.vocabulary if len(line.run.info.vocabularies) > 1 else ""
    return shlex.join(repro_words(line.run.folder, case.suite, case.id, line.spec, vocabulary))
