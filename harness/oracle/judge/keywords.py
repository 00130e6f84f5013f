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
from harness.oracle.judge.references import REFERENCES, followed
from harness.oracle.judge.unevaluated import accepts, unevaluated_items, unevaluated_properties
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


def _additional_items(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Says nothing beside an `items` that is no list; the library's asks a boolean for its length."""
    items = schema.get("items")
    if isinstance(instance, list) and isinstance(items, list):
        for index, item in enumerate(instance[len(items) :], start=len(items)):
            yield from validator.descend(item, subschema, path=index)


def _follows(keyword: str) -> Callable[[Any, Any, Any, Any], Iterator[Any]]:
    def follow(validator: Any, target: str, instance: Any, _schema: Any) -> Iterator[Any]:
        resolved = followed(validator, keyword, target)
        yield from validator.descend(instance, resolved.contents, resolver=resolved.resolver)

    return follow


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
                else accepts(validator, needs, instance)
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
    **{keyword: _follows(keyword) for keyword in REFERENCES},
    "additionalItems": _additional_items,
    "additionalProperties": _additional_properties,
    "divisibleBy": _multiple_of,
    "format": _format,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": unevaluated_items,
    "unevaluatedProperties": unevaluated_properties,
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
