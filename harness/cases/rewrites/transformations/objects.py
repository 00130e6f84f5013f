"""Names and members of objects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from harness.cases.rewrites.merging import Collides, merged, negations, values_of, with_names, without_name
from harness.cases.rewrites.patterns import texts_of
from harness.cases.rewrites.rewrite import Change, Place
from harness.cases.subschemas import Schema

MOST_ALTERNATIVES = 8
"""Alternatives that one keyword is written out as."""


def additional_properties_written_out(place: Place) -> Iterator[Change]:
    """Says that other names are allowed where nothing is said of them."""
    if (
        "properties" in place.body
        and not {"additionalProperties", "unevaluatedProperties"} & place.body.keys()
    ):
        yield Change({**place.body, "additionalProperties": True}, ("properties",))


def unevaluated_as_additional_properties(place: Place) -> Iterator[Change]:
    """Writes `unevaluatedProperties` as `additionalProperties`, where no schema beside it names others."""
    if "unevaluatedProperties" in place.body and "additionalProperties" not in place.body:
        rest = place.without("unevaluatedProperties")
        yield Change({**rest, "additionalProperties": place.body["unevaluatedProperties"]})


def required_names_listed(place: Place) -> Iterator[Change]:
    """Lists required names among the properties."""
    required, names = place.body.get("required"), place.body.get("properties", {})
    if not isinstance(required, list) or not isinstance(names, dict):
        return
    rest = place.body.get("additionalProperties", {})
    missing: dict[str, Schema] = {
        name: {} if rest is True else rest for name in required if name not in names
    }
    if missing:
        yield Change({**place.body, "properties": {**names, **missing}}, ("required",))


def refused_names_left_out(place: Place) -> Iterator[Change]:
    """Leaves out names whose value nothing satisfies, where other names are refused anyway."""
    names = place.body.get("properties", {})
    left = {name: value for name, value in names.items() if value is not False}
    if len(left) < len(names) and place.body.get("additionalProperties") is False:
        yield Change({**place.body, "properties": left})


def pattern_properties_as_properties(place: Place) -> Iterator[Change]:
    """Writes names that a pattern lists literally as properties."""
    patterns = place.body.get("patternProperties")
    if not isinstance(patterns, dict):
        return
    names = dict(place.body.get("properties", {}))
    left = {}
    for pattern, value in patterns.items():
        texts = texts_of(pattern)
        if texts is None or len(texts) > MOST_ALTERNATIVES or names.keys() & set(texts):
            left[pattern] = value
        else:
            names |= dict.fromkeys(texts, value)
    if len(left) < len(patterns):
        rest = place.without("patternProperties", "properties")
        kept = {"patternProperties": left} if left else {}
        yield Change({**rest, "properties": names, **kept}, ("patternProperties",))


def property_names_as_patterns(place: Place) -> Iterator[Change]:
    """Writes what `propertyNames` asks as `patternProperties` or `properties` without other names."""
    asked = place.body.get("propertyNames")
    if not isinstance(asked, dict) or "patternProperties" in place.body:
        return
    body = place.without("propertyNames")
    value = body.get("additionalProperties", True)
    value = {} if value is True else value
    closed = {**body, "additionalProperties": False}
    listed = values_of(asked)
    if listed is not None and len(listed) <= 30 and all(isinstance(name, str) for name in listed):
        old = body.get("properties", {})
        yield Change(
            {**closed, "properties": {name: old.get(name, value) for name in listed}}, ("propertyNames",)
        )
    elif (
        isinstance(asked.get("pattern"), str)
        and asked.keys()
        <= {
            "pattern",
            "type",
            "title",
            "description",
        }
        and "properties" not in body
    ):
        yield Change({**closed, "patternProperties": {asked["pattern"]: value}}, ("propertyNames",))
    if body.get("additionalProperties") is False and "properties" in body:
        yield Change(body, ("propertyNames",))


def dependencies_as_alternatives(place: Place) -> Iterator[Change]:
    """Writes what depends on a name as alternatives: objects without the name, and objects with all that it
    asks for."""
    gone = ("dependentRequired", "dependentSchemas", "dependencies")
    asked: dict[str, list[Schema | list[str]]] = {}
    for keyword in gone:
        found = place.body.get(keyword, {})
        for name, value in found.items() if isinstance(found, dict) else ():
            asked.setdefault(name, []).append(value)
    if not asked or 2 ** len(asked) > MOST_ALTERNATIVES or "anyOf" in place.body:
        return
    alternatives = []
    for choice in product((False, True), repeat=len(asked)):
        body: dict[str, Any] | bool | None = place.without(*gone)
        try:
            for has, (name, values) in zip(choice, asked.items(), strict=True):
                if not isinstance(body, dict):
                    break
                if not has:
                    body = without_name(body, name)
                    continue
                body = with_names(body, name)
                for value in values:
                    if not isinstance(body, dict):
                        break
                    body = with_names(body, *value) if isinstance(value, list) else merged(body, value)
        except Collides:
            return
        if isinstance(body, dict) and _is_possible(body):
            alternatives.append(body)
    if alternatives:
        words = f"write out as `anyOf` what depends on {' and '.join(f'`{name}`' for name in asked)}: objects with and without it"  # noqa: E501
        yield Change(
            {"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0],
            tuple(keyword for keyword in gone if keyword in place.body),
            words,
        )


def _is_possible(body: dict[str, Any]) -> bool:
    """May the object have all names that it must have, as far as this is easily seen?"""
    names = body.get("properties", {})
    is_closed = body.get("additionalProperties") is False and "patternProperties" not in body
    return not any(
        names.get(name, not is_closed) is False for name in body.get("required", ()) if isinstance(name, str)
    )


def number_of_properties_as_alternatives(place: Place) -> Iterator[Change]:
    """Writes how many names an object with listed names has as alternatives."""
    names = place.body.get("properties")
    if (
        not isinstance(names, dict)
        or "anyOf" in place.body
        or place.body.get("additionalProperties") is not False
    ):
        return
    required = set(place.body.get("required", ()))
    optional = [name for name in names if name not in required]
    least, most = place.body.get("minProperties"), place.body.get("maxProperties")
    if isinstance(least, int) and len(required) < least <= len(names) and most is None:
        rest = place.without("minProperties")
        groups = list(combinations(optional, least - len(required)))
        alternatives = [with_names(rest, *group) for group in groups]
        keyword = "minProperties"
    elif isinstance(most, int) and len(required) <= most < len(names) and least is None:
        rest = place.without("maxProperties")
        groups = list(combinations(optional, most - len(required)))
        alternatives = [
            {**rest, "properties": {name: names[name] for name in names if name in required or name in group}}
            for group in groups
        ]
        keyword = "maxProperties"
    else:
        return
    if 0 < len(groups) <= MOST_ALTERNATIVES:
        words = f"write out as `anyOf` which names there are, instead of `{keyword}`"
        yield Change({"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0], (keyword,), words)


def condition_as_alternatives(place: Place) -> Iterator[Change]:
    """Writes `if`, `then` and `else` as alternatives."""
    condition = place.body.get("if")
    if condition is None or "anyOf" in place.body:
        return
    base = place.without("if", "then", "else")
    try:
        alternatives = [merged(base, condition, place.body.get("then", {}))]
        alternatives += [merged(other, place.body.get("else", {})) for other in negations(condition, base)]
    except Collides:
        return
    alternatives = _written_out(alternatives)
    if 0 < len(alternatives) <= MOST_ALTERNATIVES:
        keywords = tuple(keyword for keyword in ("if", "then", "else") if keyword in place.body)
        words = "write out as `anyOf` the objects that satisfy `if` and those that do not"
        yield Change({"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0], keywords, words)


def negation_as_alternatives(place: Place) -> Iterator[Change]:
    """Writes what `not` says of an object's names and members as alternatives."""
    condition = place.body.get("not")
    if not isinstance(condition, dict) or "anyOf" in place.body:
        return
    try:
        alternatives = _written_out(negations(condition, place.without("not")))
    except Collides:
        return
    if 0 < len(alternatives) <= MOST_ALTERNATIVES:
        words = "write out as `anyOf` the objects that do not satisfy what is in `not`"
        yield Change({"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0], ("not",), words)


def exclusive_names_as_alternatives(place: Place) -> Iterator[Change]:
    """Writes `oneOf` over required names as alternatives: objects with the names of one, without those of the
    others."""
    parts = place.body.get("oneOf")
    if not isinstance(parts, list) or not 2 <= len(parts) <= MOST_ALTERNATIVES or "anyOf" in place.body:
        return
    if not all(isinstance(part, dict) and part.keys() <= {"required", "type", "title"} for part in parts):
        return
    base = place.without("oneOf")
    alternatives: list[Schema] = []
    for part in parts:
        bodies: list[Schema] = [with_names(base, *part.get("required", ()))]
        for other in parts:
            if other is not part:
                try:
                    bodies = [
                        rest for body in bodies if isinstance(body, dict) for rest in negations(other, body)
                    ]
                except Collides:
                    return
        alternatives += bodies
    alternatives = _written_out(alternatives)
    if 0 < len(alternatives) <= MOST_ALTERNATIVES:
        words = "write out as `anyOf` the objects of each alternative, without the names of the others"
        yield Change({"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0], ("oneOf",), words)


def _written_out(alternatives: list[Schema]) -> list[Schema]:
    """Returns the alternatives that something may satisfy."""
    return [body for body in alternatives if body is True or (isinstance(body, dict) and _is_possible(body))]
