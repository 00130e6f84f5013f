"""An advice as a terminal shows it: the answer, how sure it is, what each schema is like, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.diagnose.advise import Advice, choice_of, no_document_sentence
from harness.diagnose.advise.max_tokens import CaseBudget
from harness.outcomes.answer import BackendAnswer, CaseAnswer, evidence, risks_by_backend, telling
from harness.outcomes.case_state import CaseState
from harness.outcomes.repro_command import repro_words
from harness.text import MOST_FOLDED, Console, command, counted, duration, grid, listed, one_line, some

MOST_LINES = 40
"""Schemas that the table names; those that work everywhere are left out first."""
MOST_CHANGES = 6
MOST_REFUSALS = 8
MOST_NAMES = 4
"""Schemas that are named where several are refused for the same reason."""
LONGEST_REASON = 60
"""Characters of a refusal."""


def advice_text(advice: Advice, page: str, console: Console) -> str:
    """Returns the advice for a terminal; `page` is where its page lies."""
    parts = []
    for lines, is_drawn in _parts(advice, page, console):
        shown = (
            lines if is_drawn else [folded for line in lines for folded in console.fold(line, MOST_FOLDED)]
        )
        if shown:
            parts.append("\n".join(shown))
    return "\n\n".join(parts)


def advice_json(advice: Advice, page: Path) -> dict[str, Any]:
    """Returns the advice for a program."""
    answer = advice.answer
    return {
        "sentence": answer.sentence,
        "sure": answer.sure,
        "certainty": [*answer.certainty, *advice.on_requests, *advice.notes],
        "best": answer.best.name if answer.best is not None else None,
        "engine": advice.engine,
        "engine_option": advice.engine_option,
        "recommended": answer.is_recommended,
        "vocabulary": advice.vocabulary,
        "works": advice.works,
        "backends": [
            {
                "name": backend.name,
                "version": backend.version,
                "counts": {state.value: backend.count(state) for state in CaseState},
                "slowest_compile_ns": backend.slowest.ns if backend.slowest is not None else None,
                "first_mask_ns": backend.first_mask_ns,
                "per_token_ns": backend.per_token_ns,
                "costs": asdict(backend.costs),
                "cases": [
                    {
                        "suite": case.suite,
                        "id": case.case_id,
                        "name": case.case,
                        "state": case.state.value,
                        "constraints": list(case.constraints),
                        "document": case.proof.document if case.proof is not None else "",
                        "said": case.proof.said if case.proof is not None else "",
                    }
                    for case in backend.cases
                ],
            }
            for backend in answer.backends
            if not backend.is_control
        ],
        "risks": [risk.sentence for risk in answer.risks],
        "risks_elsewhere": [risk.sentence for risk in answer.risks_elsewhere],
        "endless": list(advice.endless),
        "budget": asdict(advice.budget) if advice.budget is not None else None,
        "changes": [asdict(change) for change in advice.changes],
        "unchanged": list(advice.unchanged),
        "not_looked_at": advice.not_looked_at,
        "unsatisfiable": list(advice.unsatisfiable),
        "with_all": advice.with_all,
        "run": str(advice.folder),
        "page": str(page),
    }


def _parts(advice: Advice, page: str, console: Console) -> Iterator[tuple[list[str], bool]]:
    """Yields the parts of the screen, and whether their lines are drawn already."""
    answer = advice.answer
    option = advice.engine_option
    chosen = [f"{choice_of(advice.engine, answer.is_recommended)} {option}"] if option else []
    yield [one_line(answer.sentence), *chosen, *advice.on_requests], False
    lead = [*answer.certainty[:1], *answer.doubts, *advice.notes, f"The tokenizer is {advice.vocabulary}."]
    rest = [said for said in answer.certainty if said not in lead]
    sure = f"How sure: {answer.sure}. {' '.join(lead)}"
    yield console.fold(sure, MOST_FOLDED * len(lead)), True
    able = [backend for backend in answer.backends if not backend.is_control]
    yield _table(able, console).splitlines(), True
    yield list(_key(able)), False
    yield _costs(able, console), True
    refusals = list(_refusals(able))
    if refusals:
        yield ["What is refused, in the backend's words:", *refusals], False
    for head, risks in risks_by_backend(answer):
        yield [f"{head}:", *(f"  {risk.case.case}: {one_line(risk.sentence)}" for risk in risks)], False
    yield _endings(advice), False
    yield _changes(advice), False
    yield ["What this rests on:", *(f"  {one_line(said)}" for said in rest)] if rest else [], False
    yield [f"Proof of each claim, by schema: {page}"], False
    yield _repro(advice), True


def _table(able: Sequence[BackendAnswer], console: Console) -> str:
    """Returns schema x backend; what works everywhere is one line."""
    answers = [{(case.suite, case.case_id): case for case in backend.cases} for backend in able]
    names = {key: case.case for by_key in answers for key, case in by_key.items()}
    differing, working = [], 0
    for key, name in names.items():
        cases = [by_key.get(key) for by_key in answers]
        if all(case is not None and case.state == CaseState.WORKS for case in cases):
            working += 1
            continue
        differing.append((one_line(name, 30), [_cell(case) for case in cases]))
    shown = differing[:MOST_LINES]
    more = [(f"{len(differing) - MOST_LINES} more", [""] * len(able))] if len(differing) > MOST_LINES else []
    others = "1 other" if working == 1 else f"{working:,} others"
    rest = (
        [(others if differing else f"all {working:,}", [CaseState.WORKS.words.title] * len(able))]
        if working
        else []
    )
    return grid(
        "", [backend.name for backend in able], [shown, [*more, *rest]], console.width, console.styled, 34
    )


def _cell(case: CaseAnswer | None) -> str:
    """Returns the state in few words, and which constraint is not kept."""
    if case is None:
        return CaseState.NOT_MEASURED.words.title
    words = case.state.words.title
    names = telling(case.state, case.constraints)
    return f"{words}: {one_line(names[0], 40)}" if names else words


def _key(able: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields what the states in the table mean, those of which it has a case."""
    for state in reversed(CaseState):
        if any(backend.count(state) for backend in able):
            yield f"{state.words.title}: {state.words.meaning}."


