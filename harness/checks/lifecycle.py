"""The end of an object, and tokens that are refused or are none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from harness.checks.looking import (
    change,
    end_name,
    endings,
    finding,
    look,
    name_of,
    next_token,
    standing,
    standing_deep,
)
from harness.checks.subject import NotApplicable, Subject
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = "life cycle"


def check_a_terminated_object_takes_nothing(subject: Subject) -> Iterator[Finding]:
    """Past end-of-sequence no token is taken, and a mask allows at most end-of-sequence again; raising is
    fine, too."""
    purpose, ends = "a_terminated_object_takes_nothing", subject.vocabulary.eos_tokens
    size = subject.vocabulary.size
    for place, grammar_object, eos in endings(subject, purpose):
        mask = subject.allowed(grammar_object)
        token = next_token(subject, place, mask)
        if not grammar_object.accept_token(eos):
            continue
        if not grammar_object.is_terminated():
            yield finding(
                subject,
                place,
                f"{end_name(subject, eos)} has been accepted, but is_terminated() is False",
                (eos,),
            )
        tokens: list[int] = []
        with suppress(Exception):
            tokens = [
                other for other in subject.allowed(grammar_object).nonzero()[0].tolist() if other not in ends
            ]
        if tokens:
            text = (
                f"and {end_name(subject, eos)}, the mask allows {counted(len(tokens), 'token')}, e.g. "
                f"{name_of(subject, tokens[0])}"
            )
            yield finding(subject, place, text, (eos, tokens[0]))
        for another in (
            *ends,
            token,
            *subject.random(f"ended {place.text!r}").sample(range(size), min(4, size)),
        ):
            try:
                taken = another is not None and grammar_object.accept_token(another)
            except Exception:  # what the object is worth then, nobody has promised
                fresh = subject.reach((*place.tokens, eos))
                if fresh is None:
                    break
                grammar_object = fresh
                continue
            if taken and another is not None:
                yield finding(
                    subject,
                    place,
                    f"and {end_name(subject, eos)}, {name_of(subject, another)} is accepted",
                    (eos, another),
                )
                break


def check_end_of_sequence_is_refused_before_the_end(subject: Subject) -> Iterator[Finding]:
    """Where the output may not end, end-of-sequence is refused; neither it nor being accepting terminates."""
    purpose, ends = "end_of_sequence_is_refused_before_the_end", subject.vocabulary.eos_tokens
    tried = False
    for place, grammar_object in standing(subject, purpose, subject.effort):
        accepting = bool(grammar_object.is_accepting())
        if grammar_object.is_terminated():
            yield finding(subject, place, "terminated, though end-of-sequence has not been accepted")
        if accepting:
            continue
        tried = True
        for eos in ends:
            if grammar_object.accept_token(eos):
                text = f"{end_name(subject, eos)} is accepted where the output may not end"
            elif grammar_object.is_terminated():
                text = f"a refused {end_name(subject, eos)} terminates"
            else:
                continue
            yield finding(subject, place, text, (eos,), "end_of_sequence")
            break
    if not tried:
        raise NotApplicable("the output may end at each of the places")


def check_an_id_outside_the_vocabulary_is_refused(subject: Subject) -> Iterator[Finding]:
    """It may also raise, but is never taken for a token."""
    purpose, size = "an_id_outside_the_vocabulary_is_refused", subject.vocabulary.size
    for place, grammar_object in standing_deep(subject, purpose):
        before = look(subject, grammar_object)
        taken: list[int] = []
        changed = ""
        for token in (size, -(-size // 32) * 32, size + 1000, 2**31 - 1, -1):
            try:
                is_taken = grammar_object.accept_token(token)
            except Exception:  # what the object is worth then, nobody has promised
                fresh = subject.reach(place.tokens)
                if fresh is None:
                    break
                grammar_object = fresh
                continue
            if is_taken:
                taken.append(token)
            elif not changed and not taken and (after := look(subject, grammar_object)) != before:
                changed = f"refusing {token} of {size} tokens changes what is seen: "
                changed += change(subject, before, after)
        if taken:
            changed = f"accept_token takes {taken} as tokens; the vocabulary has {size}"
        if changed:
            yield finding(subject, place, changed, cause="outside")


def check_accept_tokens_stops_where_accept_token_does(subject: Subject) -> Iterator[Finding]:
    """It takes the tokens up to the first that is refused, says how many, and stands there."""
    purpose = "accept_tokens_stops_where_accept_token_does"
    for place, grammar_object in standing_deep(subject, purpose):
        before = look(subject, grammar_object)
        forbidden = [
            token
            for token in (~before.allowed(subject)).nonzero()[0].tolist()
            if token not in subject.vocabulary.eos_tokens
        ]
        refused = [
            forbidden[at]
            for at in subject.random(purpose).sample(range(len(forbidden)), min(4, len(forbidden)))
        ]
        # Each is tried with an object of its own: one that takes what its mask forbids has moved.
        stop = next((token for token in refused if subject.reach((*place.tokens, token)) is None), None)
        further = next_token(subject, place, before.allowed(subject))
        tokens = [*place.tokens, *([] if stop is None else [stop, *([] if further is None else [further])])]
        # From the start, and in the middle, as a draft is tried.
        for begun in dict.fromkeys((0, (place.position + 1) // 2)):
            several = subject.reach(place.tokens[:begun])
            if several is None:
                break
            count, wanted = several.accept_tokens(tokens[begun:]), place.position - begun
            where = f" behind {counted(begun, 'token')}" if begun else ""
            if count != wanted:
                of = f"{count} of {len(tokens) - begun}{where}"
                text = f"accept_tokens returns {of}, where accept_token takes {wanted}"
                yield finding(subject, place, text, tokens[place.position :])
                break
            after = look(subject, several)
            if after != before:
                seen = change(subject, before, after)
                text = f"accept_tokens{where} leads elsewhere than accept_token: {seen}"
                yield finding(subject, place, text, tokens[place.position :])
                break
