"""The table of docs/vocabularies.md: how the figures change with the size of the vocabulary, by backend."""

from __future__ import annotations

from pathlib import Path

from harness.report.page.inputs import read_inputs
from harness.report.page.sections.sizes import scaling


def sizes(run: Path, _: str) -> str:
    """Returns the table of a run with its samples of times: a figure of a backend a line, a vocabulary a
    column. The figures are those of the section *Over the size of the vocabulary* of the report."""
    inputs = read_inputs([run])
    sized = scaling(inputs, inputs.runs[0], 1)
    assert sized is not None, f"{run} has too few vocabularies for this table"
    vocabularies = sized.charts[0].heads[1:]
    lines = [f"| | | {' | '.join(vocabularies)} |", "| --- | --- " + "| ---: " * len(vocabularies) + "|"]
    for chart in sized.charts:
        for place, (backend, *cells) in enumerate(chart.rows):
            title = chart.title if place == 0 else ""
            lines.append(f"| {title} | {backend.partition(':')[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)
