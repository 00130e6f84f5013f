"""The sections of the page.

A section is a module here with one `SECTION` (harness.report.page.section.Section), and a template of the
same name in the content folder `reports`. It is found without a list.
"""
