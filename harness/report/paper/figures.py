"""The charts of the page, each as a file of its own."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.figures.printing import printing
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs
from harness.report.page.section import discovered_sections
from harness.report.templates import template_environment


def figures(inputs: Inputs, forms: Sequence[str]) -> dict[str, bytes]:
    """Returns `figure-NAME.FORM` for every chart that the page of these inputs has. Raises BadInput."""
    content = Content(inputs, template_environment().get_template("case.html.j2"))
    with printing(forms) as printed:
        for section in discovered_sections().values():
            section.values(content)
    return {f"figure-{chart.name}.{form}": chart.files[form] for chart in printed for form in forms}
