"""Compared pairs, for people and for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from harness.backend.arm import Arm
from harness.measure import show
from harness.measure.estimate import conclude
from harness.measure.figures import Figures
from harness.measure.record import read_measurement
from harness.outcomes import differences
from harness.outcomes.compare.pairs import Pair, gate_pairs
from harness.outcomes.difference_lines import difference_lines
from harness.outcomes.gate import Verdict
from harness.text import PIPE, Console, Style, counted

MOST_COUNTED = 40
"""Most changed counts of a pair that are listed."""

VERDICT_STYLES: dict[Verdict, Style] = {
    "ok": "good",
    "failed": "bad",
    "incomplete": "open",
    "unproven": "open",
}

KIND_STYLES: dict[str, Style] = {"worse": "bad", "better": "good", "other": "open", "policy": "open"}
"""The style of the heading of each kind of difference."""

NEWS_STYLES: dict[str, Style] = {
    "worse": "bad",
    "better": "good",
    "SLOWER": "bad",
    "faster": "good",
    "unproven": "open",
}
"""The style of what is counted in the summary, where it is good or bad news."""


def pairs_text(pairs: Sequence[Pair], *, means: bool = False, time: bool = False, on: Console = PIPE) -> str:
    """Returns the pairs for people: first a summary and what a gate says, then everything, pair by pair.

    `time`: the gate over times is shown even where nothing was measured.
    """
    if not pairs:
        nothing = (
            "one arm of each backend: nothing to compare; give two runs, or a run with two versions of a "
            "backend"
        )
        return "\n".join(on.fold(nothing))
    return "\n\n".join([_summary(pairs, time, on), *(_pair_text(pair, means=means, on=on) for pair in pairs)])


def _summary(pairs: Sequence[Pair], timed: bool, on: Console) -> str:
    lines = []
    for pair in pairs:
        note = f" ({why}: no change)" if (why := pair.why_no_change) else ""
        lines += on.fold(f"{pair.base.title} -> {pair.head.title}{note}", 2)
        lines += [f"  {what:9} {counts}" for what, counts in _in_short(pair, on)]
    lines += _gate_lines("gate:", pairs, False, on)
    if timed or any(pair.times for pair in pairs):
        lines += _gate_lines("gate --time:", pairs, True, on)
    return "\n".join(lines)


def _gate_lines(title: str, pairs: Sequence[Pair], time: bool, on: Console) -> Iterator[str]:
    """Yields what a gate says, each reason on lines of its own, so that none is cut for another; its verdict
    is coloured."""
    gate = gate_pairs(pairs, time=time)
    plain = f"{title} {gate.verdict.upper()}"
    first, *more = on.fold(f"{plain}: {gate.reasons[0]}")
    yield f"{title} {on.paint(gate.verdict.upper(), VERDICT_STYLES[gate.verdict])}{first.removeprefix(plain)}"
    yield from more
    for reason in gate.reasons[1:]:
        yield from on.fold(f"  {reason}")


def _in_short(pair: Pair, on: Console) -> Iterator[tuple[str, str]]:
    """Yields what there is to say of outcomes, counts and times; each fits into a line."""
    is_news = pair.is_change
    kinds = Counter(case.kind for case in pair.outcomes.cases)
    outcomes = _counts({kind: kinds[kind] for kind in differences.TITLES}, "the same", is_news, on)
    yield "outcomes", f"{outcomes}, of {counted(pair.outcomes.compared, 'case')}"
    if pair.counted and is_news:
        worse = Counter(counted.count == "masks" for counted in pair.counted if counted.worse)
        counts = {
            "worse": worse[False],
            "masks that differ": worse[True],
            "changed": len(pair.counted) - worse.total(),
        }
        yield "counts", _counts(counts, "the same", is_news, on)
    if pair.times:
        verdicts = Counter(show.SIGNS[comparison.verdict] for comparison in pair.times)
        times = _counts({sign: verdicts[sign] for sign in show.SIGNS.values()}, "none", is_news, on)
        yield "times", f"{times}, of {counted(len(pair.times), 'figure')}"
    elif pair.time_notes:
        yield "times", "shown below, without a verdict"


def _counts(counts: Mapping[str, int], none: str, is_news: bool, on: Console) -> str:
    """Joins the counts that are not 0, coloured where they are news; `none` if all are."""
    parts = []
    for what, count in counts.items():
        if count:
            part = f"{count} {what}"
            parts.append(on.paint(part, NEWS_STYLES[what]) if is_news and what in NEWS_STYLES else part)
    return ", ".join(parts) or none


def _pair_text(pair: Pair, *, means: bool, on: Console) -> str:
    title = on.fold(f"{pair.base.title}  ->  {pair.head.title}", 2)
    lines = [*(on.paint(line, "head") for line in title), "=" * min(on.width, max(map(cell_len, title)))]
    for line in difference_lines(pair.outcomes, None if pair.is_change else 0):
        if line.heads:
            lines.append(on.paint(line.text, KIND_STYLES[line.heads]))
        else:
            lines += on.fold(line.text)
    if pair.counted and pair.is_change:
        lines += ["", *_counted_lines(pair, on)]
    if pair.count_note and pair.is_change:
        lines += ["", *on.fold(pair.count_note)]
    if pair.times:
        lines += ["", show.comparisons_text(pair.times, means=means, on=on)]
    if pair.time_notes:
        lines += ["", "times of two runs are shown without a verdict:"]
        lines += [part for line in pair.time_notes for part in on.fold(f"  {line}")]
    return "\n".join(lines)


def _counted_lines(pair: Pair, on: Console) -> Iterator[str]:
    """Yields the counts that differ; `worse` is coloured."""
    yield f"counted differently in {counted(len(pair.counted), 'place')}:"
    for figure in pair.counted[:MOST_COUNTED]:
        prefix = "  worse" if figure.worse else " "
        change = f"{figure.count}: {figure.before} -> {figure.after} ({figure.case})"
        first, *more = on.fold(f"{prefix} {change}")
        yield f"  {on.paint('worse', 'bad')}{first.removeprefix(prefix)}" if figure.worse else first
        yield from more
    if len(pair.counted) > MOST_COUNTED:
        yield f"  ... and {len(pair.counted) - MOST_COUNTED} more"


def measured_text(folder: Path, on: Console) -> str:
    """Returns what each arm takes, and whether the measurement may be believed."""
    figures = Figures(read_measurement(folder))
    return f"{show.arms_text(figures, on)}\n\n{show.proof_text(figures, conclude(figures), on)}"


def pairs_json(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Returns the pairs for machines."""
    return [
        {
            "base": _arm_json(pair.base.arm),
            "head": _arm_json(pair.head.arm),
            "cases_compared": pair.outcomes.compared,
            "outcomes": [case.to_json() for case in pair.outcomes.cases],
            "counted": [vars(counted) for counted in pair.counted],
            "times": [vars(comparison) | {"found": vars(comparison.found)} for comparison in pair.times],
            "told": list(pair.notes),
            "is_change": pair.is_change,
            "worse": pair.is_change and pair.counts_worse,
        }
        for pair in pairs
    ]


def _arm_json(arm: Arm) -> dict[str, str]:
    return {"backend": arm.backend, "version": arm.version, "options": arm.options}
