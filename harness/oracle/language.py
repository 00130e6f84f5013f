"""The reference automaton of a grammar, for the dialects that have one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harness.grammar import Grammar
from harness.oracle.automaton import Automaton, NoOracle


@lru_cache(maxsize=8)
def language_of(grammar: Grammar) -> Automaton[Any]:
    """Regex (Python's, matching the whole output), EBNF (docs/ebnf.md) and choice. Raises NoOracle for what has none."""
    # Imported here: a walk without checks needs neither.
    if grammar.dialect == "regex":
        from harness.oracle.regex import regex_automaton

        return regex_automaton(grammar.text, "python")
    if grammar.dialect == "ebnf":
        from harness.oracle.ebnf import ebnf_automaton

        return ebnf_automaton(grammar.text)
    if grammar.dialect == "choice":
        from harness.oracle.choice import choice_automaton

        return choice_automaton(grammar.text)
    raise NoOracle(f"no reference automaton for {grammar.dialect}")
