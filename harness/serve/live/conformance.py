"""Whether the server keeps the constraint, by dialect of grammar: a server may conform to one way of stating
it and ignore another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.backend.grammar import Dialect
from harness.errors import BadInput
from harness.serve.live.answer import Answer
from harness.serve.live.record import NOT_ASKED, Lived
from harness.serve.requests.words import Role
from harness.text import counted

Finding = Literal["kept", "broken", "ignored", "unproven"]
"""What is found for a dialect. `kept`: every judged output is valid. `broken`: some are not. `ignored`: none
is valid and no truncated one fits, or no larger a share does than without the grammar. `unproven`: no output
is judged."""

BROKEN_ENDS = ("failed", "dropped", "malformed", "timeout", "aborted")
"""The ends that are the server's fault."""


@dataclass(frozen=True)
class DialectCounts:
    """The counts over all answers to one dialect of grammar.

    A truncated output that fits (a valid text may begin so) does not show that the grammar is kept, and is
    not judged; but a server that ignores the grammar would hardly have written it.
    """

    dialect: Dialect
    valid: int
    judged: int
    """Judged outputs with the grammar."""
    fitting: int
    """Truncated outputs with the grammar that fit."""
    plain_valid: int
    plain_judged: int
    """Judged outputs of the twins without the grammar, by the same judge."""
    plain_fitting: int
    """Truncated outputs of the twins that fit."""
    examples: tuple[Answer, ...]
    """The first invalid answers."""

    @property
    def finding(self) -> Finding:
        if not self.judged:
            return "unproven"
        if self.valid == self.judged:
            return "kept"
        good, plain_good = self.valid + self.fitting, self.plain_valid + self.plain_fitting
        if not good:
            return "ignored"
        of, plain_of = self.judged + self.fitting, self.plain_judged + self.plain_fitting
        return "ignored" if self.plain_judged and good * plain_of <= plain_good * of else "broken"

    def __str__(self) -> str:
        cut, plain_cut = (
            f", {count} truncated that fit" if count else "" for count in (self.fitting, self.plain_fitting)
        )
        plain = f"; without a grammar {self.plain_valid}/{self.plain_judged}{plain_cut}"
        counts = f"{self.valid}/{self.judged} outputs valid{cut}{plain if self.plain_judged else ''}"
        sentences = {
            "kept": "kept",
            "broken": "BROKEN",
            "ignored": "THE SERVER IGNORES THE GRAMMAR",
            "unproven": "nothing shown: no output is judged",
        }
        return f"{self.dialect}: {sentences[self.finding]}" + (f": {counts}" if self.judged else "")


def conformance(lived: Lived, dialects: dict[tuple[str, str], Dialect]) -> list[DialectCounts]:
    """Returns one entry for each dialect that was sent. `dialects` gives the dialect of a case by its suite
    and id."""
    by_dialect: dict[Dialect, dict[Role, list[Answer]]] = {}
    for answer in lived.answers:
        if (answer.suite, answer.case_id) not in dialects:
            raise BadInput(
                f"{lived.folder}: an answer to a case that cases.jsonl does not hold; the folder "
                "was changed or damaged"
            )
        by_dialect.setdefault(dialects[answer.suite, answer.case_id], {"constrained": [], "none": []})[
            answer.role
        ].append(answer)
    return [_kept(lived, dialect, answers) for dialect, answers in sorted(by_dialect.items())]


def _kept(lived: Lived, dialect: Dialect, answers: dict[Role, list[Answer]]) -> DialectCounts:
    judgements = {role: [lived.right(answer) for answer in mine] for role, mine in answers.items()}
    rights = {role: [each.right for each in mine] for role, mine in judgements.items()}
    valid = {role: mine.count("valid") for role, mine in rights.items()}
    judged = {role: valid[role] + mine.count("invalid") for role, mine in rights.items()}
    fitting = {role: sum(each.fits for each in mine) for role, mine in judgements.items()}
    invalid = [answer for answer in answers["constrained"] if lived.right(answer).right == "invalid"]
    return DialectCounts(
        dialect,
        valid["constrained"],
        judged["constrained"],
        fitting["constrained"],
        valid["none"],
        judged["none"],
        fitting["none"],
        tuple(invalid[:3]),
    )


@dataclass(frozen=True)
class LiveGate:
    """Whether the constraint is kept. `reasons` says why it is not, or why this cannot be said."""

    verdict: Literal["holds", "fails", "unproven", "incomplete"]
    reasons: tuple[str, ...]


def gate(lived: Lived, kept: Sequence[DialectCounts]) -> LiveGate:
    """Returns the gate: it fails if an output is invalid or a request broke. It is unproven if no output of a
    dialect that was sent is judged, if a request with a grammar was refused for another reason, or failed
    through our fault, or if there were fewer requests than cases."""
    if not lived.is_complete:
        return LiveGate("incomplete", ("the session has no end",))
    reasons = [str(entry) for entry in kept if entry.finding in ("broken", "ignored")]
    lost = [answer for answer in lived.answers if answer.heard.end in BROKEN_ENDS]
    if lost:
        reasons.append(
            f"{counted(len(lost), 'request')} failed, the first: {lost[0].heard.end}: {lost[0].heard.why}"
        )
    if reasons:
        return LiveGate("fails", tuple(reasons))
    reasons = [str(entry) for entry in kept if entry.finding == "unproven"]
    if ours := [answer for answer in lived.answers if answer.heard.end == "harness_error"]:
        reasons.append(
            f"{counted(len(ours), 'request')} failed through our fault, the first: {ours[0].heard.why}"
        )
    with_grammar = (answer for answer in lived.answers if answer.role == "constrained")
    if refused := [answer for answer in with_grammar if answer.heard.is_refused_elsewhere]:
        reasons.append(
            f"{counted(len(refused), 'request')} with a grammar {'was' if len(refused) == 1 else 'were'} "
            "refused, but not for it, the first: "
            f"{refused[0].heard.why}"
        )
    if lived.setup.not_asked:
        reasons.append(f"{counted(lived.setup.not_asked, 'case')} {NOT_ASKED}")
    if not kept:
        reasons.append("no request was sent")
    return LiveGate("unproven" if reasons else "holds", tuple(reasons))
