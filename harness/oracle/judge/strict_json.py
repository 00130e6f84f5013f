"""Reads strict JSON: RFC 8259 with exact numbers, and a name at most once in each object.

RFC 8259 allows a name twice in one object, but JSON Schema leaves its meaning undefined, so such a document
is not judged.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from harness.oracle.judge.unjudgeable import Unjudgeable, reason

_LIMITS = ("recursion limit exceeded", "number out of range")
"""What jiter says of a document that it will not read though it may be JSON."""


def is_json(content: bytes) -> bool:
    """Is the content one JSON document of RFC 8259 in UTF-8, by two parsers?

    Raises `Unjudgeable` where they differ, as on a lone surrogate.
    """
    readable, _, contested = read_document(content)
    if contested:
        raise Unjudgeable(contested)
    return readable


def read_document(content: bytes) -> tuple[bool, Any, str]:
    """Returns whether Python's parser reads the content, its value, and a sentence on why jiter differs
    (empty if it agrees).

    Raises `Unjudgeable` where only jiter reads it.
    """
    value, why = None, ""
    try:
        value = parse_json(content.decode("utf-8"))
    except RecursionError:
        raise Unjudgeable("the document nests too deeply") from None
    except ValueError as error:
        why = str(error)
    other = refusal(content)
    if other is not None and bool(other) != bool(why):
        if why:
            raise Unjudgeable(reason(f"contested: one JSON parser reads it, Python's json says: {why}"))
        return True, value, reason(f"contested: one JSON parser reads it, jiter says: {other}")
    return not why, value, ""


def refusal(content: bytes) -> str | None:
    """Returns why jiter does not take the bytes for one JSON document of RFC 8259 in UTF-8.

    It is empty where jiter takes them, and None where its own limits leave that open.
    """
    import pydantic_core

    try:
        pydantic_core.from_json(content, allow_inf_nan=False)
    except ValueError as error:
        return None if any(limit in str(error) for limit in _LIMITS) else str(error)
    return ""


def parse_json(text: str) -> Any:
    """Returns the value of strict JSON with exact numbers. Raises `ValueError` for anything else, and
    `Unjudgeable` for a name that occurs twice."""
    twice: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            twice.append(next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1))
        return value

    value = json.loads(
        text, parse_float=_decimal, parse_int=_integer, parse_constant=no_constant, object_pairs_hook=members
    )
    if twice:
        raise Unjudgeable(reason(f"the name {twice[0]!r} occurs twice in one object"))
    return value


def exact_double(literal: str) -> float:
    """Returns the double that is written again as the same number: 0.1 has one, although no double is a
    tenth. Raises ValueError for a number that has none: it is beyond a double's range, or has more digits
    than a double keeps."""
    value = float(literal)
    if value == 0:
        is_same = not literal.lower().partition("e")[0].strip("-0.")
    else:
        is_same = math.isfinite(value) and Decimal(literal) == Decimal(repr(value))
    if not is_same:
        raise ValueError(f"the number {literal[:40]}, which is another as a double")
    return value


def no_constant(name: str) -> NoReturn:
    """Raises ValueError for NaN and the infinities, which Python's parser takes."""
    raise ValueError(f"{name} is not JSON")


def _decimal(literal: str) -> Decimal:
    try:
        return Decimal(literal)
    except InvalidOperation:
        raise Unjudgeable("a number's exponent is too large") from None


def _integer(literal: str) -> int:
    if len(literal) > 4300:  # where Python's own int() refuses
        raise Unjudgeable("a number has more than 4300 digits")
    return int(literal)
