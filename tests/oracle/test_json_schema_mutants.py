"""Automata of JSON Schema that are wrong in one way each: the tests that hold the automaton against the judge
must see each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from against_the_judge import differences

from harness.oracle.json_schema import (
    atoms,
    automaton,
    decimals,
    facts,
    keywords,
    numbers,
    parts,
    schemas,
    strings,
    texts,
)
from harness.oracle.json_schema.atoms import AtLeast
from harness.oracle.json_schema.formula import TRUE, Formula

MOST_SCHEMAS = 60
"""A mutant must be seen on one of so many small random schemas."""


def forgets(keyword: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The automaton that does not know a keyword."""

    def bend(patch: pytest.MonkeyPatch) -> None:
        right = schemas.Schemas._of_keyword

        def wrong(self: Any, name: str, *others: Any) -> Any:
            return () if name == keyword else right(self, name, *others)

        patch.setattr(schemas.Schemas, "_of_keyword", wrong)

    return bend


def closes_objects_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(automaton, "object_holds", lambda formula: True)


def closes_arrays_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(automaton, "array_holds", lambda formula: True)


def counts_bytes_for_characters(patch: pytest.MonkeyPatch) -> None:
    right = strings.Strings.after_byte
    patch.setattr(
        strings.Strings, "after_byte", lambda self, formula, byte, first: right(self, formula, byte, True)
    )


def loses_a_branch_of_one_of(patch: pytest.MonkeyPatch) -> None:
    right = facts.one_of
    patch.setattr(keywords, "one_of", lambda formulas: right(formulas[:-1] or formulas))


def takes_a_bound_for_an_exclusive_one(patch: pytest.MonkeyPatch) -> None:
    right = decimals.holds

    def wrong(formula: Formula, value: Fraction, *others: bool) -> bool:
        touched = any(isinstance(fact, AtLeast) and fact.bound == value for fact in formula.atoms)
        return not touched and right(formula, value, *others)

    patch.setattr(decimals, "holds", wrong)


def lists_only_the_first_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        schemas, "IsOneOfNumbers", lambda values: atoms.IsOneOfNumbers(frozenset(sorted(values)[:1]))
    )


def sees_only_positive_exponents(patch: pytest.MonkeyPatch) -> None:
    right = numbers._by_size
    patch.setattr(numbers, "_by_size", lambda turns, is_small: right(turns, False))


def sees_only_plain_escapes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(texts, "HEX", b"0123456789")


def knows_no_dead_ends(patch: pytest.MonkeyPatch) -> None:
    """Every string, array and object can be completed, and every number."""
    patch.setattr(strings.Strings, "can_end", lambda self, formula, within=0: True)
    patch.setattr(numbers.Numbers, "can_end", lambda self, formulas, literal: True)


def lets_items_be_anything(patch: pytest.MonkeyPatch) -> None:
    right = parts.next_item
    patch.setattr(automaton, "next_item", lambda formulas: right((TRUE, *formulas[1:])))


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    **{
        f"forgets {keyword}": forgets(keyword) for keyword in ("required", "pattern", "contains", "if", "not")
    },
    **{
        bend.__name__: bend
        for bend in (
            closes_objects_early,
            closes_arrays_early,
            counts_bytes_for_characters,
            loses_a_branch_of_one_of,
            takes_a_bound_for_an_exclusive_one,
            lists_only_the_first_number,
            sees_only_positive_exponents,
            sees_only_plain_escapes,
            knows_no_dead_ends,
            lets_items_be_anything,
        )
    },
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_automaton_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert any(_seen(number) for number in range(MOST_SCHEMAS)), json.dumps(name)


def _seen(number: int) -> bool:
    try:
        return bool(differences(number))
    except (AssertionError, KeyError):  # a wrong automaton may contradict itself
        return True
