"""Numbers as JSON spells them: what a literal that was begun can still become, decided exactly.

An exponent can move the value of any digits to any size, so a literal without one is only held to its sign
and its leading digits; one with an exponent is held to its value times powers of ten.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import lcm
from typing import NamedTuple

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.atoms import Above, AtLeast, IsMinusZero, IsMultiple, IsSpelledInteger
from harness.oracle.json_schema.formula import (
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    constant,
    is_true,
    negation,
    parts_of,
    rewritten,
)

MOST_STEPS = 10_000
"""Multiples that are tried before a combination of divisors has no reference."""

Phase = str
"""What was read last: start, minus, zero, integer, point, fraction, e, sign, exponent."""

ENDS = ("zero", "integer", "fraction", "exponent")
"""The phases in which the literal may end."""


class Literal(NamedTuple):
    """A number that was begun. Where nothing is asked of its value, only the phase is kept."""

    phase: Phase = "start"
    is_negative: bool = False
    digits: int = 0
    """All digits of integer and fraction, as one integer."""
    places: int = 0
    """How many of them are behind the point."""
    exponent: int = 0
    is_small: bool = False
    """The exponent is negative."""


_NEXT: dict[Phase, dict[str, Phase]] = {
    "start": {"-": "minus", "0": "zero", "1": "integer"},
    "minus": {"0": "zero", "1": "integer"},
    "zero": {".": "point", "e": "e"},
    "integer": {"0": "integer", "1": "integer", ".": "point", "e": "e"},
    "point": {"0": "fraction", "1": "fraction"},
    "fraction": {"0": "fraction", "1": "fraction", "e": "e"},
    "e": {"-": "sign", "+": "sign", "0": "exponent", "1": "exponent"},
    "sign": {"0": "exponent", "1": "exponent"},
    "exponent": {"0": "exponent", "1": "exponent"},
}
"""RFC 8259, section 6; `1` stands for the digits 1 to 9, `e` for both cases."""

CHARACTERS = "-+.eE0123456789"


class Numbers:
    """The literals of one schema. Literals that every continuation makes right or wrong alike are one of
    them, so that a number of any length needs few states."""

    def __init__(self, exponents: str) -> None:
        """`exponents` is as in a layout."""
        self._exponents = exponents
        self._literals: dict[tuple[tuple[Formula, ...], Hashable], Literal] = {}
        self._can_end: dict[tuple[Formula, Literal], bool] = {}

    def after(self, literal: Literal, character: str, formulas: tuple[Formula, ...]) -> Literal | None:
        """A literal that goes on like the given one with one more character; None where no number goes on
        so."""
        following = after(literal, character, formulas)
        if following is not None and (
            (self._exponents == "none" and following.phase == "e")
            or (self._exponents == "signed" and literal.phase == "e" and following.phase == "exponent")
        ):
            return None
        if following is None or not any(formula.atoms for formula in formulas):
            return following
        return self._literals.setdefault((formulas, _kind(following, formulas)), following)

    def can_end(self, formula: Formula, literal: Literal) -> bool:
        """Does some number begin with the literal and satisfy the formula?"""
        key = (formula, literal)
        answer = self._can_end.get(key)
        if answer is None:
            if formula.kind == "or":
                answer = any(self.can_end(part, literal) for part in parts_of(formula))
            else:
                search = can_end_without_exponent if self._exponents == "none" else can_end
                answer = search(formula, literal)
            self._can_end[key] = answer
        return answer


def _kind(literal: Literal, formulas: tuple[Formula, ...]) -> Hashable:
    """Equal for literals that every continuation makes right or wrong alike.

    The value is compared with a bound by its size (the place of its first digit) and, where that is the
    bound's too, digit by digit. It is a multiple of n / 10^k if its digits without the last zeros have the
    right residue by n, and enough places are left of the point.
    """
    bounds, modulus = _measures(formulas)
    has_exponent = literal.phase in ("e", "sign", "exponent")
    shape = (literal.phase, literal.is_negative, literal.exponent, literal.is_small)
    if literal.digits == 0:
        return (*shape, 0 if has_exponent else literal.places)
    digits = str(literal.digits)
    significant = digits.rstrip("0")
    compared = (
        (len(digits) - literal.places, *(_compared(digits, bound) for bound in bounds)) if bounds else ()
    )
    if modulus is None:
        return (*shape, compared)
    zeros = len(digits) - len(significant)
    places = (literal.places - zeros,) if has_exponent else (literal.places, zeros)
    return (*shape, compared, places, int(significant) % modulus)


@lru_cache(maxsize=512)
def _measures(formulas: tuple[Formula, ...]) -> tuple[tuple[str, ...], int | None]:
    """The digits of all bounds but 0, and a number of which the residue tells every multiple apart; None
    where no multiples are asked for."""
    bounds, counts = set(), []
    for formula in formulas:
        for value in formula.atoms:
            if isinstance(value, IsMultiple):
                counts.append(_without_point(value.divisor))
            elif isinstance(value, AtLeast | Above) and value.bound:
                bounds.add(str(_without_point(abs(value.bound))).rstrip("0"))
    return tuple(sorted(bounds)), lcm(*counts) if counts else None


def _without_point(number: Fraction) -> int:
    """The number times the least power of ten that makes it an integer."""
    while number.denominator != 1:
        number *= 10
    return number.numerator


def _compared(digits: str, bound: str) -> int | str:
    """How digits that may go on compare with a bound's: above it, below it, or equal in so many digits."""
    for own, other in zip(digits, bound, strict=False):
        if own != other:
            return "above" if own > other else "below"
    return "above" if digits[len(bound) :].strip("0") else min(len(digits), len(bound))


