"""Backends that read Lark grammars wrongly, or with a lexer."""

from __future__ import annotations

from typing import ClassVar

from harness.backend.grammar import Grammar
from harness.oracle.lark.automaton import lark_automaton
from harness.oracle.reference import Reference, ReferenceGrammar


class Lexing(Reference):
    """Has a lexer, and says nothing of it."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, lark_automaton(grammar.text, lexer=True))


class DocumentedLexing(Lexing):
    """Says so."""

    documented: ClassVar = {"lark_lexer": "It is said here."}


class Rewriting(DocumentedLexing):
    """Compiles another grammar: `old` in it becomes `new`."""

    old: ClassVar[str]
    new: ClassVar[str] = ""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, lark_automaton(grammar.text.replace(self.old, self.new)))


class ForgetsWhatIsIgnored(Rewriting):
    """Takes the grammar without its `%ignore`."""

    old = "%ignore / /"


class Miscounts(Rewriting):
    """Takes one more."""

    old, new = "~1..2", "~1..3"


class LosesAnAlternative(Rewriting):
    """Knows the first of two."""

    old = ' | "b"'


class ForgetsTheCase(Rewriting):
    """Takes a letter as it is written."""

    old, new = '"i', '"'


class IgnoresAtTheStart(Rewriting):
    """Ignores before the first lexeme too."""

    old, new = "start:", "start: / /*"
