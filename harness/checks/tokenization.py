"""What a backend says must depend on the bytes that were written, not on the tokens that wrote them.

With an effort of e, a check looks at e / 2 instances and spells each in 2e other ways at most: as many as
together have TOKENS * e tokens (for some backends to accept a token costs a mask), but one way of each
instance in any case. It fills no more than 10 e masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from harness.backend.vocabulary import Vocabulary
from harness.checks.looking import name_of
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.tokenizations import Tokenization, index_of, inside_character, spans, tokenizations
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.walk.watched import collecting

CATEGORY = "tokenization"

OTHERS = 20
"""Spellings of an instance, where the effort has no limit."""

TOKENS = 15
"""Tokens of other spellings that a check accepts, for each unit of effort."""


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
    subject.require_text()
    source = subject.random("verdict")
    numbers = accepted_instances(subject)
    tried = 0
    for number in numbers:
        text = subject.case.instances[number].content
        ways = other_tokenizations(subject, text, f"verdict {number}", len(numbers))
        before = tried
        hits: dict[str, list[tuple[Tokenization, Refusal]]] = {}
        with collecting() as late:
            for way in ways:
                looked = _strange(subject, subject.paths[number], way)
                if subject.effort is not None:
                    looked = source.sample(looked, 1)
                tried += 1
                for cause, refusal in _refusals(subject, text, way.tokens, looked):
                    hits.setdefault(cause, []).append((way, refusal))
        for cause, refusals in hits.items():
            way, refusal = refusals[0]
            walk = (*way.tokens, subject.vocabulary.eos_token)[: refusal.index + 1]
            sentence = (
                f"{len(refusals)} of {tried - before} other tokenizations are refused; of this one "
                f"({way.kind}), {_refused(subject, walk, refusal)}"
            )
            yield Finding(
                position=len(walk) - 1,
                text=sentence,
                cause=cause,
                instance=number,
                examples=subject.hex_of(walk[-1:]),
                walk=walk,
            )
        late.again()
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


def other_tokenizations(subject: Subject, text: bytes, purpose: str, sharers: int) -> list[Tokenization]:
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
    return [*(at for at, step in steps if step not in own), len(way.tokens)]


def _refusals(
    subject: Subject, text: bytes, tokens: Sequence[int], looked: Sequence[int]
) -> Iterator[tuple[str, Refusal]]:
    """Yields the first refusal of each cause; masks are filled before the steps in `looked`, and where
    `accept_token` refuses."""
    grammar_object = subject.compiled.start()
    ends = [0, *(end for _, end in spans(subject.vocabulary, tokens))]
    causes: set[str] = set()
    for index, token in enumerate((*tokens, subject.vocabulary.eos_token)):
        mask = subject.allowed(grammar_object) if index in looked else None
        accepted = grammar_object.accept_token(token)
        if not accepted and mask is None:
            mask = subject.allowed(grammar_object)
        if mask is not None and not (accepted and mask[token]):
            cause = cause_of_refusal(subject, text, ends[index], token, mask, accepted)
            if cause not in causes:
                causes.add(cause)
                yield cause, Refusal(index, mask, accepted)
        if not accepted:
            return


def cause_of_refusal(
    subject: Subject, text: bytes, start: int, token: int, mask: TokenSet, accepted: bool
) -> str:
    """Returns why a token of a text, at its byte `start`, was refused by the mask, and by `accept_token`
    unless `accepted`; empty if that is unknown."""
    vocabulary = subject.vocabulary
    if token in vocabulary.eos_tokens:
        return "end_of_sequence"
    end = start + len(vocabulary.tokens[token])
    partial = inside_character(text, start) or inside_character(text, end)
    # Where the token is refused by `accept_token` too, only what the tokenizer itself would write is taken
    # for forced upon it.
    forces = is_the_only_token_next(subject, mask, text[start:])
    if forces and (
        accepted or (not partial and (subject.spell(text[start:]) or (None,))[0] == np.flatnonzero(mask)[0])
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
    tokens = subject.spell(text)
    grammar_object = None if tokens is None else subject.reach(tokens)
    return grammar_object is not None and bool(grammar_object.is_accepting())


def is_the_only_token_next(subject: Subject, mask: TokenSet, rest: bytes) -> bool:
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
    return f"after {before[-40:]!r}, {name_of(subject, token)} is what {' and '.join(who)} {verb}"
