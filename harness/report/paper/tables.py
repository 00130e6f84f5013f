"""The tables of a paper: what the cases came to, how many masks are right, and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.measure.statistics import LEVEL
from harness.outcomes.metrics import METRICS
from harness.outcomes.outcome import Counts
from harness.report.export.csv_table import COUNTED
from harness.report.figures.estimates import conformance
from harness.report.frames import times
from harness.report.frames.rows import Seen
from harness.report.page.inputs import Inputs, Subject
from harness.report.page.lines import Line, RunSeen, solved
from harness.report.paper.latex import escape, table
from harness.report.values import percent, percents
from harness.rows.again import is_live
from harness.text import counted, duration, some

OUTCOMES = tuple(name for name in COUNTED if name not in ("cases", "judged", "failed"))
"""What cases come to, in the order of every surface, failed ones by what goes wrong."""

FIGURES = {
    "compile per case": "compile",
    "ttfm per case": "time to first mask",
    "fill per token, walked once": "mask, cold",
    "fill per token, cold": "mask, cold",
    "fill per token, warm": "mask, warm",
}
"""The times that the table has, by the names that `Run.times` has for them, and how it calls them."""

HOW = {
    "walked": "Walked: each call made once after a fresh compile, noise included.",
    "measured": (
        "Measured: after fresh compiles, for each case or token the median over forks and rounds; warm: per "
        "token the minimum over repetitions."
    ),
}
"""How the times of each source were taken, in a sentence."""

LEVELS = {"p50_us": "p50", "p90_us": "p90", "p99_us": "p99", "max_us": "Max."}
"""The percentiles that the table has, each where a line has it, and their heads."""

MOST_NAMED = 3
"""Backends that solve nothing of which a caption has the names."""


def tables(inputs: Inputs) -> dict[str, bytes]:
    """Returns `table-NAME.tex` for each table that these inputs have something for. Raises BadInput."""
    made = {"outcomes": outcomes(inputs), "masks": masks(inputs), "times": time_table(inputs)}
    return {f"table-{name}.tex": text.encode() for name, text in made.items() if text}


def without_tables(inputs: Inputs) -> list[Path]:
    """Returns the folders that no table is made of: neither runs nor measurements."""
    read = [run.folder for run in (*inputs.runs, *inputs.scouting)]
    read += [measured.folder for measured in inputs.measured]
    return [folder for folder in inputs.folders if folder not in read]


def outcomes(inputs: Inputs) -> str:
    """Returns what the cases came to, a line per backend arm; empty without a run."""
    if not inputs.lines:
        return ""
    counts = [line.arm.counts() for line in inputs.lines]
    kinds = [name for name in OUTCOMES if any(getattr(count, name) for count in counts)]
    heads = ["Backend", "Cases", "Judged", *(METRICS[name].title for name in kinds), r"Conformance (\%)"]
    lines = [
        [
            escape(line.label),
            *(f"{getattr(count, name):,}" for name in ("cases", "judged", *kinds)),
            _share(count),
        ]
        for line, count in zip(inputs.lines, counts, strict=True)
    ]
    said = (
        f"Outcomes by backend. Conformance is the share of judged cases that work, with its {LEVEL:.0%} "
        "interval (Wilson). A case that a backend refused counts against it; one that nothing could judge "
        "does not count."
    )
    return table(heads, lines, caption=f"{escape(said, None)} {_about(inputs)}", label="outcomes", left=1)


def _share(count: Counts) -> str:
    """Returns the conformance and its interval in per cent, as the page rounds them."""
    estimate = conformance(count)
    if estimate is None:
        return escape("not judged")
    bounds = estimate.bounds
    interval = "" if bounds is None else f" [{', '.join(percents(bounds))}]"
    return escape(percent(estimate.value).removesuffix(" %") + interval)


def masks(inputs: Inputs) -> str:
    """Returns at how many places masks are right, a line per backend arm and dialect; empty where no mask was
    compared with a reference."""
    lines = []
    for run, exact in zip(inputs.runs, inputs.masks, strict=True):
        for found in exact.frame().to_dict("records"):
            arm = f"{found['arm']} {found['vocabulary']}" if len(run.info.vocabularies) > 1 else found["arm"]
            cells = (
                arm,
                str(found["dialect"]).replace("_", " "),
                f"{found['cases']:,}",
                f"{found['exact']:,}",
            )
            lines.append(
                [
                    *map(escape, cells),
                    escape(_part(found["sound"], found["places"])),
                    escape(_part(found["complete"], found["layout_places"])),
                ]
            )
    if not lines:
        return ""
    heads = ["Backend", "Dialect", "Cases", "Exact", r"Nothing wrong allowed (\%)", r"Nothing missing (\%)"]
    said = (
        "Masks compared with an exact reference, over the whole vocabulary. Exact: cases in which no mask "
        "differs but by documented policy. The last columns are the shares of places at which no token is "
        "wrongly allowed, and at which none is missing that the backend's own layout has; they have no "
        "interval, because the places of a case hang together."
    )
    return table(heads, lines, caption=f"{escape(said, None)} {_about(inputs)}", label="masks", left=2)


def _part(part: int, whole: int) -> str:
    """Returns a share in per cent and of how many; a dash of nothing."""
    return f"{percent(part / whole).removesuffix(' %')} of {whole:,}" if whole else "–"


def time_table(inputs: Inputs) -> str:
    """Returns the percentiles of times, a line per backend arm and kind of time; empty where none was
    taken."""
    found = [*_walked(inputs), *_measured(inputs)]
    kinds = [name for name in FIGURES if any(line["figure"] == name for _, line in found)]
    shown = [line for kind in kinds for line in found if line[1]["figure"] == kind]
    both = len({line["source"] for _, line in shown}) > 1
    levels = [name for name in LEVELS if any(line.get(name) is not None for _, line in shown)]
    lines = [
        [
            escape(
                f"{FIGURES[line['figure']]}{' (measured)' if both and line['source'] == 'measured' else ''}"
            ),
            escape(label),
            f"{line['n']:,}",
            *(_time(line, name) for name in levels),
            _interval(line),
        ]
        for label, line in shown
    ]
    if not lines:
        return ""
    heads = ["Time", "Backend", "Values", *(LEVELS[name] for name in levels)]
    heads.append(rf"p50, {LEVEL * 100:.0f}\,\% interval")
    none = list(
        dict.fromkeys(line.label for line in _of_walks(inputs) if line.solves_nothing and not line.is_control)
    )
    common = [(label, line) for label, line in found if line["cases"] == "common"]
    sets = dict.fromkeys(line["of"] for label, line in common if label not in none)
    but = (
        f", but for {some(none, MOST_NAMED)}, which {'solves' if len(none) == 1 else 'solve'} none"
        if none
        else ""
    )
    on = (
        f"on the cases that all backends solve{but} ({', '.join(sets)})"
        if sets
        else "each backend on the cases that it solves, so that the lines cannot be compared"
    )
    how = " ".join(HOW[source] for source in dict.fromkeys(line["source"] for _, line in shown))
    said = (
        f"Times, {on}. {how} A percentile beyond which fewer than ten values lie is left out; intervals are "
        f"by whole cases.{_certainty(inputs)}"
    )
    return table(heads, lines, caption=f"{escape(said, None)} {_about(inputs)}", label="times", left=2)


Found = tuple[str, dict[str, Any]]
"""The label of an arm, and a line of `Run.times`."""


def _certainty(inputs: Inputs) -> str:
    """Returns, in a sentence, whether the measurements can be believed; empty where nothing was measured."""
    if not inputs.measured:
        return ""
    if all(measured.is_proven for measured in inputs.measured):
        return " Identical code was measured as equal (A/A)."
    return " Unproven: identical code was not measured as equal everywhere (A/A)."


def _walked(inputs: Inputs) -> Iterator[Found]:
    """Yields the times of the walks: on the cases that all arms solve, where there are such.

    The walks of a measurement only chose what to measure, and are left out.
    """
    lines = _of_walks(inputs)
    common = solved(lines)
    for line in lines:
        for found in times.of_arm(line.arm, Seen("", line.run.info), common):
            if found["cases"] == ("common" if common else "own"):
                yield line.label, found


def _of_walks(inputs: Inputs) -> list[Line]:
    """Returns the lines of the runs that were not measured."""
    measured = {one.folder for one in inputs.measured}
    return [line for line in inputs.lines if line.run.folder not in measured]


def _measured(inputs: Inputs) -> Iterator[Found]:
    """Yields the times of the measurements, on the cases that all arms solve."""
    for measured in inputs.measured:
        labels = {
            subject.measured[1]: subject.label
            for subject in inputs.subjects
            if subject.measured is not None and subject.measured[0] is measured
        }
        for found in times.of_measurement(measured.folder, ""):
            if found["arm"] in labels and found["cases"] == "common":
                yield labels[found["arm"]], found


def _time(line: dict[str, Any], name: str) -> str:
    value = line.get(name)
    return escape("–" if value is None else duration(value * 1e3))


def _interval(line: dict[str, Any]) -> str:
    low, high = line.get("p50_low_us"), line.get("p50_high_us")
    if low is None or high is None:
        return escape("–")
    return escape(f"{duration(low * 1e3)} – {duration(high * 1e3)}")


def _about(inputs: Inputs) -> str:
    """Returns, as LaTeX, what every caption ends with: what was walked, with which versions, when and how
    completely."""
    said = [*dict.fromkeys(_of_run(run) for run in inputs.runs), _versions(inputs.subjects)]
    if inputs.incomplete:
        said.append(f"Incomplete, so that nothing may be concluded: {', '.join(inputs.incomplete)}.")
    return escape(" ".join(filter(None, said)), None)


def _of_run(run: RunSeen) -> str:
    """Returns in a sentence what a run walked."""
    walked = run.sample or ", ".join(
        f"{counted(suite['cases'], 'case')} of {name}" for name, suite in run.info.suites.items()
    )
    model, limited = ("model", "request") if is_live(run.info) else ("vocabulary", "compile")
    return (
        f"Run {run.info.run} with GrammarBench {run.info.harness}: {walked}; {model} "
        f"{', '.join(run.info.vocabularies)}; at most {run.info.timeout_s:g} s for a {limited}."
    )


def _versions(subjects: Sequence[Subject]) -> str:
    released = dict.fromkeys(
        f"{subject.backend} {subject.version}" for subject in subjects if subject.version
    )
    return f"Versions: {', '.join(released)}." if released else ""
