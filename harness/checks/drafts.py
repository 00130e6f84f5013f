"""Drafts, of which a part is taken back, and outputs that a fresh object takes up in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.backend.contract.place import accepted, needs, take_back
from harness.backend.grammar import GrammarObject, overrides
from harness.checks.looking import (
    Look,
    change,
    end_name,
    endings,
    finding,
    look,
    name_of,
    next_token,
    place_on,
)
from harness.checks.seams import Seam, others, seams
from harness.checks.subject import Place, Subject
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = "drafts"

DRAFT = 4
"""The most tokens of a draft."""
DRAWN, MOST_DRAWN = 4, 16
"""How many drafts are drawn at a place, with a limited effort and without a limit."""
DRAWN_TOKENS = 2
"""The tokens of one of these."""


def check_another_way_is_open_behind_a_rejected_draft(subject: Subject) -> Iterator[Finding]:
    """Where the rest of a draft is taken back and another token comes, the object stands where a fresh one
    does: also half-way into a tag or a character, and back over either."""
    purpose = "another_way_is_open_behind_a_rejected_draft"
    needs(subject.compiled.start(), "rollback")
    for seam in seams(subject, purpose):
        yield from _take_other_ways(subject, purpose, seam)
        yield from _take_drawn_drafts(subject, purpose, seam.place(subject, seam.first))


def _take_other_ways(subject: Subject, purpose: str, seam: Seam) -> Iterator[Finding]:
    """Tries each number of tokens of the stretch that may be taken back."""
    draft, used = seam.tokens[seam.first : seam.last], subject.reach(seam.tokens[: seam.first])
    if used is None:
        return
    for position in range(seam.last - 1, seam.first - 1, -1):
        place, known = seam.place(subject, position), seam.tokens[position]
        here = subject.reach(place.tokens)
        if here is None:
            return  # objects_of_one_grammar_are_independent reports it
        if (taken := accepted(used, draft)) < len(draft):
            if position < seam.last - 1:  # the check named above reports a draft that is never taken
                back = f"reached by rollback({position + 1 - seam.first})"
                text = f"{back}, it takes {taken} of the {len(draft)} tokens that it took before"
                yield finding(subject, seam.place(subject, seam.first), text, draft)
            return
        take_back(used, seam.last - position)
        expected, now = look(subject, here), look(subject, used)
        if now != expected:
            text = f"reached by rollback({seam.last - position}), it looks different from a fresh object"
            yield finding(subject, place, f"{text}: {change(subject, expected, now)}", draft)
            return
        allowed = expected.allowed(subject).nonzero()[0].tolist()
        for other in others(subject, f"{purpose} {place.text!r}", allowed, known):
            wrong = list(_take(subject, used, place, other, seam.last - position))
            yield from wrong
            if wrong:
                return
        if position > seam.first:
            take_back(used, position - seam.first)


def _take_drawn_drafts(subject: Subject, purpose: str, place: Place) -> Iterator[Finding]:
    """Tries drafts that are drawn, with a mask filled at each place of them, as engines verify a draft. What
    comes instead has as many bytes as the draft, if a token has: a library may keep what it knows of a place
    by the place's number in the text."""
    drawn = subject.random(f"{purpose} drawn {place.text!r}")
    here = subject.reach(place.tokens)
    if here is None:
        return
    texts, first = subject.vocabulary.tokens, _goes_on(subject, here)
    lengths = np.array([len(texts[token]) for token in first])
    for _ in range(DRAWN if subject.effort else MOST_DRAWN):
        used = subject.reach(place.tokens)
        if used is None:
            return
        draft: list[int] = []
        while len(draft) < DRAWN_TOKENS:
            allowed = _goes_on(subject, used)
            if not len(allowed) or not used.accept_token(token := int(drawn.choice(allowed))):
                break
            draft.append(token)
        subject.allowed(used)
        take_back(used, len(draft))
        if not draft:
            return
        is_as_long = lengths == sum(len(texts[token]) for token in draft)
        as_long = first[is_as_long & (first != draft[0])]
        other = int(drawn.choice(as_long if len(as_long) else first))
        wrong = list(_take(subject, used, place, other, len(draft)))
        yield from wrong
        if wrong:
            return


def _goes_on(subject: Subject, grammar_object: GrammarObject) -> NDArray[np.int64]:
    """Returns the ids that the object's mask allows, ascending, without those that end the output."""
    allowed = subject.allowed(grammar_object).copy()
    allowed[list(subject.vocabulary.eos_tokens)] = False
    return np.flatnonzero(allowed)


