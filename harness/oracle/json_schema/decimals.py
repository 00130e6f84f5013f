"""Which decimal numbers satisfy a formula, as points and intervals of their sizes; and whether one of these
sizes begins with given digits, or lies in a given window.

A size is a number without its sign. All of it is exact: sizes are fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any, NamedTuple

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.atoms import (
    Above,
    AtLeast,
    IsMinusZero,
    IsMultiple,
    IsOneOfNumbers,
    IsSpelledInteger,
)
from harness.oracle.json_schema.formula import FALSE, Formula, atom, constant, is_true, rewritten

MOST_DIVISORS = 12
"""More than these have no reference: each combination of divisors is one of 2^n."""
MOST_STEPS = 10_000
"""Multiples that are tried before a combination of divisors has no reference."""
ZERO = Fraction(0)


class Divisors(NamedTuple):
    """A size is a multiple of `step` (None: of nothing in particular) and of none of the `others`."""

    step: Fraction | None
    others: tuple[Fraction, ...]
    period: Fraction
    """Sizes that differ by a multiple of this are multiples of the same divisors."""


class Interval(NamedTuple):
    """Sizes above `low` and below `high` (None: any) of one of these combinations of divisors, which all have
    such a size."""

    low: Fraction
    high: Fraction | None
    divisors: tuple[Divisors, ...]


class Sizes(NamedTuple):
    """The sizes of the numbers of one sign that satisfy a formula."""

    points: tuple[Fraction, ...]
    intervals: tuple[Interval, ...]
    """No size in them is one of `listed`."""
    listed: frozenset[Fraction]


def holds(formula: Formula, value: Fraction, is_spelled_integer: bool, is_minus_zero: bool = False) -> bool:
    """Does a number satisfy the formula?"""

    def of(fact: Any) -> bool:
        if isinstance(fact, AtLeast):
            return value >= fact.bound
        if isinstance(fact, Above):
            return value > fact.bound
        if isinstance(fact, IsMultiple):
            return (value / fact.divisor).denominator == 1
        if isinstance(fact, IsOneOfNumbers):
            return value in fact.values
        if isinstance(fact, IsMinusZero):
            return is_minus_zero
        assert isinstance(fact, IsSpelledInteger)
        return is_spelled_integer

    return is_true(formula, of)


def sizes_of(formula: Formula, is_negative: bool, is_spelled_integer: bool) -> Sizes:
    """Returns the sizes of the numbers of this sign that satisfy the formula and are, or are not, spelled
    without a fraction and an exponent."""
    bounds = {value.bound for value in formula.atoms if isinstance(value, AtLeast | Above)}
    sets = (value.values for value in formula.atoms if isinstance(value, IsOneOfNumbers))
    sign = -1 if is_negative else 1

    def of_sign(values: frozenset[Fraction] | set[Fraction]) -> frozenset[Fraction]:
        return frozenset(value * sign for value in values if value * sign >= 0)

    ends, own = sorted(of_sign(bounds) | {ZERO}), of_sign(frozenset().union(*sets))
    points = tuple(
        size
        for size in sorted(own.union(ends))
        if (size.denominator == 1 or not is_spelled_integer)
        and holds(formula, sign * size, is_spelled_integer, is_negative and size == 0)
    )
    intervals = []
    for low, high in zip(ends, [*ends[1:], None], strict=True):
        inside = sign * (low + 1 if high is None else (low + high) / 2)

        def of(value: Any, inside: Fraction = inside) -> Formula:
            if isinstance(value, IsMultiple):
                return atom(value)
            return constant(holds(atom(value), inside, is_spelled_integer)) if _is_known(value) else FALSE

        divisors = tuple(
            combination
            for combination in _combinations(rewritten(formula, of), is_spelled_integer)
            if _has_size(combination, low, low, high, own)
        )
        if divisors:
            intervals.append(Interval(low, high, divisors))
    return Sizes(points, tuple(intervals), own)


def _is_known(value: Any) -> bool:
    """Within an interval these are the same everywhere; zero and the listed numbers are points instead."""
    return isinstance(value, AtLeast | Above | IsSpelledInteger)


def _combinations(formula: Formula, is_integer: bool) -> Iterator[Divisors]:
    """Yields the combinations of divisors that make a formula over divisors true."""
    divisors = sorted(value.divisor for value in formula.atoms if isinstance(value, IsMultiple))
    if len(divisors) > MOST_DIVISORS:
        raise NoOracle("a number depends on too many divisors")
    for truths in product((True, False), repeat=len(divisors)):
        chosen = dict(zip(divisors, truths, strict=True))
        if is_true(formula, lambda value, chosen=chosen: chosen[value.divisor]):  # type: ignore[misc]
            wanted = [divisor for divisor, is_one in chosen.items() if is_one] + [Fraction(1)] * is_integer
            others = tuple(divisor for divisor, is_one in chosen.items() if not is_one)
            step = _common(wanted) if wanted else None
            yield Divisors(step, others, _common([*wanted, *others]) if chosen or wanted else Fraction(1))


def _common(divisors: list[Fraction]) -> Fraction:
    """Returns the least common multiple."""
    below = lcm(*(divisor.denominator for divisor in divisors))
    return Fraction(lcm(*(int(divisor * below) for divisor in divisors)), below)


def _has_size(
    divisors: Divisors, begin: Fraction, low: Fraction, end: Fraction | None, listed: frozenset[Fraction]
) -> bool:
    """Has the combination a size from `begin` to before `end` (None: any) that is above `low` and not
    listed?"""
    if end is not None and (end <= begin or end <= low):
        return False
    step = divisors.step
    if step is None:
        return True  # between two numbers lies a decimal that is no multiple of anything given
    least = max(begin, low)
    first = -(-least.numerator * step.denominator // (least.denominator * step.numerator))
    # Each period has one such size or none has, and so many periods have more of them than are listed.
    steps = (int(divisors.period / step) + 3) * (len(listed) + 1)
    for count in range(steps):
        if count == MOST_STEPS:
            raise NoOracle("the divisors of numbers have too large a common multiple")
        value = (first + count) * step
        if value <= low:
            continue
        if end is not None and value >= end:
            return False
        if value not in listed and not any((value / other).denominator == 1 for other in divisors.others):
            return True
    return False


def has_size_within(sizes: Sizes, begin: Fraction, end: Fraction, is_open: bool) -> bool:
    """Is one of the sizes from `begin` (if `is_open`, above it) to before `end`?"""
    if any(begin <= size < end and not (is_open and size == begin) for size in sizes.points):
        return True
    return any(
        _has_size(
            divisors,
            begin,
            max(low, begin) if is_open else low,
            end if high is None else min(end, high),
            sizes.listed,
        )
        for low, high, combinations in sizes.intervals
        for divisors in combinations
    )


def has_size_beginning(sizes: Sizes, digits: int, least_scale: int | None) -> bool:
    """Does one of the sizes begin with these digits (0: with any)?

    That is, is it at least `digits` and below `digits + 1`, both times a power of ten? The exponent of that
    is at least `least_scale` (None: any): with 0, the digits are those of the size's integer.
    """
    if not digits:
        return bool(sizes.points or sizes.intervals)
    text = str(digits)
    if any(_begins(size, text, least_scale is None) for size in sizes.points):
        return True
    return any(
        _interval_has_size_beginning(interval, divisors, digits, least_scale, sizes.listed)
        for interval in sizes.intervals
        for divisors in interval.divisors
    )


def _begins(size: Fraction, digits: str, is_scaled: bool) -> bool:
    if not is_scaled:
        return str(int(size)).startswith(digits)
    own = significant(size)
    return own.startswith(digits) or (digits.startswith(own) and not digits[len(own) :].strip("0"))


def significant(size: Fraction) -> str:
    """Returns the digits of the size from the first to the last that is not 0; of zero, none."""
    while size.denominator != 1:
        size *= 10
    return str(size.numerator).strip("0")


def _interval_has_size_beginning(
    interval: Interval,
    divisors: Divisors,
    digits: int,
    least_scale: int | None,
    listed: frozenset[Fraction],
) -> bool:
    if interval.high is None:
        return True  # some power of ten is so large that every combination is in its window
    scale = len(str(int(interval.high))) - len(str(digits)) + 1
    while digits * Fraction(10) ** scale >= interval.high:
        scale -= 1
    while least_scale is None or scale >= least_scale:
        begin, end = digits * Fraction(10) ** scale, (digits + 1) * Fraction(10) ** scale
        if _has_size(divisors, begin, interval.low, min(end, interval.high), listed):
            return True
        if divisors.step is None or end <= max(interval.low, divisors.step):
            return False  # smaller windows lie below the interval, or below every multiple
        scale -= 1
    return False
