"""What a backend says must depend on the bytes that were written, not on the tokens that wrote them.

With an effort of e, a check looks at e / 2 instances and spells each in 2e other ways at most: as many as
together have TOKENS * e tokens (for some backends to accept a token costs a mask), but one way of each
instance in any case. It fills no more than 10 e masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from harness.backend.vocabulary import Vocabulary
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.tokenizations import Tokenization, index_of, inside_character, spans, tokenizations
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding

CATEGORY = "tokenization"

OTHERS = 20
"""Spellings of an instance, where the effort has no limit."""

TOKENS = 15
"""Tokens of other spellings that a check accepts, for each unit of effort."""

EXAMPLES = 6


# Verdicts


@dataclass(frozen=True)
class Refusal:
    """The token at `index` is refused by the mask, by `accept_token`, or by both."""

    index: int
    mask: TokenSet
    accepted: bool


def prepare(vocabulary: Vocabulary) -> None:
    """Builds the tables that are made once per vocabulary, before any child is forked."""
    index_of(vocabulary)


def check_every_tokenization_has_the_same_verdict(subject: Subject) -> Iterator[Finding]:
    """A valid instance that is accepted in its canonical tokens is accepted in any others, to the end of the
    output."""
    source = subject.random("verdict")
    numbers = accepted_instances(subject)
    tried = 0
    for number in numbers:
        text = subject.case.instances[number].content
        ways = _others(subject, text, f"verdict {number}", len(numbers))
        tried += len(ways)
        hits: dict[str, list[tuple[Tokenization, Refusal]]] = {}
        for way in ways:
            looked = _strange(subject, subject.paths[number], way)
            if subject.effort is not None:
                looked = source.sample(looked, 1)
            for cause, refusal in _refusals(subject, text, way.tokens, looked):
                hits.setdefault(cause, []).append((way, refusal))
        for cause, found in hits.items():
            way, refusal = found[0]
            walk = (*way.tokens, subject.vocabulary.eos_token)[: refusal.index + 1]
            said = (
                f"{len(found)} of {len(ways)} other tokenizations are refused; of this one ({way.kind}), "
                f"{_refused(subject, walk, refusal)}"
            )
            yield Finding(
                position=len(walk) - 1,
                text=said,
                cause=cause,
                instance=number,
                examples=subject.hex_of(walk[-1:]),
                walk=walk,
            )
    if not tried:
        raise NotApplicable("no instance has another tokenization")


def accepted_instances(subject: Subject) -> list[int]:
    """Returns the numbers of some valid instances that are accepted in their canonical tokens,
    end-of-sequence included."""
    contents = [instance.content for instance in subject.case.instances]
    decode = subject.vocabulary.decode
    whole = [
        number
        for number in subject.valid()
        if contents[number] and decode(subject.paths[number]) == contents[number]
    ]
    subject.random("instances").shuffle(whole)
    end = subject.vocabulary.eos_token
    most = None if subject.effort is None else max(1, subject.effort // 2)
    ended = [number for number in whole[:most] if subject.reach((*subject.paths[number], end)) is not None]
    if not ended:
        raise NotApplicable("no instance that is known to be valid is accepted in its canonical tokens")
    return sorted(ended)


def _others(subject: Subject, text: bytes, purpose: str, sharers: int) -> list[Tokenization]:
    """Returns other spellings of a text, of which there are `sharers`."""
    effort = subject.effort
    ways = list(
        tokenizations(
            subject.vocabulary, text, OTHERS if effort is None else 2 * effort, subject.random(purpose)
        )
    )
    if effort is None:
        return ways
    sums = accumulate(len(way.tokens) for way in ways)
    return [
        way
        for at, (way, tokens) in enumerate(zip(ways, sums, strict=True))
        if not at or tokens * sharers <= TOKENS * effort
    ]


def _strange(subject: Subject, path: Sequence[int], way: Tokenization) -> list[int]:
    """Returns the steps of a spelling whose token does not lie so in the canonical one; the end of the
    output is one of them."""
    own = set(zip(spans(subject.vocabulary, path), path, strict=True))
    steps = enumerate(zip(spans(subject.vocabulary, way.tokens), way.tokens, strict=True))
    return [*(at for at, each in steps if each not in own), len(way.tokens)]


def _refusals(
    subject: Subject, text: bytes, tokens: Sequence[int], looked: Sequence[int]
) -> Iterator[tuple[str, Refusal]]:
    """Yields the first refusal of each cause; masks are filled before the steps in `looked`, and where
    `accept_token` refuses."""
    grammar_object = subject.compiled.start()
    ends = [0, *(end for _, end in spans(subject.vocabulary, tokens))]
    seen: set[str] = set()
    for index, token in enumerate((*tokens, subject.vocabulary.eos_token)):
        mask = subject.allowed(grammar_object) if index in looked else None
        accepted = grammar_object.accept_token(token)
        if not accepted and mask is None:
            mask = subject.allowed(grammar_object)
        if mask is not None and not (accepted and mask[token]):
            cause = cause_of_refusal(subject, text, ends[index], token, mask, accepted)
            if cause not in seen:
                seen.add(cause)
                yield cause, Refusal(index, mask, accepted)
        if not accepted:
            return


def cause_of_refusal(
    subject: Subject, text: bytes, start: int, token: int, mask: TokenSet, accepted: bool
) -> str:
    """Why a token of a text, at its byte `start`, was refused: by the mask, and by `accept_token` unless
    `accepted`. Empty if unknown."""
    vocabulary = subject.vocabulary
    if token == vocabulary.eos_token:
        return "end_of_sequence"
    end = start + len(vocabulary.tokens[token])
    partial = inside_character(text, start) or inside_character(text, end)
    # Where the token is refused by `accept_token` too, only what the tokenizer itself would write is taken
    # for forced upon it.
    forces = _forces(subject, mask, text[start:])
    if forces and (
        accepted or (not partial and (spell(subject, text[start:]) or (None,))[0] == np.flatnonzero(mask)[0])
    ):
        return "canonical_only"
    if partial:
        return "partial_utf8"
    # Not to go on from a text that could be the output, or over one, is a fault of its own kind.
    return (
        "possible_end"
        if not accepted and any(_may_end(subject, text[:at]) for at in range(start, end))
        else ""
    )


def _may_end(subject: Subject, text: bytes) -> bool:
    """Does the backend say that the output could end behind this text?"""
    tokens = spell(subject, text)
    grammar_object = None if tokens is None else subject.reach(tokens)
    return grammar_object is not None and bool(grammar_object.is_accepting())


def _forces(subject: Subject, mask: TokenSet, rest: bytes) -> bool:
    """Is one token allowed only, and does the text go on with it?"""
    ids = np.flatnonzero(mask)
    only = subject.vocabulary.tokens[ids[0]] if len(ids) == 1 else b""
    return bool(only) and (rest.startswith(only) or only.startswith(rest))


def _refused(subject: Subject, walk: Sequence[int], refusal: Refusal) -> str:
    token = walk[-1]
    who = [
        name
        for name, refuses in (("the mask", not refusal.mask[token]), ("accept_token", not refusal.accepted))
        if refuses
    ]
    before = subject.vocabulary.decode(walk[:-1])
    verb = "refuse" if len(who) == 2 else "refuses"
    return f"after {before[-40:]!r}, {token_name(subject, token)} is what {' and '.join(who)} {verb}"


# Masks


@dataclass(frozen=True)
class Seen:
    """All that can be seen after some tokens."""

    index: int
    """How many tokens were accepted."""
    mask: TokenSet
    accepting: bool


def check_every_tokenization_reaches_the_same_mask(subject: Subject) -> Iterator[Finding]:
    """After the same bytes in other tokens the mask is the same, bit for bit, and so is whether the output
    may end."""
    source = subject.random("mask")
    numbers = [number for number, path in enumerate(subject.paths) if path]
    if subject.effort is not None:
        numbers = sorted(source.sample(numbers, min(len(numbers), max(1, subject.effort // 2))))
    compared = 0
    for number in numbers:
        path = subject.paths[number]
        own_ends = [end for _, end in spans(subject.vocabulary, path)]
        plan: list[tuple[Tokenization, list[int]]] = []
        for way in _others(subject, subject.vocabulary.decode(path), f"mask {number}", len(numbers)):
            shared = _shared(
                path, own_ends, way.tokens, [end for _, end in spans(subject.vocabulary, way.tokens)]
            )
            plan.append(
                (
                    way,
                    shared if subject.effort is None else sorted(source.sample(shared, min(2, len(shared)))),
                )
            )
        own = dict(_seen(subject, path, {end for _, ends in plan for end in ends}))
        first: dict[str, tuple[Tokenization, int, Seen]] = {}
        times: Counter[str] = Counter()
        for way, ends in plan:
            for end, there in _seen(subject, way.tokens, set(ends)):
                compared += 1
                if end in own and (cause := _cause_of_difference(subject, own[end], there)) is not None:
                    times[cause] += 1
                    first.setdefault(cause, (way, end, there))
        for cause, (way, end, there) in first.items():
            different = _different(own[end], there)
            walk = (*way.tokens[: there.index], *different[:1])
            said = f"seen {times[cause]} times; {_difference(subject, path, own[end], way, there)}"
            yield Finding(
                position=len(walk) - 1,
                text=said,
                cause=cause,
                instance=number,
                examples=subject.hex_of(different or walk[-1:]),
                walk=walk,
            )
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


def _seen(subject: Subject, tokens: Sequence[int], wanted: set[int]) -> Iterator[tuple[int, Seen]]:
    """What is seen behind those bytes, as far as the tokens are accepted."""
    grammar_object = subject.compiled.start()
    last = max(wanted, default=0)
    for index, (_, end) in enumerate(spans(subject.vocabulary, tokens)):
        if end > last or not grammar_object.accept_token(tokens[index]):
            return
        if end in wanted:
            yield end, Seen(index + 1, subject.allowed(grammar_object), bool(grammar_object.is_accepting()))


def _different(own: Seen, there: Seen) -> list[int]:
    ids = np.flatnonzero(own.mask != there.mask)
    return (
        [int(each) for each in ids[np.linspace(0, len(ids) - 1, min(EXAMPLES, len(ids))).astype(int)]]
        if len(ids)
        else []
    )


def _cause_of_difference(subject: Subject, own: Seen, there: Seen) -> str | None:
    """None where there is no difference, empty where its cause is unknown."""
    different = np.flatnonzero(own.mask != there.mask)
    if not len(different):
        return None if own.accepting == there.accepting else "end_of_sequence"
    if different.tolist() == [subject.vocabulary.eos_token]:
        return "end_of_sequence"
    if any(_forces_one_of(subject, one.mask, other.mask) for one, other in ((own, there), (there, own))):
        return "canonical_only"
    return "" if any(_is_whole(subject.vocabulary.tokens[token]) for token in different) else "partial_utf8"


def _forces_one_of(subject: Subject, mask: TokenSet, other: TokenSet) -> bool:
    """Is one token allowed only, and does the other mask allow it too, or only one that begins like it?"""
    ids = np.flatnonzero(mask)
    if len(ids) != 1 or not (only := subject.vocabulary.tokens[ids[0]]):
        return False
    others = np.flatnonzero(other)
    return bool(other[ids[0]]) or (len(others) == 1 and _forces(subject, other, only))


def _is_whole(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _difference(subject: Subject, path: Sequence[int], own: Seen, way: Tokenization, there: Seen) -> str:
    before = subject.vocabulary.decode(path[: own.index])
    more, fewer = int((there.mask & ~own.mask).sum()), int((own.mask & ~there.mask).sum())
    parts = [f"{more} more" if more else "", f"{fewer} fewer" if fewer else ""]
    said = f"after {before[-40:]!r} in other tokens ({way.kind}) "
    if more or fewer:
        return f"{said}the mask allows {' and '.join(filter(None, parts))} than after the canonical ones"
    return f"{said}is_accepting is {there.accepting}, after the canonical ones {own.accepting}"


# What the checks of tokens and characters share


def spell(subject: Subject, text: bytes) -> tuple[int, ...] | None:
    """Returns the canonical tokens of a text; None where the vocabulary cannot spell it."""
    try:
        return tuple(subject.vocabulary.encode(text))
    except ValueError:
        return None


def token_name(subject: Subject, token: int) -> str:
    """Its bytes, or the printed form of a special token."""
    return subject.vocabulary.special_tokens.get(token) or repr(subject.vocabulary.tokens[token])
