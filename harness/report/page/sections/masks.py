"""Mask times: the curves of all arms, cold and warm, for all cases and by suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.measure.figures import ALL
from harness.report.figures import curves
from harness.report.figures.charts import Frame, Guide
from harness.report.page import decodes
from harness.report.page.content import Content
from harness.report.page.curve_figures import Figure, figure
from harness.report.page.inputs import Inputs, Measured, Subject
from harness.report.page.lines import Line
from harness.report.page.section import Section, Values
from harness.text import duration

FAMILIES = 8
"""Most small charts, one per suite, of the cold times and of each measurement."""

GUIDES = (Guide(50e3, "50 µs"), Guide(1e6, "1 ms"))

COLD_TITLE, WARM_TITLE = "Fill time per token, cold", "Fill time per token, warm"
COLD = (
    "Each case was walked once after a fresh compile. For each time, a curve gives the chance that a random "
    "token of a random case had its mask filled within that time. All cases weigh the same, and so do the "
    "tokens of one case. A case that is not solved never counts as filled, so each curve ends at the share "
    "of cases solved; an arm that solves none has no curve."
)
FIRST = "Published without its samples: of each case only the time of the first fill is known."
PARTLY = (
    "Rows that were taken over have no samples, and of their cases only the time of the first fill is known. "
    "Cases with every token's time:"
)
WARM = (
    "Measured: for each token the minimum over warm repetitions in the profile's forks, which leaves out "
    "most noise of the machine. Each curve ends at the share of the cases that the arm solves."
)


@dataclass(frozen=True)
class MaskTimes:
    """Everything that is drawn of mask times."""

    cold: Figure
    cold_families: list[Figure]
    warm: list[Figure]
    """One figure per measurement."""
    warm_families: list[Figure]
    left_off: list[str]
    """The suites without a chart."""
    guides: str
    """What the dotted lines are."""


def values(page: Content) -> Values | None:
    """Returns the figures of mask times; None where no mask was timed."""
    times = mask_times(page.inputs)
    return {"times": times} if times.cold.svg or times.warm else None


SECTION = Section("masks", "Mask times", 30, values, "figures")


def mask_times(inputs: Inputs) -> MaskTimes:
    """Returns the charts: those of the walks, and those of every measurement."""
    lines, guides = [line for line in inputs.tried if curves.has_fill_times(line.arm)], list(GUIDES)
    budget = decodes.tpot_guide(inputs)
    if budget:
        guides.append(Guide(*budget))
    suites = list(dict.fromkeys(key[0] for line in lines for key in line.arm.cases))
    shown = suites[:FAMILIES] if len(suites) > 1 else []
    warm: list[Figure] = []
    small: list[Figure] = []
    for number, one in enumerate(inputs.measured):
        arms = [subject for subject in inputs.subjects if subject.measured and subject.measured[0] is one]
        warm.append(_warm(f"warm{number}", one, arms, None, guides))
        families = [family for family in one.figures.families if family != ALL]
        if len(families) > 1:
            small += [
                _warm(f"warm{number}x{place}", one, arms, family, guides)
                for place, family in enumerate(families[:FAMILIES])
            ]
    guides_text = "Dotted, where a chart reaches so far: 50 µs, 1 ms" + (
        f", and {budget[1]} without a grammar ({duration(budget[0])})." if budget else "."
    )
    guides_text += "" if budget else " One TPOT is not drawn: not measured (grammarbench decode)."
    return MaskTimes(
        cold=_cold("fill", lines, None, guides),
        cold_families=[_cold(f"fill{number}", lines, suite, guides) for number, suite in enumerate(shown)],
        warm=warm,
        warm_families=small,
        left_off=suites[FAMILIES:] if len(suites) > 1 else [],
        guides=guides_text,
    )


def _cold(name: str, lines: Sequence[Line], suite: str | None, guides: Sequence[Guide]) -> Figure:
    whole = (COLD_TITLE, COLD)
    if not any(len(line.arm.samples) for line in lines):
        whole = ("First fill of each case, cold", f"{FIRST} {COLD}")
    elif few := [f"{line.label} {_first_only(line)}" for line in lines if not line.arm.timed.is_enough]:
        whole = (COLD_TITLE, f"{COLD} {PARTLY} {'; '.join(few)}.")
    text = whole if suite is None else (f"Suite {suite[:60]}", "")
    drawn = [curves.fill_curve(line.arm, suite) for line in lines]
    labels = [line.label for line in lines]
    frame = Frame(guides, places=[line.position for line in lines])
    return figure(name, text, drawn, labels, frame, part_of="" if suite is None else whole[0])


def _first_only(line: Line) -> str:
    """Returns of how many cases of the arm every token was timed."""
    return f"{line.arm.timed.cases:,} of {line.arm.timed.of:,}"


def _warm(
    name: str, one: Measured, arms: Sequence[Subject], family: str | None, guides: Sequence[Guide]
) -> Figure:
    text = (WARM_TITLE, WARM) if family is None else (f"Suite {family[:60]}", "")
    drawn = []
    for subject in arms:
        arm = subject.measured[1] if subject.measured else ""
        traces = [trace for trace in one.figures.own_set(arm) if family is None or trace.family == family]
        known = {
            trace.case_id
            for trace in one.figures.measurement.traces
            if family is None or trace.family == family
        }
        if family is None:
            known |= {case for cases in one.figures.measurement.unsolved.values() for case in cases}
        drawn.append(
            curves.token_curve([times[:, 0] for times in one.figures.structural(arm, traces)], len(known))
        )
    frame = Frame(guides, places=[arm.position for arm in arms])
    return figure(
        name, text, drawn, [arm.label for arm in arms], frame, part_of="" if family is None else WARM_TITLE
    )
