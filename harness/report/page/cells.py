"""How an arm did on a group of walks, as a cell of a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.rows.row import OURS

GLYPHS = {
    "pass": "✓", "over_constrained": "▼", "under_constrained": "▲", "declined": "⊘", "broken": "✖",
    "unjudged": "?", "harness_error": "⚑",
    "skipped": "–",
}  # fmt: skip


@dataclass(frozen=True)
class WalksCell:
    """How one arm did on one suite or tag."""

    passed: int
    counted: int
    """Walks but those that nobody can judge or that we lost: those that were judged, and those that were
    declined or broke, which do not pass either."""
    rest: list[tuple[str, int]]
    """What did not pass: outcome and count."""

    @property
    def rest_told(self) -> list[tuple[str, str]]:
        """Returns the same in short: a glyph before the count, but for skipped walks a word, for their
        dash would read as a minus."""
        return [
            (kind, f"skipped {count}" if kind == "skipped" else f"{GLYPHS[kind]}{count}")
            for kind, count in self.rest
        ]

    @property
    def shade(self) -> int:
        """Returns 0 to 4, from nothing passes to everything does."""
        return (
            0
            if not self.passed
            else 4
            if self.passed == self.counted
            else 1 + min(2, int(3 * self.passed / self.counted))
        )


def cell_of(outcomes: Counter[str]) -> WalksCell:
    """Returns how the walks of these outcomes did."""
    counted = sum(count for kind, count in outcomes.items() if kind not in ("unjudged", *OURS))
    return WalksCell(
        outcomes["pass"],
        counted,
        [(kind, outcomes[kind]) for kind in GLYPHS if kind != "pass" and outcomes[kind]],
    )
