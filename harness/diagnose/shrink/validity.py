"""Judges whether a candidate's grammar is valid, and its instance; for every candidate anew, and without a
backend."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.backend.grammar import Grammar
from harness.diagnose.shrink.schemas import dangling
from harness.diagnose.shrink.tags import is_tag_form, tag_is_valid
from harness.diagnose.shrink.values import parse
from harness.oracle.judge import Judge, check_schema


class Validity:
    """The answers for one case's options; each question is asked once.

    A schema is read by the draft that its text says, as the backend reads it: a candidate that has lost its
    `$schema` is of 2020-12.
    """

    def __init__(self, judge: Judge, options: Mapping[str, str]) -> None:
        self._judge = judge
        self.asserts_formats = options.get("format") == "assert"
        self._by_every_reading = False
        """Whether a Lark grammar's instance counts only where every reading of the grammar says the same."""
        self._right: dict[Grammar, bool] = {}
        self._valid: dict[tuple[Grammar, bytes], bool | None] = {}

    def agrees(self, grammar: Grammar, content: bytes, valid: bool) -> bool:
        """Do we call the instance valid, or invalid, as the run did? If need be formats are asserted, and
        then from here on.

        Where every reading of a Lark grammar agrees, so must they from here on: else a fault would shrink to
        a difference that a reading explains.
        """
        if self.of(grammar, content) is valid:
            self._by_every_reading = grammar.dialect == "lark" and not _contrary(grammar, content, valid)
            return True
        self.asserts_formats = not self.asserts_formats
        self._valid.clear()
        return self.of(grammar, content) is valid

    def is_right(self, grammar: Grammar) -> bool:
        """Is this a grammar of its dialect at all? A failure on a wrong one would say nothing."""
        if grammar not in self._right:
            self._right[grammar] = self._is_right(grammar)
        return self._right[grammar]

    def of(self, grammar: Grammar, content: bytes) -> bool | None:
        """Is the content an output of the grammar? None if that is unknown."""
        question = grammar, content
        if question not in self._valid:
            self._valid[question] = self._of(grammar, content)
        return self._valid[question]

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
        return self._judge.verdict(grammar, content, assert_formats=self.asserts_formats)

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
    from harness.oracle.automaton import NoOracle
    from harness.oracle.language import language_of

    try:
        return language_of(grammar).accepts(content)
    except (NoOracle, RecursionError):
        return None
