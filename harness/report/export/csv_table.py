"""CSV: one file of how many cases came to what, one of figures, one of failing cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.outcomes.case_state import FAILED
from harness.outcomes.metrics import METRICS
from harness.outcomes.result import Result
from harness.text import csv_text, one_line

COUNTED = (
    "cases", "judged", "works", "failed", *(state.value for state in FAILED), "refused", "not_judged",
    "not_measured",
)  # fmt: skip
"""How many cases came to what, in the order of every table; the failed ones by what goes wrong."""

COUNTED_TITLES = {name: METRICS[name].title.lower() for name in COUNTED}
"""How tables for people head these columns."""


FIGURES = ("arm", "family", "name", "unit", "better", "value", "low", "high", "values", "why")

FAILING = (
    "arm", "suite", "case", "case_id", "faults", "documented", "outcome", "state", "said", "repro",
)  # fmt: skip


def files(result: Result) -> dict[str, str]:
    """Returns `cases.csv`, `figures.csv` and `failing.csv`, each with a line of heads."""
    return {
        "cases.csv": _table(("arm", "suite", *COUNTED, "conformance"), result.counts, result.part),
        "figures.csv": _table(FIGURES, result.figures, result.part),
        "failing.csv": _table(FAILING, result.failing, result.part),
    }


def _table(columns: Sequence[str], of: Iterable[object], part: str) -> str:
    """Returns a line for each of the objects, with its attributes of these names, and behind them, as
    `sample`, which part of its suites the run has: files of several runs are joined."""
    lines = ([*(_cell(getattr(one, name)) for name in columns), _cell(part)] for one in of)
    return csv_text([(*columns, "sample"), *lines])


def _cell(value: Any) -> object:
    """Returns what a cell holds: nothing for None, words with blanks between for several."""
    if isinstance(value, tuple | list):
        value = " ".join(value)
    if isinstance(value, str):
        return one_line(value, 2000, spelled=True)
    return "" if value is None else value
