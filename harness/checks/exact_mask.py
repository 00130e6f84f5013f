"""The mask against the truth: over the whole vocabulary, which tokens are wrongly forbidden or allowed, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.checks.subject import Place, Subject
from harness.grammar import Grammar, forced_token
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.trie import TokenSet
from harness.row import Finding

CATEGORY = "masks"

EXAMPLES = 6


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
        if (allowed != truth).any():
            over, under = truth & ~allowed, allowed & ~truth
            cause = _cause(subject, place, allowed, over, under)
            examples = [*_examples(over), *_examples(under)]
            yield Finding(
                "the_mask_is_exact",
                place.position,
                _sentence(subject, language, place, over, under),
                cause=cause,
                documented=cause in subject.adapter.documented,
                instance=place.instance,
                over=int(over.sum()),
                under=int(under.sum()),
                examples=tuple(subject.vocabulary.tokens[token].hex() for token in examples),
                walk=(*place.tokens, examples[0]),
            )


def _cause(subject: Subject, place: Place, allowed: TokenSet, over: TokenSet, under: TokenSet) -> str:
    """A class of causes that explains every token of the difference; empty if none is known."""
    vocabulary = subject.vocabulary
    different = np.flatnonzero(over | under).tolist()
    if different == [vocabulary.eos_token]:
        return "end_of_sequence"
    if not set(different).isdisjoint({*vocabulary.special_tokens, *vocabulary.padding_tokens} - {vocabulary.eos_token}):
        return "special_token"
    texts = [vocabulary.tokens[token] for token in different if token != vocabulary.eos_token]
    if not all(texts):
        return "empty_token"
    partial = all(_ends_inside_a_character(place.text + text) for text in texts)
    if not under.any() and int(allowed.sum()) == 1 and _is_forced(subject, place, int(allowed.argmax()), said=partial):
        return "canonical_only"
    if dialect := _dialect(subject, place, allowed):
        return dialect
    if partial:
        return "partial_utf8"
    if not under.any() and _passes_a_possible_end(subject, place, over):
        return "possible_end"
    if not over.any() and all(_is_no_utf8(place.text + text) for text in texts):
        return "invalid_utf8"
    if all(not text.strip(b" \t\r\n") for text in texts):
        return "whitespace"
    return ""


def _is_forced(subject: Subject, place: Place, token: int, said: bool) -> bool:
    """Does the language force the whole text of the token here? Then no sentence is lost where nothing else is allowed.

    If only pieces of characters are forbidden, the backend must have `said` that it forces this token: some know no such pieces.
    """
    text = subject.vocabulary.tokens[token]
    with subject.ours():
        if not text or subject.language.forced(subject.state_of(place.text), len(text)) != text:
            return False
    return not said or forced_token(subject.compiled, place.tokens, [token]) == token


def _dialect(subject: Subject, place: Place, allowed: TokenSet) -> str:
    """The other dialect of regular expressions of which the mask is exact."""
    grammar: Grammar = subject.case.grammar
    if grammar.dialect != "regex":
        return ""
    from harness.oracle.regex import regex_automaton

    for name in ("rust", "ecma"):
        with subject.ours():
            try:
                language = regex_automaton(grammar.text, name)
                mask = subject.trie.mask(language, language.run(language.start, place.text))
            except NoOracle:
                continue
        if bool((mask == allowed).all()):
            return f"regex_dialect_{name}"
    return ""


def _passes_a_possible_end(subject: Subject, place: Place, over: TokenSet) -> bool:
    """Does every forbidden token go on where the output could have ended, and stop where it cannot?"""
    with subject.ours():
        language, start = subject.language, subject.state_of(place.text)
        for token in np.flatnonzero(over).tolist():
            state, ended = start, language.accepting(start)
            for byte in subject.vocabulary.tokens[token]:
                ended |= language.accepting(state)
                state = language.step(state, byte)
            if not ended or language.accepting(state):
                return False
    return True


def _ends_inside_a_character(text: bytes) -> bool:
    """Is the text a beginning of UTF-8 that lacks the end of its last character?"""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def _is_no_utf8(text: bytes) -> bool:
    """Is the text no beginning of any UTF-8?"""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return False


def _examples(tokens: TokenSet) -> list[int]:
    """A few of the tokens, spread over the vocabulary."""
    ids = np.flatnonzero(tokens)
    return [int(each) for each in ids[np.linspace(0, len(ids) - 1, min(EXAMPLES, len(ids))).astype(int)]] if len(ids) else []


def _sentence(subject: Subject, language: Automaton[object], place: Place, over: TokenSet, under: TokenSet) -> str:
    parts = []
    for count, what, tokens in ((int(over.sum()), "forbids", over), (int(under.sum()), "allows", under)):
        if count:
            names = ", ".join(_name(subject, token) for token in _examples(tokens)[:3])
            parts.append(f"{what} {count} token(s) that the grammar {'allows' if what == 'forbids' else 'forbids'}, e.g. {names}")
    return f"after {place.text[-60:]!r} it {' and '.join(parts)}"[:1000]


def _name(subject: Subject, token: int) -> str:
    return subject.vocabulary.special_tokens.get(token) or repr(subject.vocabulary.tokens[token])
