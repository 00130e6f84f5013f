"""Bounds and divisors of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

from harness.cases.rewrites.json_values import is_integer
from harness.cases.rewrites.rewrite import Change, Place

MOST_VALUES = 30
"""Integers that are written as `enum`."""
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def integers_as_enum(place: Place) -> Iterator[Change]:
    """Writes a small range of integers as `enum`."""
    if place.body.get("type") != "integer" or "enum" in place.body or "const" in place.body:
        return
    low, high = _least_and_most(place.body)
    if low is None or high is None or not 0 <= high - low < 1000:
        return
    divisor = place.body.get("multipleOf", 1)
    if not is_integer(divisor) or divisor < 1:
        return
    values = [value for value in range(low, high + 1) if value % int(divisor) == 0]
    if 0 < len(values) <= MOST_VALUES:
        yield Change({**place.without(*_BOUNDS, "multipleOf"), "enum": values})


def whole_bounds(place: Place) -> Iterator[Change]:
    """Writes bounds of integers as `minimum` and `maximum`, with whole numbers that are allowed."""
    if place.body.get("type") != "integer":
        return
    low, high = _least_and_most(place.body)
    bounds = {key: value for key, value in (("minimum", low), ("maximum", high)) if value is not None}
    if bounds:
        yield Change({**place.without(*_BOUNDS), **bounds})


def multiple_of_one_as_integer(place: Place) -> Iterator[Change]:
    """Writes a multiple of 1 as an integer, and one of a whole number as an integer that is one."""
    divisor = place.body.get("multipleOf")
    if place.body.get("type") == "number" and is_integer(divisor):
        rest = place.without("multipleOf") if divisor == 1 else place.body
        yield Change({**rest, "type": "integer"}, ("multipleOf", "type"))


def exclusive_ranges_of_integers(place: Place) -> Iterator[Change]:
    """Writes `oneOf` of ranges of integers that meet as `anyOf` of the ranges of just one of them."""
    parts = place.body.get("oneOf")
    if not isinstance(parts, list) or not 2 <= len(parts) <= 6 or place.without("oneOf", "type"):
        return
    ranges: list[tuple[float, float]] = []
    for part in parts:
        kind = part.get("type", place.body.get("type")) if isinstance(part, dict) else None
        if kind != "integer" or not part.keys() <= {"type", "title", "description", *_BOUNDS}:
            return
        low, high = _least_and_most(part)
        ranges.append((-math.inf if low is None else low, math.inf if high is None else high))
    starts = sorted({-math.inf, *(low for low, _ in ranges), *(high + 1 for _, high in ranges)} - {math.inf})
    found: list[tuple[float, float]] = []
    for start, following in zip(starts, [*starts[1:], math.inf], strict=True):
        last = following - 1
        if sum(low <= start and last <= high for low, high in ranges) == 1:
            if found and found[-1][1] == start - 1:
                found[-1] = (found[-1][0], last)
            else:
                found.append((start, last))
    alternatives = [_range(low, high) for low, high in found]
    if alternatives:
        yield Change({"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0])


def _range(low: float, high: float) -> dict[str, Any]:
    bounds = {"minimum": low, "maximum": high}
    return {"type": "integer", **{key: int(value) for key, value in bounds.items() if math.isfinite(value)}}


def _least_and_most(body: dict[str, Any]) -> tuple[int | None, int | None]:
    """Returns the least and the greatest integer within the bounds of a schema."""
    lows: list[int] = []
    highs: list[int] = []
    low, high = body.get("minimum"), body.get("maximum")
    above, below = body.get("exclusiveMinimum"), body.get("exclusiveMaximum")
    if _is_bound(low):
        lows.append(math.floor(low) + 1 if above is True else math.ceil(low))
    if _is_bound(high):
        highs.append(math.ceil(high) - 1 if below is True else math.floor(high))
    if _is_bound(above):
        lows.append(math.floor(above) + 1)
    if _is_bound(below):
        highs.append(math.ceil(below) - 1)
    return max(lows, default=None), min(highs, default=None)


def _is_bound(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
