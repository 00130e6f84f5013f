"""Writes what a paper takes from runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import BadInput
from harness.report.page.inputs import Inputs
from harness.report.paper.figures import figures
from harness.report.paper.tables import tables
from harness.whole_files import write_files


def write(inputs: Inputs, forms: Sequence[str], out: Path) -> list[Path]:
    """Writes the files of these forms into the folder `out`, and returns their paths. Raises BadInput, also
    where nothing here can be written in any of them."""
    drawn = [form for form in forms if form != "latex"]
    files = figures(inputs, drawn) if drawn else {}
    if "latex" in forms:
        files |= tables(inputs)
    if not files:
        raise BadInput(
            f"{', '.join(map(str, inputs.folders))}: nothing here that --format {','.join(forms)} can write; "
            "the page (--format html) shows it"
        )
    return write_files(out, files, "--out")
