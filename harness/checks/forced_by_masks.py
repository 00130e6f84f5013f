"""What a backend's own masks say of text or tokens that it calls forced."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from harness.checks.forced_text import cut
from harness.checks.looking import name_of
from harness.checks.subject import Place, Subject

TRIED_BYTES = 64
"""Forced bytes of one place that are tried one by one, where there is no reference and the effort
is bounded."""


@dataclass(frozen=True)
class Objection:
    """Why text is not forced, and a text that shows it: another way to go on, or where the output may end."""

    cause: str
    text: str
    witness: bytes
    ends: bool = False
    walk: tuple[int, ...] | None = None
    """The tokens that show it, if they are not those that usually spell the text."""


def by_trial(subject: Subject, place: Place, forced: bytes) -> Objection | None:
    """Returns what the backend's own mask says along the forced bytes, taken one by one."""
    vocabulary = subject.vocabulary
    grammar_object = subject.reach(place.tokens)
    if grammar_object is None:  # a backend may say one thing, and then another
        return None
    for at in range(len(forced) if subject.effort is None else min(len(forced), TRIED_BYTES)):
        rest = forced[at:]
        allowed = np.flatnonzero(subject.allowed(grammar_object)).tolist()
        if grammar_object.is_accepting() or not set(vocabulary.eos_tokens).isdisjoint(allowed):
            return Objection(
                "past_a_possible_end",
                f"it lets the output end after {cut(forced[:at])}",
                forced[:at],
                ends=True,
            )
        for token in allowed:
            text = vocabulary.tokens[token]
            if not text:
                taken = (vocabulary.ids_by_bytes[bytes([byte])] for byte in forced[:at])
                why = f"its mask allows {name_of(subject, token)} instead{_behind(forced[:at])}"
                return Objection("past_a_choice", why, forced[:at], walk=(*taken, token))
            if not (rest.startswith(text) or text.startswith(rest)):
                witness = forced[:at] + text
                return Objection("past_a_choice", f"its mask allows {cut(witness)} instead", witness)
        byte = vocabulary.ids_by_bytes.get(rest[:1])
        if byte is None or not grammar_object.accept_token(byte):
            break
    return _refusal(subject, place, forced)


def by_masks(subject: Subject, place: Place, tokens: list[int]) -> Objection | None:
    """Returns what the backend's own mask allows instead of one of the tokens. Another spelling of the text
    that they have up to the next one without text, or of more if nothing is said to follow, is no other
    way."""
    vocabulary, ends = subject.vocabulary, subject.vocabulary.eos_tokens
    grammar_object = subject.reach(place.tokens)
    if grammar_object is None:  # as in `by_trial`
        return None
    for at, token in enumerate(tokens):
        before, texts = tokens[:at], [vocabulary.tokens[each] for each in tokens[at:]]
        run = list(takewhile(bool, texts))
        rest, is_open = b"".join(run), len(run) == len(texts)
        for other in np.flatnonzero(subject.allowed(grammar_object)).tolist():
            text = vocabulary.tokens[other]
            is_same = other == token or (other in ends and token in ends)
            if is_same or (text and (rest.startswith(text) or (is_open and text.startswith(rest)))):
                continue
            return Objection(
                "past_a_possible_end" if other in ends else "past_a_choice",
                f"its mask allows {name_of(subject, other)} instead{_behind(vocabulary.decode(before))}",
                vocabulary.decode((*before, other)),
                walk=(*before, other),
            )
        if not grammar_object.accept_token(token):
            break
    return None


def _behind(text: bytes) -> str:
    """Returns the end of a sentence, which says where along the forced text it is so."""
    return f" after {cut(text)}" if text else ""


def _refusal(subject: Subject, place: Place, forced: bytes) -> Objection | None:
    """Is the text refused in its usual spelling?"""
    if subject.reach((*place.tokens, *(subject.spell(forced) or ()))) is None:
        return Objection("impossible", "it refuses that text", forced)
    return None
