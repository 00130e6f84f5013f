"""Two arms of one run, or two runs: what came out differently, what was counted differently, and what takes
another time.

Outcomes and counts do not depend on the machine and may gate anywhere. Times are judged only where both arms
were measured in one interleaved run; between two runs they are told as ratios to the reference arm of each,
and never gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from harness.backend.arm import Arm, are_versions, arm, arm_names, base_of
from harness.checks import WRITES
from harness.errors import BadInput, Incomplete
from harness.measure import show
from harness.measure.estimate import Comparison, Figures
from harness.measure.record import Recorded, has_measurement, read_measurement
from harness.measure.session import conclude
from harness.outcomes import differences
from harness.outcomes.differences import Differences
from harness.outcomes.gate import Gate
from harness.rows.row import Row
from harness.rows.store import read_end, read_info, read_rows
from harness.text import PIPE, Console, Style

GROWTH = 0.05
"""A serialized grammar may grow by so much without being called worse."""

NO_BASELINE = "no baseline"

COUNTS = {
    "masks": "other masks (which are right, only a run with checks tells)",
    "forced_bytes": "fewer forced bytes",
    "serialized_bytes": "a larger serialized grammar",
    "passes": "more passes",
}
"""What is worse about each count, in words."""


@dataclass(frozen=True)
class Side:
    """One arm of a run."""

    folder: Path
    arm: Arm
    name: str
    recorded: Recorded | None
    """The run's measurement, if it has one."""

    @property
    def title(self) -> str:
        """The name with the version."""
        return with_version(self.name, self.arm.version)


def with_version(name: str, version: str) -> str:
    """The arm's name, and its version where that is not in the name."""
    return name if not version or f"=={version}" in name else f"{name} {version}"


@dataclass(frozen=True)
class Counted:
    """A deterministic count of one case that differs."""

    case_id: str
    case: str
    count: str
    before: Any
    after: Any
    worse: bool


@dataclass(frozen=True)
class Pair:
    """Everything about base and head."""

    base: Side
    head: Side
    outcomes: Differences
    counted: tuple[Counted, ...]
    times: tuple[Comparison, ...]
    """Judged: of one interleaved run."""
    told: tuple[str, ...]
    """Of two runs: lines that say how the ratios to the reference moved, or why they say nothing."""

    @property
    def is_change(self) -> bool:
        """Are base and head versions of one thing (or the same arm of two runs)?

        Only then may a difference between them gate.
        """
        return are_versions(self.base.arm, self.head.arm)

    @property
    def why_no_change(self) -> str:
        """What the two are if they are no versions of one thing; empty if they are."""
        if self.is_change:
            return ""
        return "two settings" if self.base.arm.backend == self.head.arm.backend else "two backends"

    @property
    def counts_worse(self) -> bool:
        """Is an outcome or a count worse? A missed deadline depends on the machine and is not counted."""
        return bool(self.what_is_worse)

    @property
    def what_is_worse(self) -> str:
        """Which outcomes and counts, in how many cases; empty if none is."""
        new_faults = sum(
            each.kind != "better" and not each.depends_on_the_machine for each in self.outcomes.cases
        )
        found = {"new faults": new_faults} | Counter(
            COUNTS.get(each.count, each.count) for each in self.counted if each.worse
        )
        return ", ".join(
            f"{what} in {count} case{'s' if count > 1 else ''}" for what, count in found.items() if count
        )

    @property
    def slower(self) -> bool:
        return any(each.verdict == "regressed" for each in self.times)

    @property
    def unproven(self) -> bool:
        return any(each.verdict == "unproven" for each in self.times)


def compare_arms(folder: Path) -> list[Pair]:
    """The first arm of each backend and its options with its later versions, other options with the backend's
    first arm, and whatever else was measured against each other. Raises BadInput.
    """
    sides = {each.name: each for each in sides_of(folder)}
    comparisons = conclude(folder) if has_measurement(folder) else []
    wanted: dict[tuple[str, str], None] = {}
    arms = [each.arm for each in sides.values()]
    names = dict(zip(arms, sides, strict=True))
    for head in arms:
        if (base := base_of(head, arms)) is not None:
            wanted[names[base], names[head]] = None
    wanted |= {
        (each.base, each.head): None for each in comparisons if each.base in sides and each.head in sides
    }
    return [_pair(sides[base], sides[head], comparisons) for base, head in wanted]


