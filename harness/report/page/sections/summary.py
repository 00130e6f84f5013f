"""The summary: every arm by every headline figure, and the counts behind them."""

from __future__ import annotations

from harness.outcomes.metrics import values_of
from harness.report.export.csv_table import COUNTED, COUNTED_TITLES
from harness.report.page.content import Content
from harness.report.page.section import Section, Values
from harness.report.run_summary import judged_lines


def values(page: Content) -> Values:
    """Returns the matrix, the counts of each arm, and the times on the cases that all arms solve."""
    inputs = page.inputs
    arms = [line.arm for line in inputs.lines]
    return {
        "judged": judged_lines(
            arms, [line.label for line in inputs.lines], {run.info.effort for run in inputs.runs}
        ),
        "matrix": page.matrix,
        "presets": [
            preset for preset in page.matrix.presets if any(sign != "=" for _, sign in preset.order[1:])
        ],
        "subjects": inputs.subjects,
        "scouting": inputs.scouting,
        "counted": COUNTED[1:],
        "titles": COUNTED_TITLES,
        "lines": inputs.lines,
        "summaries": [values_of(arm) for arm in arms],
        "common": page.common,
    }


SECTION = Section("summary", "Overview", 10, values, "figures")
