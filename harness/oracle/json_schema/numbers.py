"""Numbers as JSON spells them: what a literal that was begun can still become, decided exactly.

An exponent can move the value of any digits to any size, so a literal without one is only held to its sign
and its leading digits. Behind the `e` the digits are known, and it only matters for which exponents the
number satisfies what is asked: few of them make a difference.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from harness.backend.layout import Layout
from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema import decimals
from harness.oracle.json_schema.atoms import Above, AtLeast, IsMultiple, IsOneOfNumbers
from harness.oracle.json_schema.decimals import Sizes, significant
from harness.oracle.json_schema.formula import TRUE, Formula

Formulas = tuple[Formula, ...]

Phase = str
"""What was read last: start, minus, zero, integer, point, fraction, e, sign, exponent."""

ENDS = ("zero", "integer", "fraction", "exponent")
"""The phases in which the literal may end."""

Turns = tuple[tuple[int, tuple[bool, ...]], ...]
"""In order, exponents from which on the formulas have these values. The first entry holds from any exponent
on, also a smaller one."""


class Literal(NamedTuple):
    """A number that was begun. Where nothing is asked of its value, only the phase is kept."""

    phase: Phase = "start"
    is_negative: bool = False
    digits: int = 0
    """All digits of integer and fraction, as one integer."""
    places: int = 0
    """How many of them are behind the point."""
    turns: Turns = ()
    """What the value of the digits with each exponent is worth; behind the `e` it stands instead of the
    digits. Behind the exponent's sign, or its first digit, the exponents are told by their size."""
    exponent: int = 0
    """The size of the exponent."""


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
MOST_BITS = 13_000
"""A number with more digits than fit these (some 3,900) has no reference; Python writes out 4,300 at most."""


