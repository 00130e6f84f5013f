"""Small random schemas, and all small values in several spellings: what an automaton of JSON Schema is held
against."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

PATTERNS = ("^a", "b$", "a.*b", "^[ab]*$", "é")
NAMES = ("a", "b", "ab", "é")
TEXTS = ("", "a", "b", "ab", "ba", "é", "aab", "\n", '"')
NUMBERS = ("0", "1", "2", "3", "-1", "-2", "10", "0.5", "1.5", "-0", "1.0", "1e1", "5E-1", "20", "-0.5")


EVERYWHERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref")
TOGETHER = (
    ("items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems",
     "unevaluatedItems", "uniqueItems"),
    ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
     "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    ("enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "type"),
    ("enum", "const", "minLength", "maxLength", "pattern", "type"),
)  # fmt: skip
"""Keywords of arrays, of objects, of numbers and of strings."""


def small_schema(random: Random, depth: int = 2) -> Any:
    """Returns a schema with up to three keywords at each level; `#/$defs/x` may be referred to, and refers to
    itself.
    """
    if depth == 0:
        return random.choice(
            (True, False, {"type": "integer"}, {"const": "a"}, {"enum": [1, None]}, {"type": "string"})
        )

    def below() -> Any:
        return small_schema(random, depth - 1)

    def some(most: int = 3) -> list[Any]:
        return [below() for _ in range(random.randint(1, most))]

    choices: dict[str, Any] = {
        "type": lambda: random.choice(
            (
                "null",
                "boolean",
                "integer",
                "number",
                "string",
                "array",
                "object",
                ["string", "object"],
                ["array", "null"],
            )
        ),
        "enum": lambda: random.sample(
            [None, True, 0, 1.5, "a", "ab", [], [1], {}, {"a": 1}], random.randint(1, 4)
        ),
        "const": lambda: random.choice([None, False, 2, 0.5, "b", "", [0], {"a": "a"}]),
        "minimum": lambda: random.choice((0, 1, -1, 1.5)),
        "maximum": lambda: random.choice((0, 1, 10, 2.5)),
        "exclusiveMinimum": lambda: random.choice((0, 1, -1)),
        "exclusiveMaximum": lambda: random.choice((1, 2, 3)),
        "multipleOf": lambda: random.choice((1, 2, 0.5, 1.5)),
        "minLength": lambda: random.randint(0, 3),
        "maxLength": lambda: random.randint(0, 3),
        "pattern": lambda: random.choice(PATTERNS),
        "items": below,
        "prefixItems": lambda: some(2),
        "contains": below,
        "minContains": lambda: random.randint(0, 2),
        "maxContains": lambda: random.randint(0, 2),
        "minItems": lambda: random.randint(0, 2),
        "maxItems": lambda: random.randint(0, 2),
        "properties": lambda: {name: below() for name in random.sample(NAMES, random.randint(1, 3))},
        "required": lambda: random.sample(NAMES, random.randint(1, 2)),
        "additionalProperties": below,
        "patternProperties": lambda: {random.choice(PATTERNS): below()},
        "propertyNames": below,
        "minProperties": lambda: random.randint(0, 2),
        "maxProperties": lambda: random.randint(0, 2),
        "dependentRequired": lambda: {"a": random.sample(NAMES, 1)},
        "dependentSchemas": lambda: {"a": below()},
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": below,
        "if": below,
        "then": below,
        "else": below,
        "$ref": lambda: "#/$defs/x",
        "unevaluatedItems": below,
        "unevaluatedProperties": below,
        "uniqueItems": lambda: True,
    }
    # Keywords that ask something of the same values meet more often than chance would let them.
    names = (
        sorted({*random.choice(TOGETHER), *EVERYWHERE} & choices.keys())
        if random.random() < 0.7
        else sorted(choices)
    )
    return {name: choices[name]() for name in random.sample(names, random.randint(1, 3))}


def whole_schema(number: int) -> dict[str, Any]:
    """Schema `number`, with the definition that it may refer to."""
    random = Random(f"schema {number}")
    schema = small_schema(random)
    recursive = small_schema(random, 1)
    if isinstance(recursive, dict):
        recursive["items"] = {"$ref": "#/$defs/x"}
    return {"allOf": [schema], "$defs": {"x": recursive}}


def scalars() -> list[str]:
    """JSON texts of values without parts."""
    texts = [json.dumps(text, ensure_ascii=False) for text in TEXTS]
    return ["null", "true", "false", *NUMBERS, *texts, '"\\u0061"', '"\\u00e9b"', '"\\ud83d\\ude00"']


def documents() -> Iterator[str]:
    """Small JSON texts, some of them spelled in an unusual way; no name twice in one object."""
    simple = scalars()
    parts = ["null", "1", "0", "1.5", '"a"', '"ab"', "[]", "[1]", "{}", '{"a":1}', "true", '"b"']
    yield from simple
    yield from ("[]", "[ ]", "{}", " {\n}", *(f"[{item}]" for item in simple))
    yield from (f"[{one}, {other}]" for one, other in product(parts, parts))
    yield from (f"[[{one}],{other} ,1]" for one, other in product(parts, parts[:4]))
    for name in NAMES:
        yield from (f'{{"{name}":{item}}}' for item in [*simple, *parts])
    yield from (f'{{"\\u0061" : {part}}}' for part in parts)
    for names in (("a", "b"), ("b", "a"), ("a", "é"), ("ab", "x"), ("x", "y")):
        yield from (
            f'{{"{names[0]}":{one},"{names[1]}":{other}}}' for one, other in product(parts[:8], parts[:8])
        )
    yield from (f'{{"a":1,"b":{one},"ab":{other}}}' for one, other in product(parts[:4], parts[:4]))
