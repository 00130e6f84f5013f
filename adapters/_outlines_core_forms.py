"""The regular expression that outlines-core takes for a grammar of each dialect, and why it refuses one."""

from __future__ import annotations

import re
from dataclasses import replace

from outlines_core import json_schema

from harness import Grammar, InvalidGrammar, Layout, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.layout import COMPACT

# Names keep the schema's order, and others are not foreseen (parse_properties of
# src/json_schema/parsing.rs).
CLOSED = replace(COMPACT, unlisted="never")
WHITESPACE: dict[str, tuple[str | None, Layout]] = {
    "any": (r"[\n\t\r ]*", replace(CLOSED, separators=None)),
    "library": (None, replace(CLOSED, separators=None, whitespace=b" ", longest_run=1)),
    "compact": ("", CLOSED),
}
"""The expression for what may stand between the parts of a JSON text, None for the library's own; and the
layout that follows from it."""


def pattern_of(grammar: Grammar, whitespace: str | None) -> str:
    """Returns the regular expression of the grammar. Raises UnsupportedGrammar or InvalidGrammar."""
    if grammar.dialect == "json_schema":
        return _pattern_of_schema(grammar.text, whitespace)
    if grammar.dialect == "choice":
        return _pattern_of_choice(grammar.text)
    if grammar.dialect == "regex":
        return grammar.text
    raise UnsupportedGrammar(f"outlines-core has no {grammar.dialect}")


def _pattern_of_schema(text: str, whitespace: str | None) -> str:
    try:
        return str(json_schema.build_regex_from_schema(text, whitespace))
    except TypeError as error:  # no JSON
        raise InvalidGrammar(str(error)) from error
    except ValueError as error:
        kind = InvalidGrammar if " must be " in str(error) else UnsupportedGrammar
        raise kind(str(error)) from error


def _pattern_of_choice(text: str) -> str:
    """Returns an alternation, longest first: the library's regular expressions are leftmost-first to the end,
    so that `a|ab` never matches `ab`."""
    choices = sorted(parts.choices_of(text), key=len, reverse=True)
    return f"({'|'.join(map(re.escape, choices))})"


def refusal(pattern: str, message: str) -> Exception:
    """Returns the exception for a pattern that the library refused. It has one message for a pattern that is
    wrong and for one with a construct that it lacks; Python's `re` tells which it is."""
    if "error building NFA" not in message:
        return UnsupportedGrammar(message)
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        return InvalidGrammar(f"{message}: {error}")
    return UnsupportedGrammar(message)
