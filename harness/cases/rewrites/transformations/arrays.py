"""Items of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from harness.backend.grammar import Grammar
from harness.cases.case import json_text
from harness.cases.rewrites.json_values import is_same
from harness.cases.rewrites.merging import Collides, merged, values_of
from harness.cases.rewrites.rewrite import Change, Place
from harness.oracle.judge import Unjudgeable, is_valid

MOST_ITEMS = 6
"""Items of an array that are written out one by one."""
MOST_ARRAYS = 70
"""Arrays that are written as `enum`: as many as there are of four different values need 65."""


def items_one_by_one(place: Place) -> Iterator[Change]:
    """Writes the items of an array of fixed length one by one."""
    least, most = place.body.get("minItems"), place.body.get("maxItems")
    if not isinstance(least, int) or least != most or not 1 <= least <= MOST_ITEMS:
        return
    items = place.body.get("items", {})
    if isinstance(items, list) or "prefixItems" in place.body:
        return
    yield Change(
        {**place.body, **_listed_items([items] * least, False, place)}, ("minItems", "maxItems", "items")
    )


def equal_items_together(place: Place) -> Iterator[Change]:
    """Writes items that are listed one by one, and ask the same, as one schema of all."""
    keyword, rest = (
        ("prefixItems", "items") if place.draft == "draft2020-12" else ("items", "additionalItems")
    )
    items = place.body.get(keyword)
    if not isinstance(items, list) or not items or not all(is_same(items[0], item) for item in items):
        return
    body = {**place.without(keyword, rest), "items": items[0]}
    if place.body.get(rest) is False:
        body["maxItems"] = min(len(items), place.body.get("maxItems", len(items)))
    yield Change(body)


def contained_item_at_each_place(place: Place) -> Iterator[Change]:
    """Writes that an array of a few items contains something as alternatives, one for each place of it."""
    most, items = place.body.get("maxItems"), place.body.get("items", {})
    if (
        "contains" not in place.body
        or {"minContains", "maxContains", "anyOf", "prefixItems"} & place.body.keys()
    ):
        return
    if not isinstance(most, int) or not 1 <= most <= MOST_ITEMS or isinstance(items, list):
        return
    base = place.without("contains", "items")
    try:
        asked = merged(items, place.body["contains"])
    except Collides:
        return
    alternatives = [
        {
            **base,
            **_listed_items([items] * before + [asked], items, place),
            "minItems": max(before + 1, base.get("minItems", 0)),
        }
        for before in range(most)
    ]
    words = "write out as `anyOf` the place at which the item of `contains` is"
    yield Change({"anyOf": alternatives} if most > 1 else alternatives[0], ("contains",), words)


def arrays_as_enum(place: Place) -> Iterator[Change]:
    """Writes all arrays there are as `enum`, where their items are out of a few values."""
    values = values_of(place.body.get("items"))
    if place.body.get("type") != "array" or not values:
        return
    if place.body.keys() - {"type", "items", "minItems", "maxItems", "uniqueItems", "contains"}:
        return
    most = place.body.get("maxItems")
    if place.body.get("uniqueItems") is True:
        most = min(len(values), most) if isinstance(most, int) else len(values)
    least = place.body.get("minItems", 0)
    if isinstance(least, float) and least.is_integer():  # `1.0` is an integer in JSON Schema
        least = int(least)
    if (
        not isinstance(least, int)
        or not isinstance(most, int)
        or most > MOST_ITEMS
        or sum(len(values) ** size for size in range(most + 1)) > 400
    ):
        return
    grammar = Grammar("json_schema", json_text(place.body))
    arrays: list[Any] = []
    for size in range(least, most + 1):
        for items in product(values, repeat=size):
            try:
                if is_valid(
                    grammar, json_text(list(items)).encode(), draft=place.draft, assert_formats=False
                ):
                    arrays.append(list(items))
            except Unjudgeable:
                return
            if len(arrays) > MOST_ARRAYS:
                return
    if arrays:
        words = f"write the {len(arrays)} arrays that there are as `enum`"
        yield Change({"enum": arrays}, tuple(place.body), words)


def _listed_items(items: list[Any], rest: Any, place: Place) -> dict[str, Any]:
    if place.draft == "draft2020-12":
        return {"prefixItems": items, "items": rest}
    return {"items": items, "additionalItems": rest}
