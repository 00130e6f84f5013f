"""How many tokens an output of a case takes at least."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.layout import WHITE_SPACED
from harness.cases.case import Case, as_written, json_text
from harness.cases.generated.differences import with_known_names
from harness.cases.subschemas import at, object_subschemas
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.fewest_tokens import FewestTokens, fewest_tokens
from harness.oracle.language import documents_of, language_of, outputs_of
from harness.oracle.repeated_names import may_repeat_a_name
from harness.oracle.trie import TokenTrie

WRITTEN = WHITE_SPACED
"""How documents are written of which the shortest is sought: with any white space, because a token may hold
some, but in the schema's order, with no escape and no digit that is not needed, and without exponents. Other
orders and escapes multiply the states, and save no token of any tokenizer that we know. An exponent saves
some where a number must be as long as 1000000000000."""


def budget_of_case(case: Case, trie: TokenTrie) -> FewestTokens | None:
    """Returns how many tokens of the trie's vocabulary an output of the case takes at least that is `WRITTEN`
    so, end-of-sequence not counted; None where the case has no reference or no output, or its tokens are
    meant by their ids.

    The reference counts a name that no schema lists each time that it stands there. The number is therefore
    one that no output is below, and an output is known only if its text was found and repeats no name.
    """

    def is_output(text: bytes) -> bool:
        return not may_repeat_a_name(case.grammar.dialect, text)

    try:
        language = _language(case, case.grammar, trie)
        budget = fewest_tokens(language, language.start, trie, is_output=is_output)
    except NoOracle:
        return None
    if budget is None or budget.most is not None or case.grammar.dialect != "json_schema":
        return budget
    return replace(budget, most=_tokens_with_listed_names(case, trie, is_output))


def _language(case: Case, grammar: Grammar, trie: TokenTrie) -> Automaton[Any]:
    """Returns the automaton of the outputs of the grammar, which is read by the case's options. Raises
    NoOracle."""
    if grammar.dialect not in ("json_schema", "structural_tag"):
        return language_of(grammar)
    return outputs_of(grammar, case.draft, case.asserts_formats, layout=WRITTEN, vocabulary=trie.vocabulary)


def _tokens_with_listed_names(case: Case, trie: TokenTrie, is_output: Callable[[bytes], bool]) -> int | None:
    """Returns how many tokens a document takes in which the objects that must have several names have them
    from a list, which the reference does not repeat; None where no such document of the schema is found."""
    listed = _with_listed_names(case.grammar)
    if listed == case.grammar:
        return None
    try:
        documents = documents_of(case.grammar.text, case.draft, case.asserts_formats)
        language = _language(case, listed, trie)
        budget = fewest_tokens(
            language, language.start, trie, is_output=lambda text: is_output(text) and documents.accepts(text)
        )
    except NoOracle:
        return None
    return None if budget is None else budget.most


def _with_listed_names(grammar: Grammar) -> Grammar:
    """Returns the schema with names from a list only in objects that must have several, as far as that stands
    in so many words; it may take documents that the schema does not."""
    made = schema = json.loads(grammar.text, parse_float=as_written)
    nodes = object_subschemas(schema)
    for path, node in reversed(nodes):
        if _least_names(node) > 1:
            made = with_known_names(made, path, at(made, path))
    return grammar if made is schema else Grammar("json_schema", json_text(made))


def _least_names(node: dict[str, Any]) -> float:
    """Returns how many names `minProperties`, or `maxProperties` in a `not`, asks for at least."""
    least, other = node.get("minProperties"), node.get("not")
    most = other.get("maxProperties") if isinstance(other, dict) else None
    return max(
        least if isinstance(least, int | float) else 0, most + 1 if isinstance(most, int | float) else 0
    )
