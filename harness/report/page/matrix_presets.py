"""Ways to look at the summary matrix: the order of the arms by the one column that a use asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness.report.figures.estimates import Estimate, order
from harness.report.page.inputs import Subject
from harness.report.page.matrix_cells import MatrixColumn


@dataclass(frozen=True)
class Preset:
    """A way to look at the matrix: sorted by one column, and the order that it gives."""

    title: str
    column: MatrixColumn
    why: str
    order: tuple[tuple[str, str], ...]
    """Labels, the first the best, each with how it stands to the one before it: `›`, `=`, `≥`
    (`estimates.order`); empty for the first."""
    unranked: tuple[tuple[str, str], ...]
    """Labels of those whose figure has no interval, and why it has none."""
    unknown: tuple[str, ...]
    """Labels of those without such a figure."""
    solve_nothing: tuple[str, ...]
    """Labels of those that solve no case: quick at nothing."""

    @property
    def link(self) -> str:
        return f"#/summary?sort={quote(self.column.key)}"


PRESETS = (
    (
        "Serving latency",
        ("warm_p99", "measured_fill"),
        ("walked_p99", "first_p50"),
        "every token waits for its mask",
    ),
    ("Correctness first", (), ("conformance",), "a wrong mask costs more than a slow one"),
    (
        "Tool calling",
        ("measured_compile",),
        ("compile_p99", "compile_p50"),
        "each request brings a grammar of its own, so compiling is waited for",
    ),
)
"""Title; columns of a measurement, and of walks, which count only where nothing was measured; and why. Of the
columns that one decides which ranks the most arms, the first of them if they rank equally many.
"""


def presets_of(
    subjects: Sequence[Subject], columns: Sequence[MatrixColumn], estimates: dict[str, list[Estimate | None]]
) -> list[Preset]:
    """Returns the presets of which there are figures."""
    by_key = {column.key: column for column in columns}
    made = []
    for title, measured, walked, why in PRESETS:
        there = [key for key in measured if any(estimates.get(key, ()))] or [
            key for key in walked if any(estimates.get(key, ()))
        ]
        if not there:
            continue
        key = max(there, key=lambda key: sum(one is not None and one.can_rank for one in estimates[key]))
        column = by_key[key]
        solve_nothing = tuple(
            subject.label
            for subject in subjects
            if subject.line and subject.line.solves_nothing and not subject.line.is_control
        )
        known = [
            (estimate, subject.label)
            for estimate, subject in zip(estimates[key], subjects, strict=True)
            if estimate is not None
            and subject.label not in solve_nothing
            and not (subject.line and subject.line.is_control)
        ]
        ranked = tuple(
            (known[place][1], sign)
            for place, sign in order([estimate for estimate, _ in known], column.lower)
        )
        if len(ranked) < 2 < len(known) + 1:
            ranked = ()
        named = {label for label, _ in ranked}
        unranked = tuple(
            (label, estimate.why_not or "the only one with an interval")
            for estimate, label in known
            if label not in named
        )
        named |= {*solve_nothing, *(label for _, label in known)}
        unknown = tuple(
            subject.label
            for subject in subjects
            if subject.label not in named and not (subject.line and subject.line.is_control)
        )
        made.append(Preset(title, column, why, ranked, unranked, unknown, solve_nothing))
    return made
