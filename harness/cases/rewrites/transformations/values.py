"""Single values, lists of values, and types."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from harness.cases.rewrites.json_values import canonical, type_of, without_values
from harness.cases.rewrites.merging import values_of
from harness.cases.rewrites.rewrite import Change, Place
from harness.cases.subschemas import ASKED_OF


def unasking_keyword_left_out(place: Place) -> Iterator[Change]:
    """Leaves out a keyword that asks nothing here, such as `uniqueItems` of arrays with one item at most."""
    for keyword in place.body:
        if keyword not in ("type", "properties", "$ref", "if"):
            yield Change(place.without(keyword), (keyword,))


def const_as_enum(place: Place) -> Iterator[Change]:
    """Writes `const` as `enum` with one element."""
    if "const" in place.body and "enum" not in place.body:
        yield Change({**place.without("const"), "enum": [place.body["const"]]})


def enum_of_one_as_const(place: Place) -> Iterator[Change]:
    """Writes an `enum` with one element as `const`."""
    values = place.body.get("enum")
    if (
        isinstance(values, list)
        and len(values) == 1
        and "const" not in place.body
        and place.draft != "draft4"
    ):
        yield Change({**place.without("enum"), "const": values[0]})


def value_as_structure(place: Place) -> Iterator[Change]:
    """Writes a listed object or array as the schema of its members or items."""
    values = [place.body["const"]] if "const" in place.body else place.body.get("enum")
    if not isinstance(values, list) or not any(isinstance(value, list | dict) for value in values):
        return
    rest = place.without("const", "enum", "type")
    if rest:
        return
    simple = [value for value in values if not isinstance(value, list | dict)]
    parts: list[Any] = [{"enum": simple}] if simple else []
    parts += [_structure(value, place) for value in values if isinstance(value, list | dict)]
    yield Change(parts[0] if len(parts) == 1 else {"anyOf": parts})


def _structure(value: Any, place: Place) -> dict[str, Any]:
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {name: _structure(member, place) for name, member in value.items()},
            "required": list(value),
            "additionalProperties": False,
        }
    if isinstance(value, list):
        if not value:
            return {"type": "array", "maxItems": 0}
        items = [_structure(item, place) for item in value]
        is_newest = place.draft == "draft2020-12"
        many = (
            {"prefixItems": items, "items": False}
            if is_newest
            else {"items": items, "additionalItems": False}
        )
        return {"type": "array", **many, "minItems": len(value), "maxItems": len(value)}
    return {"enum": [value]} if place.draft == "draft4" else {"const": value}


def excluded_values_left_out(place: Place) -> Iterator[Change]:
    """Takes the values that `not` excludes out of those that are listed."""
    values = values_of(place.body)
    refused = values_of(place.body.get("not")) if isinstance(place.body.get("not"), dict) else None
    if values is not None and refused is not None:
        left = without_values(values, refused)
        if left:
            yield Change({**place.without("not", "const"), "enum": left}, ("not",))


def enum_without_other_types(place: Place) -> Iterator[Change]:
    """Leaves out those listed values that `type` refuses."""
    values, kinds = place.body.get("enum"), place.body.get("type")
    if isinstance(values, list) and kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        left = [value for value in values if {type_of(value), _wider(type_of(value))} & set(kinds)]
        if left and len(left) < len(values):
            yield Change({**place.body, "enum": left}, ("enum", "type"))


def _wider(kind: str) -> str:
    return "number" if kind == "integer" else kind


def type_of_values_added(place: Place) -> Iterator[Change]:
    """Adds the `type` of the values that are listed, where they share one."""
    values = values_of(place.body)
    if values and "type" not in place.body:
        kinds = {type_of(value) for value in values}
        kinds = {"number"} if kinds == {"number", "integer"} else kinds
        if len(kinds) == 1:
            yield Change({"type": kinds.pop(), **place.body}, tuple(place.body))


def type_that_is_possible_added(place: Place) -> Iterator[Change]:
    """Adds the only `type` about whose values the keywords say something."""
    if "type" in place.body or "enum" in place.body or "const" in place.body:
        return
    kinds = [kind for kind, keywords in ASKED_OF.items() if place.body.keys() & set(keywords)]
    if len(kinds) == 1:
        yield Change({"type": kinds[0], **place.body}, tuple(place.body))


def types_as_alternatives(place: Place) -> Iterator[Change]:
    """Writes a `type` with several names as `anyOf`, each with those keywords that are about its values."""
    kinds = place.body.get("type")
    if not isinstance(kinds, list) or len(kinds) < 2 or "anyOf" in place.body:
        return
    about = {keyword: kind for kind, keywords in ASKED_OF.items() for keyword in keywords}
    shared = {keyword for keyword in place.body if keyword not in about and keyword != "type"}
    if shared - {"enum"}:
        return
    alternatives = []
    for kind in kinds:
        own = {key: value for key, value in place.body.items() if about.get(key) == _wider(kind)}
        if "enum" in place.body:
            values = [
                value for value in place.body["enum"] if kind in (type_of(value), _wider(type_of(value)))
            ]
            if not values:
                continue
            own["enum"] = values
        alternatives.append({"type": kind, **own})
    if alternatives:
        yield Change({"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0])


def alternatives_as_types(place: Place) -> Iterator[Change]:
    """Writes alternatives that are nothing but types as one `type`, and such as only list values as one
    `enum`."""
    for keyword in ("anyOf", "oneOf"):
        parts = place.body.get(keyword)
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            continue
        bare = [{key: part[key] for key in part if key not in ("title", "description")} for part in parts]
        if all(list(part) == ["type"] and isinstance(part["type"], str) for part in bare):
            kinds = list(dict.fromkeys(part["type"] for part in bare))
            if "type" not in place.body and kinds:
                yield Change({**place.without(keyword), "type": kinds[0] if len(kinds) == 1 else kinds})
        lists = [values_of(part) for part in bare]
        if "enum" not in place.body and all(
            values is not None and part.keys() <= {"enum", "const", "type"}
            for values, part in zip(lists, bare, strict=True)
        ):
            values: dict[str, Any] = {}
            for value in chain.from_iterable(some or () for some in lists):
                values.setdefault(canonical(value), value)
            if values:
                yield Change({**place.without(keyword), "enum": list(values.values())})
