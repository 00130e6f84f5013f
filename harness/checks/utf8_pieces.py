"""A character may come in any pieces that are tokens.

No reference is needed for it. With an effort of e, the check fills at most 8 e masks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, product

from harness.backend.grammar import GrammarObject
from harness.checks.looking import name_of
from harness.checks.subject import NotApplicable, Subject
from harness.checks.tokenization import accepted_instances, cause_of_refusal
from harness.oracle.tokenizations import index_of
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.walk.watched import collecting

CATEGORY = "UTF-8"


def check_every_split_of_a_character_is_accepted(subject: Subject) -> Iterator[Finding]:
    """A character of a valid instance may come in any pieces that are tokens, and inside of it the output
    cannot end."""
    subject.require_text()
    numbers = accepted_instances(subject)
    characters = _characters(subject, numbers)
    if not characters:
        raise NotApplicable("no valid instance that is accepted has a character beyond ASCII")
    tried = 0
    hits: dict[str, list[tuple[int, str, tuple[int, ...]]]] = {}
    with collecting() as late:
        for number, start, end in characters:
            content = subject.case.instances[number].content
            before, whole, behind = (
                subject.spell(part) for part in (content[:start], content[start:end], content[end:])
            )
            if before is None or whole is None or behind is None:
                continue
            behind = (*behind, subject.vocabulary.eos_token)
            if subject.reach((*before, *whole, *behind)) is None:
                continue  # it is not the split that is refused: found by the checks of tokenizations
            looked: dict[tuple[int, ...], TokenSet] = {}
            for pieces in _splits(subject, content[start:end]):
                tried += 1
                for cause, text, walk in _split(subject, content, before, pieces, behind, looked):
                    hits.setdefault(cause, []).append((number, text, walk))
    for cause, refusals in hits.items():
        number, text, walk = refusals[0]
        yield Finding(
            position=len(walk) - 1,
            text=f"{len(refusals)} of {tried} splits; {text}",
            cause=cause,
            instance=number,
            examples=subject.hex_of(walk[-1:]),
            walk=walk,
        )
    late.again()
    if not tried:
        raise NotApplicable("no character beyond ASCII can be spelled in pieces")


def _characters(subject: Subject, numbers: list[int]) -> list[tuple[int, int, int]]:
    """Returns the instance, the first byte and the end of some characters of several bytes, each character
    once; those of different lengths come first."""
    first: dict[bytes, tuple[int, int, int]] = {}
    for number in numbers:
        content = subject.case.instances[number].content
        for match in re.finditer(rb"[\xc2-\xf4][\x80-\xbf]+", content):
            first.setdefault(match[0], (number, match.start(), match.end()))
    characters = list(first.values())
    subject.random("characters").shuffle(characters)
    if subject.effort is None:
        return sorted(characters)
    times: dict[int, int] = {}
    turns = []
    for number, start, end in characters:
        times[end - start] = times.get(end - start, 0) + 1
        turns.append((times[end - start], number, start, end))
    return [(number, start, end) for _, number, start, end in sorted(turns)[: max(1, subject.effort // 2)]]


def _splits(subject: Subject, character: bytes) -> list[tuple[int, ...]]:
    """Returns the character in two pieces or more, each a token, or a token a byte where the vocabulary has
    none for the piece."""
    index = index_of(subject.vocabulary)
    splits_found: dict[tuple[int, ...], None] = {}
    for cut in product((False, True), repeat=len(character) - 1):
        bounds = [0, *(at for at, is_cut in enumerate(cut, 1) if is_cut), len(character)]
        parts = [character[start:end] for start, end in pairwise(bounds)]
        parts = [
            piece
            for part in parts
            for piece in ([part] if index.ids(part) else [bytes([byte]) for byte in part])
        ]
        if len(parts) > 1 and all(map(index.ids, parts)):
            splits_found[tuple(index.ids(part)[0] for part in parts)] = None
    splits = list(splits_found)
    if subject.effort is not None and len(splits) > subject.effort:
        splits = subject.random(f"splits {character.hex()}").sample(splits, subject.effort)
    return splits


def _split(
    subject: Subject,
    content: bytes,
    before: tuple[int, ...],
    pieces: tuple[int, ...],
    behind: tuple[int, ...],
    looked: dict[tuple[int, ...], TokenSet],
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yields cause, sentence and walk of what is wrong with one split; masks that another split has filled
    are in `looked`."""
    vocabulary = subject.vocabulary
    grammar_object = subject.reach(before)
    if grammar_object is None:
        return
    start = len(vocabulary.decode(before))
    for index, piece in enumerate(pieces):
        walk = (*before, *pieces[: index + 1])
        at = start + len(vocabulary.decode(pieces[:index]))
        if pieces[:index] not in looked:
            looked[pieces[:index]] = subject.allowed(grammar_object)
            if index and (said := _ends(subject, grammar_object, looked[pieces[:index]])):
                who, end = said
                text = f"inside a character, after {content[:at][-40:]!r}, the output may end: {who}"
                yield "truncated", text, (*walk[:-1], end)
                return
        mask = looked[pieces[:index]]
        accepted = grammar_object.accept_token(piece)
        if not (accepted and mask[piece]):
            cause = cause_of_refusal(subject, content, at, piece, mask, accepted)
            yield (
                cause,
                f"after {content[:at][-40:]!r} the piece {vocabulary.tokens[piece]!r} is refused",
                walk,
            )
            return
    for index, token in enumerate(behind):
        if not grammar_object.accept_token(token):
            walk = (*before, *pieces, *behind[: index + 1])
            text = (
                f"{name_of(subject, token)} is refused behind the pieces "
                f"{[vocabulary.tokens[piece] for piece in pieces]}"
            )
            yield "partial_utf8", text, walk
            return


def _ends(subject: Subject, grammar_object: GrammarObject, mask: TokenSet) -> tuple[str, int] | None:
    """Returns the names of the calls that allow the output to end here, and an id of end-of-sequence that one
    of them allows; None if the output may not end. Calls `accept_token`, which may end the object."""
    accepting = bool(grammar_object.is_accepting())
    for end in subject.vocabulary.eos_tokens:
        says = {"the mask": bool(mask[end]), "is_accepting": accepting}
        says["accept_token"] = bool(grammar_object.accept_token(end))
        if any(says.values()):
            return ", ".join(name for name, allows in says.items() if allows), end
    return None
