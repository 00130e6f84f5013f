"""Backends that read regular expressions otherwise than the reference: some by another reading, some
by none.
"""

from __future__ import annotations

from typing import ClassVar

from harness.backend.grammar import Grammar
from harness.oracle.reference import Reference, ReferenceGrammar
from harness.oracle.regex.automaton import regex_automaton


class Rust(Reference):
    """Reads as Rust's crate does, and says nothing of it."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, regex_automaton(grammar.text, "rust"))


class DocumentedRust(Rust):
    """Says so."""

    documented: ClassVar = {"regex_dialect_rust": "It is said here."}


class OldTables(Reference):
    """Right, with the tables of Unicode 16.0."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, regex_automaton(grammar.text, "python", "16.0"))


class OldTablesForgetfulToo(OldTables):
    """Has these tables too, and never takes the letter a for one of a word."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return super().compile(
            Grammar(
                "regex", grammar.text.replace(r"\w", r"[^\Wa]") if grammar.text != r"\w" else grammar.text
            )
        )


class NoNewLetters(Reference):
    """Has the newest tables, but where it is asked for letters after `x` it knows none of those that are
    newer than 16.0."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        version = "16.0" if grammar.text.startswith("x") else ""
        return ReferenceGrammar(self, regex_automaton(grammar.text, "python", version))


class WrongInEveryDialect(Reference):
    """Reads a count of two as one of three."""

    documented: ClassVar = {
        f"regex_dialect_{dialect}": "It is said here." for dialect in ("ecma", "javascript", "rust")
    }

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, regex_automaton(grammar.text.replace("{2}", "{3}")))
