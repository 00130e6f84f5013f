"""Jumping: forced text becomes canonical tokens, and the object goes there from the tokens that it has
accepted."""

from __future__ import annotations

from collections.abc import Iterator

from harness.backend.contract.place import take_back
from harness.backend.grammar import overrides
from harness.checks.forced_text import (
    Fault,
    as_bytes,
    as_tokens,
    ask,
    end_of,
    forced_by_reference,
    places_and_insides,
    reference,
    single_bytes,
    why_refused,
)
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.forced_text.retokenize import retokenize
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = "jump-forward"

SPELLED_BYTES = 32
"""At the end of a history, spelled byte by byte, so that tokenizing anew has something to take back."""
LONGEST_JUMP = 512
"""Bytes of forced text."""


def check_retokenized_state_equals_a_replay(subject: Subject) -> Iterator[Finding]:
    """After a jump (tokenize anew, roll back to what stays, accept the rest) the object stands where a fresh
    one does.

    Jumped from the tokens of the place, and from a history that ends byte by byte.
    """
    subject.require_text()
    if not overrides(subject.compiled.start(), "rollback"):
        raise NotApplicable("no rollback")
    jumps = 0
    for place in places_and_insides(subject, "retokenize"):
        forced = _text_to_jump(subject, place)
        for history in _histories(subject, place) if forced else ():
            if subject.reach(history) is None:
                continue
            for hold in (False, True):
                try:
                    keep, ids = retokenize(subject.vocabulary, history, forced, hold=hold)
                except ValueError:  # the vocabulary cannot spell it
                    continue
                if not ids:
                    continue
                jumps += 1
                finding = _jump(subject, place, history, keep, ids)
                if finding is not None:
                    yield finding
                    break
    if not jumps:
        raise NotApplicable("nothing is forced at these places")


def _jump(
    subject: Subject, place: Place, history: tuple[int, ...], keep: int, ids: list[int]
) -> Finding | None:
    jumped, replayed = subject.reach(history), subject.reach((*history[:keep], *ids))
    if jumped is None:  # it was reached a moment ago: another check's finding
        return None
    if keep < len(history):
        take_back(jumped, len(history) - keep)
    taken = next((count for count, token in enumerate(ids) if not jumped.accept_token(token)), len(ids))
    cause, wrong = "state", ""
    if taken < len(ids):
        wrong = (
            f"token {taken} of them is refused, which a fresh object "
            f"{'refuses too' if replayed is None else 'accepts'}"
        )
        if replayed is None:
            cause = why_refused(subject, subject.vocabulary.decode((*history[:keep], *ids[: taken + 1])))
    elif replayed is None:
        wrong = "they are accepted, but a fresh object refuses them"
    elif different := int((subject.allowed(jumped) != subject.allowed(replayed)).sum()):
        wrong = f"the mask differs from that of a fresh object in {counted(different, 'token')}"
    elif end_of(jumped) != end_of(replayed):
        wrong = f"(accepting, terminated) is {end_of(jumped)}, that of a fresh object {end_of(replayed)}"
    if not wrong:
        return None
    kept = (
        f"{keep} of {len(history)} tokens kept, then "
        f"{[subject.vocabulary.tokens[token] for token in ids[:8]]}"
    )
    return Finding(
        position=place.position,
        text=f"after {place.text[-60:]!r}, {kept}: {wrong}",
        cause=cause,
        instance=place.instance,
        walk=(*history[:keep], *ids),
    )


def _histories(subject: Subject, place: Place) -> Iterator[tuple[int, ...]]:
    """Yields the place's tokens, and the same text with the end of it in single bytes."""
    yield place.tokens
    tokens, tail = list(place.tokens), b""
    while tokens and len(tail) + len(subject.vocabulary.tokens[tokens[-1]]) <= SPELLED_BYTES:
        tail = subject.vocabulary.tokens[tokens.pop()] + tail
    single = single_bytes(subject, tail)
    if single is not None and (*tokens, *single) != place.tokens:
        yield (*tokens, *single)


def _text_to_jump(subject: Subject, place: Place) -> bytes:
    """Returns the forced text: by the reference where there is one, so that also backends that do not know it
    are led over it."""
    if reference(subject) is not None:
        return forced_by_reference(subject, place)[:LONGEST_JUMP]
    grammar_object = subject.reach(place.tokens)
    if grammar_object is None:
        return b""
    forced = ask(grammar_object.jump_forward, as_bytes)
    if isinstance(forced, Fault) or not forced:
        tokens = ask(grammar_object.fast_forward_tokens, as_tokens(subject.vocabulary.size))
        forced = b"" if isinstance(tokens, Fault) else subject.vocabulary.decode(tokens)
    return forced[:LONGEST_JUMP]
