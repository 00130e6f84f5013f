"""Formulas keep their meaning when they are simplified as they are made."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.oracle.json_schema.atoms import AtLeast, IsOneOfNumbers
from harness.oracle.json_schema.formula import (
    FALSE,
    Formula,
    atom,
    conjunction,
    disjunction,
    is_true,
    negation,
    reduced,
)

SETS = st.frozensets(st.sampled_from([Fraction(value) for value in range(4)]))
LEAVES = st.one_of(SETS, st.sampled_from([0, 1, 2, 3]))
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.tuples(st.just("not"), st.tuples(below)),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(below, max_size=4).map(tuple)),
    ),
    max_leaves=12,
)
"""A set of numbers, a lower bound, or a joint of trees."""
VALUES = [Fraction(number) for number in range(-1, 5)]


def formula_of(tree: Any) -> Formula:
    if isinstance(tree, frozenset):
        return atom(IsOneOfNumbers(tree))
    if isinstance(tree, int):
        return atom(AtLeast(Fraction(tree)))
    kind, parts = tree
    below = [formula_of(part) for part in parts]
    if kind == "not":
        return negation(below[0])
    return conjunction(below) if kind == "and" else disjunction(below)


def is_true_of(tree: Any, value: Fraction) -> bool:
    if isinstance(tree, frozenset):
        return value in tree
    if isinstance(tree, int):
        return value >= tree
    kind, parts = tree
    below = [is_true_of(part, value) for part in parts]
    return not below[0] if kind == "not" else all(below) if kind == "and" else any(below)


def holds_of(value: Fraction, fact: Any) -> bool:
    return value in fact.values if isinstance(fact, IsOneOfNumbers) else value >= fact.bound


@given(TREES)
def test_sets_that_are_joined_mean_what_they_meant(tree: Any) -> None:
    formula = formula_of(tree)
    for value in VALUES:
        assert is_true(formula, partial(holds_of, value)) == is_true_of(tree, value)


def test_sets_side_by_side_are_one() -> None:
    one, other = (atom(IsOneOfNumbers(frozenset(map(Fraction, values)))) for values in ((1, 2), (2, 3)))
    assert conjunction([one, other]) is atom(IsOneOfNumbers(frozenset([Fraction(2)])))
    assert disjunction([one, other]) is atom(IsOneOfNumbers(frozenset(map(Fraction, (1, 2, 3)))))
    assert conjunction([one, negation(other)]) is atom(IsOneOfNumbers(frozenset([Fraction(1)])))
    assert conjunction([one, negation(disjunction([one, other])), other]) is FALSE


@given(TREES)
def test_what_parts_say_of_each_other_changes_no_meaning(tree: Any) -> None:
    formula = reduced(formula_of(tree))
    for value in VALUES:
        assert is_true(formula, partial(holds_of, value)) == is_true_of(tree, value)


def test_what_parts_say_of_each_other_is_left_out() -> None:
    one, two, three = (atom(AtLeast(Fraction(number))) for number in (1, 2, 3))
    both = conjunction([one, two])
    assert reduced(conjunction([one, negation(both)])) is conjunction([one, negation(two)])
    assert reduced(disjunction([one, both])) is one
    assert reduced(conjunction([one, negation(two), negation(disjunction([three, both]))])) is conjunction(
        [one, negation(two), negation(three)]
    )
    assert reduced(conjunction([one, two, negation(both)])) is FALSE
