"""A run against expected outcomes, for people and for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from harness.outcomes.case_state import CaseState
from harness.outcomes.expected.verdict import Change, Verdict
from harness.text import command, counted, one_line

MOST = 40
"""The most lines of new failures, and of those that are gone."""


def verdict_text(verdict: Verdict) -> str:
    """Returns the verdict for people."""
    lines = [
        *verdict.notes,
        *(f"{arm}: not recorded; compared with {other}" for arm, other in verdict.against.items()),
        *_changes("new failures", [change for change in verdict.changes if change.new]),
        *_changes(
            "fixed, but still recorded as failing", [change for change in verdict.changes if not change.new]
        ),
    ]
    if verdict.unmeasured:
        lines.append(f"not measured in full, through our own failure: {counted(verdict.unmeasured, 'case')}")
    if verdict.unrecorded:
        lines.append(
            f"{counted(verdict.unrecorded, 'case')} {'is' if verdict.unrecorded == 1 else 'are'} not recorded"
        )
    lines.append(f"{counted(verdict.compared, 'case')} compared: {_conclusion(verdict)}")
    text = [one_line(line, spelled=True) for line in lines]
    if verdict.to_see_it:
        text += ["to see the worst new failure:", command(verdict.to_see_it)]
    return "\n".join(text)


def _changes(title: str, changes: Sequence[Change]) -> Iterator[str]:
    """Yields the title and a line for each change; nothing if there is none."""
    if not changes:
        return
    yield f"{title}: {len(changes)}{states_in_words(changes)}"
    for change in changes[:MOST]:
        yield f"  {change.arm}: {change.name} ({change.case}): {change_in_words(change)}"
    if len(changes) > MOST:
        yield f"  ... and {len(changes) - MOST} more"


class HasState(Protocol):
    """A case that came out differently."""

    @property
    def state(self) -> CaseState:
        """Returns the state in which it is now."""


def states_in_words(changes: Sequence[HasState]) -> str:
    """Returns in brackets how many of several changes put their case in which state, the gravest first;
    empty for a single one."""
    states = Counter(change.state for change in sorted(changes, key=lambda change: change.state.gravity))
    told = ", ".join(f"{state.words.title}: {count}" for state, count in states.items())
    return f" ({told})" if len(changes) > 1 else ""


def _conclusion(verdict: Verdict) -> str:
    if verdict.changes:
        return "not as recorded"
    if not verdict.compared:
        return f"nothing of this run {'could be compared' if verdict.uncompared else 'is recorded'}"
    if verdict.not_walked:
        return "as recorded, but a part of what is recorded was not walked: unproven"
    if nothing_of := len(verdict.uncompared) + len(verdict.unknown):
        return f"as recorded, but nothing of {counted(nothing_of, 'arm')} was compared: unproven"
    if verdict.late:
        return (
            f"as recorded, but {counted(len(verdict.late), 'arm')} missed a deadline in every case: unproven"
        )
    return "as recorded" + (f", but for {verdict.slow} that missed a deadline" if verdict.slow else "")


def change_in_words(change: Change) -> str:
    """Returns new faults with a plus, gone ones with a minus."""
    new, gone = sorted(change.new), sorted(change.gone)
    return " ".join([*(f"+{fault}" for fault in new), *(f"-{fault}" for fault in gone)])


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Returns the verdict for machines; an arm is named as people name it."""
    changes = [{**vars(change), "arm": str(change.arm)} for change in verdict.changes]
    against = {str(arm): str(other) for arm, other in verdict.against.items()}
    return {
        "holds": verdict.holds,
        "verdict": verdict.word,
        **vars(verdict),
        "changes": changes,
        "against": against,
        **{name: [str(arm) for arm in getattr(verdict, name)] for name in ("uncompared", "unknown", "late")},
    }
