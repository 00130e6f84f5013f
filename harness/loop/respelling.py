"""Text that is written without the model: its ids, what may follow it, and where a reference text goes on behind another spelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.jump_forward.retokenize import Follows, retokenize, settled_bytes
from harness.loop.outcome import Account
from harness.loop.strategies.base import Move
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def prepare(vocabulary: Vocabulary) -> None:
    """Build the vocabulary's tables, which would else be built when the first text is spelled."""
    settled_bytes(vocabulary, b" ")
    vocabulary.encode(b" ")


def respell(vocabulary: Vocabulary, history: Sequence[int], forced: bytes, follows: Follows | None) -> Move | None:
    """The canonical ids of history and forced text together, without the tail that may merge with what follows; None: nothing changes.

    What stands before a special token is never touched: no text goes across it. Raises ValueError if the vocabulary has no spelling.
    """
    start = last_special(vocabulary, history) + 1
    keep, ids = retokenize(vocabulary, history[start:], forced, follows=follows)
    return Move(start + keep, ids) if ids or start + keep < len(history) else None


def last_special(vocabulary: Vocabulary, ids: Sequence[int]) -> int:
    """The index of the last id without text; -1 if all have text."""
    return next((at for at in range(len(ids) - 1, -1, -1) if not vocabulary.tokens[ids[at]]), -1)


def follows_in(vocabulary: Vocabulary, allowed: NDArray[np.bool_]) -> Follows:
    """What may follow where the mask is `allowed` (`[vocabulary]`): texts of which no beginning is a forbidden token.

    Pieces that end inside a character do not count as forbidden: there are backends that allow none of them.
    """
    ids = vocabulary.ids_by_bytes

    def follows(text: bytes) -> int:
        for length in range(1, len(text) + 1):
            token = ids.get(text[:length])
            if token is not None and not allowed[token] and is_whole(text[:length]):
                return length - 1
        return len(text)

    return follows


def is_whole(text: bytes) -> bool:
    """Is it UTF-8 from end to end?"""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def book(account: Account, vocabulary: Vocabulary, taken_back: Sequence[int], written: Sequence[int]) -> None:
    """Tokens that took the place of others, and new ones."""
    account.rolled_back += len(taken_back)
    there, length, again = len(vocabulary.decode(taken_back)), 0, 0
    for token in written if taken_back else ():
        length += len(vocabulary.tokens[token])
        if length > there:
            break
        again += 1
    account.retokenized += again
    account.forced += len(written) - again


def realigned(vocabulary: Vocabulary, reference: Sequence[int], ids: Sequence[int]) -> list[int] | None:
    """The reference from here on: `ids`, then what is left of its text, with its own ids from the next common border on.

    None if the reference's text does not begin with that of `ids`. Tokens without text (specials) are compared as they are.
    """
    at = 0
    """The reference's tokens that lie wholly within `ids`."""
    rest = b""
    """What is left of the last token of the reference that was begun."""
    for token in ids:
        text = vocabulary.tokens[token]
        if not text:
            if rest or at == len(reference) or reference[at] != token:
                return None
            at += 1
        while text:
            if not rest:
                rest = vocabulary.tokens[reference[at]] if at < len(reference) else b""
                if not rest:
                    return None
                at += 1
            common = min(len(rest), len(text))
            if rest[:common] != text[:common]:
                return None
            rest, text = rest[common:], text[common:]
    if not rest:
        return [*ids, *reference[at:]]
    border = next((index for index in range(at, len(reference)) if not vocabulary.tokens[reference[index]]), len(reference))
    return [*ids, *vocabulary.encode(rest + vocabulary.decode(reference[at:border])), *reference[border:]]


def differing(vocabulary: Vocabulary, reference: Sequence[int], ids: Sequence[int]) -> int:
    """The index of the first token of the reference whose text `ids` do not have; its length if they have all."""
    said, length = vocabulary.decode(ids), 0
    for index, token in enumerate(reference):
        text = vocabulary.tokens[token]
        if said[length : length + len(text)] != text or (not text and token == vocabulary.eos_token):
            return index
        length += len(text)
    return len(reference)


def is_canonical(vocabulary: Vocabulary, ids: Sequence[int]) -> bool | None:
    """Are these the tokenizer's own ids of their text, between specials? None if the text has no spelling."""
    parts: list[list[int]] = [[]]
    for token in ids:
        if vocabulary.tokens[token]:
            parts[-1].append(token)
        else:
            parts.append([])
    try:
        return all(vocabulary.encode(vocabulary.decode(part)) == part for part in parts)
    except ValueError:
        return None
