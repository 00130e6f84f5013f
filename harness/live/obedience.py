"""Does the server keep the constraint? Told by dialect of grammar: a server may obey one way of saying it and ignore another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.grammar import Dialect
from harness.live.answer import Answer, Role
from harness.live.record import Lived

Finding = Literal["kept", "broken", "ignored", "unproven"]
"""`kept`: every judged output is valid. `broken`: some are not. `ignored`: no larger a share is valid than without the grammar, or none at
all is. `unproven`: no output could be judged."""

BROKEN_ENDS = ("failed", "dropped", "malformed", "timeout", "aborted")
"""Ends that are the server's fault."""


@dataclass(frozen=True)
class Kept:
    """Of all answers to one dialect of grammar."""

    dialect: Dialect
    valid: int
    judged: int
    """With the grammar."""
    plain_valid: int
    plain_judged: int
    """Of the twins without it, by the same judge."""
    examples: tuple[Answer, ...]
    """Of the first invalid ones."""

    @property
    def finding(self) -> Finding:
        if not self.judged:
            return "unproven"
        if self.valid == self.judged:
            return "kept"
        if not self.valid:
            return "ignored"
        return "ignored" if self.plain_judged and self.valid * self.plain_judged <= self.plain_valid * self.judged else "broken"

    def __str__(self) -> str:
        beside = f"; without a grammar {self.plain_valid}/{self.plain_judged}" if self.plain_judged else ""
        counts = f"{self.valid}/{self.judged} outputs valid{beside}"
        said = {
            "kept": "kept",
            "broken": "BROKEN",
            "ignored": "THE SERVER IGNORES THE GRAMMAR",
            "unproven": "nothing shown: no output could be judged",
        }
        return f"{self.dialect}: {said[self.finding]}" + (f": {counts}" if self.judged else "")


def obedience(lived: Lived, dialects: dict[tuple[str, str], Dialect]) -> list[Kept]:
    """One entry for each dialect that was sent. `dialects`: by suite and case id."""
    found: dict[Dialect, dict[Role, list[Answer]]] = {}
    for each in lived.answers:
        found.setdefault(dialects[each.suite, each.case_id], {"constrained": [], "none": []})[each.role].append(each)
    return [_kept(lived, dialect, each) for dialect, each in sorted(found.items())]


def _kept(lived: Lived, dialect: Dialect, answers: dict[Role, list[Answer]]) -> Kept:
    rights = {role: [lived.right(each).right for each in mine] for role, mine in answers.items()}
    valid = {role: mine.count("valid") for role, mine in rights.items()}
    judged = {role: valid[role] + mine.count("invalid") for role, mine in rights.items()}
    invalid = [each for each in answers["constrained"] if lived.right(each).right == "invalid"]
    return Kept(dialect, valid["constrained"], judged["constrained"], valid["none"], judged["none"], tuple(invalid[:3]))


@dataclass(frozen=True)
class Gate:
    """Does it hold? `reasons`: why not, or why nothing can be said."""

    verdict: Literal["holds", "fails", "unproven", "incomplete"]
    reasons: tuple[str, ...]


def gate(lived: Lived, kept: Sequence[Kept]) -> Gate:
    """Fails where an output is invalid or a request broke; unproven where no output could be judged."""
    if not lived.is_complete:
        return Gate("incomplete", ("the session has no end",))
    reasons = [str(each) for each in kept if each.finding in ("broken", "ignored")]
    lost = [each for each in lived.answers if each.heard.end in BROKEN_ENDS]
    if lost:
        reasons.append(f"{len(lost)} requests failed, the first: {lost[0].heard.end}: {lost[0].heard.why}")
    if reasons:
        return Gate("fails", tuple(reasons))
    if ours := [each for each in lived.answers if each.heard.end == "harness_error"]:
        return Gate("unproven", (f"{len(ours)} requests failed through our fault, the first: {ours[0].heard.why}",))
    if not any(each.judged for each in kept):
        return Gate("unproven", ("no output could be judged",))
    return Gate("holds", ())
