"""What a paper takes from runs: every chart of the page as a file of its own, and tables in LaTeX.

In: what `harness.report.page.inputs` read. Out: the text or bytes of each file, by its name.
"""

FORMS = ("svg", "pdf", "latex")
"""The forms of `grammarbench report --format` that are made here, of one or more runs."""
