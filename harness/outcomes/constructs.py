"""What a grammar is made of: the keywords of a JSON Schema, the constructs of a regex, an EBNF grammar or one
of Lark.

Cases of ours say it in their tags. For cases without tags, such as a user's own, it is derived here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness.backend.grammar import Grammar
from harness.cases.case_json import SCHEMA_KEYWORDS
from harness.cases.subschemas import subschemas
from harness.rows.store import read_cases

SILENT = frozenset(("$schema", "$id", "id", "$comment", "title", "description", "default", "examples"))
"""The keywords that constrain nothing."""
LATER = frozenset(("dependentSchemas", "dependentRequired", "dependencies", "unevaluatedItems",
"unevaluatedProperties", "minContains",
                   "maxContains", "additionalItems", "$recursiveRef", "$dynamicAnchor"))  # fmt: skip
KEYWORDS = (SCHEMA_KEYWORDS | LATER) - SILENT
LONGEST = 200_000
"""Characters of a regex, an EBNF or a Lark grammar that are looked at."""

ESCAPED = re.compile(r"\\[^dDwWsSbBpPnrtAzZ1-9k]")
"""Characters that stand for themselves; they are taken out before constructs are looked for."""
REGEX = {
    "class": r"\[", "negated class": r"\[\^", "shorthand class": r"\\[dDwWsS]",
    "unicode property": r"\\[pP]\{?", "any character": r"\.",
    "alternation": r"\|", "group": r"\((?!\?[=!<])", "lookaround": r"\(\?<?[=!]",
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
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')


def constructs(grammar: Grammar) -> tuple[str, ...]:
    """Returns the names of what the grammar is made of, sorted; empty where there is nothing to name."""
    text = grammar.text[:LONGEST]
    if grammar.dialect == "json_schema":
        try:
            return tuple(sorted(_keywords(json.loads(grammar.text))))
        except (ValueError, RecursionError):
            return ()
    if grammar.dialect == "regex":
        return _matching(REGEX, ESCAPED.sub("", text))
    if grammar.dialect == "ebnf":
        rules = set(re.findall(r"^\s*([\w-]+)\s*::=", text, re.MULTILINE))
        bare = QUOTED.sub(" ", text)
        recursive = any(
            name in _words(body)
            for name, body in re.findall(r"^\s*([\w-]+)\s*::=(.*)", bare, re.MULTILINE)
            if name in rules
        )
        return tuple(sorted({*_matching(EBNF, bare), *(("recursion",) if recursive else ())}))
    if grammar.dialect == "lark":
        return _matching(LARK, QUOTED.sub(" ", text))
    return ()


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text))


def _matching(names: dict[str, str], text: str) -> tuple[str, ...]:
    return tuple(sorted(name for name, pattern in names.items() if re.search(pattern, text)))


def _keywords(schema: Any) -> set[str]:
    """Returns the keywords that stand where a schema may stand; names of properties and data are none."""
    nodes = [node for _, node in subschemas(schema) if isinstance(node, dict)]
    return {keyword for node in nodes for keyword in KEYWORDS & node.keys()}


def derived_features(folder: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns, by suite and id, what the grammars of the run's cases are made of.

    Raises BadInput.
    """
    if not (
        folder / "cases.jsonl"
    ).exists():  # of a published run, or of one whose cases were taken away: their features are not known
        return {}
    return {
        (suite, case.id): tags for suite, _, case in read_cases(folder) if (tags := constructs(case.grammar))
    }
