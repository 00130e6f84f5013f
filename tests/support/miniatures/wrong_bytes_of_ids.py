"""The reference, which takes ids for other bytes than they have, in one way each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from harness.backend.grammar import Adapter, Grammar, UnsupportedGrammar, UnsupportedVocabulary
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference, ReferenceGrammar


class RightlyRead(Reference):
    """Shows the bytes that it has; subclasses change them."""

    shows: ClassVar[bool] = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = self.read(vocabulary)
        special = {token: name for token, name in vocabulary.special_tokens.items() if not tokens[token]}
        padding = frozenset(token for token in vocabulary.padding_tokens if not tokens[token])
        read = replace(vocabulary, tokens=tuple(tokens), special_tokens=special, padding_tokens=padding)
        super().__init__(read)
        self.loader = "library"
        self.vocabulary = vocabulary

    def read(self, vocabulary: Vocabulary) -> list[bytes]:
        return list(vocabulary.tokens)

    def token_bytes(self) -> list[bytes] | None:
        return self.read(self.vocabulary) if self.shows else None


class RefusesAll(Reference):
    """Takes no grammar, so that no mask can be asked; and shows nothing."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        raise UnsupportedGrammar("not this one")


class RefusesAtLength(RightlyRead):
    """Refuses the vocabulary, and quotes a file."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        raise UnsupportedVocabulary(f"not read: {'x' * 5000}")


class DocumentsAtLength(RightlyRead):
    """Says at length that it knows one end of sequence."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.knows_one_end = f"its page says: {'x' * 5000}"


class EndsItsProcess(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        os._exit(7)


class LosesASpace(RightlyRead):
    def read(self, vocabulary: Vocabulary) -> list[bytes]:
        return _but(vocabulary, [b" a"], b"a")


class KeepsAByteAsText(RightlyRead):
    def read(self, vocabulary: Vocabulary) -> list[bytes]:
        return _but(vocabulary, [b"A"], b"<0x41>")


class TakesASpecialForText(RightlyRead):
    def read(self, vocabulary: Vocabulary) -> list[bytes]:
        tokens = list(vocabulary.tokens)
        token = next(token for token in vocabulary.special_tokens if token not in vocabulary.eos_tokens)
        tokens[token] = vocabulary.special_tokens[token].encode()
        return tokens


class MovesATextIntoThePadding(RightlyRead):
    """The last text stands at the first id of the padding."""

    def read(self, vocabulary: Vocabulary) -> list[bytes]:
        tokens = list(vocabulary.tokens)
        last = max(token for token, text in enumerate(tokens) if text)
        behind = min(vocabulary.padding_tokens)
        tokens[last], tokens[behind] = b"", tokens[last]
        return tokens


class NeverAllowsAText(RightlyRead):
    def read(self, vocabulary: Vocabulary) -> list[bytes]:
        return _but(vocabulary, [b"ab"], b"")


WRONG: dict[type[Adapter], set[str]] = {
    LosesASpace: {"leading_space_lost"},
    KeepsAByteAsText: {"byte_as_text"},
    TakesASpecialForText: {"special_as_text"},
    MovesATextIntoThePadding: {"text_as_special", "padding_as_text"},
    NeverAllowsAText: {"text_as_special"},
}
"""Each adapter that reads wrongly, and the kinds of differences."""


class HidesALostSpace(LosesASpace):
    shows = False


class SaysWhatIsNot(LosesASpace):
    """Its masks are wrong, and it shows the true bytes."""

    def token_bytes(self) -> list[bytes]:
        return list(self.vocabulary.tokens)


def _but(vocabulary: Vocabulary, wrong: Sequence[bytes], read: bytes) -> list[bytes]:
    assert set(wrong) <= set(vocabulary.tokens)
    return [read if text in wrong else text for text in vocabulary.tokens]
