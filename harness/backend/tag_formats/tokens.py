"""The tokens that a format names, as ids of a vocabulary."""

from __future__ import annotations

from harness.backend.tag_formats.forms import TokenName
from harness.backend.vocabulary import Vocabulary


class UnknownToken(ValueError):
    """A vocabulary has no such token."""


def token_id(vocabulary: Vocabulary, token: TokenName) -> int:
    """Returns the id. A name is that of a special token (of several, the lowest id), or else the text of a
    token.

    Of several tokens with one text it means the one that the tokenizer writes for it, because a SentencePiece
    vocabulary has `a` beside the byte `<0x61>`, and else the lowest id. Raises UnknownToken.
    """
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
    written = vocabulary.encode(token.encode())
    return written[0] if len(written) == 1 else plain
