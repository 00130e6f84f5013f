"""The parts of arrays and objects: what is asked of one, and what its answers mean for the whole."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from harness.oracle.json_schema.atoms import (
    AllItems,
    AllMembers,
    AllNames,
    AskedItem,
    AtLeastItems,
    Contains,
    IsTrue,
)
from harness.oracle.json_schema.formula import (
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    is_true,
    negation,
    rewritten,
)


class Effect(NamedTuple):
    """What a part means for one atom of the whole."""

    fact: Hashable
    """The atom's."""
    question: Formula
    """What is asked of the part."""
    if_true: Formula
    """What the atom becomes if the part satisfies that."""
    if_false: Formula


class Part(NamedTuple):
    """What is asked of one part of an array or object, and what its answers mean for the whole."""

    wanted: Formula
    """True of exactly the values with which the whole can still come true."""
    asked: tuple[Formula, ...]
    """What the whole must know of the part when it has ended."""
    before: tuple[Formula, ...]
    """The formulas of the whole, in which `effects` are replaced."""
    effects: tuple[Effect, ...]
    settled: tuple[tuple[Formula, bool], ...] = ()
    """What is asked and has the same answer for every value that is wanted."""


def behind(part: Part, answers: dict[Formula, bool]) -> tuple[Formula, ...]:
    """Returns the formulas of the whole behind a part of which the answers are known."""
    if not part.effects:
        return part.before
    becomes = {
        effect.fact: effect.if_true if answers[effect.question] else effect.if_false
        for effect in part.effects
    }
    wanted = frozenset(becomes)
    return tuple(rewritten(formula, becomes.__getitem__, wanted) for formula in part.before)


def simple_items(formula: Formula) -> Formula:
    """Returns the formula without atoms that ask nothing of further items."""

    def of(value: Any) -> Formula:
        return (
            TRUE if isinstance(value, AllItems) and not value.prefix and value.rest is TRUE else atom(value)
        )

    return rewritten(formula, of)


def next_item(formulas: tuple[Formula, ...]) -> Part:
    """Returns what is asked of the next item of an array."""
    effects: dict[Effect, None] = {}

    def of(value: Any) -> Formula:
        if isinstance(value, AtLeastItems):
            return TRUE if value.count <= 1 else atom(AtLeastItems(value.count - 1))
        if isinstance(value, AllItems):
            wanted = value.prefix[0] if value.prefix else value.rest
            after = AllItems(value.prefix[1:], value.rest)
            if wanted is FALSE:
                return FALSE
            rest = TRUE if not after.prefix and after.rest is TRUE else atom(after)
            if wanted is TRUE:
                return rest
            asked = AskedItem(wanted, after)
            effects[Effect(asked, wanted, rest, FALSE)] = None
            return atom(asked)
        assert isinstance(value, Contains)
        fewer = TRUE if value.count <= 1 else atom(Contains(value.formula, value.count - 1))
        effects[Effect(value, value.formula, fewer, atom(value))] = None
        return atom(value)

    left = tuple(rewritten(formula, of) for formula in formulas)
    kept = atoms_of(left)
    return Part(TRUE, (), left, tuple(effect for effect in effects if effect.fact in kept))


Answers: TypeAlias = Mapping[Formula, bool | None]
"""Questions with their answers. None stands where both answers occur, whatever the other answers are."""


def questions_of(effects: Iterable[Effect]) -> tuple[Formula, ...]:
    """Returns what is asked of the part, each question once."""
    return tuple(dict.fromkeys(effect.question for effect in effects))


def without_choice(questions: tuple[Formula, ...], good: list[tuple[bool, ...]]) -> list[Answers]:
    """Returns fewer combinations that stand for the same ones: a question gets None in all of them if each
    good combination is good with its other answer too."""
    left: dict[tuple[bool | None, ...], None] = dict.fromkeys(good)
    for place in range(len(questions)):
        without = {tuple(value for at, value in enumerate(answers) if at != place) for answers in left}
        if len(without) * 2 == len(left):
            left = dict.fromkeys((*answers[:place], None, *answers[place + 1 :]) for answers in left)
    return [dict(zip(questions, answers, strict=True)) for answers in left]


def all_of(answers: Answers) -> Formula:
    """Returns the formula that is true of the values that give these answers."""
    return conjunction(
        question if answer else negation(question)
        for question, answer in answers.items()
        if answer is not None
    )


def atoms_of(formulas: tuple[Formula, ...]) -> frozenset[Any]:
    """Returns the atoms of all of them."""
    return frozenset().union(*(formula.atoms for formula in formulas)) if formulas else frozenset()


def atoms_in_order(formulas: tuple[Formula, ...]) -> list[Any]:
    """Returns the atoms of all of them, in the order in which they stand there first."""
    found: dict[Any, None] = {}
    seen: set[Formula] = set()
    waiting = list(formulas)[::-1]
    while waiting:
        formula = waiting.pop()
        if formula in seen:
            continue
        seen.add(formula)
        if formula.kind == "atom":
            found[formula.parts[0]] = None
        if formula.is_joint:
            waiting += formula.parts[::-1]
    return list(found)


def boolean_holds(formula: Formula, value: bool) -> bool:
    """Is the formula true of this boolean?"""
    return is_true(formula, lambda fact: isinstance(fact, IsTrue) and value)


def array_holds(formula: Formula) -> bool:
    """Is the formula true of an array that ends here?"""
    return is_true(formula, lambda value: isinstance(value, AllItems))


def object_holds(formula: Formula) -> bool:
    """Is the formula true of an object that ends here?"""
    return is_true(formula, lambda value: isinstance(value, AllMembers | AllNames))
