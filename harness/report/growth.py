"""A measurement of growth as files beside its record: a page, its charts, and a table for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markupsafe import Markup

from harness.measure.growth import show
from harness.measure.growth.axes import axes
from harness.measure.growth.conclude import FIGURES, Conclusion, caching, conclusions, many_schemas
from harness.measure.growth.record import Grown
from harness.report.figures.charts import Styled
from harness.report.figures.growth_panels import growth_panels
from harness.report.figures.printing import printing
from harness.report.templates import asset, refuse_no_page, template_environment
from harness.running.leftovers import refuse_to_replace
from harness.text import PIPE, csv_text
from harness.whole_files import write_files

PAGE = "growth.html"
TABLE = "growth.csv"

HEADS = (
    "vocabulary", "axis", "arm", "figure", "unit", "verdict", "exponent", "low", "high", "base", "ended",
    "ended_at", "phase", "largest_size", "largest_cost", "sizes", "costs", "text",
)  # fmt: skip
"""The columns of the table; costs are in `unit`, and `sizes` and `costs` are lists with blanks between."""


@dataclass(frozen=True)
class ArmStyle(Styled):
    """One arm: the same colour and marker in all panels."""

    position: int
    label: str


@dataclass(frozen=True)
class Panelled:
    """One figure on one vocabulary: the chart, and the table below it."""

    title: str
    svg: Markup
    lines: tuple[tuple[str, Sequence[Conclusion]], ...]
    """The conclusions of each axis, an arm each."""


def refuse_to_replace_others(folder: Path) -> None:
    """Raises BadInput if the page or the table would overwrite a file in the folder that we did not write."""
    refuse_no_page(folder / PAGE, "folder")
    refuse_to_replace(folder / TABLE, ",".join(HEADS[:3]).encode(), "folder")


def write_growth(grown: Grown, folder: Path) -> Path:
    """Writes the page, the charts and the table into the folder; returns the path of the page. Raises
    BadInput."""
    found = conclusions(grown)
    files = {PAGE: growth_page(grown, found), TABLE: growth_csv(found)}
    with printing(("svg",)) as printed:
        _panelled(grown, found)
    files |= {f"{chart.name}.svg": chart.files["svg"].decode() for chart in printed}
    write_files(folder, files, "folder")
    return folder / PAGE


def growth_page(grown: Grown, found: Sequence[Conclusion]) -> str:
    """Returns the page: the answers, the charts with their tables, the cache and the memory of a process."""
    known = axes()
    return (
        template_environment()
        .get_template("growth.html.j2")
        .render(
            stylesheet=Markup(asset("style.css")),
            grown=grown,
            plan=grown.plan,
            answers=show.answers_text(grown, found, PIPE).split("\n"),
            arms=[ArmStyle(place, arm.name) for place, arm in enumerate(grown.plan.arms)],
            panelled=_panelled(grown, found),
            axes=[known[name] for name in grown.plan.axes if name in known],
            schemas=many_schemas(grown),
            caching=caching(grown),
            refusals=show.refusals(grown),
            power=show.power,
            amount=show.amount,
            figures=FIGURES,
        )
    )


def _panelled(grown: Grown, found: Sequence[Conclusion]) -> list[Panelled]:
    positions = {arm.name: place for place, arm in enumerate(grown.plan.arms)}
    shown = []
    for place, vocabulary in enumerate(grown.plan.vocabularies):
        for figure in FIGURES.values():
            by_axis: dict[str, list[Conclusion]] = {}
            for one in found:
                if (one.vocabulary, one.figure) == (vocabulary, figure.name):
                    by_axis.setdefault(one.axis, []).append(one)
            if not by_axis:
                continue
            title = f"{figure.title}, {vocabulary}"
            svg = growth_panels(
                f"growth-{place}-{figure.name}",
                title,
                by_axis,
                positions,
                partial(show.amount, unit=figure.unit),
            )
            shown.append(Panelled(title, Markup(svg), tuple(by_axis.items())))
    return shown


def growth_csv(found: Sequence[Conclusion]) -> str:
    """Returns the conclusions as CSV, one a line."""
    return csv_text([HEADS, *map(_cells, found)])


def _cells(one: Conclusion) -> tuple[object, ...]:
    grows, end = one.growth, one.end
    size, cost = one.values[-1] if one.values else ("", "")
    return (
        one.vocabulary, one.axis, one.arm, one.figure, FIGURES[one.figure].unit, grows.kind,
        _rounded(grows.exponent), _rounded(grows.low), _rounded(grows.high), _rounded(grows.base),
        end.status if end else "", end.size if end else "", end.phase if end else "", size, cost,
        " ".join(str(size) for size, _ in one.values),
        " ".join(f"{cost:.0f}" for _, cost in one.values), end.text if end else "",
    )  # fmt: skip


def _rounded(number: float | None) -> float | str:
    return "" if number is None else round(number, 3)
