"""The forms in which llguidance takes a vocabulary and a grammar of each dialect."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from llguidance import LLMatcher, StructTag, grammar_from
from llguidance.gbnf_to_lark import GbnfToLarkError, gbnf_to_lark

from harness import Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.vocabulary import Vocabulary

Layout = dict[str, Any] | None
"""The library's options of a JSON Schema, which stand beneath its key `x-guidance`; None for no option."""

WHITESPACE: dict[str, Layout] = {
    "any": None,
    "json_dumps": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    "compact": {"whitespace_flexible": False},
}

# The library gives one string. These are its words for what it cannot do: a missing feature, or one of its
# size limits. Of a schema that nothing satisfies it says that it is wrong.
UNSUPPORTED = re.compile(
    r"Unimplemented keys|not supported|no longer supported|unsupported operator|Unknown format|"
    r"are not disjoint|does not fetch resources|Expecting object schema to apply options|already exists|"
    r"too (?:big|large|many)|fuel exhausted|lexer precomputation failed"
)


class TokenizerForm:
    """The vocabulary as `TokenizerWrapper` reads it. A padding token is empty, and the library allows no
    empty token."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_token
        self.special_token_ids = list(vocabulary.special_tokens)
        self.tokens = list(vocabulary.tokens)
        for token, name in vocabulary.special_tokens.items():
            self.tokens[token] = name.encode()
        self._encode = vocabulary.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text.encode() if isinstance(text, str) else text)


def grammar_text(grammar: Grammar, layout: Layout) -> str:
    """Returns the grammar as `LLMatcher` takes it. Raises UnsupportedGrammar or InvalidGrammar."""
    match grammar.dialect:
        case "json_schema":
            return _json_schema(grammar.text, layout)
        case "regex":
            return LLMatcher.grammar_from_regex(grammar.text)
        case "ebnf":
            return _lark(grammar.text)
        case "choice":
            parts.choices_of(grammar.text)
            return grammar_from("choice", grammar.text)
        case "structural_tag":
            return _structural_tag(grammar.text, layout)


def _json_schema(text: str, layout: Layout) -> str:
    if not layout:
        return LLMatcher.grammar_from_json_schema(text)
    try:
        return LLMatcher.grammar_from_json_schema(text, overrides=cast(Any, layout))
    except ValueError as error:
        raise parts.refusal(str(error), UNSUPPORTED) from error


def _lark(text: str) -> str:
    try:
        return gbnf_to_lark(text)
    except Exception as error:
        # The converter raises its own error class or a bare Exception; anything more specific is a bug of its
        # own.
        if type(error) not in (GbnfToLarkError, Exception):
            raise
        raise parts.refusal(str(error), UNSUPPORTED) from error


def _structural_tag(text: str, layout: Layout) -> str:
    triggers, structures = parts.structural_tag_of(text)
    try:
        tags = [
            StructTag(
                trigger=next(trigger for trigger in triggers if tag.begin.startswith(trigger)),
                begin=tag.begin,
                grammar=_tag_schema(tag.schema, layout),
                end=tag.end,
            )
            for tag in structures
        ]
        # In this project a trigger is text; left to itself the library takes `<...>` for the name of a
        # special token.
        return StructTag.to_grammar(tags, assume_special=False)
    except StopIteration:
        raise InvalidGrammar("structural_tag: a structure begins with none of the triggers") from None
    except (ValueError, AssertionError) as error:
        raise InvalidGrammar(f"structural_tag: {error!r}") from error


def _tag_schema(schema: object, layout: Layout) -> dict[str, Any] | str:
    """Returns a structure's schema with the options of the layout, which go before its own."""
    if isinstance(schema, dict):
        return {**schema, "x-guidance": {**schema.get("x-guidance", {}), **layout}} if layout else schema
    if layout:
        raise UnsupportedGrammar("llguidance applies its whitespace option to object schemas only")
    return f"start: %json {json.dumps(schema)}"  # true and false, which a tag takes only inside a grammar
