"""The comparison of two arms of a record, or of two records, figure by figure: regressed, improved,
equivalent, inconclusive or unproven.

Times are compared only within a record, where the arms ran in the same rounds. Between records the machine
drifts, so there the ratios to what ran beside it (overhead over the unconstrained run, strategy over
stepwise) are told, and gate nothing. Exact counts gate anywhere, and so does a setting that one side measured
and the other lost. Of a workload whose texts changed between two records, nothing is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from harness.backend.arm import are_versions
from harness.errors import Incomplete
from harness.measure.estimate import SMALLEST_MARGIN, Verdict
from harness.measure.statistics import Interval, chance, false_discovery, interval, judge
from harness.serve.decode import overhead, right
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.record import DecodeSetup, Decoding, Loss, read_decoding
from harness.serve.decode.setting import Setting
from harness.serve.requests import latency
from harness.text import MOST_FOLDED, PIPE, Console

TIMES: dict[str, overhead.Figure] = {
    "ttft": latency.ttft,
    "tpot": latency.tpot,
    "e2e": latency.e2e,
    "service": overhead.service,
}
"""Times of requests; lower is better. The names are those of `harness.serve.requests.titles`."""

COUNTS: dict[str, Callable[[DecodeCell], float | None]] = {
    "solved": lambda cell: right.solved(cell.judged).share,
    "solved_or_cut": lambda cell: right.solved_or_cut(cell.judged).share,
    "valid": lambda cell: right.valid(cell.judged).share,
    "tokens_per_pass": lambda cell: latency.tokens_per_pass(cell.completed),
}
"""Exact counts; higher is better. They have no interval, because the same run again gives the same."""

MEASURED = "measured"
"""The name of the change that tells whether a setting was measured at all."""

TEXTS = "texts"
"""The name of the change that tells that a setting has other texts in two records, and is not compared."""


@dataclass(frozen=True)
class DecodeChange:
    """Head against base in one figure of one setting. A ratio above 1 is worse; for a count see `base_value`
    and `head_value`."""

    base: str
    head: str
    setting: str
    figure: str
    found: Interval | None
    """The interval of the ratio; None for a count."""
    margin: float
    verdict: Verdict
    why: str = ""
    base_value: float | None = None
    head_value: float | None = None
    is_change: bool = True
    """Whether the pair is a change. The difference between two settings of one backend is none: it is shown
    and gates nothing."""
    is_between_records: bool = False
    """Whether base and head are the same arm of two records, whose times prove nothing about each other."""
    no_baseline: str = ""
    """Why only counts of two records are compared; empty where ratios are told too."""


def compare(base: Path, head: Path | None) -> list[DecodeChange]:
    """Returns the changes between two records, or between the arms of each backend within one; of an A/A arm
    those from the arm whose copy it is. Raises BadInput for a record that is none, or that has no end."""
    before = _complete(base)
    if head is not None:
        return compare_records(before, _complete(head))
    pairs = [
        (one, other)
        for one, other in combinations(before.decoding.setup.arms, 2)
        if one.backend == other.backend and (one.role == "reference" or other.role != "a/a")
    ]
    return [
        replace(change, is_change=are_versions(one, other))
        for one, other in pairs
        for change in compare_arms(before, one.name, other.name)
    ]


def _complete(folder: Path) -> Decoded:
    decoding = read_decoding(folder)
    if not decoding.is_complete:
        raise Incomplete(
            f"the decoding in {folder} is incomplete (no end) and is compared with nothing; decode anew"
        )
    return Decoded(decoding)


def gate(changes: Sequence[DecodeChange], *, time: bool) -> Literal["ok", "failed", "unproven"]:
    """Returns the gate over the counts and, if `time`, over the times, which two records never prove. A
    difference between two settings of a backend is not judged."""
    judged = [
        change
        for change in changes
        if change.is_change and (change.found is None or (time and not change.is_between_records))
    ]
    if any(change.verdict == "regressed" for change in judged):
        return "failed"
    if time and any(change.is_between_records for change in changes):
        return "unproven"
    return (
        "ok"
        if judged and all(change.verdict in ("equivalent", "improved") for change in judged)
        else "unproven"
    )


def changes_text(changes: Sequence[DecodeChange], on: Console = PIPE) -> str:
    """Returns the changes by setting, as text; equal counts are left out. Why times are not told stands
    first."""
    if not changes:
        return on.fit(
            "nothing to compare: give two records with common settings, or one with two versions of a backend"
        )
    others = [change.why for change in changes if change.figure == TEXTS]
    whys = dict.fromkeys([*(change.no_baseline for change in changes if change.no_baseline), *others])
    lines = [*whys]
    compared = [change for change in changes if change.figure != TEXTS]
    title = ""
    for change in sorted(compared, key=lambda change: (change.base, change.head, change.setting)):
        who = change.head if change.is_between_records else f"{change.base} -> {change.head}"
        who += "" if change.is_change else " (two settings: no change)"
        if (where := f"{who}, {change.setting}") != title:
            title = where
            lines += [*([""] if lines else []), where]
        if change.found is not None:
            value = f"{change.found.ratio:.3f}x [{change.found.low:.3f} .. {change.found.high:.3f}]"
        elif change.base_value == change.head_value:
            continue
        else:
            value = f"{change.base_value:.4g} -> {change.head_value:.4g}"
        lines.append(f"  {change.figure:16} {value:28} {change.verdict}")
        lines += [f"    {change.why}"] if change.why else []
    verdicts = [f"gate{' --time' * time}: {gate(changes, time=time).upper()}" for time in (False, True)]
    return "\n".join(part for line in (*lines, "", *verdicts) for part in on.fold(line, MOST_FOLDED))


def compare_arms(decoded: Decoded, base: str, head: str) -> list[DecodeChange]:
    """Returns the changes within one record. Where the A/A pair is not equivalent in a figure of a setting,
    that time is `unproven`."""
    arms = decoded.decoding.setup.arms
    reference = next((arm.name for arm in arms if arm.role == "reference"), None)
    copy = next((arm.name for arm in arms if arm.role == "a/a"), None)
    changes = list(_times(decoded, base, head))
    judged = _after_discovery(changes)
    if copy is None:
        reason = "no second arm of identical code in this record shows what this machine can tell apart"
        judged = [
            replace(change, why=change.why or reason)
            if change.verdict in ("regressed", "improved")
            else change
            for change in judged
        ]
    if copy is not None and reference is not None:
        proven = {
            (change.setting, change.figure)
            for change, _ in _times(decoded, reference, copy)
            if change.verdict == "equivalent"
        }
        reason = "two arms of identical code were not equivalent here"
        judged = [
            change
            if (change.setting, change.figure) in proven
            else replace(change, verdict="unproven", why=reason)
            for change in judged
        ]
    counts = _counts(_constrained(decoded, base), _constrained(decoded, head), base, head)
    return [*judged, *counts, *_lost(decoded, decoded, base, head)]


def compare_records(base: Decoded, head: Decoded) -> list[DecodeChange]:
    """Returns the changes between arms of the same name, in settings that both records have, with the same
    texts: counts, what one of them lost and, where the records are of one machine and model, ratios to what
    ran beside them. A setting with other texts has one change, which says so and is unproven."""
    why = why_no_baseline(base.decoding.setup, head.decoding.setup)
    other = other_texts(base.decoding, head.decoding)
    changes: list[tuple[DecodeChange, Sequence[float]]] = []
    counts: list[DecodeChange] = []
    asked = [setting for setting in base.decoding.setup.settings if setting in head.decoding.setup.settings]
    unlike = {
        setting.name: f"not compared: the texts of {setting.workload} are not the same in both records"
        for setting in asked
        if setting.workload in other
    }
    names = {arm.name for arm in head.decoding.setup.arms}
    for arm in (arm.name for arm in base.decoding.setup.arms if arm.name in names):
        after, before = _constrained(head, arm), _constrained(base, arm)
        before = {setting: cell for setting, cell in before.items() if setting.workload not in other}
        for setting in before:
            if setting not in after:
                continue
            for figure, of in () if why else RATIOS.items():
                # Forks of two records belong to nobody's pair: any matching gives the difference its true
                # scatter.
                x = [
                    theirs - ours
                    for ours, theirs in zip(of(base, before[setting]), of(head, after[setting]), strict=False)
                ]
                if x:
                    changes.append((_change(arm, arm, setting.name, figure, x), x))
        counts += _counts(before, after, arm, arm)
        counts += (change for change in _lost(base, head, arm, arm) if change.setting not in unlike)
        counts += (
            DecodeChange(arm, arm, setting, TEXTS, None, 0.0, "unproven", text)
            for setting, text in unlike.items()
        )
    return [
        replace(change, is_between_records=True, no_baseline=why)
        for change in (*_after_discovery(changes), *counts)
    ]


def why_no_baseline(base: DecodeSetup, head: DecodeSetup) -> str:
    """Says in what two records differ so that no time of one is a baseline for the other; empty if in
    nothing."""
    settings = {
        "hardware": (base.hardware, head.hardware),
        "device": (base.device, head.device),
        "model": (base.model, head.model),
        "dtype": (base.dtype, head.dtype),
        "vocabulary": (base.sha256[:12], head.sha256[:12]),
    }
    different = [f"{name} ({then} and {now})" for name, (then, now) in settings.items() if then != now]
    return f"no baseline: the records differ in {', '.join(different)}" if different else ""


def other_texts(base: Decoding, head: Decoding) -> set[str]:
    """Returns the workloads of both records whose texts or grammars are not the same in them, by all that
    both records say of these."""

    def texts(decoding: Decoding, names: AbstractSet[str], workload: str) -> list[dict[str, Any]]:
        return [{name: text[name] for name in names if name in text} for text in decoding.workloads[workload]]

    # Another vocabulary spells the same text in another number of tokens.
    left_out = set() if base.setup.sha256 == head.setup.sha256 else {"tokens"}
    other = set()
    for workload in base.workloads.keys() & head.workloads.keys():
        names = [{name for text in one.workloads[workload] for name in text} for one in (base, head)]
        known = set.intersection(*names) - left_out
        if texts(base, known, workload) != texts(head, known, workload):
            other.add(workload)
    return other


def _overhead_x(decoded: Decoded, cell: DecodeCell) -> Sequence[float]:
    pairing = decoded.over_none(cell)
    return () if pairing is None else pairing.x


def _strategy_x(decoded: Decoded, cell: DecodeCell) -> Sequence[float]:
    gain = decoded.speed_up(cell)
    return () if gain is None else [-x for x in gain.ratio.x]


RATIOS: dict[str, Callable[[Decoded, DecodeCell], Sequence[float]]] = {
    "overhead": _overhead_x,
    "speed_up": _strategy_x,
}
"""The logarithm of each ratio, by fork; lower is better, so `speed_up` is strategy over stepwise here."""


def _times(decoded: Decoded, base: str, head: str) -> Iterator[tuple[DecodeChange, Sequence[float]]]:
    theirs = _constrained(decoded, base)
    for setting, cell in _constrained(decoded, head).items():
        if setting not in theirs:
            continue
        runs = decoded.runs(decoded.key_of(cell), decoded.key_of(theirs[setting]))
        for figure, of in TIMES.items():
            pairing = overhead.paired(runs, of)
            if pairing.x:
                yield _change(base, head, setting.name, figure, pairing.x), pairing.x


def _change(base: str, head: str, setting: str, figure: str, x: Sequence[float]) -> DecodeChange:
    estimate = interval(x)
    return DecodeChange(
        base, head, setting, figure, estimate, SMALLEST_MARGIN, judge(estimate, SMALLEST_MARGIN)
    )


def _after_discovery(changes: Sequence[tuple[DecodeChange, Sequence[float]]]) -> list[DecodeChange]:
    """Returns the changes, of which only those that a false discovery rate of one percent over all of them
    leaves keep their verdict."""
    stands = false_discovery([chance(x, change.margin) for change, x in changes])
    reason = "does not stand at a false discovery rate of one percent"
    return [
        change
        if stand or change.verdict not in ("regressed", "improved")
        else replace(change, verdict="inconclusive", why=reason)
        for (change, _), stand in zip(changes, stands, strict=True)
    ]


def _constrained(decoded: Decoded, arm: str) -> dict[Setting, DecodeCell]:
    return {cell.setting: cell for cell in decoded.cells if cell.arm == arm and cell.role == "constrained"}


def _counts(
    before: dict[Setting, DecodeCell], after: dict[Setting, DecodeCell], base: str, head: str
) -> Iterator[DecodeChange]:
    for setting in before:
        if setting not in after:
            continue
        for figure, of in COUNTS.items():
            was, now = of(before[setting]), of(after[setting])
            if was is not None and now is not None:
                verdict: Verdict = "equivalent" if now == was else "improved" if now > was else "regressed"
                yield DecodeChange(base, head, setting.name, figure, None, 0.0, verdict, "", was, now)


def _lost(before: Decoded, after: Decoded, base: str, head: str) -> Iterator[DecodeChange]:
    """Yields the settings that one side measured to the end and the other lost: 1 stands for measured and 0
    for lost. What the head was not asked for, it has not lost."""
    ours, theirs = _losses(after, head), _losses(before, base)
    asked = set(after.decoding.setup.settings)
    for setting in dict.fromkeys(before.decoding.setup.settings):
        was, now = theirs.get(setting), ours.get(setting)
        if setting not in asked or (was is None) == (now is None):
            continue
        if now is not None:
            verdict: Verdict = "unproven" if now.whose == "harness_error" else "regressed"
            yield DecodeChange(base, head, setting.name, MEASURED, None, 0.0, verdict, _said(now), 1.0, 0.0)
        elif was is not None and was.whose != "harness_error":  # a fault of ours that is gone is no gain
            why = f"before: {_said(was)}"
            yield DecodeChange(base, head, setting.name, MEASURED, None, 0.0, "improved", why, 0.0, 1.0)


def _losses(decoded: Decoded, arm: str) -> dict[Setting, Loss]:
    settings = decoded.decoding.setup.settings
    return {settings[loss.setting]: loss for loss in decoded.decoding.losses if loss.arm == arm}


def _said(loss: Loss) -> str:
    return f"{loss.whose.replace('_', ' ')}: {loss.why}"