class Numbers:
    """The literals of one schema. Literals that every continuation makes right or wrong alike are one of
    them, so that a number of any length needs few states."""

    def __init__(self, layout: Layout) -> None:
        self._exponents = layout.exponents
        self._has_last_zeros = layout.has_last_zeros
        self._measures: dict[Formulas, _Measures] = {}
        self._sizes: dict[tuple[Formula, bool, bool], Sizes] = {}
        self._literals: dict[tuple[Formulas, Hashable], Literal] = {}
        self._can_end: dict[tuple[Formula, Literal], bool] = {}

    def after(self, literal: Literal, character: str, formulas: Formulas) -> Literal | None:
        """Returns a literal that goes on like the given one with one more character; None where no number
        goes on so."""
        kind = "1" if character in "123456789" else "e" if character == "E" else character
        phase = _NEXT[literal.phase].get(kind)
        if phase is None or (phase == "e" and self._exponents == "none"):
            return None
        if self._exponents == "signed" and literal.phase == "e" and phase == "exponent":
            return None
        if not any(formula.atoms for formula in formulas):
            return Literal(phase)
        if phase == "e":
            return Literal(phase, turns=self._turns(literal, formulas))
        if phase == "sign":
            return Literal(phase, turns=_by_size(literal.turns, character == "-"))
        if phase == "exponent":
            turns = _by_size(literal.turns, False) if literal.phase == "e" else literal.turns
            return Literal(
                phase, turns=turns, exponent=min(literal.exponent * 10 + int(character), turns[-1][0])
            )
        following = literal._replace(phase=phase, is_negative=literal.is_negative or character == "-")
        if character.isdigit():
            digits, places = literal.digits * 10 + int(character), literal.places + (phase == "fraction")
            if digits.bit_length() > MOST_BITS:
                raise NoOracle("a number of thousands of digits")
            following = following._replace(digits=digits, places=places)
        return self._literals.setdefault((formulas, self._kind(following, formulas)), following)

    def can_end(self, formulas: Formulas, literal: Literal) -> bool:
        """Does some number begin with the literal and satisfy the first of the formulas?"""
        formula = formulas[0]
        if not formula.atoms:
            return formula is TRUE
        if literal.turns:
            return _can_reach(literal)
        key = (formula, literal)
        answer = self._can_end.get(key)
        if answer is None:
            answer = self._can_end[key] = self._some_end(formula, literal)
        return answer

    def ends(self, formulas: Formulas, literal: Literal) -> tuple[bool, ...] | None:
        """Returns which of the formulas are true of the number if the literal ends here; None where it may
        not end, or the first of them is not true."""
        if literal.phase not in ENDS or self._ends_with_zero(literal):
            return None
        if literal.turns:
            answers = next(answers for first, answers in reversed(literal.turns) if first <= literal.exponent)
        else:
            answers = _answers(formulas, literal, 0, literal.phase in ("zero", "integer"))
        return answers if answers[0] else None

    def _some_end(self, formula: Formula, literal: Literal) -> bool:
        phase, digits = literal.phase, literal.digits
        if phase == "start":
            return any(
                self._some_end(formula, literal._replace(phase="minus", is_negative=is_negative))
                for is_negative in (False, True)
            )
        spelled = self._sizes_of(formula, literal.is_negative, True)
        other = self._sizes_of(formula, literal.is_negative, False)
        if phase == "zero" and decimals.ZERO in spelled.points:
            return True
        if phase in ("minus", "integer") and decimals.has_size_beginning(spelled, digits, 0):
            return True
        if self._exponents != "none" or phase == "minus":
            return decimals.has_size_beginning(other, digits, None)
        if phase == "integer":
            return decimals.has_size_beginning(other, digits, 0)
        step = Fraction(1, 10**literal.places)
        return decimals.has_size_within(
            other, digits * step, (digits + 1) * step, self._ends_with_zero(literal)
        )

    def _ends_with_zero(self, literal: Literal) -> bool:
        """Is a digit other than 0 still to come in the fraction?"""
        return not self._has_last_zeros and literal.phase == "fraction" and literal.digits % 10 == 0

    def _sizes_of(self, formula: Formula, is_negative: bool, is_spelled_integer: bool) -> Sizes:
        key = (formula, is_negative, is_spelled_integer)
        found = self._sizes.get(key)
        if found is None:
            found = self._sizes[key] = decimals.sizes_of(*key)
        return found

    # -------------------------------------------------------------------------------- literals that are alike

    def _measures_of(self, formulas: Formulas) -> _Measures:
        found = self._measures.get(formulas)
        if found is None:
            found = self._measures[formulas] = _Measures(formulas)
        return found

    def _kind(self, literal: Literal, formulas: Formulas) -> Hashable:
        """Returns a key that is equal for literals without an exponent that every continuation makes right or
        wrong alike.

        The value is compared with a bound by its size (the place of its first digit) and, where that is the
        bound's too, digit by digit. Of the numbers that are listed it only matters which ones go on with the
        digits, and how many of these were read. The value is a multiple of n / 10^k if its digits without the
        last zeros have the right residue by n, and enough places are left of the point.
        """
        measures = self._measures_of(formulas)
        shape = (literal.phase, literal.is_negative, self._ends_with_zero(literal))
        if literal.digits == 0:
            return (*shape, literal.places)
        digits = str(literal.digits)
        compared: tuple[Hashable, ...] = tuple(_compared(digits, bound) for bound in measures.bounds)
        compared += measures.listed_behind(digits, literal.is_negative)
        if compared:
            compared += (len(digits) - literal.places,)
        if measures.modulus is None:
            return (*shape, compared)
        significant_digits = digits.rstrip("0")
        zeros = len(digits) - len(significant_digits)
        return (*shape, compared, literal.places, zeros, int(significant_digits) % measures.modulus)

    # ------------------------------------------------------------------------------------------- exponents

    def _turns(self, literal: Literal, formulas: Formulas) -> Turns:
        """Returns what the literal's digits are worth with each exponent."""
        if literal.digits == 0:
            return ((0, _answers(formulas, literal, 0, False)),)
        measures = self._measures_of(formulas)
        exponents: set[int] = set()
        for bound in measures.compared_with(str(literal.digits)):
            first = _first_exponent(literal, bound)
            exponents |= {first, first + 1}
        exponents |= {
            least + literal.places
            for least in (_least_exponent(literal.digits / divisor) for divisor in measures.divisors)
            if least is not None
        }
        ordered = sorted(exponents) or [0]
        found = [(ordered[0] - 1, _answers(formulas, literal, ordered[0] - 1, False))]
        for exponent in ordered:
            answers = _answers(formulas, literal, exponent, False)
            if answers != found[-1][1]:
                found.append((exponent, answers))
        return tuple(found)


