"""Draws candidates for the instances of a schema: values near what it allows, some of them right, some wrong
in one way."""

from __future__ import annotations

from random import Random
from typing import Any

from harness.cases.keywords.spec import Schema

WORDS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "abcdef",
    "xyz",
    "cat",
    "dog",
    "cats",
    "red",
    "a1",
    "7",
    "12",
    "ABC",
    "a b",
    "é",
    "日本語",
]
NUMBERS: list[int | float] = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 20, 30, -1, -7, 0.5, 2.5]
NAMES = ["a", "b", "c", "k", "x-a", "x-b", "x-ab", "ab", "A1"]
ATOMS: list[Any] = [0, 1, 7, "a", "xyz", None, True, False, 2.5, [], {}]

FORMATTED: dict[str, list[str]] = {
    "date": [
        "2024-02-29",
        "2024-01-01",
        "2023-01-01",
        "1999-12-31",
        "1999-01-01",
        "2024-02-30",
        "2024-13-01",
        "24-02-29",
        "2024/02/29",
    ],
    "time": ["12:30:00Z", "23:59:59.5+01:00", "12:30", "25:00:00Z", "12:61:00Z", "12:30:00"],
    "date-time": [
        "2024-02-29T12:30:00Z",
        "2024-02-29T12:30:00.25+01:00",
        "2024-02-29",
        "2024-02-29 12:30:00Z",
        "2024-02-29T12:30:00",
        "2024-02-29T25:30:00Z",
    ],
    "duration": ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W", "P", "1D", "PT", "P1S"],
    "email": ["a@b.co", "a@b.org", "ann@b.co", "ann.b@example.org", "a.b", "@b.co", "a@", "ann@@b.org"],
    "hostname": ["localhost", "a.example.org", "x-1.org", "-a.org", "a_b.org", "a..b", "a-.org"],
    "ipv4": ["127.0.0.1", "10.0.0.255", "192.168.1.1", "127.0.0", "127.0.0.256", "1.2.3.4.5"],
    "ipv6": ["::1", "2001:db8::ff00:42:8329", "1:2:3:4:5:6:7:8", "1:2:3", "::g", "1::2::3"],
    "uri": [
        "https://example.org/a?b=c#d",
        "urn:isbn:0451450523",
        "mailto:a@b.co",
        "example.org",
        "//example.org",
        "http://a b",
    ],
    "uuid": [
        "123e4567-e89b-12d3-a456-426614174000",
        "00000000-0000-4000-8000-000000000000",
        "123e4567e89b12d3a456426614174000",
        "123e4567-e89b-12d3-a456-42661417400g",
    ],
    "json-pointer": ["", "/a/b", "/a~1b/0", "a/b", "/~2", "/a~"],
    "regex": ["^a+$", "[0-9]{2}", "(a|b)", "[0-9", "(a", "*a"],
}
"""Texts of each format: some that have it, and some that nearly do."""

_KINDS = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "unevaluatedItems",
        "additionalItems",
    ),
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
    ),
}
_DEEPEST = 4


def candidate(root: Schema, random: Random) -> Any:
    """Returns one value that may or may not be valid."""
    return _value(root, root, random, 0)


def _value(node: Any, root: Schema, random: Random, depth: int) -> Any:
    if not isinstance(node, dict) or depth > _DEEPEST or random.random() < 0.08:
        return random.choice(ATOMS)
    node = _flattened(node, root, random)
    given = [node["const"]] if "const" in node else node.get("enum", [])
    if given and random.random() < 0.75:
        return random.choice(given) if random.random() < 0.7 else _neighbour(random.choice(given), random)
    kind = _kind(node, random)
    if kind == "string":
        return _string(node, random)
    if kind in ("integer", "number"):
        return _number(node, kind, random)
    if kind == "array":
        return _array(node, root, random, depth)
    if kind == "object":
        return _object(node, root, random, depth)
    return None if kind == "null" else random.choice([True, False])


def _neighbour(value: Any, random: Random) -> Any:
    """Returns a value that is nearly the same."""
    if isinstance(value, str):
        return random.choice([value[:-1], value + "s", value.capitalize()])
    if isinstance(value, bool) or value is None:
        return random.choice([True, False, 0, None])
    if isinstance(value, int | float):
        return value + random.choice((-1, 1))
    if isinstance(value, list):
        return random.choice([value[:-1], [*value, 1]])
    return random.choice([{}, {**value, "b": 1}])


def _flattened(node: Schema, root: Schema, random: Random) -> Schema:
    """Returns the node merged with what it refers to, and with one of the branches that it offers."""
    flat = dict(node)
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in node:
            _join(flat, _target(root, node[keyword]))
    branches: list[Any] = list(node.get("allOf", []))
    branches += [random.choice(node[keyword]) for keyword in ("anyOf", "oneOf") if keyword in node]
    branches += [
        node[keyword]
        for keyword in ("if", "then", "else", "not")
        if keyword in node and random.random() < 0.5
    ]
    branches += [
        dependent for dependent in node.get("dependentSchemas", {}).values() if random.random() < 0.5
    ]
    for branch in branches:
        if isinstance(branch, dict):
            _join(flat, _flattened(branch, root, random))
    return flat


