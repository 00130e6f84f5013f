"""formatron: formats written in KBNF, recognised byte by byte (Earley, in Rust) by kbnf, which ends as soon
as the grammar is complete."""

from __future__ import annotations

import copy
import json
import logging
import re
import typing
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import kbnf
import numpy as np
import pydantic
from jsonschema import ValidationError
from referencing.exceptions import Unresolvable
from referencing.jsonschema import UnknownDialect

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject, InvalidGrammar, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask
from harness.backend.layout import COMPACT
from harness.backend.vocabulary import Vocabulary

# It takes Python's own `typing` from pydantic, which no longer hands it on: there is another module of that
# name now.
with patch.object(pydantic, "typing", typing, create=True):
    from formatron.extractor import Extractor
    from formatron.formatter import FormatterBuilder
    from formatron.schemas.json_schema import create_schema

logging.getLogger("kbnf").addHandler(logging.NullHandler())  # it warns of bytes that no token has, at length

ID = {"$id": "urn:schema", "id": "urn:schema"}
DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
"""What the library requires of every schema, for a schema that has none (drafts 3 and 4 call it `id`)."""

REFUSALS = (
    # "KBNF parsing error" or "KBNF semantic error": of a regular expression that it does not know, or of what
    # it has written itself.
    "KBNF ",
    "not supported",
    "is not allowed",
    "which are not allowed",
    "mutually exclusive",
    "must be 'object'",
    "Only 'anyOf'",
    "cannot contain both",
    "Circular self reference",
    "cannot be an empty",
)
"""Words with which it says that it cannot; there is no class of errors for that."""


class _FormatronObject(GrammarObject):
    __slots__ = ("_buffer", "_ends", "_engine", "_row", "_size", "_terminated")

    def __init__(self, engine: kbnf.Engine, vocabulary: Vocabulary) -> None:
        self._engine = engine
        self._ends = vocabulary.eos_tokens
        self._size = vocabulary.size
        self._terminated = False
        # It writes whole words of 64 bits, and may so write behind a mask.
        self._buffer = np.zeros((vocabulary.size + 63) // 64, dtype=np.uint64)
        self._row: Bitmask = self._buffer.view(np.int32)[: vocabulary.words]

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self._terminated:
            bitmask.fill(0)
            return
        self._engine.compute_allowed_token_ids()
        self._engine.fill_torch_bitmask(self._buffer.ctypes.data)
        if self._engine.is_finished():
            # It knows no end-of-sequence: whoever serves it writes one as soon as it has finished.
            for end in self._ends:
                self._row.view(np.uint32)[end >> 5] |= np.uint32(1 << (end & 31))
        bitmask[:] = self._row

    def accept_token(self, token: int) -> bool:
        if token in self._ends:
            ends = self.is_accepting()
            self._terminated = self._terminated or ends
            return ends
        if self._terminated or not 0 <= token < self._size:
            return False
        try:
            self._engine.try_accept_new_token(token)
        except ValueError:
            return False
        return True

    def is_accepting(self) -> bool:
        return not self._terminated and bool(self._engine.is_finished())

    def is_terminated(self) -> bool:
        return self._terminated

    def copy(self) -> GrammarObject:
        clone = _FormatronObject.__new__(_FormatronObject)
        clone._engine, clone._terminated = copy.copy(self._engine), self._terminated
        clone._ends, clone._size = self._ends, self._size
        clone._buffer = np.zeros_like(self._buffer)
        clone._row = clone._buffer.view(np.int32)[: len(self._row)]
        return clone


class _FormatronCompiled(CompiledGrammar):
    def __init__(self, engine: kbnf.Engine, vocabulary: Vocabulary) -> None:
        self._engine = engine
        self._vocabulary = vocabulary

    def start(self) -> GrammarObject:
        return _FormatronObject(copy.copy(self._engine), self._vocabulary)


class Formatron(Adapter):
    """JSON Schema, regular expressions and choices as the library's own formats; its grammars (KBNF) are
    another dialect than our EBNF.

    A schema that has no `$id` or no `$schema`, which the library requires, is given one; the draft that a
    schema names stays in it.
    """

    distribution = "formatron"
    dialects = frozenset({"json_schema", "regex", "choice"})
    documented = {
        "unlisted_name": "additionalProperties is always taken to be false (docstring of "
        "formatron.schemas.json_schema.create_schema).",
        "regex_dialect_rust": "Regular expressions are those of Rust's regex crate (documentation of kbnf, "
        "Regular expression).",
    }

    layout = replace(COMPACT, separators=None, whitespace=b" \t\n", unlisted="never")

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        texts = vocabulary.plain_tokens()
        self._vocabulary = kbnf.Vocabulary(
            {token: kbnf.Token(text) for token, text in texts.items()},
            {token: text.decode("utf-8", "replace") for token, text in texts.items()},
        )

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        builder = FormatterBuilder()
        try:
            builder.append_str(str(_format(builder, grammar)))
            formatter = builder.build(self._vocabulary, self._decode)
        except (ValidationError, json.JSONDecodeError, re.error) as error:
            raise InvalidGrammar(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
        except (Unresolvable, UnknownDialect) as error:
            raise UnsupportedGrammar(f"{type(error).__name__}: {error}") from error
        except (ValueError, TypeError, AssertionError) as error:
            if any(words in str(error) for words in REFUSALS):
                raise UnsupportedGrammar(str(error)) from error
            raise
        # As the library's own integrations do: a formatter tells nothing about a position, its engine does.
        return _FormatronCompiled(formatter._engine, self.vocabulary)

    def script(self, grammar: Grammar) -> str:
        formats = {
            "json_schema": f"json(create_schema({ID | DRAFT!r} | json.loads(grammar)))",
            "regex": "regex(grammar)",
            "choice": "choose(*json.loads(grammar))",
        }
        return parts.script_of("formatron", format_call=formats[grammar.dialect])

    def _decode(self, tokens: list[int]) -> str:
        return self.vocabulary.decode(tokens).decode("utf-8", "replace")


def _format(builder: FormatterBuilder, grammar: Grammar) -> Extractor:
    """Returns the library's own format for the grammar, whose text is given to it as it is."""
    if grammar.dialect == "regex":
        return builder.regex(grammar.text)
    if grammar.dialect == "choice":
        return builder.choose(*parts.choices_of(grammar.text))
    if grammar.dialect != "json_schema":
        raise UnsupportedGrammar(f"formatron has no {grammar.dialect}")
    schema: Any = json.loads(grammar.text)
    if isinstance(schema, bool):
        raise UnsupportedGrammar("formatron takes a schema as an object")
    if not isinstance(schema, dict):
        raise InvalidGrammar("a schema must be an object or a boolean")
    return builder.json(create_schema(ID | DRAFT | schema))
