"""The table of docs/growth.md: how a cold compile grows along each axis, by arm."""

from __future__ import annotations

from pathlib import Path

from harness.measure.growth.conclude import FIGURES, Conclusion, conclusions
from harness.measure.growth.record import read_growth
from harness.measure.growth.show import amount, is_killed, power

WORDS = {"constant": "constant", "not judged": "open", "exponential": "exponential"}
"""The verdicts that stand in a cell; of the others the exponent says enough."""

BAD = ("exponential", "worse than linear")


def growth_compile(run: Path, _: str) -> str:
    """Returns the table of a measurement of growth: an axis a line, an arm a column."""
    grown = read_growth(run)
    arms = [arm.name for arm in grown.plan.arms]
    lines: dict[str, dict[str, str]] = {}
    for one in conclusions(grown):
        if one.figure == "compile":
            lines.setdefault(one.axis, {})[one.arm] = cell(one)
    made = [f"| axis | {' | '.join(arms)} |", "| --- " + "| --- " * len(arms) + "|"]
    for axis, cells in lines.items():
        made.append(f"| {axis} | {' | '.join(cells.get(arm, '') for arm in arms)} |")
    return "\n".join(made)


def cell(one: Conclusion) -> str:
    """Returns the verdict, the exponent with its interval, the cost at the largest size and the end; in bold
    where it grows worse than linearly or was killed."""
    kind = one.growth.kind
    parts = []
    if one.values:
        size, cost = one.values[-1]
        exponent = "" if kind == "constant" else power(one.growth)
        parts.append(" ".join(filter(None, (WORDS.get(kind), exponent))))
        parts.append(f"{amount(cost, FIGURES[one.figure].unit)} at {size}")
    if one.end is not None:
        parts.append(f"{one.end.word} at {one.end.size}")
    text = "; ".join(parts)
    return f"**{text}**" if kind in BAD or is_killed(one) else text