def _take(subject: Subject, used: GrammarObject, place: Place, other: int, count: int) -> Iterator[Finding]:
    """Accepts another token where so many drafted ones were taken back, yields what is different from a fresh
    object, and takes it back."""
    fresh = subject.reach((*place.tokens, other))
    if fresh is None:
        return
    text = f"after taking back {counted(count, 'drafted token')}, {name_of(subject, other)}"
    if not used.accept_token(other):
        yield finding(subject, place, f"{text} is refused, which a fresh object takes", (other,))
        return
    there, now = look(subject, fresh), look(subject, used)
    if now != there:
        sentence = f"{text} leads elsewhere than in a fresh object: {change(subject, there, now)}"
        yield finding(subject, place, sentence, (other,))
        return
    take_back(used, 1)


def check_a_draft_ends_at_end_of_sequence(subject: Subject) -> Iterator[Finding]:
    """Where a draft holds end-of-sequence, nothing behind that is taken, and the draft, taken back in one
    step, leads back; raising for what comes behind the end is fine."""
    purpose = "a_draft_ends_at_end_of_sequence"
    for place, _, eos in endings(subject, purpose):
        begun = max(0, place.position - subject.random(f"{purpose} {place.text!r}").randint(0, DRAFT - 1))
        start = place_on(subject, place.instance, place.tokens, begun)
        grammar_object = subject.reach(start.tokens)
        if grammar_object is None:
            continue
        before = look(subject, grammar_object)
        behind = next_token(subject, start, before.allowed(subject))
        draft = [*place.tokens[begun:], eos, *([] if behind is None else [behind]), eos]
        ended = place.position - begun + 1
        try:
            taken = grammar_object.accept_tokens(draft)
        except Exception:
            grammar_object = subject.reach(start.tokens)
            taken = grammar_object.accept_tokens(draft[:ended]) if grammar_object is not None else ended
        if grammar_object is None:
            continue
        what = f"of a draft of {len(draft)} tokens with {end_name(subject, eos)} as number {ended}"
        if taken != ended:
            yield finding(subject, start, f"{what}, {taken} are taken", draft[: max(taken, ended)])
        elif not grammar_object.is_terminated():
            yield finding(subject, start, f"{what}, the end is taken, and is_terminated() is False", draft)
        elif overrides(grammar_object, "rollback"):
            take_back(grammar_object, ended)
            now = look(subject, grammar_object)
            if now != before:
                text = f"{what}, rollback({ended}) does not lead back: {change(subject, before, now)}"
                yield finding(subject, start, text, draft[:ended])


def check_ids_taken_up_anew_lead_to_the_same_place(subject: Subject) -> Iterator[Finding]:
    """A fresh object that is fed the ids so far, at once or one by one, stands where the one stood that has
    written them, with drafts tried and taken back; as engines do after a request was preempted."""
    purpose = "ids_taken_up_anew_lead_to_the_same_place"
    for seam in seams(subject, purpose):
        used = subject.reach(seam.tokens[: seam.first])
        if used is None:
            continue
        goes_back = overrides(used, "rollback")
        looked = {seam.first, (seam.first + seam.last) // 2, seam.last}
        for position in range(seam.first, seam.last + 1):
            ahead = accepted(used, seam.tokens[position : position + DRAFT]) if goes_back else 0
            if ahead:
                take_back(used, ahead)
            is_looked = subject.effort is None or position in looked
            wrong = list(_expect_same_anew(subject, used, seam.place(subject, position))) if is_looked else []
            yield from wrong
            if wrong or position == seam.last or not used.accept_token(seam.tokens[position]):
                break


def _expect_same_anew(subject: Subject, used: GrammarObject, place: Place) -> Iterator[Finding]:
    """Yields what is different between an object with a past and fresh ones that are fed its ids."""
    there = _look_ahead(subject, used)
    for way, count, fresh in fed(subject.compiled.start, place.tokens):
        if count < place.position:
            text = f"a fresh object, fed the ids {way}, takes {count} of {place.position}"
            yield finding(subject, place, text)
        elif (now := _look_ahead(subject, fresh)) != there:
            difference = change(subject, there[0], now[0]) or f"{now[1]!r} is forced, and not {there[1]!r}"
            yield finding(subject, place, f"a fresh object, fed the ids {way}, looks different: {difference}")


def fed(
    start: Callable[[], GrammarObject], tokens: Sequence[int]
) -> Iterator[tuple[str, int, GrammarObject]]:
    """Yields fresh objects that were fed the tokens, each with the way in words and how many it took."""
    at_once = start()
    yield "at once", at_once.accept_tokens(list(tokens)), at_once
    one_by_one = start()
    yield "one by one", accepted(one_by_one, tokens), one_by_one


def _look_ahead(subject: Subject, grammar_object: GrammarObject) -> tuple[Look, object]:
    """Returns what is seen of an object, and the text that it forces; what that raises is another check's."""
    try:
        forced: object = (grammar_object.jump_forward(), grammar_object.fast_forward_tokens())
    except Exception as error:
        forced = type(error).__name__
    return look(subject, grammar_object), forced
