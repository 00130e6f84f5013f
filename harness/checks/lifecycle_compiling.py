"""What the masks of a grammar must not depend on: how often it is compiled, and what else the adapter has
compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.backend.contract.compiling import MALFORMED
from harness.backend.contract.place import OPEN
from harness.backend.grammar import CompiledGrammar, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.checks.looking import (
    change,
    few,
    finding,
    look,
    name_of,
    place_on,
    standing,
    stops,
    walkable,
    walked,
)
from harness.checks.subject import NotApplicable, Place, Subject
from harness.errors import OutOfTime
from harness.rows.row import Finding

CATEGORY = "life cycle"

SLOW_NS = 300_000_000
"""What took longer to compile is compiled a second time only if the effort has no limit."""

BREAKERS = {"regex": "(", "ebnf": "\nroot ::= (", "lark": "\nstart: ("}
"""Put behind a grammar of the dialect, it is malformed; the others are JSON, which is so when its last
character is missing."""


def check_the_same_compile_gives_the_same_masks(subject: Subject) -> Iterator[Finding]:
    purpose = "the_same_compile_gives_the_same_masks"
    if subject.effort is not None and subject.compile_ns > SLOW_NS:
        raise NotApplicable("the grammar takes too long to compile it twice")
    try:
        again = subject.adapter.compile(subject.case.grammar)
    except (UnsupportedGrammar, InvalidGrammar) as error:
        text = f"compiled once, the grammar is declined the second time: {type(error).__name__}: {error}"
        yield finding(subject, Place(0, (), b""), text)
        return
    yield from _expect_the_same(subject, purpose, again)


def check_a_bad_grammar_harms_nothing(subject: Subject) -> Iterator[Finding]:
    """Neither objects that are there when the adapter is given malformed grammars, nor new ones."""
    purpose = "a_bad_grammar_harms_nothing"
    living = [
        (place, grammar_object, look(subject, grammar_object))
        for place, grammar_object in standing(subject, purpose, few(subject))
    ]
    _compile_malformed(subject)
    for place, old, before in living:
        for text, grammar_object in (
            ("an object that was there before", old),
            ("a new object", subject.reach(place.tokens)),
        ):
            if grammar_object is None:
                yield finding(
                    subject,
                    place,
                    "after a malformed grammar a new object refuses tokens that were accepted before",
                )
            elif (after := look(subject, grammar_object)) != before:
                yield finding(
                    subject,
                    place,
                    f"after a malformed grammar {text} looks different: {change(subject, before, after)}",
                )


def _compile_malformed(subject: Subject) -> None:
    """Gives the adapter the case's grammar spoiled, and malformed ones of its dialect and of another one."""
    dialect, text = subject.case.grammar.dialect, subject.case.grammar.text
    spoiled = text + BREAKERS[dialect] if dialect in BREAKERS else text.rstrip()[:-1]
    others = sorted(subject.adapter.dialects - {dialect})
    dialects = [dialect, *([subject.random("malformed").choice(others)] if others else [])]
    for grammar in (
        Grammar(dialect, spoiled),
        *(Grammar(dialect, text) for dialect in dialects for text in MALFORMED[dialect]),
    ):
        try:
            subject.adapter.compile(grammar)
        except (KeyboardInterrupt, SystemExit, MemoryError, OutOfTime):
            raise
        except (
            BaseException
        ):  # whatever it says of them (a panic in Rust is no Exception), is the matter of another check
            continue


def check_two_grammars_do_not_disturb_each_other(subject: Subject) -> Iterator[Finding]:
    """Objects of this grammar and of a small second one, moved and filled by turns on one adapter, go where
    each goes alone."""
    purpose = "two_grammars_do_not_disturb_each_other"
    number, tokens = max(enumerate(subject.paths), key=lambda path: len(path[1]), default=(0, []))
    alone = walked(
        subject,
        subject.compiled.start(),
        tokens,
        stops(subject, purpose, min(len(tokens), walkable(subject))),
    )
    second, steps = _second_grammar(subject)
    theirs = walked(subject, second.start(), steps, set(range(len(steps) + 1)))
    mine, other, at = subject.compiled.start(), second.start(), 0
    for position in range(max(alone) + 1):
        if position and not mine.accept_token(tokens[position - 1]):
            text = (
                f"{name_of(subject, tokens[position - 1])}, accepted before, is refused beside an object "
                "of another grammar"
            )
            yield finding(
                subject,
                place_on(subject, number, tokens, position - 1),
                text,
                tokens[position - 1 : position],
            )
            return
        if at == len(theirs) - 1:
            other, at = second.start(), 0
        elif other.accept_token(steps[at]):
            at += 1
        else:
            text = (
                f"{name_of(subject, steps[at])}, accepted before, is refused by an object of another grammar "
                "beside this one"
            )
            yield finding(subject, place_on(subject, number, tokens, position), text)
            return
        if position in alone:
            place = place_on(subject, number, tokens, position)
            now = look(subject, other)
            if now != theirs[at]:
                text = (
                    "an object of another grammar looks different beside this one: "
                    f"{change(subject, theirs[at], now)}"
                )
                yield finding(subject, place, text)
            now = look(subject, mine)
            if now != alone[position]:
                text = (
                    "beside an object of another grammar it looks different: "
                    f"{change(subject, alone[position], now)}"
                )
                yield finding(subject, place, text)


def _second_grammar(subject: Subject) -> tuple[CompiledGrammar, list[int]]:
    """Returns a small grammar that the adapter compiles, of another dialect where it can, and the tokens
    of an output."""
    for grammar, text in sorted(OPEN, key=lambda example: example[0].dialect == subject.case.grammar.dialect):
        if grammar.dialect in subject.adapter.dialects and grammar != subject.case.grammar:
            try:
                compiled = subject.adapter.compile(grammar)
            except (UnsupportedGrammar, InvalidGrammar):
                continue
            try:
                return compiled, subject.vocabulary.encode(text)
            except ValueError:  # the vocabulary cannot spell it
                continue
    raise NotApplicable("the adapter compiles no second grammar")


def _expect_the_same(subject: Subject, purpose: str, compiled: CompiledGrammar) -> Iterator[Finding]:
    """Yields a finding for each sampled place where another compile of the case's grammar has another
    mask."""
    text = "compiled again, the grammar has another mask"
    other = replace(subject, compiled=compiled)
    for place, grammar_object in standing(subject, purpose, few(subject)):
        before = look(subject, grammar_object)
        again = other.reach(place.tokens)
        if again is None:
            yield finding(subject, place, f"{text}: it refuses one of these tokens")
        elif (after := look(subject, again)) != before:
            yield finding(subject, place, f"{text}: {change(subject, before, after)}")
