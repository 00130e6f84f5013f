"""What is published of releases over a year: a table, a figure, every case's state, and a README that answers
first."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from further_sessions import copy_sessions
from reference_about import wrapped

import harness
from harness.backend.arm import Arm, version_key
from harness.backend.environments.releases import release
from harness.backend.registry import parse_spec
from harness.errors import BadInput
from harness.outcomes.case_state import FAILED, STATES, CaseState
from harness.report.figures.estimates import share
from harness.rows.folder import ROWS
from harness.rows.row import RunInfo
from harness.rows.store import PACKED, has_begun, packed, read_info
from harness.text import csv_text, one_line

RUN, REFUSED = "run", "refused.json"
"""The folder of the run, and the file that says why releases are not in it."""

SHOWN = (
    CaseState.WORKS,
    CaseState.REFUSED,
    CaseState.SILENTLY_WRONG,
    CaseState.VALID_REFUSED,
    CaseState.TOO_SLOW,
    CaseState.BREAKS,
    CaseState.OTHER_FAULT,
    CaseState.NOT_JUDGED,
    CaseState.NOT_MEASURED,
)
"""The columns of the table, each a number of cases; together they are all cases."""

COLOURS = {
    CaseState.WORKS: "#2a7f62",
    CaseState.REFUSED: "#c9cdd2",
    CaseState.SILENTLY_WRONG: "#b3261e",
    CaseState.VALID_REFUSED: "#e08a1e",
    CaseState.TOO_SLOW: "#7d6fb3",
    CaseState.BREAKS: "#3b0a08",
    CaseState.OTHER_FAULT: "#8a5a44",
    CaseState.NOT_JUDGED: "#eef0f2",
    CaseState.NOT_MEASURED: "#ffffff",
}


@dataclass(frozen=True)
class Release:
    """One arm: a release of a distribution, or whatever else `--arms` names."""

    arm: str
    """The arm as `grammarbench run --backends` takes it."""
    distribution: str
    version: str
    day: str
    """The day on which its first file came to the index; empty if that is not known."""


@dataclass(frozen=True)
class Walked:
    """A release that was walked to its end."""

    release: Release
    states: dict[str, CaseState]
    """The state of every case, by its id."""
    names: dict[str, str]
    """The name of every case, by its id."""

    def count(self, state: CaseState) -> int:
        return sum(other == state for other in self.states.values())

    @property
    def judged(self) -> int:
        """Returns how many cases count for conformance."""
        return len(self.states) - self.count(CaseState.NOT_JUDGED) - self.count(CaseState.NOT_MEASURED)


def arm_of(asked: Release, info: RunInfo) -> Arm | None:
    """Returns the arm of the run that was asked for so; None where the run has none."""
    spec = parse_spec(asked.arm)
    for arm in info.arms:
        versions = arm.version, arm.version.partition("+")[0]  # behind the + stands what a wrapper wraps
        is_it = not arm.python if spec.version is None else release(spec.version) in map(release, versions)
        if is_it and (arm.backend, arm.options) == (spec.name, spec.options_text):
            return arm
    return None


def read(out: Path, arms: Sequence[Release]) -> list[Walked]:
    """Returns the releases that were walked over every case, in their order."""
    folder = out / RUN
    info = read_info(folder)
    size = sum(suite["cases"] for suite in info.suites.values())
    of_arm = dict(list(harness.load(folder).cases.groupby(["backend", "version", "options"])))
    walked = []
    for arm in arms:
        found = arm_of(arm, info)
        mine = of_arm.get(version_key(found)) if found else None
        if mine is not None and len(mine) == size:
            ids = list(mine["case_id"])
            states = dict(zip(ids, map(CaseState, mine["state"]), strict=True))
            walked.append(Walked(arm, states, dict(zip(ids, mine["case"], strict=True))))
    return walked


@dataclass(frozen=True)
class Changes:
    """What differs between two releases: ids of cases, and how many differ by a missed deadline on one side,
    which depends on the machine."""

    mended: list[str]
    """They failed, and work now."""
    broken: list[str]
    """They worked, and fail now."""
    taken: list[str]
    """They were refused, and work now."""
    refused: list[str]
    """They worked, and are refused now."""
    late: int


def changes(before: Walked, after: Walked) -> Changes:
    """Returns what differs between two releases, over the cases that both walked."""
    mended: list[str] = []
    broken: list[str] = []
    taken: list[str] = []
    refused: list[str] = []
    late = 0
    for case, state in after.states.items():
        old = before.states.get(case)
        if old is None or old == state:
            continue
        if CaseState.TOO_SLOW in (old, state):
            late += 1
        elif state == CaseState.WORKS and old in FAILED:
            mended.append(case)
        elif state == CaseState.WORKS and old == CaseState.REFUSED:
            taken.append(case)
        elif old == CaseState.WORKS and state in FAILED:
            broken.append(case)
        elif old == CaseState.WORKS and state == CaseState.REFUSED:
            refused.append(case)
    return Changes(mended, broken, taken, refused, late)


def publish(out: Path, arms: Sequence[Release], refused: Mapping[str, str]) -> bool:
    """Writes `out/published`, and returns whether every arm was walked to its end or is noted as refused.
    Raises BadInput where none was."""
    walked = read(out, arms) if has_begun(out / RUN) else []
    if not walked:
        raise BadInput(f"{out}: no release was walked to its end yet; leave --page out to go on")
    folder = out / "published"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "releases.json").write_text(json.dumps([_line(one) for one in walked], indent=1) + "\n")
    (folder / "states.csv.gz").write_bytes(gzip.compress(_states(walked).encode(), mtime=0))
    (folder / "releases.svg").write_text(figure(walked))
    rows = (out / RUN / ROWS).read_bytes()
    (folder / PACKED).write_bytes(packed(rows))
    copy_sessions(out / RUN, folder)
    missing = [arm for arm in arms if arm not in [one.release for one in walked]]
    (folder / "README.md").write_text(readme(walked, missing, refused, read_info(out / RUN)))
    return all(arm.arm in refused for arm in missing)


def _line(one: Walked) -> dict[str, Any]:
    found = share(one.count(CaseState.WORKS), one.judged)
    return {
        "arm": one.release.arm,
        "distribution": one.release.distribution,
        "version": one.release.version,
        "day": one.release.day,
        "cases": len(one.states),
        "judged": one.judged,
        **{state.value: one.count(state) for state in SHOWN},
        "conformance": None if found is None else round(found.value, 4),
        "conformance_99": None
        if found is None or found.bounds is None
        else [round(b, 4) for b in found.bounds],
    }


def _states(walked: Sequence[Walked]) -> str:
    """Returns a line for each case with its state under each release, as CSV."""
    names = {case: name for one in walked for case, name in one.names.items()}
    heads = ["case_id", "case", *(one.release.arm for one in walked)]
    lines = ([case, names[case], *(one.states.get(case, "") for one in walked)] for case in sorted(names))
    return csv_text([heads, *lines])


def readme(
    walked: Sequence[Walked], missing: Sequence[Release], refused: Mapping[str, str], info: RunInfo
) -> str:
    """Returns the page: the answer, the table, what changed where, and how it was made."""
    lines = ["# A year of releases on the same schemas", ""]
    for _, group in groupby(walked, lambda one: one.release.distribution):
        lines.append(f"- {_answer(list(group))}")
    lines += [
        "",
        f"{len(walked[0].states)} schemas of MaskBench that have outputs of their own, the same for every "
        "release, spread over keywords and "
        f"sizes; vocabulary {', '.join(info.vocabularies)}; a deadline of {info.timeout_s:g} s for each "
        "call. Each number below is a number of these schemas.",
        "The table as data is in `releases.json`, the state of each schema under each release in "
        f"`states.csv.gz`, every walk in `{PACKED}`; `--take-over` with this folder goes on from there.",
        "",
        "![Stacked bars, one for each release: how many schemas work, are refused, are silently wrong, and "
        "so on](releases.svg)",
        "",
        f"| release | day | {' | '.join(STATES[state].title for state in SHOWN)} | conformance (99 %) |",
        f"| --- | --- | {' | '.join('---:' for _ in SHOWN)} | --- |",
        *(_row(one) for one in walked),
        "",
        *_changed(walked),
    ]
    if missing:
        lines += ["## Not in the table", ""]
        for arm in missing:
            why = one_line(refused.get(arm.arm, "not walked to its end yet"), 300)
            lines.append(f"- {arm.arm} ({arm.day or 'no day'}): {why}")
        lines.append("")
    machine = f"{info.machine.get('cpu_model_name')}, {info.machine.get('cpu_count')} processors"
    lines += ["## How it was made", "", f"{METHOD} *Too slow* depends on the machine ({machine}).", ""]
    return "\n".join(map(wrapped, lines))


METHOD = (
    "`python benchmarks/releases.py --out DIR` installs each release as an arm of its own and walks "
    "the instances of every schema: a verdict on each, no checks of masks, no times. A schema *works* "
    "if every instance is judged rightly; the states are those of [words](../../../docs/words.md). "
    "Conformance is the share of the judged schemas that work, refusals counted against it, with "
    "Wilson's interval for a sample of this size; the releases walked the same sample, so that their "
    "differences are surer than these intervals say. Of versions 0.X.Y every release is walked, from "
    "1.0 on the last of each X.Y. The adapters are today's: where an old release lacks what they "
    "call, its state says so."
)


def _answer(of_one: Sequence[Walked]) -> str:
    """Returns what became of a distribution between its oldest and its newest release here."""
    first, last = of_one[0], of_one[-1]
    parts = [f"works {first.count(CaseState.WORKS)} → {last.count(CaseState.WORKS)} of {len(last.states)}"]
    parts += [
        f"{STATES[state].title} {first.count(state)} → {last.count(state)}"
        for state in SHOWN[1:]
        if first.count(state) or last.count(state)
    ]
    name = f"**{last.release.distribution}** {first.release.version} → {last.release.version}"
    days = f" ({first.release.day} to {last.release.day})" if last.release.day else ""
    return f"{name}{days}: {', '.join(parts)}."


def _row(one: Walked) -> str:
    found = share(one.count(CaseState.WORKS), one.judged)
    counts = " | ".join(str(one.count(state)) for state in SHOWN)
    said = "-"
    if found is not None and found.bounds is not None:
        said = f"{found.value:.1%} [{found.bounds[0]:.1%}, {found.bounds[1]:.1%}]"
    return f"| {one.release.arm} | {one.release.day or '-'} | {counts} | {said} |"


def _changed(walked: Sequence[Walked]) -> list[str]:
    """Returns the part that says between which two releases cases began to work, or to fail."""
    lines = [
        "## Where it changed",
        "",
        "Between two releases of the table that follow each other; what differs by a missed deadline on one",
        "side depends on the machine and is counted apart. `grammarbench bisect` finds the very release of a",
        "case.",
        "",
        "| from | to | failed, works now | refused, works now | worked, fails now | worked, refused now "
        "| differ by a deadline |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    fails: list[str] = []
    for before, after in pairwise(walked):
        if before.release.distribution != after.release.distribution:
            continue
        found = changes(before, after)
        counts = [*map(len, (found.mended, found.taken, found.broken, found.refused)), found.late]
        lines.append(f"| {before.release.arm} | {after.release.arm} | {' | '.join(map(str, counts))} |")
        fails += [
            f"- {after.release.arm}: {one_line(after.names[case])}, {STATES[after.states[case]].title}"
            for case in sorted(found.broken, key=after.names.__getitem__)
        ]
    lines.append("")
    return [*lines, "Worked, and fails from there on:", "", *fails, ""] if fails else lines


def figure(walked: Sequence[Walked]) -> str:
    """Returns the table as stacked bars, as SVG: a bar for each release, a panel for each distribution."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    groups = [list(group) for _, group in groupby(walked, lambda one: one.release.distribution)]
    used = [state for state in SHOWN if any(one.count(state) for one in walked)]
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "releases", "font.size": 8}):
        drawing = Figure(figsize=(8, 0.9 + 0.2 * len(walked) + 0.35 * len(groups)), layout="constrained")
        panels = drawing.subplots(
            len(groups), 1, sharex=True, squeeze=False, height_ratios=[*map(len, groups)]
        )
        for axes, group in zip(panels[:, 0], groups, strict=True):
            left = [0] * len(group)
            places = list(range(len(group)))
            for state in used:
                counts = [one.count(state) for one in group]
                axes.barh(places, counts, left=left, color=COLOURS[state], edgecolor="#60666c", linewidth=0.3)
                left = [have + more for have, more in zip(left, counts, strict=True)]
            axes.set_yticks(places, [f"{one.release.version}  {one.release.day}" for one in group])
            axes.invert_yaxis()
            axes.set_title(group[0].release.distribution, loc="left", fontsize=9)
            axes.spines[["top", "right", "left"]].set_visible(False)
        panels[-1, 0].set_xlabel("schemas")
        handles = [Patch(facecolor=COLOURS[s], edgecolor="#60666c", label=STATES[s].title) for s in used]
        drawing.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False)
        text = io.StringIO()
        drawing.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
