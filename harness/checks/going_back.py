"""Rollback, copies, and objects beside each other: each is where its own tokens led it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.backend.contract.place import accepted, clone, take_back
from harness.backend.grammar import GrammarObject, overrides
from harness.checks.looking import (
    LONGEST,
    Look,
    change,
    few,
    finding,
    look,
    name_of,
    next_token,
    spread,
    standing,
    walkable,
)
from harness.checks.subject import NotApplicable, Place, Subject
from harness.rows.row import Finding

CATEGORY = "going back"

DEEPEST = 200
"""The most tokens that are taken back at once, but for the whole path."""


def check_rollback_restores_every_mask(subject: Subject) -> Iterator[Finding]:
    """`rollback(k)` leads back to the mask of k tokens before, for every k; the same tokens lead
    forth again.
    """
    needs(subject, "rollback")
    paths = subject.paths
    number = max(range(len(paths)), key=lambda each: len(paths[each]), default=None)
    if number is None or not paths[number]:
        raise NotApplicable("the backend accepts no token of an instance")
    tokens = paths[number][:LONGEST]
    yield from _back_and_forth(
        subject, number, tokens, None if subject.effort is None else subject.effort * 2
    )
    if len(tokens) < DEEPEST and subject.effort != 1:  # the same text in smaller steps goes deeper
        number = max(range(len(paths)), key=lambda each: len(subject.vocabulary.decode(paths[each])))
        single = [
            subject.vocabulary.ids_by_bytes.get(bytes([byte]))
            for byte in subject.vocabulary.decode(paths[number])[:LONGEST]
        ]
        spelled = [token for token in single if token is not None]
        if len(tokens) < len(spelled) == len(single):
            spelled = spelled[: accepted(subject.compiled.start(), spelled)]
            yield from _back_and_forth(subject, number, spelled, few(subject))


def _back_and_forth(
    subject: Subject, number: int, tokens: Sequence[int], most: int | None
) -> Iterator[Finding]:
    grammar_object, length = subject.compiled.start(), len(tokens)
    counts = _counts(subject, length, most)
    seen = walked(subject, grammar_object, tokens, {length, *(length - count for count in counts)})
    if length not in seen:
        return  # the same tokens, and refused: what objects_of_one_grammar_are_independent reports

    def differs(position: int, text: str) -> Iterator[Finding]:
        now = look(subject, grammar_object)
        if now != seen[position]:
            told = f"{text}, it does not look as it did there: {change(subject, seen[position], now)}"
            yield finding(subject, place_on(subject, number, tokens, position), told, tokens[position:])

    for count in counts:
        rolled = f"reached by rollback({count}) from position {length}"
        take_back(grammar_object, count)
        wrong = list(differs(length - count, rolled))
        if not wrong:
            again = accepted(grammar_object, tokens[length - count :])
            if again == count:
                wrong = list(differs(length, f"reached again after rollback({count})"))
            else:
                text = f"{rolled}, only {again} of the {count} tokens are accepted again"
                wrong = [
                    finding(
                        subject,
                        place_on(subject, number, tokens, length - count),
                        text,
                        tokens[length - count :],
                    )
                ]
        if wrong:
            yield from wrong
            grammar_object = subject.compiled.start()
            accepted(grammar_object, tokens)
    here = length
    for position in sorted(seen, reverse=True)[1:][:: 1 if most is None else 3]:
        take_back(grammar_object, here - position)
        here = position
        wrong = list(differs(position, "reached by one rollback after the other"))
        yield from wrong
        if wrong:
            return


def _counts(subject: Subject, length: int, most: int | None) -> list[int]:
    """How many tokens to take back: 1, all, and others up to DEEPEST, in an order that mixes long
    and short.
    """
    others = list(range(2, min(DEEPEST, length - 1) + 1))
    choose = subject.random(f"rollback {length}")
    counts = [
        *{1, length},
        *(others if most is None else choose.sample(others, min(len(others), max(0, most - 2)))),
    ]
    choose.shuffle(counts)
    return counts if length else []


def check_rollback_takes_back_the_end(subject: Subject) -> Iterator[Finding]:
    """End-of-sequence counts as one token: taken back, the object goes on as if it had not ended."""
    purpose = "rollback_takes_back_the_end"
    needs(subject, "rollback")
    for place, grammar_object in endings(subject, purpose):
        tokens, eos = place.tokens, subject.vocabulary.eos_token
        before = look(subject, grammar_object)
        if not grammar_object.accept_token(eos):
            continue
        take_back(grammar_object, 1)
        after = look(subject, grammar_object)
        if after != before:
            yield finding(
                subject,
                place,
                f"past end-of-sequence, rollback(1) does not lead back: {change(subject, before, after)}",
                (eos,),
            )
            continue
        if not grammar_object.accept_token(eos):
            yield finding(
                subject, place, "end-of-sequence, taken back, is refused when it comes again", (eos,)
            )
            continue
        if not tokens:
            continue
        more = subject.random(f"past the end {place.text!r}").randint(1, len(tokens))
        there = place_on(subject, place.instance, tokens, len(tokens) - more)
        fresh = subject.reach(there.tokens)
        if fresh is None:
            continue
        take_back(grammar_object, 1 + more)
        expected, now = look(subject, fresh), look(subject, grammar_object)
        text = f"reached by rollback({1 + more}) past end-of-sequence"
        if now != expected:
            told = f"{text}, it looks different from a fresh object: {change(subject, expected, now)}"
            yield finding(subject, there, told, (*tokens[len(tokens) - more :], eos))
        elif (again := accepted(grammar_object, tokens[len(tokens) - more :])) < more:
            yield finding(
                subject,
                there,
                f"{text}, only {again} of {more} tokens are accepted again",
                tokens[len(tokens) - more :],
            )
        elif (now := look(subject, grammar_object)) != before:
            yield finding(
                subject,
                place,
                f"{text} and gone forth, it looks different: {change(subject, before, now)}",
                (eos,),
            )


def check_a_copy_is_independent(subject: Subject) -> Iterator[Finding]:
    """A copy stands where the original does; moving either, or a copy of the copy, moves no other."""
    purpose = "a_copy_is_independent"
    needs(subject, "copy")
    for place, original in standing(subject, purpose, few(subject)):
        yield from _expect_copies_apart(subject, place, original)


def _expect_copies_apart(subject: Subject, place: Place, original: GrammarObject) -> Iterator[Finding]:
    def same(grammar_object: GrammarObject, expected: Look, text: str, *further: int) -> Iterator[Finding]:
        now = look(subject, grammar_object)
        if now != expected:
            yield finding(subject, place, f"{text}: {change(subject, expected, now)}", further)

    here = look(subject, original)
    copied = clone(original)
    wrong = list(same(copied, here, "a copy does not look as its original does"))
    token = next_token(subject, place, here.allowed(subject))
    if wrong or token is None:
        yield from wrong
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
    original.accept_token(_another(subject, place, here, token))
    yield from same(copied, there, f"moving the original moves its copy, which has accepted {name}", token)
    del original
    yield from same(second, there, f"a copy of a copy, which has accepted {name}, looks different", token)
    if overrides(second, "rollback"):
        take_back(second, 1)
        yield from same(
            second, here, f"rollback(1) does not lead a copy back from before it was made, past {name}", token
        )
        yield from same(
            copied, there, f"rollback of a copy moves the one that it was made of, past {name}", token
        )


def _another(subject: Subject, place: Place, here: Look, token: int) -> int:
    """Returns another token than the first that is allowed, where there is one."""
    others = [
        each
        for each in here.allowed(subject).nonzero()[0].tolist()
        if each not in (token, subject.vocabulary.eos_token)
    ]
    return subject.random(f"another {place.text!r}").choice(others) if others else token


def check_a_copy_of_an_ended_object_has_ended(subject: Subject) -> Iterator[Finding]:
    """It may be refused; but a copy that is made has ended, and taking back its end does not take back the
    original's."""
    purpose, eos = "a_copy_of_an_ended_object_has_ended", subject.vocabulary.eos_token
    needs(subject, "copy")
    for place, grammar_object in endings(subject, purpose):
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
    order = sorted(range(len(subject.paths)), key=lambda each: -len(subject.paths[each]))
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
    told = [False, False]
    for step in range(longest + 2):
        for which, (number, tokens) in enumerate(tracks):
            position = step - which  # the second one starts a step later
            if not 0 <= position <= len(tokens) or told[which]:
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
                told[which] = True
            elif (
                position in alone[which] and (now := look(subject, objects[which])) != alone[which][position]
            ):
                text = (
                    "an object beside another one looks different from one alone: "
                    f"{change(subject, alone[which][position], now)}"
                )
                yield finding(subject, place, text)
                told[which] = True


