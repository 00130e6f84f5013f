"""How many tokens an output of a case takes at least."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.layout import COMPACT
from harness.cases.case import Case, as_written, json_text
from harness.cases.generated.differences import ASKING_LESS_OR_MORE, with_known_names
from harness.cases.subschemas import at, subschemas
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.fewest_tokens import FewestTokens, fewest_tokens
from harness.oracle.language import language_of, outputs_of
from harness.oracle.trie import TokenTrie

WRITTEN = replace(COMPACT, separators=None)
"""How documents are written of which the shortest is sought: with any white space, because a token may hold
some, but in the schema's order, with no escape and no digit that is not needed, and without exponents. Other
orders and escapes multiply the states, and save no token of any tokenizer that we know. An exponent saves
some where a number must be as long as 1000000000000."""


def budget_of_case(case: Case, trie: TokenTrie) -> FewestTokens | None:
    """Returns how many tokens of the trie's vocabulary an output of the case takes at least that is `WRITTEN`
    so, end-of-sequence not counted; None where the case has no reference or no output, or its tokens are
    meant by their ids.

    The reference counts a name that no schema lists each time that it stands there. Where a schema wants
    several names, the number is therefore one that no output is below, and an output is known only if there
    is one with names from a list."""
    budget = _budget_of(case, case.grammar, trie)
    if budget is None or '"minProperties"' not in case.grammar.text:
        return budget
    listed = _with_listed_names(case.grammar) if case.grammar.dialect == "json_schema" else None
    if listed == case.grammar:
        return budget
    known = None if listed is None else _budget_of(case, listed, trie)
    return replace(budget, most=None if known is None else known.most)


def _budget_of(case: Case, grammar: Grammar, trie: TokenTrie) -> FewestTokens | None:
    """Returns the fewest tokens of an output of the grammar, which is read by the case's options."""
    language: Automaton[Any]
    try:
        if grammar.dialect in ("json_schema", "structural_tag"):
            language = outputs_of(
                grammar, case.draft, case.asserts_formats, layout=WRITTEN, vocabulary=trie.vocabulary
            )
        else:
            language = language_of(grammar)
        return fewest_tokens(language, language.start, trie)
    except NoOracle:
        return None


def _with_listed_names(grammar: Grammar) -> Grammar | None:
    """Returns the schema with names from a list only in objects that must have several; None where it may
    take more then, because a part of it asks less where it is refused."""
    made = schema = json.loads(grammar.text, parse_float=as_written)
    nodes = [(path, node) for path, node in subschemas(schema) if isinstance(node, dict)]
    if any(not ASKING_LESS_OR_MORE.isdisjoint(node) for _, node in nodes):
        return None
    for path, node in reversed(nodes):
        least = node.get("minProperties")
        if isinstance(least, int | float) and least > 1:
            made = with_known_names(made, path, at(made, path))
    return grammar if made is schema else Grammar("json_schema", json_text(made))
