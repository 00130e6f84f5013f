"""The tables of docs/growth.md: how one figure grows along each axis, by arm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.measure.growth.conclude import FIGURES, Conclusion, conclusions
from harness.measure.growth.record import read_growth
from harness.measure.growth.show import amount, is_killed, power

BAD = ("exponential", "worse than linear")


def growth_table(figure: str) -> Callable[[Path, str], str]:
    """Returns what makes the table of that figure of a measurement of growth: an axis a line, an arm a
    column."""

    def table(run: Path, _: str) -> str:
        grown = read_growth(run)
        cells = {(one.axis, one.arm): cell(one) for one in conclusions(grown) if one.figure == figure}
        axes = [axis for axis in grown.plan.axes if any(of == axis for of, _ in cells)]
        arms = [arm.name for arm in grown.plan.arms]
        lines = [f"| axis | {' | '.join(arms)} |", "| --- " + "| --- " * len(arms) + "|"]
        lines += [f"| {axis} | {' | '.join(cells.get((axis, arm), '') for arm in arms)} |" for axis in axes]
        return "\n".join(lines)

    return table


def cell(one: Conclusion) -> str:
    """Returns the verdict, the exponent with its interval, the cost at the largest size and the end; in bold
    where it grows worse than linearly or was killed."""
    kind = one.growth.kind
    word = {"constant": "constant", "not judged": "open", "exponential": "exponential"}.get(kind, "")
    parts = []
    if one.values:
        size, cost = one.values[-1]
        parts.append(" ".join(filter(None, (word, "" if kind == "constant" else power(one.growth)))))
        parts.append(f"{amount(cost, FIGURES[one.figure].unit)} at {size}")
    if one.end is not None:
        parts.append(f"{one.end.word} at {one.end.size}")
    text = "; ".join(filter(None, parts))
    return f"**{text}**" if kind in BAD or is_killed(one) else text
