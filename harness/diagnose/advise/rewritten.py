"""Which rewrite of a schema makes more backends work: proven to mean the same, and tried."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.cases.case import Case
from harness.cases.rewrites import Rewriter, Rewritten
from harness.outcomes.answer import Answer, CaseAnswer
from harness.outcomes.case_state import CaseState
from harness.text import counted, our_command

MOST_CASES = 30
"""Cases for which rewrites are looked for, those that the fewest backends work on first."""
MOST_TRIED = 3
"""Rewrites of one case that are tried on the backends."""
SECONDS = 1.0
"""Processor time in which rewrites of one case are found and proven."""

WALKED = "rewrites"
"""The folder, below that of the run, of the run of the rewrites."""

Answers = dict[tuple[str, str], CaseAnswer]
"""What each case, by its id, is like on each arm."""


@dataclass(frozen=True)
class Change:
    """A rewrite that makes more backends work on a case."""

    suite: str
    case_id: str
    case: str
    sentences: tuple[str, ...]
    """What to write instead, one sentence for each place."""
    gained: tuple[str, ...]
    """The arms that work with the rewrite, and do not without."""
    works_on: tuple[str, ...]
    """All arms that work with it."""
    schema: str
    """The whole rewritten schema, as JSON."""


def rewritten(
    cases: Sequence[tuple[str, Case]],
    answer: Answer,
    answers_of: Callable[[Path, Path], Answers],
    folder: Path,
    say: Callable[[str], None],
) -> tuple[tuple[Change, ...], tuple[str, ...], int]:
    """Returns the changes that help, those first with which the backend to use gains a case, the names of the
    cases for which none was found, and the number of further cases for which none was looked for.

    `answers_of` walks a suite file through the same backends with the same effort, into a folder, or goes on
    where it was interrupted; the rewrites are written to `folder`.
    """
    seen = _seen(answer)
    wanting = [
        (suite, case)
        for suite, case in cases
        if case.grammar.dialect == "json_schema"
        and (one := seen.get((suite, case.id))) is not None
        and (CaseState.REFUSED in one.states.values() or _keywords(one.all_faults, case))
    ]
    wanting.sort(key=lambda pair: list(seen[pair[0], pair[1].id].states.values()).count(CaseState.WORKS))
    not_looked_at = max(0, len(wanting) - MOST_CASES)
    del wanting[MOST_CASES:]
    tried: dict[tuple[str, str], list[Rewritten]] = {}
    every: dict[str, Case] = {}
    if wanting:
        many, so_far = counted(len(wanting), "case"), our_command("table", str(folder), "summary")
        say(f"looking for rewrites of {many} that mean the same; {so_far} answers without them ...")
    with Rewriter() as rewriter:
        for suite, case in wanting:
            at_fault = _keywords(seen[suite, case.id].all_faults, case)
            some = tried[suite, case.id] = rewriter.rewrites_of(case, at_fault, SECONDS, MOST_TRIED)
            # Documents that were made are made anew, for the rewrite, as they will be of its schema alone.
            is_made = any(instance.made_for for instance in case.instances)
            for rewrite in (one.case for one in some):
                every[rewrite.id] = replace(rewrite, instances=()) if is_made else rewrite
    answers: Answers = {}
    if every:
        path, text = folder / "rewrites.jsonl", "".join(_line(case) for case in every.values())
        if path.exists() and path.read_text("utf-8") != text:
            # An advice that was interrupted found others, because of the time that it had.
            shutil.rmtree(folder / WALKED, ignore_errors=True)
        path.write_text(text, "utf-8")
        answers = answers_of(path, folder / WALKED)
    best = [
        _best(suite, case, tried[suite, case.id], seen[suite, case.id], answers) for suite, case in wanting
    ]
    changes = [change for change in best if change is not None]
    first = answer.best.name if answer.best is not None else ""
    changes.sort(key=lambda change: first not in change.gained)
    unchanged = tuple(case.name for (_, case), change in zip(wanting, best, strict=True) if change is None)
    return tuple(changes), unchanged, not_looked_at


@dataclass(frozen=True)
class _Seen:
    """What became of a case before it was rewritten."""

    states: dict[str, CaseState] = field(default_factory=dict)
    """The states by arm, controls left out."""
    faults: dict[str, set[str]] = field(default_factory=dict)
    """The constraints that each arm does not keep."""

    @property
    def all_faults(self) -> set[str]:
        """Returns the constraints that some arm does not keep."""
        return set().union(*self.faults.values())


def _seen(answer: Answer) -> dict[tuple[str, str], _Seen]:
    """Returns what became of each case, by suite and id."""
    seen: dict[tuple[str, str], _Seen] = {}
    for backend in answer.backends:
        for case in () if backend.is_control else backend.cases:
            one = seen.setdefault((case.suite, case.case_id), _Seen())
            one.states[backend.name] = case.state
            one.faults[backend.name] = {proof.constraint for proof in case.proofs if proof.constraint}
    return seen


def _keywords(faults: Collection[str], case: Case) -> list[str]:
    """Returns the faults that are a keyword of the schema, with its place before it where that is known. What
    else goes wrong, such as bytes that are no text, no rewrite of the schema mends."""
    return sorted(fault for fault in faults if f'"{fault.rpartition(".")[2]}"' in case.grammar.text)


def _best(suite: str, case: Case, tried: Sequence[Rewritten], seen: _Seen, answers: Answers) -> Change | None:
    """Returns the first of the rewrites with which the most arms work, if these are more than before and none
    is lost."""
    before = {arm: state for arm, state in seen.states.items() if _may_work(arm, seen, case)}
    had = {arm for arm, state in before.items() if state == CaseState.WORKS}
    best: Change | None = None
    for one in tried:
        works = {arm for arm, state in before.items() if _works(answers.get((one.case.id, arm)), state)}
        if had < works and (best is None or len(works) > len(best.works_on)):
            best = Change(
                suite,
                case.id,
                case.name,
                one.sentences,
                tuple(arm for arm in before if arm in works - had),
                tuple(arm for arm in before if arm in works),
                one.case.grammar.text,
            )
    return best


def _may_work(arm: str, seen: _Seen, case: Case) -> bool:
    """May the arm work on a rewrite? Where no keyword was at fault, but bytes that are no UTF-8, say, a
    rewrite that shows no fault only happens not to."""
    state = seen.states[arm]
    if state == CaseState.SILENTLY_WRONG:
        return bool(_keywords(seen.faults[arm], case))
    return state != CaseState.OTHER_FAULT


def _works(answer: CaseAnswer | None, before: CaseState) -> bool:
    """Does a rewrite work on an arm, for all that is known? Where checks found a fault before and were not
    all made now, the fault may be where they did not come to."""
    if answer is None or answer.state != CaseState.WORKS:
        return False
    return not answer.was_cut_short or before in (CaseState.WORKS, CaseState.REFUSED)


def _line(case: Case) -> str:
    """Returns the case as a line of a suite file."""
    tests = [
        {"description": instance.name, "bytes": instance.content.hex(), "valid": instance.valid}
        for instance in case.instances
        if instance.valid is not None
    ]
    value = {
        "description": case.name,
        "schema": json.loads(case.grammar.text),
        "tests": tests,
        "options": case.options,
    }
    return json.dumps(value) + "\n"
