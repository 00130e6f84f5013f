"""A measurement as text: what each arm takes, and how the arms compare, with a forest plot of characters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len

from harness.measure.estimate import NO_CONTROL, Comparison, is_change, is_proven
from harness.measure.figures import METRICS, Figures
from harness.measure.statistics import LEVEL, observed_quantile
from harness.text import PIPE, Console, Style, counted, duration, one_line, shorten

WIDTH = 21
"""Characters of the forest plot."""

SIGNS = {
    "regressed": "SLOWER",
    "improved": "faster",
    "equivalent": "equal",
    "inconclusive": "open",
    "unproven": "unproven",
}


STYLES: dict[str, Style] = {"regressed": "bad", "improved": "good", "unproven": "open"}

NAME = 20
"""Columns of an arm's name in a line; a longer one has a line of its own."""


def text(
    figures: Figures, comparisons: Sequence[Comparison], *, means: bool = False, on: Console = PIPE
) -> str:
    """Returns everything that a terminal shows of it."""
    parts = [
        arms_text(figures, on),
        comparisons_text(comparisons, means=means, on=on),
        proof_text(figures, comparisons, on),
    ]
    return "\n\n".join(part for part in parts if part)


def arms_text(figures: Figures, on: Console = PIPE) -> str:
    """Returns a table of the arms: how many cases were measured, and medians over the cases that all arms
    solve, per case or of each case's mean per token, as said. Medians are observed values; those per token
    are other ones than in `table times`, which takes the tokens of all cases together. Below it stands who
    was lost in how many cases while they were measured."""
    common, total = [trace.case_id for trace in figures.common_set], len(figures.measurement.traces)
    lost = Counter(arm for arm, _ in figures.lost)
    without = [arm for arm in figures.arms if not figures.own_set(arm)]
    none = dict.fromkeys("were lost in all" if lost[arm] else "solve none" for arm in without)
    but = f", but for those that {' or '.join(none)}" if without else ""
    lines = [
        f"medians over the {len(common)} of {counted(total, 'case')} that every arm solves{but}",
        f"{'arm':{NAME}} {'solved':>9} {'compile':>9} {'TTFM':>9} {'cold fill':>9} {'fill':>9} {'accept':>9}",
    ]
    for arm in figures.arms:
        own = figures.own_set(arm)
        cells = []
        for metric, per_token in (
            ("compile", False),
            ("ttfm", False),
            ("cold_fill", True),
            ("fill", True),
            ("accept", True),
        ):
            values = []
            for case in common:
                value = figures.median(arm, metric, case)
                if value is not None:
                    values.append(value / figures.tokens[case] if per_token else value)
            cells.append(duration(observed_quantile(values, 0.5)) if values else "-")
        name = one_line(arm, spelled=True)
        if len(name) > NAME:
            lines += on.fold(name)
            name = ""
        solved = f"{len(own)}/{total}" if own or not lost[arm] else "lost"
        lines.append(f"{name:{NAME}} {solved:>9} " + " ".join(f"{cell:>9}" for cell in cells))
    lines.append("compile and TTFM per case; fills and accepts of each case's mean per token")
    for one in figures.measurement.arms:
        if count := lost[one.name]:
            lines += on.fold(f"{one.name} was lost in {counted(count, 'case')} while it was measured")
    return "\n".join(lines)


def comparisons_text(comparisons: Sequence[Comparison], *, means: bool = False, on: Console = PIPE) -> str:
    """Returns one line per comparison: the ratio head over base, its interval, the verdict, and where it
    lies."""
    lines: list[str] = []
    pair: tuple[str, str] | None = None
    for comparison in comparisons:
        if (comparison.base, comparison.head) != pair:
            pair = comparison.base, comparison.head
            lines += [
                "",
                *on.fold(f"{comparison.head}  over  {comparison.base}   (1.10: ten percent slower)"),
            ]
        where = shorten(f"{comparison.metric} {comparison.family}", 22)
        span = (
            f"{bound(comparison.found.ratio)} [{bound(comparison.found.low)}, {bound(comparison.found.high)}]"
        )
        sign = f"{SIGNS[comparison.verdict]:8}"
        sign = on.paint(sign, STYLES[comparison.verdict]) if comparison.verdict in STYLES else sign
        lines.append(
            f"  {where}{' ' * (22 - cell_len(where))} {span:23} {sign} {forest(comparison)}".rstrip()
        )
        if means:
            lines.append(f"{'':25}means {comparison.mean_ratio:.3f}")
        if comparison.why:
            lines += on.fold(f"{'':25}{comparison.why}")
    return "\n".join(lines[1:])


