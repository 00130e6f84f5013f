"""Judges whether a candidate's grammar is valid, and its instance; for every candidate anew, and without a
backend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from harness.backend.grammar import Grammar
from harness.backend.layout import Layout
from harness.diagnose.shrink.schemas import dangling
from harness.diagnose.shrink.tags import is_tag_form, tag_is_valid
from harness.diagnose.shrink.values import parse
from harness.oracle.automaton import NoOracle
from harness.oracle.judge import Judge, check_schema
from harness.oracle.language import documents_of, language_of

REMEMBERED = 256
"""How many answers are kept; grammars and instances may be long, and thousands are asked about."""

LAYOUT_SECONDS = 2.0
"""The processor time for asking whether a document is written in a layout."""


class Validity:
    """The answers for one case's options; a question is not asked twice in a row.

    A schema is read by the draft that its text says, as the backend reads it: a candidate that has lost its
    `$schema` is of 2020-12.
    """

    def __init__(self, judge: Judge, options: Mapping[str, str]) -> None:
        self._judge = judge
        self.asserts_formats = options.get("format") == "assert"
        self._by_every_reading = False
        """Whether an instance counts only where every reading of its regular expression or Lark grammar says
        the same."""
        self._layout: Layout | None = None
        """If given, a valid document counts only where it is written so."""
        self._right = lru_cache(REMEMBERED)(self._is_right)
        self._valid = lru_cache(REMEMBERED)(self._of)

    def agrees(self, grammar: Grammar, content: bytes, valid: bool, layout: Layout | None = None) -> bool:
        """Do we call the instance valid, or invalid, as the run did? If need be formats are asserted, and
        then from here on.

        Where every reading of the grammar agrees, so must they from here on, and where the document is
        written in the layout that the backend states, so must each be: else a fault would shrink to a
        difference that a reading explains, or to one that the backend documents.
        """
        if self.of(grammar, content) is not valid:
            self.asserts_formats = not self.asserts_formats
            self._valid.cache_clear()
            if self.of(grammar, content) is not valid:
                return False
        self._by_every_reading = grammar.dialect in ("lark", "regex") and not _contrary(
            grammar, content, valid
        )
        if layout is not None and not self._is_outside(layout, grammar, content):
            self._layout = layout
        return True

    def is_right(self, grammar: Grammar) -> bool:
        """Is this a grammar of its dialect at all? A failure on a wrong one would say nothing."""
        return self._right(grammar)

    def of(self, grammar: Grammar, content: bytes) -> bool | None:
        """Is the content an output of the grammar? None if that is unknown, and where something else than a
        fault would explain that the backend says the opposite."""
        return self._valid(grammar, content)

    def _is_right(self, grammar: Grammar) -> bool:
        match grammar.dialect:
            case "json_schema":
                return self._is_schema(grammar.text)
            case "regex":
                return self._judge.verdict(grammar, b"") is not None
            case "choice":
                return self._judge.verdict(grammar, b"") is not None and bool(json.loads(grammar.text))
            case "ebnf" | "lark":
                return _accepts(grammar, b"") is not None
            case "structural_tag":
                return is_tag_form(grammar.text, self._is_schema)

    def _of(self, grammar: Grammar, content: bytes) -> bool | None:
        if grammar.dialect in ("ebnf", "lark"):
            accepted = _accepts(grammar, content)
            unsure = accepted is None or (self._by_every_reading and _contrary(grammar, content, accepted))
            return None if unsure else accepted
        if grammar.dialect == "structural_tag":
            return tag_is_valid(
                grammar.text,
                content,
                lambda schema, document: self._of(Grammar("json_schema", schema), document),
            )
        verdict = self._judge.verdict(grammar, content, assert_formats=self.asserts_formats)
        if verdict is None:
            return None
        if self._by_every_reading and _contrary(grammar, content, verdict):
            return None
        if verdict and self._layout is not None and self._is_outside(self._layout, grammar, content):
            return None
        return verdict

    def _is_outside(self, layout: Layout, grammar: Grammar, content: bytes) -> bool:
        """Is this certainly no document of the schema that is written in the layout?"""
        try:
            documents = documents_of(
                grammar.text, asserts_formats=self.asserts_formats, seconds=LAYOUT_SECONDS, layout=layout
            )
            return not documents.accepts(content)
        except (NoOracle, RecursionError):
            return False

    def _is_schema(self, text: str) -> bool:
        try:
            return check_schema(text) is None and not dangling(parse(text))
        except ValueError:
            return False


def _contrary(grammar: Grammar, content: bytes, valid: bool) -> bool:
    """Returns whether a reading of the grammar says the opposite."""
    from harness.oracle.readings import readings_against

    return any(readings_against(grammar, content, valid, ()))


def _accepts(grammar: Grammar, content: bytes) -> bool | None:
    try:
        return language_of(grammar).accepts(content)
    except (NoOracle, RecursionError):
        return None
