"""Describes what is shrunk: a failure as a run saw it, and what must stay the same about it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from harness.backend.grammar import Grammar
from harness.checks import SLOW
from harness.outcomes.case_state import WROTE_INVALID
from harness.outcomes.constructs import KEYWORDS
from harness.rows.row import BROKEN, DECLINED, Finding, Row, Status, Verdict, finding_from_json, verdict

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
"""What stands in a message between quotes, and they."""


@dataclass(frozen=True)
class Outcome:
    """What a small failure has in common with the large one."""

    verdict: Verdict
    status: Status = "ok"
    phase: str = ""
    """The phase in which it broke."""
    signal: str = ""
    kind: str = ""
    """The type of an error, or the words of a refusal without names and numbers."""
    message: str = ""
    """Such words of an error; empty where its type is enough."""
    check: str = ""
    """The finding's name; empty where the verdict itself is the failure."""
    cause: str = ""
    direction: str = ""
    """`over` where the finding counts tokens that are wrongly forbidden, otherwise `under` where it counts
    wrongly allowed ones."""

    @property
    def needs_validity(self) -> bool:
        """Is it a failure only because the instance is valid, or because it is not?"""
        return not self.check and self.verdict in ("over_constrained", "under_constrained")

    @property
    def shows_output(self) -> bool:
        """Does it show an output which the backend let through and the case forbids?"""
        return bool(self.check) and self.cause in WROTE_INVALID and not self.direction

    def __str__(self) -> str:
        if self.check:
            return self.check + (f" ({self.cause})" if self.cause else "")
        if self.verdict == "broken":
            return " ".join(filter(None, (self.status, self.signal, "in", self.phase)))
        return f"{self.verdict} ({self.status})" if self.verdict == "declined" else self.verdict


@dataclass(frozen=True)
class Fault:
    """One failure of one backend, with all that is needed to see it again."""

    spec: str
    """The backend and its options, as `--backends` takes them."""
    vocabulary: str
    grammar: Grammar
    content: bytes | None
    """The instance; None for a case without any."""
    valid: bool | None
    outcome: Outcome
    walk: tuple[int, ...] = ()
    """The tokens of a finding, in the vocabulary of the run."""
    check: str = ""
    """The check in which it showed; empty where the walk itself did."""
    options: dict[str, str] = field(default_factory=dict)
    """The case's options: `draft`, `format`."""
    timeout_s: float = 10.0
    memory_bytes: int = 4 << 30

    @property
    def is_slow_walk(self) -> bool:
        """Is it that no call of the walk was late, but that all of them took too long together?"""
        return (self.outcome.status, self.outcome.phase) == ("timeout", "walk")

    @property
    def limit_s(self) -> float:
        """Returns the seconds that the run gave to what took too long: one call, or a walk's together."""
        return SLOW * self.timeout_s if self.is_slow_walk else self.timeout_s


@dataclass(frozen=True)
class Shrunk:
    """The smallest failure that was found."""

    grammar: Grammar
    content: bytes | None
    valid: bool | None
    """None if nobody judged the smaller instance."""
    outcome: Outcome
    vocabulary: str
    """The name of the run's vocabulary."""
    words: tuple[bytes, ...] | None
    """The tokens that the vocabulary needs besides every byte and end-of-sequence; None: the run's own
    vocabulary."""
    walk: tuple[bytes, ...]
    """The bytes of the tokens that show it, one by one."""
    ends: bool
    """Does end-of-sequence come last?"""
    steps: int
    """How many reductions it took."""
    tried: int
    """How many candidates were given to the backend."""
    is_minimal: bool
    """True if no single reduction is left to try; False if the budget ended the search, or if there was
    none."""
    shown: bool
    """True if the failure was seen again at all; if not, nothing was shrunk."""
    asserts_formats: bool
    """True if the instance's validity is meant with `format` as a constraint."""
    text: str
    """The words of the last error or finding."""
    script: str
    """The adapter's own lines; empty if it has none, or if the walk has a special token that no script can
    name."""
    library: str
    """The backend's distribution and its version."""
    untried: str = ""
    """Why nothing smaller was tried; empty where it was."""


def outcome_of(row: Row, finding: Finding | None = None) -> Outcome:
    """Returns the outcome that the row shows: this finding, otherwise its failing verdict, otherwise its
    first finding."""
    judged = verdict(row.status, row.valid, row.accepted)
    if finding is None and judged in ("pass", "unjudged") and row.findings:
        finding = row.findings[0]
    if finding is not None:
        return outcome_of_finding(finding)
    return outcome_of_end(row.status, row.phase, row.signal, row.text, judged)


def outcome_of_finding(finding: Finding) -> Outcome:
    """Returns the outcome of a finding alone."""
    direction = "over" if finding.over else "under" if finding.under else ""
    return Outcome("unjudged", check=finding.check, cause=finding.cause, direction=direction)


def outcome_of_end(status: Status, phase: str, signal: str, text: str, judged: Verdict) -> Outcome:
    """Returns the outcome of how a walk ended."""
    if status in BROKEN:
        if status != "backend_error":
            return Outcome("broken", status, phase, signal)
        return Outcome("broken", status, phase, signal, text.partition(":")[0], message=_bare(text))
    if status in DECLINED:
        return Outcome("declined", status, kind=_bare(text))
    return Outcome(judged, status)


def _bare(text: str) -> str:
    """Returns the first words of a refusal or an error without what it quotes and counts, and behind them the
    first keyword of JSON Schema that it quotes: with another keyword it would have another reason."""
    named = (quoted[0][1:-1] for quoted in QUOTED.finditer(text) if not text.startswith(":", quoted.end()))
    keyword = next((name for name in named if name in KEYWORDS), "")
    return re.sub("[0-9]+", "", QUOTED.sub("", text))[:40] + keyword


def observed(answer: dict[str, Any], valid: bool | None) -> list[Outcome]:
    """Returns every outcome that a trial's answer shows."""
    judged = verdict(answer["status"], valid, answer.get("accepted"))
    end = outcome_of_end(
        answer["status"], answer.get("phase", ""), answer.get("signal", ""), answer.get("text", ""), judged
    )
    return [end, *map(outcome_of_finding, map(finding_from_json, answer.get("findings", ())))]
