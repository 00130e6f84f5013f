"""A run as tables: one line per instance, one line per backend; as CSV, JSON, Markdown or for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.checks import is_policy
from harness.errors import BadInput, did_you_mean
from harness.outcomes.metrics import DISTRIBUTIONS, METRICS, QUANTILES, metrics_by_unit, values_of
from harness.outcomes.summary import ArmSummary, CheckSummary, read_arms
from harness.report.side_by_side import Column, Section, percentile, side_by_side
from harness.report.values import heading, number
from harness.rows.row import Row, verdict
from harness.rows.store import read_rows
from harness.text import (
    SURROGATES,
    Console,
    console,
    csv_text,
    grid,
    markdown,
    markdown_table,
)

FORMATS = ["csv", "json", "markdown"]

INSTANCE_COLUMNS = [
    "backend", "backend_version", "options", "vocabulary", "suite", "suite_version", "case", "case_id",
    "dialect", "instance",
    "instance_name", "mode", "jump_forward", "repeat", "status", "valid", "accepted", "verdict", "stopped_at",
    "compile_ns",
    "matcher_new_ns", "first_fill_ns", "wall_ns", "tokens", "bytes", "grammar_bytes", "peak_rss_bytes",
    "phase", "signal", "text",
    "findings", "delayed", "behind",
]  # fmt: skip
_INTEGERS = {
    "instance", "repeat", "stopped_at", "compile_ns", "matcher_new_ns", "first_fill_ns", "wall_ns", "tokens",
    "bytes", "grammar_bytes",
    "peak_rss_bytes",
}  # fmt: skip
_BOOLEANS = {"valid", "accepted", "jump_forward"}


def instance_frame(run: Path) -> pd.DataFrame:
    """Returns one line per walk of an instance (per compile, where a case has none), in the order of the run.

    Raises BadInput.
    """
    columns: dict[str, list[Any]] = {name: [] for name in INSTANCE_COLUMNS}
    for row in read_rows(run):
        for name, values in columns.items():
            values.append(_cell(row, name))
    return pd.DataFrame({name: _series(name, values) for name, values in columns.items()})


def _series(name: str, values: list[Any]) -> pd.Series:
    if name in _INTEGERS:
        return pd.Series(values, dtype="Int64")
    # Not pandas' own string type: where that is Arrow's, a lone surrogate ends it.
    return pd.Series(values, dtype="boolean" if name in _BOOLEANS else "object")


def _cell(row: Row, name: str) -> Any:
    if name == "verdict":
        return verdict(row.status, row.valid, row.accepted)
    if name == "findings":
        return " ".join(dict.fromkeys(finding.check for finding in row.findings))
    if name == "behind":
        return "; ".join(case.case for case in row.behind)
    return getattr(row, name)


def metrics_frame(arms: Sequence[ArmSummary]) -> pd.DataFrame:
    """Returns one line per backend with options and vocabulary, one column per metric."""
    lines = [arm.who | values_of(arm) for arm in arms]
    frame = pd.DataFrame(lines)
    for name in frame.columns:
        counts = (name in METRICS and METRICS[name].unit != "share") or name.endswith("_n")
        if counts and not any(isinstance(line[name], float) for line in lines):
            frame[name] = frame[name].astype("Int64")
    return frame


def checks_frame(run: Path) -> pd.DataFrame:
    """Returns a line for each arm and check: in how many cases it found what."""
    counts = ("passed", "failed", "documented", "skipped", "lost", "ours")
    lines = [
        {**arm.who, "check": name, **{count: getattr(check, count) for count in counts}}
        for arm in read_arms(run)
        for name, check in arm.checks.items()
    ]
    columns = ["backend", "backend_version", "options", "vocabulary", "check", *counts]
    return pd.DataFrame(lines, columns=columns)


def to_text(frame: pd.DataFrame, form: str) -> str:
    """Returns the table as `csv`, `json` (a list of flat objects, null for what is not there) or `markdown`.

    Raises BadInput.
    """
    if form == "csv":
        return csv_text([frame.columns, *([_plain(cell) for cell in line] for line in _lines(frame))])
    if form == "json":
        objects = [json.dumps(dict(zip(frame.columns, line, strict=True))) for line in _lines(frame)]
        return "[\n" + ",\n".join(objects) + "\n]\n" if objects else "[]\n"
    if form == "markdown":
        return markdown_table(
            list(map(str, frame.columns)),
            ([markdown(_plain(value), None) for value in line] for line in _lines(frame)),
        )
    raise BadInput(f'unknown format "{form}"{did_you_mean(form, FORMATS)}')


def _lines(frame: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Returns the cells as Python's own values; None where pandas has its NA or NaN."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        columns.append(
            [
                None if missing else value
                for value, missing in zip(column.tolist(), column.isna(), strict=True)
            ]
        )
    return zip(*columns, strict=True)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return SURROGATES.sub("\ufffd", str(value))


# ----------------------------------------------------------------------------------------------- the terminal


def terminal_text(run: Path) -> str:
    """Returns the metrics of the run for people: styled in the terminal's width if stdout is one, else plain
    text of 80 columns. Raises BadInput."""
    on = console()
    arms = read_arms(run)
    checks = checks_text(arms, on.width, on.styled)
    return backend_text(metrics_frame(arms), on.width, on.styled) + (f"\n\n{checks}" if checks else "")


def checks_text(arms: Sequence[ArmSummary], width: int, styled: bool) -> str:
    """Returns, by check and arm, in how many of the cases looked at the fact does not hold; empty if nothing
    was checked."""
    names = list(dict.fromkeys(name for arm in arms for name in arm.checks))
    if not names:
        return ""
    nothing = CheckSummary()
    fit = max(1, (width - 40) // 12)
    parts = []
    for start in range(0, len(arms), fit):
        chosen = arms[start : start + fit]
        heads = [heading(arm.who) for arm in chosen]
        rows = [
            (name.replace("_", " "), [check_cell(name, arm.checks.get(name, nothing)) for arm in chosen])
            for name in names
        ]
        parts.append(grid("CHECKS", heads, [rows], width, styled))
    legend = (
        "failing cases / cases looked at; * all of them documented by the backend; ° policy, no fault; "
        "✖ the process was lost in the check; ⚑ our own failure"
    )
    return "\n\n".join(parts) + "\n" + Console(width).fit(legend)


def check_cell(name: str, check: CheckSummary) -> str:
    """Returns what one check said of one arm, in a few characters."""
    cell = f"{check.failed}/{check.looked}" if check.looked else "-"
    if check.failed and is_policy(name):
        cell += "°"
    elif check.failed and check.documented == check.failed:
        cell += "*"
    return cell + (f" ✖{check.lost}" if check.lost else "") + (f" ⚑{check.ours}" if check.ours else "")


def backend_text(frame: pd.DataFrame, width: int = 80, styled: bool = False) -> str:
    """Returns the frame of `metrics_frame` with a metric per line, the arms side by side as far as they fit
    into the width."""
    lines = [dict(zip(map(str, frame.columns), line, strict=True)) for line in _lines(frame)]
    return "\n".join(side_by_side(lines, _sections, width, styled))


def _sections(lines: Sequence[Column]) -> list[Section]:
    sections = []
    for name, distribution in DISTRIBUTIONS.items():
        short = distribution.title.split(",")[0]
        sections.append(
            [
                (f"{short} {level}", [percentile(line, name, level) for line in lines])
                for level in ("avg", *QUANTILES)
            ]
        )
    titles = {"cases": "CASES", "share": "", "walks": "WALKS", "us": "", "bytes": ""}
    for unit, group in metrics_by_unit(titles).items():
        title = titles.get(unit, unit.upper())  # a unit of which nothing is known here has its own name
        rows = [(metric.title, [number(line[metric.name], unit) for line in lines]) for metric in group]
        sections.append([(title, [""] * len(lines)), *rows] if title else rows)
    return sections
