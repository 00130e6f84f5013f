"""Copies, and objects beside each other: each is where its own tokens led it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from harness.backend.contract.place import clone, needs, take_back
from harness.backend.grammar import GrammarObject, overrides
from harness.checks.looking import (
    Look,
    change,
    endings,
    few,
    finding,
    look,
    name_of,
    next_token,
    place_on,
    standing,
    stops,
    walkable,
    walked,
)
from harness.checks.subject import NotApplicable, Place, Subject
from harness.rows.row import Finding

CATEGORY = "going back"


def check_a_copy_is_independent(subject: Subject) -> Iterator[Finding]:
    """A copy stands where the original does, also when the original is gone; moving either, or a copy of the
    copy, forth or back, moves no other."""
    purpose = "a_copy_is_independent"
    needs(subject.compiled.start(), "copy")
    for place, original in standing(subject, purpose, few(subject)):
        yield from islice(_expect_copies_apart(subject, place, original), 1)  # what follows, follows from it


def _expect_copies_apart(subject: Subject, place: Place, original: GrammarObject) -> Iterator[Finding]:
    def same(grammar_object: GrammarObject, expected: Look, text: str, *further: int) -> Iterator[Finding]:
        yield from _same(subject, place, grammar_object, expected, text, *further)

    here = look(subject, original)
    copied = clone(original)
    yield from same(copied, here, "a copy does not look as its original does")
    token = next_token(subject, place, here.allowed(subject))
    if token is None:
        return
    name = name_of(subject, token)
    fresh = subject.reach((*place.tokens, token))
    if not copied.accept_token(token) or fresh is None:
        if fresh is not None:
            yield finding(subject, place, f"a copy refuses {name}, which a fresh object takes", (token,))
        return
    there = look(subject, fresh)
    yield from same(copied, there, f"{name} leads a copy elsewhere than a fresh object", token)
    yield from same(original, here, f"{name}, accepted by a copy, moves the original", token)
    second = clone(copied)
    has_moved = original.accept_token(_another(subject, place, here, token))
    yield from same(copied, there, f"moving the original moves its copy, which has accepted {name}", token)
    yield from same(second, there, f"a copy of a copy, which has accepted {name}, looks different", token)
    yield from _expect_a_copy_to_outlive_its_original(subject, place, there, token)
    if overrides(second, "rollback"):
        take_back(second, 1)
        yield from same(
            second, here, f"rollback(1) does not lead a copy back from before it was made, past {name}", token
        )
        yield from same(
            copied, there, f"rollback of a copy moves the one that it was made of, past {name}", token
        )
        yield from _expect_apart_backwards(subject, place, (original, copied), has_moved, there, token)


def _same(
    subject: Subject, place: Place, grammar_object: GrammarObject, expected: Look, text: str, *further: int
) -> Iterator[Finding]:
    now = look(subject, grammar_object)
    if now != expected:
        yield finding(subject, place, f"{text}: {change(subject, expected, now)}", further)


def _expect_apart_backwards(
    subject: Subject,
    place: Place,
    both: tuple[GrammarObject, GrammarObject],
    has_moved: bool,
    there: Look,
    token: int,
) -> Iterator[Finding]:
    """Leads an original, which has accepted a token since it was copied if it `has_moved`, and then its copy,
    which has accepted one, back to one token before the place."""
    (original, copied), name = both, name_of(subject, token)
    fresh, behind = subject.reach(place.tokens[:-1]), min(place.position, 1)
    if fresh is None:
        return
    before = look(subject, fresh)
    if count := has_moved + behind:
        take_back(original, count)
        text = f"rollback({count}) does not lead an object back from before it was copied"
        yield from _same(subject, place, original, before, text)
        text = f"rollback of the original moves its copy, which has accepted {name}"
        yield from _same(subject, place, copied, there, text, token)
    take_back(copied, 1 + behind)
    text = f"rollback({1 + behind}) does not lead a copy back from before it was made, past {name}"
    yield from _same(subject, place, copied, before, text, token)


def _expect_a_copy_to_outlive_its_original(
    subject: Subject, place: Place, there: Look, token: int
) -> Iterator[Finding]:
    """Makes a copy, lets go of what it was made of, and goes on with the token."""
    original = subject.reach(place.tokens)
    if original is None:
        return
    copied = clone(original)
    del original
    name = name_of(subject, token)
    if copied.accept_token(token):
        text = f"{name} leads a copy whose original is gone elsewhere than a fresh object"
        yield from _same(subject, place, copied, there, text, token)
    else:
        text = f"a copy whose original is gone refuses {name}, which a fresh object takes"
        yield finding(subject, place, text, (token,))


def _another(subject: Subject, place: Place, here: Look, token: int) -> int:
    """Returns another token than the first that is allowed, where there is one."""
    others = [
        other
        for other in here.allowed(subject).nonzero()[0].tolist()
        if other not in (token, *subject.vocabulary.eos_tokens)
    ]
    return subject.random(f"another {place.text!r}").choice(others) if others else token


def check_a_copy_of_an_ended_object_has_ended(subject: Subject) -> Iterator[Finding]:
    """It may be refused; but a copy that is made has ended, and taking back its end does not take back the
    original's."""
    purpose = "a_copy_of_an_ended_object_has_ended"
    needs(subject.compiled.start(), "copy")
    for place, grammar_object, eos in endings(subject, purpose):
        before = look(subject, grammar_object)
        if not grammar_object.accept_token(eos):
            continue
        try:
            copied = clone(grammar_object)
        except NotApplicable:
            raise
        except Exception:
            continue
        if not copied.is_terminated():
            yield finding(subject, place, "a copy of an object that has ended has not ended", (eos,))
        elif overrides(copied, "rollback"):
            take_back(copied, 1)
            now = look(subject, copied)
            if now != before:
                text = (
                    "end-of-sequence, taken back in a copy, does not lead it back: "
                    f"{change(subject, before, now)}"
                )
                yield finding(subject, place, text, (eos,))
            if not grammar_object.is_terminated():
                yield finding(
                    subject,
                    place,
                    "end-of-sequence, taken back in a copy, is taken back in the original",
                    (eos,),
                )