def _join(flat: Schema, other: Schema) -> None:
    for keyword, value in other.items():
        known = flat.get(keyword)
        if isinstance(known, dict) and isinstance(value, dict):
            flat[keyword] = {**known, **value}
        elif keyword == "required" and known:
            flat[keyword] = [*known, *value]
        else:
            flat[keyword] = value


def _target(root: Schema, reference: str) -> Schema:
    """Returns the schema that a reference means: a pointer, or the `$anchor`, `$dynamicAnchor` or `$id` of a
    definition. It is `{}` where there is none."""
    definitions = {**root.get("$defs", {}), **root.get("definitions", {})}
    if reference == "#":
        return root
    name = reference.rpartition("/")[2].lstrip("#")
    for key, definition in definitions.items():
        if isinstance(definition, dict) and name in (
            key,
            definition.get("$anchor"),
            definition.get("$dynamicAnchor"),
            str(definition.get("$id")).rpartition("/")[2],
        ):
            return definition
    return {}


def _kind(node: Schema, random: Random) -> str:
    kinds = node.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    kinds = kinds or [
        kind for kind, keywords in _KINDS.items() if any(keyword in node for keyword in keywords)
    ]
    return str(random.choice(kinds or ["string", "integer", "array", "object", "null", "boolean"]))


def _string(node: Schema, random: Random) -> str:
    if "format" in node and random.random() < 0.9:
        return random.choice(FORMATTED[node["format"]])
    bound = node.get("minLength", node.get("maxLength"))
    if bound is not None and random.random() < 0.4:
        return "".join(random.choice("abcxyz1") for _ in range(max(0, bound + random.choice((-1, 0, 1)))))
    return random.choice(WORDS)


def _number(node: Schema, kind: str, random: Random) -> int | float:
    near: list[int | float] = [node[keyword] for keyword in _KINDS["integer"] if keyword in node]
    step: int | float = node.get("multipleOf", 1)
    value = (
        random.choice(near) + step * random.choice((-1, 0, 0, 1, 2))
        if near and random.random() < 0.7
        else random.choice(NUMBERS)
    )
    if random.random() < (0.3 if kind == "number" else 0.05):
        value += random.choice((0.25, 0.5))
    return int(value) if value == int(value) else value


def _array(node: Schema, root: Schema, random: Random, depth: int) -> list[Any]:
    bounds = [node[keyword] for keyword in ("minItems", "maxItems", "minContains") if keyword in node]
    length = (
        max(0, random.choice(bounds) + random.choice((-1, 0, 1)))
        if bounds and random.random() < 0.7
        else random.randrange(4)
    )
    tuples = [node[keyword] for keyword in ("prefixItems", "items") if isinstance(node.get(keyword), list)]
    first: list[Any] = tuples[0] if tuples else []
    rest = [
        node[keyword]
        for keyword in ("items", "additionalItems", "unevaluatedItems")
        if isinstance(node.get(keyword), dict)
    ]
    items: list[Any] = []
    for number in range(length):
        schema = first[number] if number < len(first) else rest[0] if rest else {}
        if "contains" in node and random.random() < 0.4:
            schema = node["contains"]
        if items and "uniqueItems" in node and random.random() < 0.4:
            items.append(random.choice(items))
        else:
            items.append(_value(schema, root, random, depth + 1) if schema else random.choice(ATOMS[:8]))
    return items


def _object(node: Schema, root: Schema, random: Random, depth: int) -> dict[str, Any]:
    """Returns an object with the declared properties first and in their order, because backends that fix an
    order fix that one."""
    declared = node.get("properties", {})
    needed = set(node.get("required", []))
    names = [name for name in declared if random.random() < (0.85 if name in needed else 0.6)]
    others = [name for name in sorted(needed) if name not in declared and random.random() < 0.85]
    conditions: dict[str, Any] = {}
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        conditions |= node.get(keyword, {})
    for name, then in conditions.items():
        others += [
            dependent
            for dependent in (name, *(then if isinstance(then, list) else ()))
            if random.random() < 0.5
        ]
    if node.keys() & {*_KINDS["object"], "not", "if"} - {"properties", "required"} or not declared:
        others += random.sample(NAMES, random.choice((0, 0, 1) if conditions else (0, 0, 1, 1, 2, 3)))
    value: dict[str, Any] = {}
    for name in [*names, *(other for other in dict.fromkeys(others) if other not in declared)]:
        value[name] = _value(_property(node, name, declared), root, random, depth + 1)
    return value


def _property(node: Schema, name: str, declared: Schema) -> Any:
    if name in declared:
        return declared[name]
    if name.startswith("x-") and "patternProperties" in node:
        return next(iter(node["patternProperties"].values()))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if isinstance(node.get(keyword), dict):
            return node[keyword]
    return {"enum": ATOMS[:5]}
