"""A result in the forms that other tools read.

A form is one module here with a function `files`: name of each file, and its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from harness.outcomes.result import Result
from harness.report.export import (
    bencher,
    benchmark_action,
    csv_table,
    json_result,
    junit,
    markdown,
    summary,
    workflow_commands,
)
from harness.running.leftovers import refuse_to_replace
from harness.whole_files import write_files

Form = Callable[[Result], dict[str, str]]

FORMS: dict[str, Form] = {
    "json": json_result.files,
    "junit": junit.files,
    "summary": summary.files,
    "annotations": workflow_commands.files,
    "benchmark-action": benchmark_action.files,
    "bencher": bencher.files,
    "csv": csv_table.files,
    "markdown": markdown.files,
}

OURS: dict[str, dict[str, bytes]] = {
    "json": {"result.json": rb'\{\s*"sample":'},
    "junit": {"junit.xml": rb'<\?xml[^>]*>\s*<testsuites name="grammarbench '},
    "summary": {summary.FILE: summary.OURS},
    "annotations": {"annotations.txt": rb"::(error|warning|notice) title="},
    "benchmark-action": {
        f"benchmark-{side}-is-better.json": rb'\[(\]|\s*\{\s*"name": "[^\n]+ / )'
        for side in ("smaller", "bigger")
    },
    "bencher": {"bencher.json": rb'\{(\}|\s*"[^\n]+ / [^\n]+": \{)'},
    "csv": {
        "cases.csv": rb"arm,suite,cases,",
        "figures.csv": rb"arm,family,name,",
        "failing.csv": rb"arm,suite,case,",
    },
    "markdown": {"tables.md": rb"(?s).*\| backend \| suite \| "},
}
"""The files of each form, and how they begin."""


def refuse_to_replace_others(forms: Iterable[str], out: Path) -> None:
    """Raises BadInput if a file of one of these forms would overwrite another in the folder."""
    for form in forms:
        for name, ours in OURS.get(form, {}).items():
            refuse_to_replace(out / name, ours, "--out")


def write(result: Result, forms: list[str], out: Path) -> list[Path]:
    """Writes the files of these forms into the folder `out`, and returns their paths. Raises BadInput."""
    files = {name: text for form in forms for name, text in FORMS[form](result).items()}
    return write_files(out, files, "--out")
