"""Rollback: it leads back to where the object stood, past the end too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.backend.contract.place import accepted, needs, take_back
from harness.checks.looking import (
    LONGEST,
    change,
    end_name,
    endings,
    few,
    finding,
    look,
    place_on,
    walked,
)
from harness.checks.subject import NotApplicable, Subject
from harness.rows.row import Finding

CATEGORY = "going back"

DEEPEST = 200
"""The most tokens that are taken back at once, but for the whole path."""


def check_rollback_restores_every_mask(subject: Subject) -> Iterator[Finding]:
    """`rollback(k)` leads back to the mask of k tokens before, for every k; the same tokens lead
    forth again.
    """
    needs(subject.compiled.start(), "rollback")
    paths = subject.paths
    number = max(range(len(paths)), key=lambda path: len(paths[path]), default=None)
    if number is None or not paths[number]:
        raise NotApplicable("the backend accepts no token of an instance")
    tokens = paths[number][:LONGEST]
    yield from _back_and_forth(
        subject, number, tokens, None if subject.effort is None else subject.effort * 2
    )
    if len(tokens) < DEEPEST and subject.effort != 1:  # the same text in smaller steps goes deeper
        number = max(range(len(paths)), key=lambda path: len(subject.vocabulary.decode(paths[path])))
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
    before = walked(subject, grammar_object, tokens, {length, *(length - count for count in counts)})
    if length not in before:
        return  # the same tokens, and refused: what objects_of_one_grammar_are_independent reports

    def differs(position: int, text: str) -> Iterator[Finding]:
        now = look(subject, grammar_object)
        if now != before[position]:
            sentence = f"{text}, it does not look as it did there: {change(subject, before[position], now)}"
            yield finding(subject, place_on(subject, number, tokens, position), sentence, tokens[position:])

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
    for position in sorted(before, reverse=True)[1:][:: 1 if most is None else 3]:
        take_back(grammar_object, here - position)
        here = position
        wrong = list(differs(position, "reached by one rollback after the other"))
        yield from wrong
        if wrong:
            return


def _counts(subject: Subject, length: int, most: int | None) -> list[int]:
    """Returns how many tokens to take back: 1, all, and others up to DEEPEST, in an order that mixes long and
    short.
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
    needs(subject.compiled.start(), "rollback")
    for place, grammar_object, eos in endings(subject, purpose):
        tokens, end = place.tokens, end_name(subject, eos)
        before = look(subject, grammar_object)
        if not grammar_object.accept_token(eos):
            continue
        take_back(grammar_object, 1)
        after = look(subject, grammar_object)
        if after != before:
            yield finding(
                subject,
                place,
                f"past {end}, rollback(1) does not lead back: {change(subject, before, after)}",
                (eos,),
            )
            continue
        if not grammar_object.accept_token(eos):
            yield finding(subject, place, f"{end}, taken back, is refused when it comes again", (eos,))
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
        text = f"reached by rollback({1 + more}) past {end}"
        if now != expected:
            sentence = f"{text}, it looks different from a fresh object: {change(subject, expected, now)}"
            yield finding(subject, there, sentence, (*tokens[len(tokens) - more :], eos))
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
