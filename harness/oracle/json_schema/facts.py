"""Small formulas of which keywords are made: a type, a count, a bound, exactly one of several."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.atoms import HasName, IsType, JsonType
from harness.oracle.json_schema.formula import FALSE, TRUE, Formula, atom, conjunction, disjunction, negation

LARGEST_COUNT = 100_000
"""A larger bound on a count of characters, items or members has no reference."""
MOST_DIGITS = 400
"""Decimal digits that a bound of a number may have, with its exponent written out."""


def one_of(formulas: list[Formula]) -> Formula:
    """Returns the formula that is true where exactly one of them is; its size is linear in their number."""
    none, one = TRUE, FALSE
    for each in formulas:
        one = disjunction([conjunction([one, negation(each)]), conjunction([none, each])])
        none = conjunction([none, negation(each)])
    return one


def is_type(kind: Any) -> Formula:
    return atom(IsType(kind))


def if_type(kind: JsonType, formula: Formula) -> Formula:
    """Returns the formula of a keyword for values of one type: it asks nothing of values of other types."""
    return disjunction([negation(is_type(kind)), formula])


def is_text(text: str) -> bool:
    """May a string or a name of a document be this text? One with a lone surrogate has no UTF-8."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def has_name(name: str) -> Formula:
    """Returns the formula that the object has a further member of this name."""
    return atom(HasName(name)) if is_text(name) else FALSE


def count(value: Any) -> int:
    """Returns the value of a keyword that is a count. Raises NoOracle for what is none, as in a schema that
    is wrong."""
    if not is_number(value):
        raise NoOracle(f"a count of {value!r:.40} is none")
    # Compared first: to write 1e1000000 out as an integer takes a minute.
    if not 0 <= value <= LARGEST_COUNT or int(value) != value:
        raise NoOracle(f"a count of {value!s:.40} is none, or above {LARGEST_COUNT:,}")
    return int(value)


def at_least(fact: Any, least: Any) -> Formula:
    """Returns the formula that there are at least so many characters, items or members; none always are."""
    number = count(least)
    return atom(fact(number)) if number else TRUE


def is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def bound(value: Any) -> Fraction:
    """Returns the value of a keyword that is a bound. Raises NoOracle for what is no number, as
    `exclusiveMinimum: true` of OpenAPI 3.0 is none, and for one that is too long."""
    if not is_number(value):
        raise NoOracle(f"a bound of {value!r:.40} is no number")
    if isinstance(value, Decimal) and (
        abs(value.adjusted()) > MOST_DIGITS or len(value.as_tuple().digits) > MOST_DIGITS
    ):
        raise NoOracle("a bound has too many digits")
    number = Fraction(value)
    if len(str(number.numerator)) > MOST_DIGITS:
        raise NoOracle("a bound has too many digits")
    return number
