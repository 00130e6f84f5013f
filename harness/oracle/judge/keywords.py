"""The keywords of JSON Schema that the judge implements itself, because Python's numbers and regular
expressions show through those of the jsonschema library, or because the library is wrong.

Each takes a validator, the keyword's value, the instance and the schema, and yields the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from harness.oracle.judge.formats import UNCHECKED_FORMATS
from harness.oracle.judge.pattern import finds
from harness.oracle.judge.unjudgeable import Unjudgeable


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not finds(pattern, instance):
        yield _error("does not match the pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if finds(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            if name not in known and not any(finds(pattern, name) for pattern in patterns):
                yield from validator.descend(value, subschema, path=name)


def _unevaluated_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        others = {name: keyword for name, keyword in schema.items() if name != "unevaluatedProperties"}
        evaluated = _evaluated_names(validator, instance, others)
        for name, value in instance.items():
            if name not in evaluated:
                yield from validator.descend(value, subschema, path=name)


def _evaluated_names(validator: Any, instance: dict[str, Any], schema: Any) -> set[str]:
    """Returns the names that a schema which accepts `instance` has applied some subschema to."""
    if isinstance(schema, bool):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    names = {name for name in instance if name in schema.get("properties", {})}
    names |= {
        name
        for name in instance
        if any(finds(pattern, name) for pattern in schema.get("patternProperties", {}))
    }
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            resolved = _resolve(validator, keyword, schema[keyword])
            target = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            names |= _evaluated_names(target, instance, resolved.contents)
    for branch in _branches(validator, instance, schema):
        names |= _evaluated_names(validator, instance, branch)
    return names


def _unevaluated_items(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Applies `unevaluatedItems` of draft 2019-09: unlike in 2020-12, and unlike in both libraries,
    `contains` evaluates no item."""
    if isinstance(instance, list):
        others = {name: keyword for name, keyword in schema.items() if name != "unevaluatedItems"}
        for index in range(_evaluated_items(validator, instance, others), len(instance)):
            yield from validator.descend(instance[index], subschema, path=index)


def _evaluated_items(validator: Any, instance: list[Any], schema: Any) -> int:
    """Returns how many items, from the first on, a schema of draft 2019-09 which accepts `instance` has
    applied some subschema to."""
    if isinstance(schema, bool):
        return 0
    items = schema.get("items")
    if (
        "unevaluatedItems" in schema
        or isinstance(items, dict | bool)
        or (isinstance(items, list) and "additionalItems" in schema)
    ):
        return len(instance)
    counts = [len(items) if isinstance(items, list) else 0]
    for keyword in ("$ref", "$recursiveRef"):
        if keyword in schema:
            resolved = _resolve(validator, keyword, schema[keyword])
            target = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            counts.append(_evaluated_items(target, instance, resolved.contents))
    counts += [
        _evaluated_items(validator, instance, branch) for branch in _branches(validator, instance, schema)
    ]
    return min(len(instance), max(counts))


def _branches(validator: Any, instance: Any, schema: Any) -> list[Any]:
    """Returns the subschemas that are applied to the instance itself and accept it."""
    branches = [branch for keyword in ("allOf", "anyOf", "oneOf") for branch in schema.get(keyword, [])]
    if isinstance(instance, dict):
        branches += [
            branch for name, branch in schema.get("dependentSchemas", {}).items() if name in instance
        ]
    if "if" in schema:
        holds = _accepts(validator, schema["if"], instance)
        branches += [schema["if"], schema.get("then", True)] if holds else [schema.get("else", True)]
    return [branch for branch in branches if _accepts(validator, branch, instance)]


def _resolve(validator: Any, keyword: str, reference: str) -> Any:
    from referencing.jsonschema import lookup_recursive_ref

    return (
        lookup_recursive_ref(validator._resolver)
        if keyword == "$recursiveRef"
        else validator._resolver.lookup(reference)
    )


def _accepts(validator: Any, subschema: Any, instance: Any) -> bool:
    return next(iter(validator.descend(instance, subschema)), None) is None


def open_dependencies(
    validator: Any, dependencies: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[Any]:
    """Raises `Unjudgeable` where `dependencies` would forbid the instance in 2019-09 or later, whose
    meta-schema keeps the keyword that the draft has no longer: a validator may apply it, as jsonschema-rs
    does and jsonschema does not, and the official test suite calls that optional."""
    if isinstance(instance, dict):
        for name, needs in dependencies.items():
            if name in instance and not (
                instance.keys() >= set(needs)
                if isinstance(needs, list)
                else _accepts(validator, needs, instance)
            ):
                raise Unjudgeable("`dependencies` is no keyword of this draft, and validators may apply it")
    yield from ()


def _multiple_of(_validator: Any, divisor: int | Decimal, instance: Any, _schema: Any) -> Iterator[Any]:
    if (
        isinstance(instance, int | Decimal)
        and not isinstance(instance, bool)
        and not _is_multiple(instance, divisor)
    ):
        yield _error("is not a multiple")


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[Any]:
    if wanted and isinstance(instance, list) and len({_identity(item) for item in instance}) < len(instance):
        yield _error("has an item twice")


def _format(validator: Any, name: str, instance: Any, _schema: Any) -> Iterator[Any]:
    checker = validator.format_checker
    if checker is not None and isinstance(instance, str):
        if name in UNCHECKED_FORMATS:
            raise Unjudgeable(f"no checker for the format {name}")
        if name == "hostname" and "xn--" in instance.lower():
            raise Unjudgeable("no checker for a punycode host name")
        if not checker.conforms(instance, name):
            yield _error(f"{instance[:80]!r} is not of the format {name}")


KEYWORDS: dict[str, Callable[[Any, Any, Any, Any], Iterator[Any]]] = {
    "additionalProperties": _additional_properties,
    "divisibleBy": _multiple_of,
    "format": _format,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}


def _is_multiple(value: int | Decimal, divisor: int | Decimal) -> bool:
    for number in (value, divisor):
        if isinstance(number, Decimal) and abs(number.adjusted()) > 5000:
            raise Unjudgeable("a number's exponent is too large")
    return (Fraction(value) / Fraction(divisor)).denominator == 1


def _identity(value: Any) -> Any:
    """Returns a hashable value that is equal for two JSON values exactly when JSON Schema calls them
    equal."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return tuple(_identity(item) for item in value)
    if isinstance(value, dict):
        return frozenset((name, _identity(member)) for name, member in value.items())
    return value
