"""Defines a case: one grammar and its instances."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass, field

from harness.backend.grammar import DIALECTS, Dialect, Grammar
from harness.backend.tag_formats.forms import TokenName
from harness.backend.tag_formats.tokens import token_id
from harness.backend.vocabulary import Vocabulary
from harness.oracle.judge.strict_json import exact_double

GRAMMAR_KEYS: dict[str, Dialect] = {
    ("schema" if dialect == "json_schema" else dialect): dialect for dialect in DIALECTS
}
"""The keys under which a case in our own form has its grammar, each with the grammar's dialect."""
OF_TOOL = "tools"
"""Where a request asks for a tool, in whatever list it stands."""
CASE_KEYS = [*GRAMMAR_KEYS, "description", "tests", "tags", "options", "notes"]


@dataclass(frozen=True)
class Instance:
    """One output text, and whether the grammar allows it (None: unknown)."""

    name: str
    content: bytes
    valid: bool | None
    contested: bool | None = None
    """The `valid` that the case states but that the judges contradict; `valid` is None then. See
    `harness.cases.flags`."""
    contrary: tuple[str, ...] = ()
    """The other readings of a regular expression (dialect and version of Unicode, e.g. `rust`) by which
    `valid` would be the opposite."""
    made_for: tuple[str, ...] = ()
    """The keywords of the schema, as JSON Pointers, for which we made the document: an invalid one breaks
    just these. Empty for an instance that came with its case."""
    tokens: tuple[TokenName, ...] = ()
    """The tokens of which the output consists, by id or name, where the case says them and not a text:
    `content` only shows them then."""

    def ids(self, vocabulary: Vocabulary) -> list[int]:
        """Returns the output's tokens: those that the case says, or those that the tokenizer writes for the
        text. An end of the output as the last of them is left out, because every walk sends one itself.

        Raises ValueError where the vocabulary has no token for the output, or an end stands within it."""
        if not self.tokens:
            return vocabulary.encode(self.content)
        ids = [token_id(vocabulary, token) for token in self.tokens]
        if ids[-1] in vocabulary.eos_tokens:
            del ids[-1]
        for number, token in enumerate(ids, 1):
            if token in vocabulary.eos_tokens:
                name = vocabulary.special_tokens[token]
                raise ValueError(f"token {number} of the output ({name}) ends it, and others stand behind it")
        return ids


@dataclass(frozen=True)
class Case:
    """One grammar and its instances.

    `id` comes from dialect and grammar as handed over; `name` is for people.
    """

    id: str
    name: str
    grammar: Grammar
    instances: tuple[Instance, ...] = ()
    tags: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """`draft` names the JSON Schema draft where the schema does not (it is then written into the grammar's
    own `$schema`); `format: assert` makes formats constraints."""
    is_published: bool = field(default=False, compare=False)
    """It was read from a file of MaskBench, which nobody mends: if its schema is none, a run leaves it out.
    The line of a run does not say it."""
    request: str = field(default="", compare=False)
    """The file, and the line, of the request or the list of tools in which it has its name; empty for every
    other case. The line of a run does not say it."""
    asked_at: str = field(default="", compare=False)
    """Where its request asks for it: `OF_TOOL` for a tool, and otherwise the place of what the answer is held
    to, such as `structured_outputs.json`; empty for every other case. The line of a run does not say it."""
    is_unnamed: bool = field(default=False, compare=False)
    """Its name is that of its place, because the request that it is from gives it none."""
    left_out: tuple[str, ...] = field(default=(), compare=False)
    """The entries of its list of tools that are left out: no schema or grammar of theirs is read."""

    @property
    def draft(self) -> str | None:
        """Returns the draft of JSON Schema of a schema that does not name its own; None is 2020-12."""
        return self.options.get("draft")

    @property
    def asserts_formats(self) -> bool:
        """Is `format` a constraint, not an annotation?"""
        return self.options.get("format") == "assert"


def case_id(grammar: Grammar) -> str:
    """Returns the case's id: 12 hex digits of a hash of dialect and text, so that moving or reordering a
    suite changes nothing. Only where a grammar repeats in a suite do numbers follow the order (`-2`)."""
    return hashlib.sha256(f"{grammar.dialect}\0{grammar.text}".encode("utf-8", "surrogatepass")).hexdigest()[
        :12
    ]


@dataclass(frozen=True)
class Literal:
    """A JSON number that no double holds exactly, as it was written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def as_written(number: str) -> float | Literal:
    """Returns a number with a point or an exponent of JSON text: as a double where one holds it exactly."""
    try:
        return exact_double(number)
    except ValueError:
        return Literal(number)


_MARK = secrets.token_hex(16)
"""What no text from elsewhere has: it holds the place of a literal while JSON is written."""


def json_text(value: object) -> str:
    """Returns the value as JSON text in the form in which models write it and MaskBench serialises it: `",
    "`, `": "`, and non-ASCII characters as themselves (but lone surrogates escaped)."""
    text = json.dumps(value, ensure_ascii=False, default=_marked)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=_marked)
    return text if _MARK not in text else re.sub(f'"{_MARK}([^"]*)"', r"\1", text)


def _marked(value: object) -> str:
    if isinstance(value, Literal):
        return f"{_MARK}{value}"
    raise TypeError(f"{type(value).__name__} is no JSON value")
