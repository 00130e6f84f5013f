"""The forms in which llguidance takes a vocabulary and a grammar of each dialect."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper, grammar_from
from llguidance.gbnf_to_lark import GbnfToLarkError, gbnf_to_lark

from harness import Grammar, InvalidGrammar, Layout, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.known_tokens import Loader, folder_to_load, own_loader_at_work
from harness.backend.layout import COMPACT, with_delete_escaped
from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.own_tokenizer import own_tokenizer

ENGINES = {
    "vllm": {"": "--structured-outputs-config.backend guidance"},
    "sglang": {"engine=sglang": "--grammar-backend llguidance"},
}
"""The serving engines that have the library, with their options for it."""
DOCUMENTED = {
    "canonical_only": "In forced text the mask holds the canonical token only "
    "(llguidance docs/fast_forward.md).",
    "property_order": "Properties come in the order of the schema "
    "(llguidance docs/json_schema.md, Property order).",
    "spelling:leading_space": "No whitespace before the first brace "
    "(llguidance docs/json_schema.md, Whitespace handling).",
    "spelling:trailing_newline": "No whitespace after the last brace "
    "(llguidance docs/json_schema.md, Whitespace handling).",
    "asserted_format": "Formats are enforced by default "
    "(llguidance docs/json_schema.md, Departures from JSON schema semantics).",
    "spelling:escaped_slash": "No escaped slash unless asked for "
    "(llguidance docs/json_schema.md, json_allowed_escapes).",
    "lark_lexer": "A lexer converts the bytes into lexemes, and what is ignored stands between them "
    "(llguidance docs/syntax.md, Terminals vs rules).",
    "regex_dialect_rust": "Regular expressions are those of Rust's regex crate "
    "(llguidance docs/syntax.md, Structured %regex).",
}

KNOWS_ONE_END = (
    "" if hasattr(LLTokenizer, "eos_tokens") else "LLTokenizer of this release takes one eos_token."
)

# Order and white space are those of docs/json_schema.md of the library; U+007F is always escaped (CHAR_REGEX
# of parser/src/json/compiler.rs).
PLAIN = with_delete_escaped(COMPACT)

Options = dict[str, Any] | None
"""The library's options of a JSON Schema, which stand beneath its key `x-guidance`; None for no option."""