def check_objects_of_one_grammar_are_independent(subject: Subject) -> Iterator[Finding]:
    """Two objects, walked by turns along two instances (or one behind the other along one), go where each
    goes alone."""
    purpose = "objects_of_one_grammar_are_independent"
    longest = walkable(subject)
    order = sorted(range(len(subject.paths)), key=lambda number: -len(subject.paths[number]))
    tracks = [(number, subject.paths[number][:longest]) for number in order if subject.paths[number]][:2]
    if not tracks:
        raise NotApplicable("the backend accepts no token of an instance")
    tracks = (tracks * 2)[:2]
    wanted = [stops(subject, f"{purpose} {which}", len(tokens)) for which, (_, tokens) in enumerate(tracks)]
    alone = [
        walked(subject, subject.compiled.start(), tokens, at)
        for (_, tokens), at in zip(tracks, wanted, strict=True)
    ]
    objects = [subject.compiled.start(), subject.compiled.start()]
    reported = [False, False]
    for step in range(longest + 2):
        for which, (number, tokens) in enumerate(tracks):
            position = step - which  # the second one starts a step later
            if not 0 <= position <= len(tokens) or reported[which]:
                continue
            place = place_on(subject, number, tokens, position)
            if position and not objects[which].accept_token(tokens[position - 1]):
                text = (
                    f"{name_of(subject, tokens[position - 1])}, accepted before, is refused by an object "
                    "beside another one"
                )
                yield finding(
                    subject,
                    place_on(subject, number, tokens, position - 1),
                    text,
                    tokens[position - 1 : position],
                )
                reported[which] = True
            elif (
                position in alone[which] and (now := look(subject, objects[which])) != alone[which][position]
            ):
                text = (
                    "an object beside another one looks different from one alone: "
                    f"{change(subject, alone[which][position], now)}"
                )
                yield finding(subject, place, text)
                reported[which] = True