def bound(value: float) -> str:
    """Returns the number in at most six characters where it is below 1e5."""
    return (f"{value:.3f}" if value < 10 else f"{value:.4g}") if math.isfinite(value) else "inf"


def forest(comparison: Comparison) -> str:
    """Returns the interval on a logarithmic axis from one third to three; `:` are the margins, `|` is one,
    `o` the estimate."""
    middle, span = WIDTH // 2, math.log(3)

    def column(value: float) -> int:
        share = math.log(value) / span if value > 0 and math.isfinite(value) else (1.0 if value > 0 else -1.0)
        return max(0, min(WIDTH - 1, round(middle + share * middle)))

    cells = [" "] * WIDTH
    for place in (column(1 - comparison.margin), column(1 + comparison.margin)):
        cells[place] = ":"
    cells[middle] = "|"
    for place in range(column(comparison.found.low), column(comparison.found.high) + 1):
        cells[place] = "-"
    cells[column(comparison.found.ratio)] = "o"
    return "".join(cells)


def proof_text(figures: Figures, comparisons: Sequence[Comparison], on: Console = PIPE) -> str:
    """Returns whether the run may be believed, its widest margins, and the smallest change that it would have
    seen."""
    if not comparisons:
        return "nothing was measured on two arms"
    margins: dict[str, float] = {}
    for comparison in comparisons:
        margins[comparison.metric] = max(comparison.margin, margins.get(comparison.metric, 0.0))
    proven = is_proven(comparisons)
    has_gaps = any(
        (one.is_control and not one.cases) or one.why.startswith(NO_CONTROL) for one in comparisons
    )
    where = "wherever a case of them is judged" if has_gaps else "everywhere"
    sentence = f"proven: two arms of identical code came out equivalent {where}"
    if not proven:
        in_part = any(one.is_control and one.verdict == "equivalent" for one in comparisons)
        word, where = ("UNPROVEN in part", "everywhere") if in_part else ("UNPROVEN", "anywhere")
        sentence = f"{word}: two arms of identical code did not come out equivalent {where}"
    verdict, *more = on.fold(sentence)
    lines = [
        on.paint(verdict, "good" if proven else "open"),
        *more,
        *on.fold(
            f"{counted(len(figures.forks), 'fork')}, intervals at {LEVEL:.0%}, "
            + "widest margin of a family: "
            + ", ".join(f"{metric} {margins[metric]:.1%}" for metric in METRICS if metric in margins)
        ),
        *on.fold(
            "smallest change between versions that would have been seen: "
            + ", ".join(
                f"{metric} {seen(value)}" for metric, value in smallest_effect(comparisons, figures).items()
            )
        ),
    ]
    return "\n".join(lines)


def seen(effect: float) -> str:
    """Returns the smallest change that would be seen, in words. One fork has no interval, so none would; the
    same goes for cases that are measured in one fork only."""
    return f"{effect:.1%}" if math.isfinite(effect) else "none: too few forks"


def smallest_effect(comparisons: Sequence[Comparison], figures: Figures) -> dict[str, float]:
    """Returns, by metric, the largest of the smallest effects between versions of one thing (the A/A arm at
    least)."""
    effects: dict[str, float] = {}
    for comparison in comparisons:
        if is_change(comparison, figures):
            effects[comparison.metric] = max(effects.get(comparison.metric, 0.0), comparison.smallest_effect)
    return {metric: effects[metric] for metric in METRICS if metric in effects}