def after(literal: Literal, character: str, formulas: tuple[Formula, ...]) -> Literal | None:
    """The literal with one more character; None where no number goes on so."""
    kind = "1" if character in "123456789" else "e" if character == "E" else character
    phase = _NEXT[literal.phase].get(kind)
    if phase is None:
        return None
    if not any(formula.atoms for formula in formulas):
        return Literal(phase)
    if character == "-":
        return (
            literal._replace(phase=phase, is_negative=True)
            if phase == "minus"
            else literal._replace(phase=phase, is_small=True)
        )
    if not character.isdigit():
        return literal._replace(phase=phase)
    if phase == "exponent":
        most = largest_exponent(formulas, literal)
        return literal._replace(phase=phase, exponent=min(literal.exponent * 10 + int(character), most))
    return literal._replace(
        phase=phase,
        digits=literal.digits * 10 + int(character),
        places=literal.places + (phase == "fraction"),
    )


def largest_exponent(formulas: tuple[Formula, ...], literal: Literal) -> int:
    """From this exponent on, all atoms of the formulas have one value for the literal's digits, also if it is
    negative."""
    sizes = [0]
    for formula in formulas:
        for value in formula.atoms:
            number = value.divisor if isinstance(value, IsMultiple) else getattr(value, "bound", Fraction(0))
            sizes.append(len(str(abs(number.numerator))) + len(str(number.denominator)))
    return 5 * max(sizes) + len(str(literal.digits)) + literal.places + 10


def value_of(literal: Literal) -> Fraction:
    """The number that the literal is."""
    exponent = (-literal.exponent if literal.is_small else literal.exponent) - literal.places
    value = literal.digits * (Fraction(10) ** exponent)
    return -value if literal.is_negative else value


def holds(formula: Formula, value: Fraction, is_spelled_integer: bool) -> bool:
    """Does a number satisfy the formula?"""

    def of(fact: object) -> bool:
        if isinstance(fact, AtLeast):
            return value >= fact.bound
        if isinstance(fact, Above):
            return value > fact.bound
        if isinstance(fact, IsMultiple):
            return (value / fact.divisor).denominator == 1
        assert isinstance(fact, IsSpelledInteger)
        return is_spelled_integer

    return is_true(formula, of)


def ends_well(formula: Formula, literal: Literal) -> bool:
    """May the literal end here, with the formula satisfied?"""
    if literal.phase not in ENDS:
        return False
    formula = _with_zero(formula, literal.is_negative and literal.digits == 0)
    return (
        holds(formula, value_of(literal), literal.phase in ("zero", "integer"))
        if formula.atoms
        else formula is TRUE
    )


def _with_zero(formula: Formula, is_minus_zero: bool) -> Formula:
    """The formula where it is known whether the number is zero with a sign."""
    value = IsMinusZero()
    if value not in formula.atoms:
        return formula
    return rewritten(formula, lambda _: constant(is_minus_zero), frozenset((value,)))


