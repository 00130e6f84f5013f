"""After the same bytes in other tokens, the mask is the same.

With an effort of e, the check looks at e / 2 instances and fills no more than 10 e masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.backend.grammar import forced_token
from harness.checks.exact_mask import spread
from harness.checks.forced_text import reference
from harness.checks.subject import NotApplicable, Subject
from harness.checks.tokenization import is_the_only_token_next, other_tokenizations
from harness.oracle.tokenizations import Tokenization, spans
from harness.oracle.trie import TokenSet
from harness.oracle.utf8 import is_whole
from harness.rows.row import Finding
from harness.text import counted
from harness.walk.watched import collecting

CATEGORY = "tokenization"


@dataclass(frozen=True)
class Reached:
    """All that can be seen after some tokens."""

    tokens: tuple[int, ...]
    """The tokens that were accepted, one after the other."""
    mask: TokenSet
    accepting: bool


def check_every_tokenization_reaches_the_same_mask(subject: Subject) -> Iterator[Finding]:
    """After the same bytes in other tokens the mask is the same, bit for bit, and so is whether the output
    may end."""
    subject.require_text()
    source = subject.random("mask")
    numbers = [number for number, path in enumerate(subject.paths) if path]
    if subject.effort is not None:
        numbers = sorted(source.sample(numbers, min(len(numbers), max(1, subject.effort // 2))))
    compared = 0
    for number in numbers:
        path = subject.paths[number]
        own_ends = [end for _, end in spans(subject.vocabulary, path)]
        plan: list[tuple[Tokenization, list[int]]] = []
        for way in other_tokenizations(
            subject, subject.vocabulary.decode(path), f"mask {number}", len(numbers)
        ):
            shared = _shared(
                path, own_ends, way.tokens, [end for _, end in spans(subject.vocabulary, way.tokens)]
            )
            plan.append(
                (
                    way,
                    shared if subject.effort is None else sorted(source.sample(shared, min(2, len(shared)))),
                )
            )
        own = dict(_reached(subject, path, {end for _, ends in plan for end in ends}))
        first: dict[str, tuple[Tokenization, int, Reached]] = {}
        times: Counter[str] = Counter()
        with collecting() as late:
            for way, ends in plan:
                for end, there in _reached(subject, way.tokens, set(ends)):
                    compared += 1
                    if end in own and (cause := _cause_of_difference(subject, own[end], there)) is not None:
                        times[cause] += 1
                        first.setdefault(cause, (way, end, there))
        for cause, (way, end, there) in first.items():
            different = _different(own[end], there)
            walk = (*there.tokens, *different[:1])
            sentence = f"seen {counted(times[cause], 'time')}; {_difference(subject, own[end], way, there)}"
            yield Finding(
                position=len(walk) - 1,
                text=sentence,
                cause=cause,
                instance=number,
                examples=subject.hex_of(different or walk[-1:]),
                walk=walk,
            )
        late.again()
    if not compared:
        raise NotApplicable(
            "no text that the backend accepts has another tokenization with a common boundary"
        )


def _shared(path: Sequence[int], own_ends: list[int], tokens: Sequence[int], ends: list[int]) -> list[int]:
    """Returns the bytes at which a token ends in both tokenizations, behind the first token that differs."""
    same = next(
        (at for at, (ours, theirs) in enumerate(zip(path, tokens, strict=False)) if ours != theirs), 0
    )
    return sorted(set(own_ends[same:]) & set(ends[same:]))


def _reached(subject: Subject, tokens: Sequence[int], wanted: set[int]) -> Iterator[tuple[int, Reached]]:
    """Yields what is seen behind those bytes, as far as the tokens are accepted."""
    grammar_object = subject.compiled.start()
    last = max(wanted, default=0)
    for index, (_, end) in enumerate(spans(subject.vocabulary, tokens)):
        if end > last or not grammar_object.accept_token(tokens[index]):
            return
        if end in wanted:
            yield (
                end,
                Reached(
                    tuple(tokens[: index + 1]),
                    subject.allowed(grammar_object),
                    bool(grammar_object.is_accepting()),
                ),
            )


def _different(own: Reached, there: Reached) -> list[int]:
    """Returns a few of the tokens in which two masks differ."""
    return spread(np.flatnonzero(own.mask != there.mask).tolist())


def _cause_of_difference(subject: Subject, own: Reached, there: Reached) -> str | None:
    """Returns the cause of a difference: None where there is none, empty where the cause is unknown."""
    different = np.flatnonzero(own.mask != there.mask)
    if not len(different):
        return None if own.accepting == there.accepting else "end_of_sequence"
    if set(different.tolist()) <= set(subject.vocabulary.eos_tokens):
        return "end_of_sequence"
    if any(_forces_one_of(subject, one, other.mask) for one, other in ((own, there), (there, own))):
        return "canonical_only"
    return "" if any(is_whole(subject.vocabulary.tokens[token]) for token in different) else "partial_utf8"


def _forces_one_of(subject: Subject, reached: Reached, other: TokenSet) -> bool:
    """Is one token allowed only that is forced, and does the other mask allow it too beside other beginnings
    of its text and texts that begin with it, or only one that begins like it?"""
    ids = np.flatnonzero(reached.mask)
    if len(ids) != 1 or not (only := subject.vocabulary.tokens[ids[0]]):
        return False
    others = np.flatnonzero(other)
    texts = [subject.vocabulary.tokens[token] for token in others]
    are_like = all(text and (text.startswith(only) or only.startswith(text)) for text in texts)
    is_in_both = (bool(other[ids[0]]) and are_like) or (
        len(others) == 1 and is_the_only_token_next(subject, other, only)
    )
    return is_in_both and _is_forced(subject, reached, int(ids[0]))


def _is_forced(subject: Subject, reached: Reached, token: int) -> bool:
    """Is the whole text of the only token that is allowed forced, by the reference or by the backend's own
    word?"""
    language, text = reference(subject), subject.vocabulary.tokens[token]
    before = subject.vocabulary.decode(reached.tokens)
    if language is not None and language.forced(subject.state_of(before), len(text)) == text:
        return True
    return forced_token(subject.compiled, reached.tokens, [token]) is not None


def _difference(subject: Subject, own: Reached, way: Tokenization, there: Reached) -> str:
    before = subject.vocabulary.decode(own.tokens)
    more, fewer = int((there.mask & ~own.mask).sum()), int((own.mask & ~there.mask).sum())
    parts = [f"{more} more" if more else "", f"{fewer} fewer" if fewer else ""]
    start = f"after {before[-40:]!r} in other tokens ({way.kind}) "
    if more or fewer:
        return f"{start}the mask allows {' and '.join(filter(None, parts))} than after the canonical ones"
    return f"{start}is_accepting is {there.accepting}, after the canonical ones {own.accepting}"