def _refusals(able: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields what each backend says of the schemas that it refuses."""
    for backend in able:
        refused = [case for case in backend.cases if case.state == CaseState.REFUSED]
        if refused:
            by_reason: dict[str, list[str]] = {}
            for case in refused:
                by_reason.setdefault(evidence(case, LONGEST_REASON) or "without a reason", []).append(
                    case.case
                )
            said = [f"{some(names, MOST_NAMES)} ({reason})" for reason, names in by_reason.items()]
            more = len(said) - MOST_REFUSALS
            yield (
                f"  {backend.name}: {'; '.join(said[:MOST_REFUSALS])}"
                f"{'; and for ' + counted(more, 'more reason') if more > 0 else ''}"
            )


def _costs(able: Sequence[BackendAnswer], console: Console) -> list[str]:
    """Returns the times in lines, and below them of which cases the medians are that can be compared."""
    lines: list[tuple[str, list[str]]] = [
        ("slowest compile", [_slowest(backend) for backend in able]),
        ("first mask, median", [_median(backend, backend.costs.first_mask_ns) for backend in able]),
        ("each token, median", [_median(backend, backend.costs.per_token_ns) for backend in able]),
    ]
    drawn = grid("", [backend.name for backend in able], [lines], console.width, console.styled, 34)
    said = []
    if shared := [backend for backend in able if backend.costs.is_shared]:
        cases = counted(shared[0].costs.cases, "case")
        names = "both" if len(shared) == len(able) == 2 else listed(backend.name for backend in shared)
        said.append(
            f"The medians are over the {cases} that {names} solve{'' if len(shared) > 1 else 's'}: compiled, "
            "and no output judged wrongly."
        )
    if len(able) > 1 and any(not backend.costs.is_shared and backend.costs.cases for backend in able):
        said.append("A median with a number beside it is over the cases that this backend compiles.")
    return [*drawn.splitlines(), *(console.fold(" ".join(said), MOST_FOLDED) if said else [])]


def _slowest(backend: BackendAnswer) -> str:
    slowest = backend.slowest
    return f"{slowest.duration_text} ({one_line(slowest.case, 24)})" if slowest is not None else "none"


def _median(backend: BackendAnswer, nanoseconds: float | None) -> str:
    """Returns the median; where it is over the backend's own cases, with their number."""
    if nanoseconds is None:
        return "none"
    own = "" if backend.costs.is_shared else f" ({counted(backend.costs.cases, 'case')})"
    return f"{duration(nanoseconds)}{own}"


def _endings(advice: Advice) -> list[str]:
    """Returns whether an output can go on until its tokens are used up, what bounds it, and how many tokens
    it takes at least."""
    lines = []
    if advice.endless:
        lines = ["Can an output go on until max_tokens?", *(f"  {sentence}" for sentence in advice.endless)]
        lines.append(
            "  A string ends by `maxLength`, a number by `maximum` and `minimum`, white space by an option "
            "of the backend or of the engine, such as max_whitespace=20: docs/endless.md."
        )
    if advice.budget is not None:
        lines += budget_lines(advice.budget)
    return lines


def budget_lines(budget: CaseBudget) -> Iterator[str]:
    """Yields below which `max_tokens` no output of the case with the largest known number can be complete,
    and which cases may need more. That it needs the most is said only where none may."""
    said = f"With a max_tokens below {budget.tokens} no output of {one_line(budget.case, 40)} can be complete"
    if not budget.unfound and budget.looked_at > 1:
        said += f"; of the {budget.looked_at:,} cases looked at, this one needs the most tokens"
    yield f"{said}."
    bounds = [
        f"{one_line(each.case, 30)} (at least {each.least:,}"
        f"{'' if each.known is None else f'; {each.known:,} suffice'})"
        for each in sorted(budget.unfound, key=lambda each: (each.known is not None, -each.least))
    ]
    if bounds:
        cases, whose = ("This case", "its") if len(bounds) == 1 else ("These cases", "their")
        named = some(bounds, MOST_NAMES)
        yield f"{cases} may need more, because {whose} fewest tokens were not found: {named}."


def _changes(advice: Advice) -> list[str]:
    lines = []
    if advice.changes:
        with_all = f"; {advice.with_all}" if advice.with_all else ""
        lines.append(
            "What to change (an automaton proved that each rewrite means the same as your schema, and each "
            f"was tried on the same backends{with_all}):"
        )
    for change in advice.changes[:MOST_CHANGES]:
        gained = listed(change.gained)
        lines.append(f"  {change.case}: {'; '.join(change.sentences)}. Then it works on {gained} too.")
    if len(advice.changes) > MOST_CHANGES:
        lines.append(f"  {len(advice.changes) - MOST_CHANGES} more: {advice.folder / 'rewrites.jsonl'}")
    if advice.unchanged:
        names = some([one_line(name, 30) for name in advice.unchanged], MOST_CHANGES)
        lines.append(f"For these no rewrite was found that helps: {names}.")
    if advice.not_looked_at:
        lines.append(f"For {counted(advice.not_looked_at, 'more case')} no rewrite was looked for.")
    if advice.unsatisfiable:
        lines.append(no_document_sentence(advice.unsatisfiable))
    return lines


def _repro(advice: Advice) -> list[str]:
    """Returns the command that shows the gravest risk without us: `repro` takes the worst failure of a case,
    which is the one that the risk tells."""
    risks = (*advice.answer.risks, *advice.answer.risks_elsewhere)
    if not risks:
        return []
    risk = min(risks, key=lambda risk: risk.case.state.gravity)
    words = repro_words(advice.folder, risk.case.suite, risk.case.case_id, risk.backends[0])
    return ["The worst one as a script without GrammarBench:", command([*words, "--script", "fault.py"])]
