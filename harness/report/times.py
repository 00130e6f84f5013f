"""The ECDFs: mask times cold and warm, for all cases and by family of them, and compile times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.measure.estimate import ALL
from harness.report import charts, curves, decodes
from harness.report.charts import Guide
from harness.report.inputs import Inputs, Measured, Subject
from harness.report.sections import Line
from harness.table import percent

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
FAMILIES, POINTS = 8, 70
"""Small charts of each kind, and points of a curve in one, at most."""
SMALL = (4.2, 2.9)

GUIDES = (Guide(50e3, "50 µs"), Guide(1e6, "1 ms"))


@dataclass(frozen=True)
class Figure:
    """A chart and the same as a table."""

    name: str
    title: str
    caption: str
    svg: Markup
    table: list[tuple[str, list[str]]]
    labels: list[str]


@dataclass(frozen=True)
class Times:
    """Everything that is drawn of times."""

    cold: Figure
    cold_families: list[Figure]
    warm: list[Figure]
    """Empty where nothing was measured."""
    warm_families: list[Figure]
    compile: Figure
    left_off: list[str]
    """Families without a chart."""
    guides: str


def times(inputs: Inputs) -> Times:
    """The charts of a page."""
    lines, guides = inputs.lines, list(GUIDES)
    budget = decodes.tpot_guide(inputs)
    if budget:
        guides.append(Guide(*budget))
    suites = list(dict.fromkeys(key[0] for line in lines for key in line.arm.cases))
    shown = suites[:FAMILIES] if len(suites) > 1 else []
    warm: list[Figure] = []
    small: list[Figure] = []
    for number, one in enumerate(inputs.measured):
        arms = [each for each in inputs.subjects if each.measured and each.measured[0] is one]
        warm.append(_warm(f"warm{number}", one, arms, None, guides))
        families = [each for each in one.figures.families if each != ALL]
        if len(families) > 1:
            small += [_warm(f"warm{number}x{place}", one, arms, each, guides) for place, each in enumerate(families[:FAMILIES])]
    told = "Dotted: 50 µs, 1 ms" + (f", and {budget[1]} without a grammar ({charts.duration(budget[0])})." if budget else ".")
    told += "" if budget else " One TPOT is not drawn: not measured (grammarbench decode)."
    cold_small = [_cold(f"fill{number}", f"Suite {each[:60]}", lines, each, guides) for number, each in enumerate(shown)]
    left_off = suites[FAMILIES:] if len(suites) > 1 else []
    return Times(_cold("fill", "Fill time per token, cold", lines, None, guides), cold_small, warm, small, _compile(lines), left_off, told)


def _cold(name: str, title: str, lines: Sequence[Line], suite: str | None, guides: Sequence[Guide]) -> Figure:
    caption = "" if suite else (
        "Each case walked once after a fresh compile. Take a case at random, then one of its tokens at random: how likely is it that the "
        "case is solved and that filling this token's mask took at most so long? Each solved case weighs the same, shared evenly by its "
        "tokens; a case that is not solved weighs the same and never arrives, so each curve ends at the share of cases solved (instance "
        "coverage); an arm that solves none has no curve."
    )  # fmt: skip
    drawn = [curves.fill_curve(line.arm, suite) for line in lines]
    return _figure(name, title, caption, drawn, [line.label for line in lines], None, guides, small=bool(suite))


def _warm(name: str, one: Measured, arms: Sequence[Subject], family: str | None, guides: Sequence[Guide]) -> Figure:
    caption = "" if family else (
        "Measured: per token the minimum over warm repetitions in all forks; what is left is the backend's own. Curves end at the share of "
        "the cases that the arm solves."
    )  # fmt: skip
    drawn = []
    for subject in arms:
        arm = subject.measured[1] if subject.measured else ""
        traces = [each for each in one.figures.own_set(arm) if family is None or each.family == family]
        known = {each.case_id for each in one.figures.measurement.traces if family is None or each.family == family}
        if family is None:
            known |= {case for each in one.figures.measurement.unsolved.values() for case in each}
        drawn.append(curves.token_curve([each[:, 0] for each in one.figures.structural(arm, traces)], len(known)))
    title = f"Suite {family[:60]}" if family else "Fill time per token, warm"
    places = [each.position for each in arms]
    return _figure(name, title, caption, drawn, [each.label for each in arms], None, guides, small=bool(family), places=places)


def _compile(lines: Sequence[Line]) -> Figure:
    deadlines = {line.run.info.timeout_s for line in lines}
    late = [sum(case.compile_failed and "timeout" in case.failures for case in line.arm.measured()) for line in lines]
    caption = (
        "Share of all cases that were compiled after so long. A case that was declined, raised, crashed or met the deadline never arrives, "
        "so each curve ends at the share of cases compiled (declared coverage). ▶ at the right edge: cases that met the deadline."
    )
    deadline = deadlines.pop() * 1e9 if len(deadlines) == 1 else None
    drawn = [curves.compile_curve(line.arm) for line in lines]
    figure = _figure("compile", "Compile time per case", caption, drawn, [line.label for line in lines], deadline, (), late=late)
    figure.table.append(("at the deadline", [f"{each:,} cases" for each in late]))
    return figure


def _figure(
    name: str, title: str, caption: str, drawn: list[curves.Curve], labels: list[str], deadline_ns: float | None,
    guides: Sequence[Guide], *, small: bool = False, places: Sequence[int] = (), late: Sequence[int] = (),
) -> Figure:  # fmt: skip
    table = [(f"{level * 100:.0f} %", [_time(curve.at(level)) for curve in drawn]) for level in LEVELS]
    table.append(("ends at", [percent(curve.plateau) for curve in drawn]))
    thin = [curves.thin(curve, POINTS) if small else curves.thin(curve) for curve in drawn]
    size = SMALL if small else (6.2, 3.9)
    svg = charts.ecdf(name, f"{title}: one step line per arm", thin, deadline_ns, guides=guides, late=late, size=size, places=places)
    return Figure(name, title, caption, Markup(svg), table, labels)


def _time(ns: int | None) -> str:
    return "never" if ns is None else charts.duration(ns)