def compare_runs(base: Path, head: Path) -> list[Pair]:
    """Every backend with the same options in both runs; where a run has several versions of it, the last one.

    Raises BadInput.
    """
    old = {(each.arm.backend, each.arm.options): each for each in sides_of(base)}
    new = {(each.arm.backend, each.arm.options): each for each in sides_of(head)}
    shared = [key for key in old if key in new]
    if not shared:
        raise BadInput(f"{base} and {head} have no backend with the same options in common")
    shards = [read_info(each).shard or "the whole" for each in (base, head)]
    if shards[0] != shards[1]:
        raise BadInput(
            f"{base} is {shards[0]} of a run, {head} is {shards[1]}; put the shards together "
            "first (grammarbench merge)"
        )
    told = list(_told(base, head)) if has_measurement(base) and has_measurement(head) else []
    return [
        _pair(old[key], new[key], [], [line for arm, line in told if arm in ("", new[key].name)])
        for key in shared
    ]


def alone(base: Path, head: Path) -> str:
    """What only one of two runs has, so that it is compared with nothing, in a line; empty if there is no
    such. Raises BadInput."""
    old, new = ({arm(each): None for each in read_info(folder).arms} for folder in (base, head))
    sides = ((base, old, new), (head, new, old))
    said = [
        f"{', '.join(left)} (in {folder} only)"
        for folder, mine, other in sides
        if (left := [each for each in mine if each not in other])
    ]
    return f"not compared: {'; '.join(said)}" if said else ""


def sides_of(folder: Path) -> list[Side]:
    """The arms of a complete run. Raises BadInput."""
    info = read_info(folder)
    if read_end(folder) is None:
        raise Incomplete(
            f"{folder} is incomplete (no end) and is compared with nothing; complete it with "
            "grammarbench run --resume"
        )
    names = arm_names(info.arms)
    recorded = read_measurement(folder) if has_measurement(folder) else None
    if recorded and recorded.end is None:
        raise Incomplete(
            f"the measurement in {folder} is incomplete (no end) and is compared with nothing; measure anew"
        )
    return [
        Side(folder, each, names[each.backend, each.version, each.options], recorded) for each in info.arms
    ]


def rows_of(side: Side) -> Iterator[Row]:
    """The rows of this arm."""
    who = (side.arm.backend, side.arm.version, side.arm.options)
    return (row for row in read_rows(side.folder) if (row.backend, row.backend_version, row.options) == who)


def _pair(base: Side, head: Side, comparisons: Iterable[Comparison], told: Sequence[str] = ()) -> Pair:
    times = tuple(each for each in comparisons if (each.base, each.head) == (base.name, head.name))
    outcomes = differences.differences(rows_of(base), rows_of(head))
    # Where a fault is gone and none came, other masks are what was wanted.
    mended = {each.key[2] for each in outcomes.cases if each.kind == "better"}
    counted = tuple(
        replace(each, worse=False) if each.count == "masks" and each.case_id in mended else each
        for each in (*changed_counts(base, head), *changed_passes(base, head))
    )
    return Pair(base, head, outcomes, counted, times, tuple(told))


def changed_counts(base: Side, head: Side) -> Iterator[Counted]:
    """What was counted along the texts of both and is not the same."""
    old, new = base.recorded, head.recorded
    if old is None or new is None or old.measurement.vocabulary != new.measurement.vocabulary:
        return
    before, after = counts_of(old, base.name), counts_of(new, head.name)
    instances = {each.case_id: each.instance for each in old.measurement.traces}
    for trace in new.measurement.traces:
        case = trace.case_id
        if case in before and case in after and instances[case] == trace.instance:
            for count, worse in (
                ("masks_sha256", True),
                ("forced_bytes", _less(after[case]["forced_bytes"], before[case]["forced_bytes"])),
                (
                    "serialized_bytes",
                    _grown(before[case]["serialized_bytes"], after[case]["serialized_bytes"]),
                ),
            ):
                was, is_now = before[case][count], after[case][count]
                if was != is_now:
                    if count == "masks_sha256":
                        was, is_now = f"{before[case]['allowed']} tokens allowed", f"{after[case]['allowed']}"
                    yield Counted(
                        case, trace.case, "masks" if count == "masks_sha256" else count, was, is_now, worse
                    )


def changed_passes(base: Side, head: Side) -> Iterator[Counted]:
    """Where a strategy writes the same texts of a case with more or fewer passes than before, in runs with
    `--decode`."""
    if not all(read_info(each.folder).decode for each in (base, head)):
        return
    before = {(row.vocabulary, row.suite, row.case_id): row.counted for row in rows_of(base) if row.counted}
    for row in rows_of(head):
        old = before.get((row.vocabulary, row.suite, row.case_id), {})
        for check in (each for each in row.counted if each in old):
            was, is_now = old[check], row.counted[check]
            same = all(was[name] == is_now[name] for name in ("texts", "written", "ids"))
            if same and was["passes"] != is_now["passes"]:
                case = f"{row.case}, {check.removesuffix(WRITES)}"
                yield Counted(
                    row.case_id,
                    case,
                    "passes",
                    was["passes"],
                    is_now["passes"],
                    is_now["passes"] > was["passes"],
                )