class _Measures:
    """What the atoms of some formulas compare numbers with."""

    def __init__(self, formulas: Formulas) -> None:
        atoms = frozenset().union(*(formula.atoms for formula in formulas))
        bounds = {abs(value.bound) for value in atoms if isinstance(value, AtLeast | Above) and value.bound}
        self._bounds = sorted(bounds)
        self.bounds = sorted({significant(bound) for bound in bounds})
        """The digits of all bounds but 0."""
        self.divisors = {value.divisor for value in atoms if isinstance(value, IsMultiple)}
        self.modulus = lcm(*map(_without_point, self.divisors)) if self.divisors else None
        """A number of which the residue tells every multiple apart; None where none are asked for."""
        self._beginning: dict[str, list[Fraction]] = {}
        self._equal: dict[str, list[Fraction]] = {}
        listed = (value.values for value in atoms if isinstance(value, IsOneOfNumbers))
        for value in sorted(frozenset().union(*listed) - {0}):
            digits = significant(abs(value))
            self._equal.setdefault(digits, []).append(value)
            for end in range(1, len(digits) + 1):
                self._beginning.setdefault(digits[:end], []).append(value)

    def listed_behind(self, digits: str, is_negative: bool) -> tuple[Hashable, ...]:
        """Returns the listed numbers of this sign of which the digits may go on like these; with how many of
        them were read."""
        shorter = digits.rstrip("0")
        found = [(value, len(digits)) for value in self._beginning.get(digits, ())]
        if shorter != digits:
            found += [(value, len(shorter)) for value in self._equal.get(shorter, ())]
        return tuple(pair for pair in found if (pair[0] < 0) == is_negative)

    def compared_with(self, digits: str) -> list[Fraction]:
        """Returns the sizes of all bounds but 0, and of those listed numbers that these digits can be equal
        to."""
        return self._bounds + [abs(value) for value in self._equal.get(digits.rstrip("0"), ())]


def _without_point(number: Fraction) -> int:
    """Returns the number times the least power of ten that makes it an integer."""
    while number.denominator != 1:
        number *= 10
    return number.numerator


def _compared(digits: str, bound: str) -> int | str:
    """Returns how digits that may go on compare with a bound's: above it, below it, or equal in so many
    digits."""
    for own, other in zip(digits, bound, strict=False):
        if own != other:
            return "above" if own > other else "below"
    return "above" if digits[len(bound) :].strip("0") else min(len(digits), len(bound))


def _answers(formulas: Formulas, literal: Literal, exponent: int, is_spelled: bool) -> tuple[bool, ...]:
    """Returns which formulas are true of the number that the literal is with this exponent."""
    value = literal.digits * Fraction(10) ** (exponent - literal.places)
    is_minus_zero = literal.is_negative and not value
    value = -value if literal.is_negative else value
    return tuple(decimals.holds(formula, value, is_spelled, is_minus_zero) for formula in formulas)


def _first_exponent(literal: Literal, bound: Fraction) -> int:
    """Returns the least exponent with which the literal's size is not below the bound."""
    ratio = bound / literal.digits
    exponent = len(str(ratio.numerator)) - len(str(ratio.denominator)) - 1
    while Fraction(10) ** exponent < ratio:
        exponent += 1
    return exponent + literal.places


def _least_exponent(number: Fraction) -> int | None:
    """Returns the least exponent of ten that makes the number an integer; None if there is none."""
    exponents, rest = [], number.denominator
    for prime in (2, 5):
        count, above = 0, number.numerator
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        while above % prime == 0:
            above, count = above // prime, count - 1
        exponents.append(count)
    return max(exponents) if rest == 1 else None


def _by_size(turns: Turns, is_small: bool) -> Turns:
    """Returns the turns by the size of an exponent that is positive or, if it `is_small`, negative."""
    place = max((place for place, (first, _) in enumerate(turns) if first <= 0), default=0)
    found = [(0, turns[place][1])]
    if is_small:
        for later, (_, answers) in zip(turns[place:0:-1], turns[place - 1 :: -1], strict=False):
            found.append((1 - later[0], answers))
    else:
        found += turns[place + 1 :]
    return tuple(found)


def _can_reach(literal: Literal) -> bool:
    """Can an exponent still be written with which the first formula is true?"""
    if literal.phase != "exponent":
        return any(answers[0] for _, answers in literal.turns)
    low = high = literal.exponent  # what can be written with so many more digits lies between the two
    while True:
        ends = [first for first, _ in literal.turns[1:]]
        for (first, answers), end in zip(literal.turns, [*ends, high + 1], strict=True):
            if answers[0] and first <= high and low < end:
                return True
        if low >= literal.turns[-1][0] or (low == 0 and high >= literal.turns[-1][0]):
            return False
        low, high = low * 10, high * 10 + 9
