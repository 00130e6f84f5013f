"""The tokens that a format names, as ids of a vocabulary."""

from __future__ import annotations

from harness.backend.tag_formats.forms import TokenName
from harness.backend.vocabulary import Vocabulary


class UnknownToken(ValueError):
    """A vocabulary has no such token."""


def token_id(vocabulary: Vocabulary, token: TokenName) -> int:
    """Returns the id. A name is that of a special token, or else the text of a token; of several tokens with
    one name it means the one with the lowest id. Raises UnknownToken."""
    if isinstance(token, int):
        if token >= vocabulary.size:
            raise UnknownToken(f"the vocabulary {vocabulary.name} has no id {token}")
        return token
    special = [number for number, name in vocabulary.special_tokens.items() if name == token]
    plain = vocabulary.ids_by_bytes.get(token.encode())
    if special:
        return min(special)
    if plain is None:
        raise UnknownToken(f"the vocabulary {vocabulary.name} has no token {token[:60]!r}")
    return plain
