"""What a mask says, against what the object does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.backend.grammar import GrammarObject, forced_token
from harness.backend.vocabulary import Vocabulary
from harness.checks import MASKS
from harness.checks.looking import (
    by_first_byte,
    change,
    end_name,
    few,
    finding,
    first_bytes,
    look,
    name_of,
    next_token,
    standing,
)
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.text import counted
from harness.walk.watched import collecting

CATEGORY = MASKS

EVERY_ID = 8192
"""Up to this many ids every one is tried; in a larger vocabulary a sample, unless the effort has no limit."""

SILENT, ALLOWED, NEAR, FAR = 64, 24, 200, 200
"""Ids of that sample: without text; allowed; forbidden, with the first byte of an allowed one; forbidden, any
first byte."""

SURE = 3
"""How many disagreements of one kind at one place are confirmed, each with a fresh object; further ones are
believed."""

REFUSALS = 8
"""Tokens refused in a row."""


def check_the_mask_says_what_accept_does(subject: Subject) -> Iterator[Finding]:
    """A token's bit says whether `accept_token` takes it, whatever id it is; that of each id of
    end-of-sequence whether the output may end."""
    purpose = "the_mask_says_what_accept_does"
    for place, grammar_object in standing(subject, purpose, subject.effort):
        mask = subject.allowed(grammar_object)
        accepting = bool(grammar_object.is_accepting())
        for end in subject.vocabulary.eos_tokens:
            if bool(mask[end]) != accepting:
                text = (
                    f"the mask {_says(mask[end])} {end_name(subject, end)}, but is_accepting() is {accepting}"
                )
                yield finding(subject, place, text, (end,), "end_of_sequence")
        disagreements: dict[tuple[str, bool], list[int]] = {}
        with collecting() as late:
            _collect_disagreements(subject, place, grammar_object, mask, disagreements)
        for (cause, allows), tokens in disagreements.items():
            names = ", ".join(name_of(subject, token) for token in tokens[:3])
            history = " of an object that has refused and taken back others" if cause == "history" else ""
            text = (
                f"the mask {_says(allows)} {counted(len(tokens), 'token')} that accept_token{history} "
                f"{_does(not allows)}, e.g. {names}"
            )
            yield finding(subject, place, text, tokens[:1], cause)
        late.again()


def _says(allows: bool) -> str:
    return "allows" if allows else "forbids"


def _does(takes: bool) -> str:
    return "takes" if takes else "refuses"


def _collect_disagreements(
    subject: Subject,
    place: Place,
    grammar_object: GrammarObject,
    mask: TokenSet,
    disagreements: dict[tuple[str, bool], list[int]],
) -> None:
    """Adds the tokens of which mask and `accept_token` say different things, by cause and by what the mask
    says.

    What a fresh object does not confirm is a matter of the object's past; after a few of these the place is
    left.
    """
    trials = _Trials(subject, place, grammar_object, mask)
    forced: bytes | None = None
    for token in _to_try(subject, place, mask):
        allows = bool(mask[token])
        if trials.takes(token) == allows:
            continue
        cause = _kind(subject.vocabulary, token)
        if not cause and not allows:
            forced = _forced_text(subject, place, mask) if forced is None else forced
            text = subject.vocabulary.tokens[token]
            if forced and (forced.startswith(text) or text.startswith(forced)):
                cause = "canonical_only"  # another spelling of what the backend forces
        if len(disagreements.get((cause, allows), ())) < SURE:
            fresh = subject.reach(place.tokens)
            if fresh is None:
                break
            if bool(fresh.accept_token(token)) == allows:
                cause = "history"
                trials.start_over()
        disagreements.setdefault((cause, allows), []).append(token)
        if len(disagreements.get(("history", allows), ())) >= SURE:
            break


def _forced_text(subject: Subject, place: Place, mask: TokenSet) -> bytes:
    """Returns the text of the only token that the mask allows, if the backend says that it forces this token;
    else empty."""
    token = forced_token(subject.compiled, place.tokens, np.flatnonzero(mask).tolist())
    return b"" if token is None else subject.vocabulary.tokens[token]


class _Trials:
    """Asks an object about one token after the other, and takes back what it took."""

    def __init__(self, subject: Subject, place: Place, grammar_object: GrammarObject, mask: TokenSet) -> None:
        self.subject, self.place, self.mask = subject, place, mask
        self.grammar_object = grammar_object
        self.rolls: bool | None = None  # does rollback lead back here? unknown yet

    def takes(self, token: int) -> bool:
        taken = bool(self.grammar_object.accept_token(token))
        if taken and not self._rolled_back():
            self.start_over()
        return taken

    def start_over(self) -> None:
        fresh = self.subject.reach(self.place.tokens)
        self.grammar_object = self.grammar_object if fresh is None else fresh

    def _rolled_back(self) -> bool:
        if self.rolls is not False:
            try:
                self.grammar_object.rollback(1)
            except Exception:  # not implemented, or a fault that the checks of rollback report
                self.rolls = False
        if self.rolls is None:
            self.rolls = bool((self.subject.allowed(self.grammar_object) == self.mask).all())
        return self.rolls


def _to_try(subject: Subject, place: Place, mask: TokenSet) -> list[int]:
    """Returns every id, or a sample of each kind; end-of-sequence is the last, with all its ids."""
    vocabulary, ends = subject.vocabulary, subject.vocabulary.eos_tokens
    if subject.effort is None or vocabulary.size <= EVERY_ID:
        return [*(token for token in range(vocabulary.size) if token not in ends), *ends]
    firsts = first_bytes(vocabulary)
    text = firsts >= 0
    near = np.zeros(257, dtype=np.bool_)
    near[firsts[mask & text]] = True
    choose = subject.random(f"tokens {place.text!r}")
    chosen = {int(token) for token in (next_token(subject, place, mask),) if token is not None}
    for tokens, most in ((~text, SILENT), (mask & text, ALLOWED), (~mask & text & near[firsts], NEAR)):
        ids = np.flatnonzero(tokens).tolist()
        chosen.update(choose.sample(ids, min(len(ids), most)))
    for first in choose.sample(range(256), FAR):
        ids = by_first_byte(vocabulary)[first]
        chosen.update(token for token in ([choose.choice(ids)] if ids else []) if not mask[token])
    return [*sorted(chosen.difference(ends)), *ends]


def _kind(vocabulary: Vocabulary, token: int) -> str:
    """Returns the class of causes that a token without text speaks for; empty for text."""
    if token in vocabulary.eos_tokens:
        return "end_of_sequence"
    if token in vocabulary.special_tokens:
        return "special"
    if token in vocabulary.padding_tokens:
        return "padding"
    return "" if vocabulary.tokens[token] else "empty_token"


def check_a_token_without_text_is_never_allowed(subject: Subject) -> Iterator[Finding]:
    """Neither specials other than end-of-sequence nor padding nor empty tokens: none of them is text of the
    grammar."""
    subject.require_text()
    purpose, vocabulary = "a_token_without_text_is_never_allowed", subject.vocabulary
    silent = first_bytes(vocabulary) < 0
    silent[list(vocabulary.eos_tokens)] = False
    if not silent.any():
        raise NotApplicable("every token of the vocabulary but end-of-sequence is text")
    for place, grammar_object in standing(subject, purpose, few(subject)):
        mask = subject.allowed(grammar_object)
        wrong = np.flatnonzero(mask & silent).tolist()
        kinds: dict[str, list[int]] = {}
        for token in wrong:
            kinds.setdefault(_kind(vocabulary, token), []).append(token)
        for cause, tokens in kinds.items():
            names = ", ".join(name_of(subject, token) for token in tokens[:3])
            yield finding(
                subject,
                place,
                f"the mask allows {counted(len(tokens), 'token')} without text: {names}",
                tokens[:1],
                cause,
            )


def check_a_refused_token_does_not_move(subject: Subject) -> Iterator[Finding]:
    """After several refusals in a row the object looks as before, and takes the right token."""
    purpose, ends = "a_refused_token_does_not_move", subject.vocabulary.eos_tokens
    refused_somewhere = taken_somewhere = False
    for place, grammar_object in standing(subject, purpose, subject.effort):
        before = look(subject, grammar_object)
        mask = before.allowed(subject)
        forbidden = [
            token for token in _to_try(subject, place, mask) if not mask[token] and token not in ends
        ]
        tokens = subject.random(f"refusals {place.text!r}").sample(forbidden, min(len(forbidden), REFUSALS))
        tokens += [] if before.accepting else ends
        if not tokens:
            continue
        if any(grammar_object.accept_token(token) for token in tokens):
            taken_somewhere = True
            continue  # what is taken though it is forbidden is the mask's matter
        refused_somewhere = True
        after = look(subject, grammar_object)
        if after != before:
            refused = counted(len(tokens), "token")
            text = f"refusing {refused} changes what is seen: {change(subject, before, after)}"
            yield finding(subject, place, text, tokens)
            continue
        right = next_token(subject, place, mask)
        if right is not None and not grammar_object.accept_token(right):
            fresh = subject.reach(place.tokens)
            if fresh is not None and fresh.accept_token(right):
                text = (
                    f"{name_of(subject, right)} is refused too, once {counted(len(tokens), 'other token')} "
                    f"{'has' if len(tokens) == 1 else 'have'} been refused"
                )
                yield finding(subject, place, text, (*tokens, right))
    if not refused_somewhere:
        raise NotApplicable(
            "where the mask forbids any tokens, some of them are taken"
            if taken_somewhere
            else "nothing is refused at any of the places"
        )
