"""The forms in which llama.cpp takes a grammar of each dialect: GBNF, a grammar of characters."""

from __future__ import annotations

import json
import re
from typing import Literal

from llama_cpp.llama_grammar import json_schema_to_gbnf

from harness import Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.oracle.automaton import NoOracle
from harness.oracle.ebnf.gbnf import gbnf_of_choice, gbnf_of_ebnf, gbnf_of_regex
from harness.oracle.language import language_of

Ebnf = Literal["translated", "text"]

FACTS = {
    "of_schemas": "JSON Schemas went through llama-cpp-python's own converter, in Python; llama.cpp's server "
    "has another, in C++, so that what is said of them here need not hold there.",
}
"""What a user of llama.cpp must know beside what the library does."""


def gbnf_of(grammar: Grammar, ebnf: Ebnf) -> str:
    """Returns the grammar as GBNF. Raises UnsupportedGrammar or InvalidGrammar."""
    try:
        grammar.text.encode()
        match grammar.dialect:
            case "json_schema":
                return _converted(grammar.text)
            case "regex":
                return gbnf_of_regex(grammar.text)
            case "choice":
                parts.choices_of(grammar.text)
                return gbnf_of_choice(grammar.text)
            case "ebnf":
                return gbnf_of_ebnf(grammar.text) if ebnf == "translated" else grammar.text
    except ValueError as error:
        raise InvalidGrammar(str(error)) from error
    except NoOracle as error:
        raise untranslated(grammar, str(error)) from error
    raise UnsupportedGrammar(f"llama.cpp has no {grammar.dialect}")


def _converted(text: str) -> str:
    """Returns the GBNF of a JSON Schema, by the package's converter. Where it cannot convert one it fails an
    assertion or raises ValueError; what else it raises is a fault."""
    if not isinstance(schema := json.loads(text), dict):
        kind = UnsupportedGrammar if isinstance(schema, bool) else InvalidGrammar
        raise kind("the converter takes a schema as an object")
    try:
        return str(json_schema_to_gbnf(text))
    except (AssertionError, ValueError) as error:
        raise UnsupportedGrammar(f"{type(error).__name__}: {error}") from error


def untranslated(grammar: Grammar, why: str) -> Exception:
    """Returns the exception for a grammar that has no GBNF: is it wrong in itself, or has GBNF no words for
    it?"""
    try:
        if grammar.dialect == "regex":
            re.compile(grammar.text)
        else:
            language_of(grammar)
    except (NoOracle, re.error, OverflowError, RecursionError):
        return InvalidGrammar(why)
    return UnsupportedGrammar(why)
