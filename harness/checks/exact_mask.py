"""The mask against the truth: over the whole vocabulary, which tokens are wrongly forbidden or allowed, and
why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from harness.backend.grammar import forced_token
from harness.checks import MASKS
from harness.checks.looking import name_of
from harness.checks.never_text import NEVER_TEXT, never_text
from harness.checks.readings import reading_of, readings
from harness.checks.subject import Place, Subject
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = MASKS
JUDGES = ("regex", "ebnf", "lark", "choice")
"""The dialects of which this check judges a case: those that have a reference automaton
(harness/oracle/language.py)."""

EXAMPLES = 6
MASK_IS_EXACT = "the_mask_is_exact"
"""The check's name, under which it counts places, and those without a token that is wrongly allowed (`sound`)
and without one that is wrongly forbidden (`complete`)."""


def check_the_mask_is_exact(subject: Subject) -> Iterator[Finding]:
    """At each place, the mask allows exactly the tokens that some sentence continues with."""
    language = subject.language
    for place in subject.places("exact"):
        state = subject.state_of(place.text)
        if state == DEAD and place.tokens:
            continue  # the backend went where no sentence goes: found at the place before
        truth = subject.truth(state)
        grammar_object = subject.reach(place.tokens)
        if grammar_object is None:
            continue
        allowed = subject.allowed(grammar_object)
        over, under = truth & ~allowed, allowed & ~truth
        subject.count(MASK_IS_EXACT, places=1, sound=not under.any(), complete=not over.any())
        if (allowed != truth).any():
            cause = _cause(subject, place, allowed, truth)
            examples = [*_examples(over), *_examples(under)]
            yield Finding(
                position=place.position,
                text=_sentence(subject, language, place, over, under),
                cause=cause,
                instance=place.instance,
                over=int(over.sum()),
                under=int(under.sum()),
                examples=subject.hex_of(examples),
                walk=(*place.tokens, examples[0]),
            )


SURE = ("special_token", "empty_token", "canonical_only", NEVER_TEXT)
"""Causes that are so in every reading of the grammar."""


def _cause(subject: Subject, place: Place, allowed: TokenSet, truth: TokenSet) -> str:
    """Returns a class of causes that explains every token of the difference; empty if none is known.

    Where the expression is read otherwise, and the mask is not exact then either, what is left of the
    difference may have a cause.
    """
    known = _known_cause(subject, place, allowed, truth)
    if known in SURE:
        return known
    if cause := _reading_exact(subject, place, allowed) or known:
        return cause
    for reading, language in readings(subject):
        if subject.adapter.documents(reading.cause):
            other = _truth_of(subject, place, language)
            rest = "" if other is None else _known_cause(subject, place, allowed, other)
            if rest:
                return f"{reading.cause}+{rest}"
    return ""


def _known_cause(subject: Subject, place: Place, allowed: TokenSet, truth: TokenSet) -> str:
    over, under = truth & ~allowed, allowed & ~truth
    vocabulary = subject.vocabulary
    different = np.flatnonzero(over | under).tolist()
    ends = vocabulary.eos_tokens
    if set(different) <= set(ends):
        return "end_of_sequence"
    for cause, tokens in (
        ("special_token", {*vocabulary.special_tokens, *vocabulary.padding_tokens}.difference(ends)),
        ("empty_token", {token for token in different if not vocabulary.tokens[token]}.difference(ends)),
    ):
        if explained := tokens.intersection(different):
            if set(different) <= {*explained, *ends}:
                return cause
            without = truth.copy()
            without[list(explained)] = allowed[list(explained)]
            rest = _known_cause(subject, place, allowed, without)
            return rest and f"{cause}+{rest}"
    texts = [vocabulary.tokens[token] for token in different if token not in ends]
    partial = all(ends_inside_a_character(place.text + text) for text in texts)
    if (
        not under.any()
        and int(allowed.sum()) == 1
        and _is_forced(subject, place, int(allowed.argmax()), must_say=partial)
        and not lost_behind(subject, place, int(allowed.argmax()), different)
    ):
        return "canonical_only"
    if not under.any() and {*never_text(subject, place, different)} == {*different}:
        return NEVER_TEXT
    if partial and takes_the_characters(subject, place, allowed, truth, {*texts}):
        return "partial_utf8"
    if not under.any() and _passes_a_possible_end(subject, place, over):
        return "possible_end"
    if not over.any() and all(is_no_utf8(place.text + text) for text in texts):
        return "invalid_utf8"
    if all(not text.strip(b" \t\r\n") for text in texts):
        return "whitespace"
    return ""


def takes_the_characters(
    subject: Subject, place: Place, allowed: TokenSet, truth: TokenSet, pieces: set[bytes]
) -> bool:
    """Is it the pieces that are wrong, and not the characters that they begin?

    The experiment: tokens that begin like a piece and do not end inside a character. Of each piece that has
    such tokens which the grammar allows, the backend must allow one, and there must be such a piece.
    """
    taken: dict[bytes, bool] = {}
    tokens = subject.vocabulary.tokens
    for token in np.flatnonzero(truth).tolist():
        text = tokens[token]
        begun = [text[:end] for end in range(1, min(len(text), LONGEST_PIECE) + 1) if text[:end] in pieces]
        if begun and not ends_inside_a_character(place.text + text):
            taken |= {piece: taken.get(piece, False) or bool(allowed[token]) for piece in begun}
    return bool(taken) and all(taken.values())


LONGEST_PIECE = 64
"""Bytes of a token, of which the beginnings are compared with pieces."""


def _is_forced(subject: Subject, place: Place, token: int, must_say: bool) -> bool:
    """Does the language force the whole text of the token here, so that no sentence is lost where nothing
    else is allowed?

    With `must_say`, where only pieces of characters are forbidden, the backend must say that it forces this
    token: some backends know no such pieces.
    """
    text = subject.vocabulary.tokens[token]
    if not text or subject.language.forced(subject.state_of(place.text), len(text)) != text:
        return False
    return not must_say or forced_token(subject.compiled, place.tokens, [token]) == token


def lost_behind(subject: Subject, place: Place, token: int, forbidden: Iterable[int]) -> list[int]:
    """Returns those of the forbidden tokens whose text is more than that of `token`, the only one that is
    allowed, and whose rest the backend does not let begin behind it either: they are lost in each spelling.

    Only the first byte of each rest is looked for.
    """
    texts, length = subject.vocabulary.tokens, len(subject.vocabulary.tokens[token])
    longer = [other for other in forbidden if len(texts[other]) > length]
    behind = subject.reach((*place.tokens, token)) if longer else None
    if behind is None:
        return longer
    begun = {texts[other][:1] for other in np.flatnonzero(subject.allowed(behind)).tolist()}
    return [other for other in longer if texts[other][length : length + 1] not in begun]


def _reading_exact(subject: Subject, place: Place, allowed: TokenSet) -> str:
    """Returns the other reading of the regular expression of which the mask is exact."""
    trie = subject.trie
    return reading_of(
        subject,
        lambda language: bool(
            (trie.mask(language, language.run(language.start, place.text)) == allowed).all()
        ),
    )


def _truth_of(subject: Subject, place: Place, language: Automaton[Any]) -> TokenSet | None:
    try:
        return subject.trie.mask(language, language.run(language.start, place.text))
    except NoOracle:
        return None


def _passes_a_possible_end(subject: Subject, place: Place, over: TokenSet) -> bool:
    """Does every forbidden token go on where the output could have ended, and stop where it cannot?"""
    language, start = subject.language, subject.state_of(place.text)
    for token in np.flatnonzero(over).tolist():
        state, ended = start, language.accepting(start)
        for byte in subject.vocabulary.tokens[token]:
            ended |= language.accepting(state)
            state = language.step(state, byte)
        if not ended or language.accepting(state):
            return False
    return True


def ends_inside_a_character(text: bytes) -> bool:
    """Is the text a beginning of UTF-8 that lacks the end of its last character?"""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def is_no_utf8(text: bytes) -> bool:
    """Is the text no beginning of any UTF-8?"""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return False


def _examples(tokens: TokenSet) -> list[int]:
    return spread(np.flatnonzero(tokens).tolist())


def spread(tokens: list[int]) -> list[int]:
    """Returns a few of the ids, spread over all of them."""
    places = np.linspace(0, len(tokens) - 1, min(EXAMPLES, len(tokens))).astype(int)
    return [tokens[place] for place in places]


def _sentence(
    subject: Subject, language: Automaton[object], place: Place, over: TokenSet, under: TokenSet
) -> str:
    parts = []
    for count, what, tokens in ((int(over.sum()), "forbids", over), (int(under.sum()), "allows", under)):
        if count:
            names = ", ".join(name_of(subject, token) for token in _examples(tokens)[:3])
            parts.append(
                f"{what} {counted(count, 'token')} that the grammar "
                f"{'allows' if what == 'forbids' else 'forbids'}, e.g. {names}"
            )
    return f"after {place.text[-60:]!r} it {' and '.join(parts)}"