def counts_of(recorded: Recorded, arm: str) -> dict[str, dict[str, Any]]:
    """By case: the counts of one arm."""
    found = {
        each["case_id"]: each for each in recorded.others if each["kind"] == "counts" and each["arm"] == arm
    }
    return {case: each for case, each in found.items() if "error" not in each}


def _less(now: int | None, before: int | None) -> bool:
    return before is not None and (now is None or now < before)


def _grown(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before * (1 + GROWTH)


def why_not_comparable(old: Recorded, new: Recorded) -> str:
    """Why times of these two runs say nothing about each other; empty if they do."""
    before, after = old.measurement, new.measurement
    references = [next(each for each in one.arms if each.role == "reference") for one in (before, after)]
    if before.hardware != after.hardware:
        return f"hardware {before.hardware} and {after.hardware}"
    if before.workload != after.workload:
        return f"workload {before.workload} and {after.workload}"
    if len({(each.backend, each.version, each.options) for each in references}) > 1:
        return (
            f"reference {references[0].name} {references[0].version} and {references[1].name} "
            f"{references[1].version}"
        )
    pythons = [one.software.get("python", "").rpartition(".")[0] for one in (before, after)]
    return "" if pythons[0] == pythons[1] else f"Python {pythons[0]} and {pythons[1]}"


def _told(base: Path, head: Path) -> Iterator[tuple[str, str]]:
    """Lines about times, each with the arm that it is of (empty: of all)."""
    old, new = read_measurement(base), read_measurement(head)
    if why := why_not_comparable(old, new):
        yield "", f"times: {NO_BASELINE}, the runs differ in {why}"
        return
    reference = next(each.name for each in new.measurement.arms if each.role == "reference")
    arms = Figures(new).arms
    before = {
        (each.head, each.metric, each.family): each for each in conclude(base) if each.base == reference
    }
    for each in conclude(head):
        was = before.get((each.head, each.metric, each.family))
        if each.base == reference and was is not None and each.head in arms:
            change = each.found.ratio / was.found.ratio - 1
            span = f"{was.found.ratio:.3f} -> {each.found.ratio:.3f} of {reference} ({change:+.1%})"
            yield each.head, f"{each.metric} {each.family}: {span}"


def gate(pairs: Sequence[Pair], *, time: bool) -> Gate:
    """Returns what a gate says of the pairs, with `time` of proven slowdowns too.

    Only changes are judged, which are versions of one thing.
    """
    changes = [pair for pair in pairs if pair.is_change]
    worse = [f"{pair.head.title} has {pair.what_is_worse}" for pair in changes if pair.counts_worse]
    worse += [f"{pair.head.title} is proven slower" for pair in changes if time and pair.slower]
    if worse:
        return Gate("failed", "", tuple(worse))
    if not changes:
        return Gate("unproven", "", ("no two versions of one backend with the same options were compared",))
    if not any(pair.outcomes.compared for pair in changes):
        return Gate("unproven", "", ("they have no measured case in common",))
    if time and not all(pair.times and not pair.unproven for pair in changes):
        why = "not every time is proven either way; measure both versions in one run, on a quiet machine"
        return Gate("unproven", "", (why,))
    return Gate("ok", "", ("no outcome and no count is worse" + (", and no time" if time else ""),))


def text(pairs: Sequence[Pair], *, means: bool = False, time: bool = False, on: Console = PIPE) -> str:
    """For people: in short what is worse, better, slower or unproven, and what a gate says; then everything,
    pair by pair.

    `time`: the gate over times is shown even where nothing was measured."""
    if not pairs:
        return "\n".join(
            on.fold(
                "one arm of each backend: nothing to compare; give two runs, or a run with "
                "two versions of a backend"
            )
        )
    return "\n\n".join([_summary(pairs, time, on), *(_text(each, means=means, on=on) for each in pairs)])


def _summary(pairs: Sequence[Pair], timed: bool, on: Console) -> str:
    lines = []
    for pair in pairs:
        lines += on.fold(
            f"{pair.base.title} -> {pair.head.title}"
            + ("" if pair.is_change else f" ({pair.why_no_change}: no change)"),
            2,
        )
        lines += [f"  {what:9} {said}" for what, said in _in_short(pair, on).items()]
    styles: dict[str, Style] = {"ok": "good", "failed": "bad", "unproven": "open"}
    for title, time in (("gate:", False), ("gate --time:", timed or any(pair.times for pair in pairs))):
        if time or title == "gate:":
            held = gate(pairs, time=time)
            word = held.verdict.upper()
            first, *more = on.fold(f"{title} {word}: {'; '.join(held.reasons)}", 2)
            rest = first.removeprefix(f"{title} {word}")
            lines += [f"{title} {on.paint(word, styles[held.verdict])}{rest}", *more]
    return "\n".join(lines)


def _in_short(pair: Pair, on: Console) -> dict[str, str]:
    """What there is to say of outcomes, counts and times, coloured where it is good or bad news; each fits
    into a line."""
    kinds = Counter(each.kind for each in pair.outcomes.cases)
    news = pair.is_change
    styles: dict[str, Style] = (
        {"worse": "bad", "better": "good", "SLOWER": "bad", "faster": "good", "unproven": "open"}
        if news
        else {}
    )

    def counted(counts: Mapping[str, int], none: str) -> str:
        said = [f"{count} {what}" for what, count in counts.items() if count]
        return (
            ", ".join(
                on.paint(each, styles[each.split(" ")[1]]) if each.split(" ")[1] in styles else each
                for each in said
            )
            or none
        )

    told = {
        "outcomes": f"{counted({each: kinds[each] for each in differences.TITLES}, 'the same')}, of "
        f"{pair.outcomes.compared} cases"
    }
    if pair.counted and news:
        worse = Counter(each.count == "masks" for each in pair.counted if each.worse)
        told["counts"] = counted(
            {"worse": worse[False], "other masks": worse[True], "changed": len(pair.counted) - worse.total()},
            "the same",
        )
    if pair.times:
        verdicts = Counter(show.SIGNS[each.verdict] for each in pair.times)
        told["times"] = (
            f"{counted({each: verdicts[each] for each in show.SIGNS.values()}, 'none')}, of "
            f"{len(pair.times)} figures"
        )
    elif pair.told:
        told["times"] = "told below, not judged"
    return told


def _text(pair: Pair, *, means: bool, on: Console) -> str:
    title = on.fold(f"{pair.base.title}  ->  {pair.head.title}", 2)
    lines = [*(on.paint(each, "head") for each in title), "=" * min(on.width, max(map(cell_len, title)))]
    styles: dict[str, Style] = {
        "new faults:": "bad",
        "faults that are gone:": "good",
        "other faults than before:": "open",
    }
    for line in differences.text(pair.outcomes, None if pair.is_change else 0).split("\n"):
        style = next((style for start, style in styles.items() if line.startswith(start)), None)
        lines += on.fold(line) if style is None else [on.paint(line, style)]
    if pair.counted and pair.is_change:
        lines += ["", f"counted differently in {len(pair.counted)} place(s):"]
        for each in pair.counted[:40]:
            first, *more = on.fold(
                f"  {'worse ' if each.worse else ''}{each.count}: {each.before} -> {each.after} ({each.case})"
            )
            lines += [f"  {on.paint('worse', 'bad')}{first[7:]}" if each.worse else first, *more]
        lines += [f"  ... and {len(pair.counted) - 40} more"] * (len(pair.counted) > 40)
    if pair.times:
        lines += ["", show.comparisons_text(pair.times, means=means, on=on)]
    if pair.told:
        lines += [
            "",
            "times between two runs are told, not judged:",
            *(part for line in pair.told for part in on.fold(f"  {line}")),
        ]
    return "\n".join(lines)


def measured_text(folder: Path, on: Console = PIPE) -> str:
    """What each arm takes, and whether the measurement may be believed."""
    figures, comparisons = Figures(read_measurement(folder)), conclude(folder)
    return f"{show.arms_text(figures, on)}\n\n{show.proof_text(figures, comparisons, on)}"


def to_json(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """For machines."""
    return [
        {
            "base": {
                "backend": pair.base.arm.backend,
                "version": pair.base.arm.version,
                "options": pair.base.arm.options,
            },
            "head": {
                "backend": pair.head.arm.backend,
                "version": pair.head.arm.version,
                "options": pair.head.arm.options,
            },
            "cases_compared": pair.outcomes.compared,
            "outcomes": [each.to_json() for each in pair.outcomes.cases],
            "counted": [vars(each) for each in pair.counted],
            "times": [vars(each) | {"found": vars(each.found)} for each in pair.times],
            "told": list(pair.told),
            "is_change": pair.is_change,
            "worse": pair.is_change and pair.counts_worse,
        }
        for pair in pairs
    ]
