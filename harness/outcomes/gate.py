"""The answer of a gate: may a CI go on, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.errors import GATE_FAILED, INCOMPLETE, OK, UNPROVEN

Verdict = Literal["ok", "failed", "incomplete", "unproven"]

EXIT_CODES: dict[Verdict, int] = {
    "ok": OK,
    "failed": GATE_FAILED,
    "incomplete": INCOMPLETE,
    "unproven": UNPROVEN,
}


NO_BASE = "nothing to compare the run with"
"""The words that stand in place of a verdict where a complete run was held against nothing."""


@dataclass(frozen=True)
class Gate:
    """Whether a CI may go on, and why not."""

    verdict: Verdict
    against: str
    """What the run was held against; empty if nothing: then only completeness counts."""
    reasons: tuple[str, ...]

    @property
    def has_no_base(self) -> bool:
        """Was there nothing to compare the run with, so that nothing more is known than that it is
        complete?"""
        return self.verdict == "ok" and not self.against

    @property
    def exit_code(self) -> int:
        """Returns 0 for ok, 1 for failed, 3 for incomplete, 4 for unproven."""
        return EXIT_CODES[self.verdict]
