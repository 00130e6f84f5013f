"""A backend that knows one dialect, as somebody else would write it."""

from __future__ import annotations

import json

from harness import (
    Adapter,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
    Vocabulary,
)
from harness.backend.grammar import Bitmask


class ToyObject(GrammarObject):
    """The choices, and the text so far."""

    def __init__(self, vocabulary: Vocabulary, choices: list[bytes]) -> None:
        self.vocabulary = vocabulary
        self.choices = choices
        self.text = b""
        self.ended = False

    def allows(self, token: int) -> bool:
        if token == self.vocabulary.eos_token:
            return self.is_accepting()
        more = self.vocabulary.tokens[token]
        return bool(more) and any(choice.startswith(self.text + more) for choice in self.choices)

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bitmask.fill(0)
        for token in filter(self.allows, range(self.vocabulary.size)):
            bitmask.view("uint32")[token // 32] |= 1 << token % 32

    def accept_token(self, token: int) -> bool:
        if not self.allows(token):
            return False
        self.ended = token == self.vocabulary.eos_token
        self.text += self.vocabulary.tokens[token]
        return True

    def is_accepting(self) -> bool:
        return self.text in self.choices

    def is_terminated(self) -> bool:
        return self.ended


class ToyGrammar(CompiledGrammar):
    """The choices."""

    def __init__(self, vocabulary: Vocabulary, choices: list[bytes]) -> None:
        self.vocabulary = vocabulary
        self.choices = choices

    def start(self) -> GrammarObject:
        return ToyObject(self.vocabulary, self.choices)


class ToyChoice(Adapter):
    """A choice between texts; `lower` makes them lower case first."""

    distribution = "toy-backend"
    dialects = frozenset({"choice"})

    def __init__(self, vocabulary: Vocabulary, *, lower: bool = False) -> None:
        super().__init__(vocabulary)
        self.lower = lower

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        if grammar.dialect != "choice":
            raise UnsupportedGrammar("only choices")
        try:
            choices = json.loads(grammar.text)
        except json.JSONDecodeError as error:
            raise InvalidGrammar(str(error)) from error
        if not isinstance(choices, list):
            raise InvalidGrammar("a choice is an array of strings")
        texts = [choice.lower() if self.lower else choice for choice in choices]
        return ToyGrammar(self.vocabulary, [text.encode() for text in texts])