# What the checks share


def needs(subject: Subject, method: str) -> None:
    """Raises NotApplicable if the adapter does not implement the optional method."""
    if not overrides(subject.compiled.start(), method):
        raise NotApplicable(f"the adapter does not implement {method}")


def place_on(subject: Subject, number: int, tokens: Sequence[int], position: int) -> Place:
    taken = tuple(tokens[:position])
    return Place(number, taken, subject.vocabulary.decode(taken))


def walked(
    subject: Subject, grammar_object: GrammarObject, tokens: Sequence[int], wanted: set[int]
) -> dict[int, Look]:
    """Returns what is seen at the wanted positions, as far as the tokens are accepted."""
    seen = {0: look(subject, grammar_object)} if 0 in wanted else {}
    for position, token in enumerate(tokens, 1):
        if not grammar_object.accept_token(token):
            break
        if position in wanted:
            seen[position] = look(subject, grammar_object)
    return seen


def stops(subject: Subject, purpose: str, length: int) -> set[int]:
    """Where along a path to look: everywhere, or at the start, the end and a few others."""
    most = few(subject)
    others = range(1, length)
    return {
        0,
        length,
        *(
            others
            if most is None
            else subject.random(purpose).sample(others, min(len(others), max(0, most - 2)))
        ),
    }


def endings(subject: Subject, purpose: str) -> Iterator[tuple[Place, GrammarObject]]:
    """Yields a few places where the output may end, each with an object there: ends of instances first.

    Raises NotApplicable if none is found.
    """
    ends = {
        subject.vocabulary.decode(tokens): place_on(subject, number, tokens, len(tokens))
        for number, tokens in enumerate(subject.paths)
    }
    candidates = list(ends.values())
    subject.random(purpose).shuffle(candidates)
    candidates.sort(
        key=lambda place: (
            subject.case.instances[place.instance].valid is not True,
            place.position > walkable(subject),
        )
    )
    most = few(subject)
    candidates += [place for place in spread(subject, purpose, most) if place.text not in ends]
    found = 0
    for place in candidates if most is None else candidates[: most * 3]:
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None and grammar_object.is_accepting():
            found += 1
            yield place, grammar_object
            if found == most:
                return
    if not found:
        raise NotApplicable("the output may end at none of the places")
