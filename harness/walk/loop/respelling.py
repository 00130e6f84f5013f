"""Text that is written without the model: its ids, what may follow it, and how a reference goes on behind
another spelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from harness.backend.grammar import shared_length
from harness.backend.vocabulary import Vocabulary
from harness.oracle.forced_text.retokenize import Follows, retokenize, settled_bytes
from harness.oracle.utf8 import is_whole
from harness.walk.loop.outcome import Account
from harness.walk.loop.strategies.base import Move


def prepare(vocabulary: Vocabulary) -> None:
    """Builds the vocabulary's tables now, so that they are not built in timed code when the first text is
    spelled."""
    with suppress(ValueError):  # a vocabulary may have no token of a blank
        settled_bytes(vocabulary, b" ")
        vocabulary.encode(b" ")


def respell(
    vocabulary: Vocabulary, history: Sequence[int], forced: bytes, follows: Follows | None
) -> Move | None:
    """Returns the move to the canonical ids of history and forced text together, without the tail that may
    merge with what follows; None if nothing changes.

    What stands before a special token is never touched, because no text goes across one. Raises ValueError if
    the vocabulary has no spelling.
    """
    start = last_special(vocabulary, history) + 1
    keep, ids = retokenize(vocabulary, history[start:], forced, follows=follows)
    return Move(start + keep, ids) if ids or start + keep < len(history) else None


def last_special(vocabulary: Vocabulary, ids: Sequence[int]) -> int:
    """Returns the index of the last id without text; -1 if all ids have text."""
    return next((at for at in range(len(ids) - 1, -1, -1) if not vocabulary.tokens[ids[at]]), -1)


def follows_in(vocabulary: Vocabulary, allowed: Callable[[int], bool]) -> Follows:
    """Returns a function that says how many leading bytes of a text may follow, given which tokens are
    allowed: a text is cut where a beginning of it is a forbidden token.

    Pieces that end inside a character do not count as forbidden: there are backends that allow none of them.
    """
    ids = vocabulary.ids_by_bytes

    def follows(text: bytes) -> int:
        for length in range(1, len(text) + 1):
            beginning = text[:length]
            token = ids.get(beginning)
            if token is not None and is_whole(beginning) and not allowed(token):
                return length - 1
        return len(text)

    return follows


def book(account: Account, vocabulary: Vocabulary, taken_back: Sequence[int], written: Sequence[int]) -> None:
    """Counts tokens written without logits: those that spell text of `taken_back` again, and new ones. Text
    that overrules what was taken back is new from where it differs."""
    account.rolled_back += len(taken_back)
    before, after = (vocabulary.decode(ids) if taken_back else b"" for ids in (taken_back, written))
    there = shared_length(before, after)
    length = again = 0
    for token in written if taken_back else ():
        length += len(vocabulary.tokens[token])
        if length > there:
            break
        again += 1
    account.retokenized += again
    account.forced += len(written) - again


def realigned(vocabulary: Vocabulary, reference: Sequence[int], ids: Sequence[int]) -> list[int] | None:
    """Returns the reference from here on: `ids`, then what is left of the reference's text, with its own ids
    from the next common border on.

    None if the reference's text does not begin with that of `ids`. Tokens without text (specials) are
    compared by id.
    """
    at = 0
    """How many of the reference's tokens lie wholly within `ids`."""
    rest = b""
    """The rest of the reference token that was begun last."""
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
    border = next(
        (index for index in range(at, len(reference)) if not vocabulary.tokens[reference[index]]),
        len(reference),
    )
    return [*ids, *vocabulary.encode(rest + vocabulary.decode(reference[at:border])), *reference[border:]]


def differing(vocabulary: Vocabulary, reference: Sequence[int], ids: Sequence[int]) -> int:
    """Returns the index of the first token of the reference whose text `ids` do not have; the reference's
    length if they have all."""
    output, length = vocabulary.decode(ids), 0
    for index, token in enumerate(reference):
        text = vocabulary.tokens[token]
        if output[length : length + len(text)] != text or (not text and token in vocabulary.eos_tokens):
            return index
        length += len(text)
    return len(reference)


def is_canonical(vocabulary: Vocabulary, ids: Sequence[int]) -> bool | None:
    """Returns whether these are the tokenizer's own ids of their text, between specials; None if the text has
    no spelling."""
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
