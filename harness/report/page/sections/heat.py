"""The conformance heat-map: what grammars are made of, by arm; each cell counts, shows a glyph, and leads to
its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.report.page.cells import GLYPHS, WalksCell, cell_of
from harness.report.page.content import Content
from harness.report.page.inputs import UTF8, Inputs
from harness.report.page.lines import Line
from harness.report.page.section import Section, Values
from harness.report.templates import address
from harness.rows.row import OURS

ROWS, SUITES = 16, 60
"""Most rows of a group, and most suites: those with the most failures."""

TITLES = {
    "suite": "Suites",
    "dialect": "Dialects",
    "keyword": "JSON Schema: keywords and features",
    "byte class": "Bytes and characters",
}


@dataclass(frozen=True)
class HeatCell:
    """A cell, the glyph of what it mostly is, and the address of its cases."""

    cell: WalksCell
    glyph: str
    link: str


@dataclass(frozen=True)
class HeatGroup:
    """Rows of one kind."""

    title: str
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    left_off: int
    """Rows that are not shown: the best ones."""


def values(page: Content) -> Values | None:
    """Returns the groups of rows, and the arms that they count; None where nothing was walked."""
    heat = heat_map(page.inputs) if page.inputs.lines else []
    return {"heat": heat, "lines": page.inputs.tried} if heat else None


SECTION = Section("matrix", "Features", 50, values, "right")


def heat_map(inputs: Inputs) -> list[HeatGroup]:
    """Returns suites, dialects, keywords, byte classes, and the features of other dialects; those with most
    failures first."""
    lines = inputs.tried
    tables: dict[str, list[dict[str, Counter[str]]]] = {"suite": [line.arm.by_suite for line in lines]}
    counts = [inputs.features.counts.get((line.run.place, line.arm.key), {}) for line in lines]
    groups = list(dict.fromkeys(group for count in counts for group, _ in count))
    order = [*(kind for kind in TITLES if kind in groups), *sorted(set(groups) - {*TITLES})]
    for group in order:
        tables[group] = [
            {name: outcomes for (of, name), outcomes in count.items() if of == group} for count in counts
        ]
    return [
        _group(group, table, lines)
        for group, table in tables.items()
        if any(table)
        and (group not in ("suite", "dialect") or len({name for of in table for name in of}) > 1)
    ]


def _group(group: str, tables: Sequence[dict[str, Counter[str]]], lines: Sequence[Line]) -> HeatGroup:
    names = list(dict.fromkeys(name for table in tables for name in table))
    failed = {name: sum(_failed(table.get(name, Counter())) for table in tables) for name in names}
    most = SUITES if group == "suite" else ROWS
    kept = sorted(names, key=lambda name: (-failed[name], name))[:most]
    if group == "suite":  # in the order of the run
        kept.sort(key=names.index)
    where = _asked(group)
    rows = tuple(
        (
            name[:80],
            tuple(
                _cell(table.get(name, Counter()), line, where, name)
                for table, line in zip(tables, lines, strict=True)
            ),
        )
        for name in kept
    )
    title = TITLES.get(group, f"{group.replace('_', ' ')}s")
    return HeatGroup(title, rows, max(0, len(names) - most))


def _asked(group: str) -> str:
    """Returns what the list of cases is asked for a group's rows, up to the name: rows of one dialect or
    suite lead to no cases of others."""
    if group in ("suite", "dialect"):
        return group
    if group == "byte class":
        return f"suite={UTF8}&tag"
    dialect = group.removesuffix(" feature")
    return f"dialect={address('json_schema' if dialect == group else dialect)}&tag"


def _failed(outcomes: Counter[str]) -> int:
    return sum(count for kind, count in outcomes.items() if kind not in ("pass", "unjudged", *OURS))


def _cell(outcomes: Counter[str], line: Line, where: str, name: str) -> HeatCell:
    cell = cell_of(outcomes)
    rest: Iterable[tuple[str, int]] = [item for item in cell.rest if item[0] not in ("unjudged", *OURS)]
    worst = max(rest, key=lambda item: item[1], default=None)
    glyph = (
        ""
        if not cell.counted
        else GLYPHS["pass"]
        if cell.passed == cell.counted
        else GLYPHS[worst[0]]
        if worst
        else "?"
    )
    link = f"#/cases?backend={address(line.label)}&{where}={address(name)}"
    return HeatCell(cell, glyph, link)
