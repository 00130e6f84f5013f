"""The answer: the sentence, how sure it is, a card for each backend, the gravest risks, and every case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.outcomes.answer import Answer, BackendAnswer, CaseAnswer, evidence, risks_by_backend
from harness.outcomes.case_state import STATES, CaseState
from harness.outcomes.outcome import LAST, Order
from harness.report.cases.explorer import LISTED
from harness.report.page.content import Content
from harness.report.page.lines import Line
from harness.report.page.matrix_cells import NOT_MEASURED
from harness.report.page.section import Section, Values
from harness.text import duration

CASES = 60
"""Most cases in the table of cases, those in which most goes wrong first."""

ALWAYS = (CaseState.WORKS, CaseState.REFUSED, CaseState.SILENTLY_WRONG)
"""The states of which a card tells the number even where that is 0."""

PER_TOKEN = "per token, TBM p50"


@dataclass(frozen=True)
class Card:
    """What everybody asks of one backend first."""

    line: Line
    backend: BackendAnswer
    states: tuple[tuple[CaseState, int], ...]
    """How many cases are in which state: those that are always told, then what else there is."""
    facts: tuple[tuple[str, str, str], ...]
    """Title, figure, and what stands small beside it."""
    is_best: bool


@dataclass(frozen=True)
class CaseLine:
    """One case by all backends."""

    suite: str
    case_id: str
    case: str
    cells: tuple[CaseAnswer | None, ...]
    """None where the backend has no row of the case."""


def values(page: Content) -> Values | None:
    """Returns the answer and what shows it; None where no run of rows is on the page. Raises BadInput."""
    answer = page.answer
    if answer is None:
        return None
    lines = {line.arm.key: line for line in page.inputs.answered}
    tried = [backend for backend in answer.backends if not backend.is_control]
    cases = case_lines(tried)
    return {
        "answer": answer,
        "advised": list(page.inputs.advices.values()),
        "is_untimed": any(backend.not_timed for backend in tried),
        "risks": list(risks_by_backend(answer)),
        "evidence": evidence,
        "cards": [card(backend, lines[backend.key], answer) for backend in tried],
        "controls": [lines[backend.key] for backend in answer.backends if backend.is_control],
        "other_vocabularies": list(dict.fromkeys(backend.vocabulary for backend in answer.others)),
        "tried": [lines[backend.key] for backend in tried],
        "cases": cases[:CASES],
        "listed": Markup(LISTED),
        "cases_left_off": max(0, len(cases) - CASES),
        "states": [state for state in reversed(CaseState) if any(backend.count(state) for backend in tried)],
    }


SECTION = Section("answer", "Answer", 5, values, "answer")


def card(backend: BackendAnswer, line: Line, answer: Answer) -> Card:
    """Returns what the card of a backend shows."""
    others = [state for state in STATES if state not in ALWAYS and backend.count(state)]
    facts = []
    if backend.slowest is not None:
        facts.append(("slowest compile", backend.slowest.duration_text, backend.slowest.case[:60]))
    if backend.per_token_ns is not None:
        late = backend.per_token_p99_ns
        beside = "" if late is None else f"p99 {duration(late)}{'~' if backend.per_token_few else ''}"
        facts.append((PER_TOKEN, duration(backend.per_token_ns), beside))
    elif backend.not_timed:
        facts.append((PER_TOKEN, NOT_MEASURED, backend.not_timed))
    if backend.first_mask_ns is not None:
        facts.append(("first mask, TTFM p50", duration(backend.first_mask_ns), ""))
    return Card(
        line,
        backend,
        tuple((state, backend.count(state)) for state in (*ALWAYS, *others)),
        tuple(facts),
        answer.is_recommended and any(backend is one for one in (answer.best, *answer.equals)),
    )


def case_lines(backends: Sequence[BackendAnswer]) -> list[CaseLine]:
    """Returns every case with what it is like on each backend, the gravest first."""
    by_case: dict[tuple[str, str], list[CaseAnswer | None]] = {}
    for place, backend in enumerate(backends):
        for case in backend.cases:
            cells = by_case.setdefault((case.suite, case.case_id), [None] * len(backends))
            cells[place] = case
    made = []
    for (suite, case_id), cells in by_case.items():
        name = next(cell.case for cell in cells if cell is not None)
        made.append(CaseLine(suite, case_id, name, tuple(cells)))
    return sorted(made, key=lambda line: (_gravity(line), line.suite, line.case))


def _gravity(line: CaseLine) -> Order:
    """Returns a key that puts the gravest cases first, and of one state those that a document shows."""
    return min(
        cell.proof.order if cell.proof else (cell.state.gravity, *LAST[1:]) for cell in line.cells if cell
    )
