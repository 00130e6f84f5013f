"""What a grammar is made of: the keywords of a JSON Schema, the constructs of a regex, an EBNF grammar or one
of Lark.

Cases of ours say it in their tags. For cases without tags, such as a user's own, it is derived here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backend.grammar import Grammar
from harness.cases.bare_schema import SCHEMA_KEYWORDS, SILENT
from harness.cases.case_line import CASES_FILE
from harness.cases.subschemas import object_subschemas
from harness.cases.suite import suite_names
from harness.rows.row import Row
from harness.rows.store import read_cases, read_rows

LATER = frozenset(("dependentSchemas", "dependentRequired", "dependencies", "unevaluatedItems",
"unevaluatedProperties", "minContains",
                   "maxContains", "additionalItems", "$recursiveRef", "$dynamicAnchor"))  # fmt: skip
KEYWORDS = (SCHEMA_KEYWORDS | LATER) - SILENT
LONGEST = 200_000
"""Characters of a regex, an EBNF or a Lark grammar that are looked at."""

ESCAPED = re.compile(r"\\[ux]\{[0-9a-fA-F]+\}|\\[^dDwWsSbBpPnrtAzZ1-9k]")
"""Characters that stand for themselves; a letter takes the place of each before constructs are looked for."""
CLASS = re.compile(r"\[(\^?)((?:\\.|[^\]\\])*)\]", re.DOTALL)
SHORT = re.compile(r"\\[dDwWsS]|\\[pP](?:\{[^}]*\})?")
REGEX = {
    "class": r"\[", "negated class": r"\[\^", "shorthand class": r"\\[dDwWsS]",
    "unicode property": r"\\[pP]\{?", "any character": r"\.",
    "alternation": r"\|", "group": r"\((?!\?<?[=!])", "lookaround": r"\(\?<?[=!]",
    "inline flag": r"\(\?[aimsux-]+[:)]",
    "star or plus": r"[*+]", "optional": r"(?<![(*+?}])\?", "counted repetition": r"\{\d+(,\d*)?\}",
    "lazy quantifier": r"[*+?}]\?",
    "anchor": r"(?<!\[)\^|\$|\\[bBAzZ]", "back-reference": r"\\[1-9k]",
}  # fmt: skip
EBNF = {
    "class": r"\[(?!\^)", "negated class": r"\[\^", "alternation": r"\|", "group": r"\(",
    "star or plus": r"[*+]", "optional": r"\?",
    "counted repetition": r"\{\d+(,\d*)?\}", "several rules": r"::=(?s:.)*::=",
}  # fmt: skip
LARK = {
    "ignored text": r"%ignore", "common terminal": r"%import", "alternation": r"\|",
    "star or plus": r"[*+]", "optional": r"\?|\[", "counted repetition": r"\{\d*,?\d*\}|~", "range": r"\.\.",
    "expression": r"/", "several rules": r"(?m)^[?!]*_?[a-z][\w-]*\s*:(?s:.)*\n[?!]*_?[a-z][\w-]*\s*:",
}  # fmt: skip
APART = {
    "ebnf": re.compile(r'"(?:\\.|[^"\\\n])*"|\[(?:\\.|[^\]\\\n])*\]|#[^\n]*'),
    "lark": re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/(?:\\.|[^/\\\n])+/[a-z]*'),
}
"""Texts, classes, expressions and comments, in which no character is one of the grammar."""
RULE = re.compile(r"^\s*([\w-]+)\s*::=", re.MULTILINE)
"""The head of a rule of EBNF, whose body goes on to the next one."""
MARKED = re.compile(r"^\s*[?!]+(?=_?[a-z])", re.MULTILINE)
"""The marks before the name of a rule of Lark, which say how a tree is built."""


def constructs(grammar: Grammar) -> tuple[str, ...]:
    """Returns the names of what the grammar is made of, sorted; empty where there is nothing to name."""
    text = grammar.text[:LONGEST]
    if grammar.dialect == "json_schema":
        try:
            return tuple(sorted(_keywords(json.loads(grammar.text))))
        except (ValueError, RecursionError):
            return ()
    if grammar.dialect == "regex":
        return _matching(REGEX, CLASS.sub(_bare_class, ESCAPED.sub("a", text)))
    if grammar.dialect == "ebnf":
        bare = _bare(grammar.dialect, text)
        _, *rules = RULE.split(bare)
        recursive = any(name in _words(body) for name, body in zip(rules[::2], rules[1::2], strict=True))
        return tuple(sorted({*_matching(EBNF, bare), *(("recursion",) if recursive else ())}))
    if grammar.dialect == "lark":
        return _matching(LARK, MARKED.sub("", _bare(grammar.dialect, text)))
    return ()


def _bare(dialect: str, text: str) -> str:
    """Returns a grammar in which texts and comments are blanks, and classes and expressions are empty."""

    def emptied(match: re.Match[str]) -> str:
        if match[0][0] == "[":
            return "[^]" if match[0].startswith("[^") else "[]"
        return "/" if match[0][0] == "/" and not match[0].startswith("//") else " "

    return APART[dialect].sub(emptied, text)


def _bare_class(match: re.Match[str]) -> str:
    """Returns a class with nothing but the short classes and properties that stand in it."""
    return f"[{match[1]}{''.join(SHORT.findall(match[2]))}]"


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text))


def _matching(names: dict[str, str], text: str) -> tuple[str, ...]:
    return tuple(sorted(name for name, pattern in names.items() if re.search(pattern, text)))


def _keywords(schema: Any) -> set[str]:
    """Returns the keywords that stand where a schema may stand; names of properties and data are none."""
    return {keyword for _, node in object_subschemas(schema) for keyword in KEYWORDS & node.keys()}


def derived_features(folder: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns, by suite and id, what the grammars of the run's cases are made of.

    Raises BadInput.
    """
    if not (
        folder / CASES_FILE
    ).exists():  # of a published run, or of one whose cases were taken away: their features are not known
        return {}
    return {
        (suite, case.id): tags for suite, _, case in read_cases(folder) if (tags := constructs(case.grammar))
    }


def tagged_rows(folder: Path) -> Iterator[Row]:
    """Yields the rows of a run with what their grammars are made of among their tags: the keywords of a JSON
    Schema, and the constructs of other grammars of which the suite says nothing. Raises BadInput.

    Of our own suites tags of the form `about:...` are left off: they say what a suite has the case for.
    """
    ours, derived = frozenset(suite_names()), derived_features(folder)
    for row in read_rows(folder, whole=False):  # the page says in its own words where rows are missing
        tags = tuple(tag for tag in row.tags if ":" not in tag or row.suite not in ours)
        if row.dialect == "json_schema" or not tags:
            tags = tuple(dict.fromkeys((*tags, *derived.get((row.suite, row.case_id), ()))))
        yield replace(row, tags=tags) if tags != row.tags else row
