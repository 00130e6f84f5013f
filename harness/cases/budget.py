"""How many tokens an output of a case takes at least."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.backend.layout import COMPACT
from harness.cases.case import Case
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
    meant by their ids."""
    language: Automaton[Any]
    try:
        if case.grammar.dialect in ("json_schema", "structural_tag"):
            language = outputs_of(
                case.grammar, case.draft, case.asserts_formats, layout=WRITTEN, vocabulary=trie.vocabulary
            )
        else:
            language = language_of(case.grammar)
        return fewest_tokens(language, language.start, trie)
    except NoOracle:
        return None
