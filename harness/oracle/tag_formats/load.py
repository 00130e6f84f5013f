"""From the text of a structural tag of the new form to its automaton."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.backend.layout import EVERY_SPELLING, Layout
from harness.backend.tag_formats import Format, forms
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.budget import Budget
from harness.oracle.tag_formats.automaton import FormatAutomaton


def format_automaton(
    format: Format,
    documents_of: Callable[[str, Layout | None], JsonSchemaAutomaton],
    layout: Layout | None,
    seconds: float,
    vocabulary: Vocabulary | None,
) -> FormatAutomaton:
    """The automaton of a format, where `documents_of` makes that of a schema in a layout; it may take so many
    seconds of processor time in all. Raises NoOracle where there is none."""

    def documents(document: forms.JsonSchema) -> JsonSchemaAutomaton:
        return documents_of(_schema_text(document), layout_of(document, layout))

    try:
        return FormatAutomaton(format, documents, Budget(seconds), vocabulary)
    except RecursionError as error:
        raise NoOracle("the format nests too deeply") from error


def layout_of(document: forms.JsonSchema, layout: Layout | None) -> Layout | None:
    """Returns the layout of a document, of which the format may say something itself: that its members come
    in any order, and how much white space is in a row at most."""
    if document.any_order and layout is not None:
        layout = replace(layout, order="any")
    if document.longest_run is not None:
        layout = layout or EVERY_SPELLING
        runs = [each for each in (layout.longest_run, document.longest_run) if each is not None]
        layout = replace(layout, longest_run=min(runs))
    return layout


def _schema_text(document: forms.JsonSchema) -> str:
    try:
        return json.dumps(document.schema, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise NoOracle(f"a schema is no JSON: {error}"[:200]) from error


def with_any_documents(form: Any) -> Any:
    """Returns the parsed structural tag in which every JSON document is valid."""
    if isinstance(form, list):
        return [with_any_documents(each) for each in form]
    if not isinstance(form, dict):
        return form
    has_schema = form.get("type") in ("json_schema", "qwen_xml_parameter")  # the second by its old name
    return {
        name: True if name == "json_schema" and has_schema else with_any_documents(value)
        for name, value in form.items()
    }
