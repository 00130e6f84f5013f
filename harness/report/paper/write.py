"""Writes what a paper takes from runs: each chart of the page as a file of its own, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import BadInput
from harness.report.figures.printing import printing
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs
from harness.report.page.section import discovered_sections
from harness.report.paper.tables import tables
from harness.report.templates import template_environment
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


def figures(inputs: Inputs, forms: Sequence[str]) -> dict[str, bytes]:
    """Returns `figure-NAME.FORM` for every chart that the page of these inputs has. Raises BadInput."""
    content = Content(inputs, template_environment().get_template("case.html.j2"))
    with printing(forms) as printed:
        for section in discovered_sections().values():
            section.values(content)
    return {f"figure-{chart.name}.{form}": chart.files[form] for chart in printed for form in forms}
