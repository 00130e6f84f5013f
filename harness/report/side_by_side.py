"""Metrics of arms side by side, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.outcomes.metrics import few
from harness.report.values import heading, number
from harness.text import grid

Column = dict[Any, Any]
"""An arm's values by the names of `values_of`, and whose they are."""

Section = list[tuple[str, list[str]]]
"""Rows of cells, each with its title."""


def side_by_side(
    columns: Sequence[Column], sections: Callable[[Sequence[Column]], list[Section]], width: int, styled: bool
) -> list[str]:
    """Returns tables with a column for each arm, as many side by side as fit into the width; the last one
    explains the mark of `percentile`."""
    fit = max(1, (width - 25) // 13)
    tables = []
    for start in range(0, len(columns), fit):
        chosen = columns[start : start + fit]
        tables.append(grid("", [heading(column) for column in chosen], sections(chosen), width, styled))
    if any(cell.startswith("~") for section in sections(columns) for _, cells in section for cell in cells):
        tables[-1] += "\n~ fewer than ten values lie beyond this percentile"
    return tables


def percentile(column: Column, name: str, level: str) -> str:
    """Returns the percentile of a distribution, marked where fewer than ten values lie beyond it."""
    value = number(column[f"{name}_{level}_us"], "us")
    return f"~{value}" if value != "-" and few(level, int(column[f"{name}_n"])) else value
