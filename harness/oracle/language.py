"""The reference automaton of a grammar, for the dialects that have one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harness.backend.grammar import Grammar
from harness.oracle.automaton import Automaton, NoOracle


@lru_cache(maxsize=8)
def language_of(grammar: Grammar) -> Automaton[Any]:
    """The reference automaton of a regex (Python's dialect, matching the whole output), of an EBNF grammar
    (docs/ebnf.md) or of a choice. Raises NoOracle for a grammar that has none."""
    # Imported here: a walk without checks needs neither.
    if grammar.dialect == "regex":
        from harness.oracle.regex.automaton import regex_automaton

        return regex_automaton(grammar.text, "python")
    if grammar.dialect == "ebnf":
        from harness.oracle.ebnf.automaton import ebnf_automaton

        return ebnf_automaton(grammar.text)
    if grammar.dialect == "choice":
        from harness.oracle.choice import choice_automaton

        return choice_automaton(grammar.text)
    raise NoOracle(f"no reference automaton for {grammar.dialect}")