def can_end(formula: Formula, literal: Literal) -> bool:
    """Does some number begin with the literal and satisfy the formula?"""
    if not formula.atoms:
        return formula is TRUE
    phase = literal.phase
    if phase in ("e", "sign", "exponent"):
        formula = _with_zero(formula, literal.is_negative and literal.digits == 0)
        return any(holds(formula, value, False) for value in _with_exponents(formula, literal))
    signs = (False, True) if phase == "start" else (literal.is_negative,)
    for is_negative in signs:
        if phase == "zero":
            # The integer ends here, or is a fraction or has an exponent.
            if holds(_with_zero(formula, is_negative), Fraction(0), True):
                return True
            if _exists(formula, is_negative, 0, False):
                return True
            continue
        if phase in ("start", "minus", "integer") and _exists(formula, is_negative, literal.digits, True):
            return True
        if _exists(formula, is_negative, literal.digits, False):
            return True
    return False


def can_end_without_exponent(formula: Formula, literal: Literal) -> bool:
    """Does some number without an exponent begin with the literal and satisfy the formula?

    What was read says then in which window the size of the number lies; digits of an integer that may go on,
    in which windows.
    """
    if not formula.atoms:
        return formula is TRUE
    phase, digits = literal.phase, literal.digits
    if phase in ("start", "minus"):
        return can_end(formula, literal)  # any size can still come
    is_negative = literal.is_negative
    if phase in ("point", "fraction"):
        step = Fraction(10) ** -literal.places
        return _exists_in(formula, is_negative, digits * step, (digits + 1) * step)
    if phase == "zero":
        return holds(_with_zero(formula, is_negative), Fraction(0), True) or _exists_in(
            formula, is_negative, Fraction(0), Fraction(1)
        )
    if _exists(formula, is_negative, digits, True):
        return True
    bounds = [abs(value.bound) for value in formula.atoms if isinstance(value, AtLeast | Above)]
    divisors = [value.divisor for value in formula.atoms if isinstance(value, IsMultiple)]
    largest, period = max(bounds, default=Fraction(0)), _common(divisors) if divisors else Fraction(1)
    step = Fraction(1)
    while True:
        if _exists_in(formula, is_negative, digits * step, (digits + 1) * step):
            return True
        if digits * step > largest and step > 2 * period:
            return (
                False  # every combination of divisors was in this window, and no bound tells later ones apart
            )
        step *= 10


def _exists_in(formula: Formula, is_negative: bool, low: Fraction, high: Fraction) -> bool:
    """Is there a number with this sign and a fraction, of a size from `low` to before `high`, that satisfies
    the formula?"""
    if is_negative:
        inside = [negation(atom(Above(-low))), atom(Above(-high))]
    else:
        inside = [atom(AtLeast(low)), negation(atom(AtLeast(high)))]
    return _exists(conjunction([formula, *inside]), is_negative, 0, False)


def _with_exponents(formula: Formula, literal: Literal) -> Iterator[Fraction]:
    """The values that the literal's digits have with the exponents that can still be written."""
    most = largest_exponent((formula,), literal)
    for is_small in (False, True) if literal.phase == "e" else (literal.is_small,):
        if literal.phase in ("e", "sign"):
            exponents = set(range(most + 1))
        else:
            exponents, begun = set(), {literal.exponent}
            while begun:
                exponents |= begun
                begun = {min(each * 10 + digit, most) for each in begun for digit in range(10)} - exponents
        for exponent in sorted(exponents):
            yield value_of(literal._replace(exponent=exponent, is_small=is_small))


def _exists(formula: Formula, is_negative: bool, digits: int, is_spelled: bool) -> bool:
    """Is there a number with this sign and these leading digits (0: any) that satisfies the formula?

    `is_spelled`: without a fraction and an exponent, so an integer whose first digits are exactly these.
    """
    formula = rewritten(
        formula, lambda value: constant(is_spelled) if isinstance(value, IsSpelledInteger) else atom(value)
    )
    bounds = {value.bound for value in formula.atoms if isinstance(value, AtLeast | Above)}
    sizes = sorted(
        {abs(bound) for bound in bounds if bound == 0 or (bound < 0) == is_negative} | {Fraction(0)}
    )
    sign = -1 if is_negative else 1
    for size in sizes:
        if _begins(size, digits, is_spelled) and holds(
            _with_zero(formula, is_negative and size == 0), sign * size, is_spelled
        ):
            return True
    for low, high in zip(sizes, [*sizes[1:], None], strict=True):
        inside = sign * (low + 1 if high is None else (low + high) / 2)
        left = rewritten(formula, lambda value, inside=inside: _between(value, inside))  # type: ignore[misc]
        if left is not FALSE and _exists_between(left, low, high, digits, is_spelled):
            return True
    return False


