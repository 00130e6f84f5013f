"""Judges whether a text fits a structural tag: free text, and after a trigger one of the structures."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.tag_formats import has_format, read_tag
from harness.backend.tag_formats.forms import JsonSchema, formats_in
from harness.oracle.automaton import NoOracle
from harness.oracle.language import outputs_of

MOST_ENDS = 200
"""The most places at which the content of a tag could end that are tried."""


def tag_is_valid(
    text: str, content: bytes, document_is_valid: Callable[[str, bytes], bool | None]
) -> bool | None:
    """Does the text fit the tag? None where that is not decided: a wrong form, a schema that is not judged,
    too many places to try.

    The output starts outside of all tags and may end only there. Outside, any text is free in which no
    trigger occurs; where one does, the `begin` of a structure that starts with it must stand, then a JSON
    document valid by its schema, then its `end`.
    """
    try:
        form = json.loads(text)
        if has_format(form):
            return _format_is_valid(text, content)
        triggers = [str(trigger) for trigger in form["triggers"]]
        structures = [
            (str(structure["begin"]), json.dumps(structure["schema"]), str(structure["end"]))
            for structure in form["structures"]
        ]
        output = content.decode()
    except UnicodeDecodeError:
        return False
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(triggers) or not all(end for _, _, end in structures):
        return None
    waiting, stops, tried = [0], set[int](), 0
    while waiting:
        start = waiting.pop()
        place = min(
            (position for trigger in triggers if (position := output.find(trigger, start)) >= 0), default=-1
        )
        if place < 0:
            return True
        here = tuple(trigger for trigger in triggers if output.startswith(trigger, place))
        for begin, schema, end in structures:
            if not (begin.startswith(here) and output.startswith(begin, place)):
                continue
            inside = place + len(begin)
            stop = output.find(end, inside)
            while stop >= 0:
                tried += 1
                if tried > MOST_ENDS:
                    return None
                valid = document_is_valid(schema, output[inside:stop].encode())
                if valid is None:
                    return None
                if valid and stop + len(end) not in stops:
                    stops.add(stop + len(end))
                    waiting.append(stop + len(end))
                stop = output.find(end, stop + 1)
    return False


def _format_is_valid(text: str, content: bytes) -> bool | None:
    """The same for a tag of the new form, by its automaton; None where there is none, or where it reads
    tokens by their ids."""
    try:
        return outputs_of(Grammar("structural_tag", text)).accepts(content)
    except NoOracle:
        return None


def is_tag_form(text: str, is_schema: Callable[[str], bool]) -> bool:
    """Does the text have the form of a structural tag, with every `begin` starting with a trigger and every
    schema valid?"""
    try:
        form: Any = json.loads(text)
        if has_format(form):
            schemas = [each.schema for each in formats_in(read_tag(form)) if isinstance(each, JsonSchema)]
            return all(is_schema(json.dumps(schema)) for schema in schemas)
        triggers = tuple(form["triggers"])
        return (
            bool(triggers and all(triggers))
            and bool(form["structures"])
            and all(
                structure.keys() == {"begin", "schema", "end"}
                and structure["end"]
                and isinstance(structure["end"], str)
                and structure["begin"].startswith(triggers)
                and is_schema(json.dumps(structure["schema"]))
                for structure in form["structures"]
            )
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
