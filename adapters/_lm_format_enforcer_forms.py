"""The forms in which lm-format-enforcer takes the tokens, and a grammar of each dialect."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from lmformatenforcer import (
    CharacterLevelParser,
    CharacterLevelParserConfig,
    JsonSchemaParser,
    RegexParser,
    StringParser,
    UnionParser,
)
from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData

from harness import Grammar, InvalidGrammar, Layout, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.known_tokens import Loader, folder_to_load, own_loader_at_work
from harness.backend.layout import COMPACT
from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.own_tokenizer import own_tokenizer

WHITESPACE = {"any": sys.maxsize, "library": 12, "compact": 0}
"""How many whitespace characters may follow each other in JSON."""


def whitespace_options(whitespace: str, most: int, property_order: bool) -> tuple[int, Layout]:
    """Returns the library's `max_consecutive_whitespaces` (`most`, or what the option's name stands for where
    that is 0), and the layout that follows from it and `force_json_field_order` (the library's README,
    Configuration options). Raises ValueError where the options contradict each other."""
    named = parts.option_value("whitespace", whitespace, WHITESPACE)
    layout = replace(
        COMPACT,
        separators=None,
        longest_run=None if named == sys.maxsize else named,
        order="required_first" if property_order else "any",
        unlisted="never",
    )
    return most or named, parts.bounded_white_space(layout, most)


def parser_of(grammar: Grammar, config: CharacterLevelParserConfig) -> CharacterLevelParser:
    """Returns the library's parser of the grammar. Raises UnsupportedGrammar, InvalidGrammar, or an error of
    the library's."""
    if grammar.dialect == "regex":
        return RegexParser(grammar.text, config)
    if grammar.dialect == "choice":
        return UnionParser([StringParser(choice) for choice in parts.choices_of(grammar.text)])
    if grammar.dialect != "json_schema":
        raise UnsupportedGrammar(f"lm-format-enforcer has no {grammar.dialect}")
    schema = json.loads(grammar.text)
    if schema is False:
        raise UnsupportedGrammar("lm-format-enforcer takes a schema as an object, or None for any JSON")
    if schema is not True and not isinstance(schema, dict):
        raise InvalidGrammar("a schema must be an object or a boolean")
    return JsonSchemaParser(None if schema is True else schema, config)


def token_texts(vocabulary: Vocabulary) -> list[tuple[int, str, bool]]:
    """Returns each plain token's id and text, and whether the tokenizer drops a leading space where it
    decodes the token alone. Our bytes are always whole, so by this rule of the library's integrations it
    never does.

    A token that is no UTF-8 by itself decodes to replacement characters, in the integrations too. To the
    library all such tokens are then the same character: whatever allows one (free text, a negated class)
    allows any broken bytes, and a grammar that names a non-ASCII character allows none of the tokens that
    begin it. That is how the library treats UTF-8, and it is left as it is.
    """
    plain = vocabulary.plain_tokens()
    return [(token, text.decode("utf-8", "replace"), False) for token, text in plain.items()]


def tokenizer_data(vocabulary: Vocabulary, loader: Loader) -> tuple[Loader, TokenEnforcerTokenizerData]:
    """Returns how the library came to know the tokens, and what it knows of them. Raises
    UnsupportedVocabulary."""
    folder = folder_to_load(vocabulary, loader)
    if folder is not None:
        with own_loader_at_work("lm-format-enforcer"):
            from lmformatenforcer.integrations.transformers import build_token_enforcer_tokenizer_data

            made = build_token_enforcer_tokenizer_data(
                own_tokenizer(folder), use_bitmask=True, vocab_size=vocabulary.size
            )
            made.eos_token_id = list(vocabulary.eos_tokens)  # the loader has asked the tokenizer for one
            return "library", made

    def decode(tokens: list[int]) -> str:
        """Returns the text without a character that is not complete yet, as the library's integrations do."""
        return vocabulary.decode(tokens).decode("utf-8", "replace").rstrip("\ufffd")

    return "bytes", TokenEnforcerTokenizerData(
        token_texts(vocabulary), decode, list(vocabulary.eos_tokens), True, vocabulary.size
    )