WHITESPACE: dict[str, tuple[Options, Layout]] = {
    "any": (None, replace(PLAIN, separators=None)),
    "json_dumps": (
        {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
        replace(PLAIN, separators=(b" ", b" ")),
    ),
    "compact": ({"whitespace_flexible": False}, PLAIN),
}


def whitespace_options(whitespace: str, most: int) -> tuple[Options, Layout]:
    """Returns the library's options for white space, of which at most so many characters stand in a row (0:
    no bound), and the layout that follows from them. Raises ValueError where they contradict each other."""
    options, layout = parts.option_value("whitespace", whitespace, WHITESPACE)
    layout = parts.bounded_white_space(layout, most)
    return ({"whitespace_pattern": rf"[\x20\x0A\x0D\x09]{{1,{most}}}"} if most else options), layout


# The library gives one string. These are its words for what it cannot do: a missing feature, or one of its
# size limits. Of a schema that nothing satisfies it says that it is wrong.
UNSUPPORTED = re.compile(
    r"Unimplemented keys|not supported|no longer supported|unsupported operator|Unknown format|"
    r"are not disjoint|does not fetch resources|Expecting object schema to apply options|already exists|"
    r"too (?:big|large|many)|fuel exhausted|lexer precomputation failed"
)

PANIC = "panic: "
"""How the error begins where the library has caught a panic of its own (its parser/src/panic_utils.rs)."""


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
        self._encode = vocabulary.encode_known

    def __call__(self, text: bytes | str) -> list[int]:
        """Returns ids. An exception would be a panic of the library, which is told as its fault."""
        return self._encode(text.encode() if isinstance(text, str) else text)


def ll_tokenizer(vocabulary: Vocabulary, loader: Loader) -> tuple[Loader, LLTokenizer]:
    """Returns how the library came to know the tokens, and its tokenizer. Raises UnsupportedVocabulary."""
    ends, folder = None if KNOWS_ONE_END else list(vocabulary.eos_tokens), folder_to_load(vocabulary, loader)
    if folder is not None:
        with own_loader_at_work("llguidance"):
            from llguidance.hf import from_tokenizer  # imports transformers

            return "library", from_tokenizer(
                own_tokenizer(folder), vocabulary.size, ends or vocabulary.eos_token
            )
    return "bytes", LLTokenizer(TokenizerWrapper(TokenizerForm(vocabulary)), eos_token=ends)


def grammar_text(grammar: Grammar, options: Options) -> str:
    """Returns the grammar as `LLMatcher` takes it. Raises UnsupportedGrammar or InvalidGrammar."""
    match grammar.dialect:
        case "json_schema":
            return _json_schema(grammar.text, options)
        case "regex":
            return LLMatcher.grammar_from_regex(grammar.text)
        case "ebnf":
            return _lark_of_gbnf(grammar.text)
        case "lark":
            return LLMatcher.grammar_from_lark(grammar.text)
        case "choice":
            parts.choices_of(grammar.text)
            return grammar_from("choice", grammar.text)
        case "structural_tag":
            return _structural_tag(grammar.text, options)


def _json_schema(text: str, options: Options) -> str:
    if not options:
        return LLMatcher.grammar_from_json_schema(text)
    try:
        return LLMatcher.grammar_from_json_schema(text, overrides=cast(Any, options))
    except ValueError as error:
        raise parts.refusal(str(error), UNSUPPORTED) from error


def _lark_of_gbnf(text: str) -> str:
    try:
        return gbnf_to_lark(text)
    except Exception as error:
        # The converter raises its own error class or a bare Exception; anything more specific is a bug of its
        # own.
        if type(error) not in (GbnfToLarkError, Exception):
            raise
        raise parts.refusal(str(error), UNSUPPORTED) from error


def _structural_tag(text: str, options: Options) -> str:
    try:
        from llguidance import StructTag
    except ImportError as error:  # releases before 0.7.11 have no tags
        raise UnsupportedGrammar("structural_tag: this release of llguidance has none") from error
    triggers, structures = parts.structural_tag_of(text)
    given = [_trigger_of(tag.begin, triggers) for tag in structures]
    try:
        tags = [
            StructTag(trigger=trigger, begin=tag.begin, grammar=_tag_schema(tag.schema, options), end=tag.end)
            for trigger, tag in zip(given, structures, strict=True)
        ]
        # In this project a trigger is text; left to itself the library takes `<...>` for the name of a
        # special token.
        lark = StructTag.to_grammar(tags, assume_special=False)
    except (ValueError, AssertionError) as error:
        raise InvalidGrammar(f"structural_tag: {error!r}") from error
    # The library would let it pass as free text. With a structure that nothing satisfies it would allow the
    # trigger's last byte, and nothing behind it.
    idle = [trigger for trigger in triggers if not trigger.startswith(tuple(given))]
    if idle:
        raise UnsupportedGrammar(f"llguidance has no trigger without a structure, such as {idle[0]!r}")
    return lark


def _trigger_of(begin: str, triggers: list[str]) -> str:
    """Returns the trigger to give with a structure, for the library takes one: of those that its begin starts
    with the shortest, which is complete first. Raises InvalidGrammar where there is none."""
    found = [trigger for trigger in triggers if begin.startswith(trigger)]
    if not found:
        raise InvalidGrammar("structural_tag: a structure begins with none of the triggers")
    return min(found, key=len)


def _tag_schema(schema: object, options: Options) -> dict[str, Any] | str:
    """Returns a structure's schema with the options, which go before its own and, as the library has it for
    a schema alone, instead of what is no object."""
    if isinstance(schema, dict):
        own = schema.get("x-guidance")
        known = own if isinstance(own, dict) else {}
        return {**schema, "x-guidance": {**known, **options}} if options else schema
    if options:
        raise UnsupportedGrammar("llguidance applies its whitespace option to object schemas only")
    return f"start: %json {json.dumps(schema)}"  # true and false, which a tag takes only inside a grammar
