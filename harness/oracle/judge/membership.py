"""Tells whether a text is a sentence of the grammar, the beginning of one, or neither."""

from __future__ import annotations

from typing import Any, Literal

from harness.backend.grammar import Grammar
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.judge.unjudgeable import Unjudgeable

Membership = Literal["sentence", "beginning", "neither"]

# RFC 8259. What a schema allows is a part of it: a text that is no beginning here is no beginning of a valid
# document.
_JSON = r"""
root ::= blank value blank
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" blank (member ("," blank member)*)? "}"
member ::= string blank ":" blank value blank
array ::= "[" blank (value blank ("," blank value blank)*)? "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+\-]? [0-9]+)?
blank ::= [ \t\n\r]*
"""


def membership(grammar: Grammar, content: bytes) -> Membership:
    """Returns the membership by the reference automaton. For a JSON Schema only JSON itself decides, so it is
    never `sentence`.

    Raises Unjudgeable.
    """
    from harness.oracle.language import language_of

    is_schema = grammar.dialect == "json_schema"
    try:
        language: Any = language_of(Grammar("ebnf", _JSON) if is_schema else grammar)
        state = language.run(language.start, content)
    except NoOracle as why:
        raise Unjudgeable(str(why)) from why
    except RecursionError:
        raise Unjudgeable("the grammar nests too deeply") from None
    if state == DEAD:
        return "neither"
    return "sentence" if language.accepting(state) and not is_schema else "beginning"