def _between(value: object, inside: Fraction) -> Formula:
    """Bounds have one value between two neighbouring bounds, and zero is one of these."""
    if isinstance(value, IsMinusZero):
        return FALSE
    if isinstance(value, AtLeast):
        return constant(inside >= value.bound)
    return constant(inside > value.bound) if isinstance(value, Above) else atom(value)


def _begins(size: Fraction, digits: int, is_spelled: bool) -> bool:
    """Can a number of this size be written with these leading digits?"""
    if is_spelled and size.denominator != 1:
        return False
    if digits == 0:
        return True
    if size == 0:
        return False
    while size.denominator != 1:
        size *= 10
    text, wanted = str(size.numerator), str(digits)
    if is_spelled:
        return text.startswith(wanted)
    return (text + "0" * len(wanted)).startswith(wanted)


def _exists_between(
    formula: Formula, low: Fraction, high: Fraction | None, digits: int, is_spelled: bool
) -> bool:
    """Is there a size above `low` and below `high` (None: any) with these leading digits that satisfies a
    formula over divisors?"""
    divisors = sorted(value.divisor for value in formula.atoms if isinstance(value, IsMultiple))
    for truths in product((True, False), repeat=len(divisors)):
        chosen = dict(zip(divisors, truths, strict=True))
        if is_true(formula, lambda value, chosen=chosen: chosen[value.divisor]):  # type: ignore[misc]
            wanted = [divisor for divisor, is_one in chosen.items() if is_one] + [Fraction(1)] * is_spelled
            unwanted = [divisor for divisor, is_one in chosen.items() if not is_one]
            for begin, end in _windows(low, high, digits, is_spelled, [*wanted, *unwanted]):
                if _has_multiple(begin, end, low, wanted, unwanted):
                    return True
    return False


def _windows(
    low: Fraction, high: Fraction | None, digits: int, is_spelled: bool, divisors: list[Fraction]
) -> Iterator[tuple[Fraction, Fraction | None]]:
    """Where the sizes with these leading digits lie: from the first, included, to the second, excluded."""
    if digits == 0:
        yield low, high
        return
    step = _common(divisors) if divisors else Fraction(1)
    largest = high if high is not None else max(low, step) * 100 + digits
    smallest = low if low > 0 else min([step, largest, *divisors]) / 100
    scale = 0
    while digits * Fraction(10) ** scale > smallest:
        scale -= 1
    if is_spelled:
        scale = max(scale, 0)
    # Above all bounds a window that is wider than the common multiple has every combination in it.
    while (begin := digits * Fraction(10) ** scale) < largest or (
        high is None and Fraction(10) ** scale <= 2 * step
    ):
        yield (
            begin,
            begin + Fraction(10) ** scale if high is None else min(begin + Fraction(10) ** scale, high),
        )
        scale += 1
    if high is None:
        yield begin, begin + Fraction(10) ** scale


def _has_multiple(
    begin: Fraction, end: Fraction | None, low: Fraction, wanted: list[Fraction], unwanted: list[Fraction]
) -> bool:
    """Is there a size from `begin` to before `end`, and above `low`, that is a multiple of all these and none
    of those?"""
    if end is not None and (end <= begin or end <= low):
        return False
    if not wanted:
        return True  # between two numbers lies a decimal that is no multiple of anything given
    step = _common(wanted)
    every = _common([*wanted, *unwanted])
    steps = int(every / step) + 1
    if steps > MOST_STEPS:
        raise NoOracle("the divisors of numbers have too large a common multiple")
    least = max(begin, low)
    count = -(-least.numerator * step.denominator // (least.denominator * step.numerator))
    for number in range(count, count + steps + 2):
        value = number * step
        if value <= low:
            continue
        if end is not None and value >= end:
            return False
        if value >= begin and not any((value / divisor).denominator == 1 for divisor in unwanted):
            return True
    return False


def _common(divisors: list[Fraction]) -> Fraction:
    """The least common multiple."""
    below = lcm(*(divisor.denominator for divisor in divisors))
    return Fraction(lcm(*(int(divisor * below) for divisor in divisors)), below)
