"""What each keyword asks of a value, by the type of value that it speaks of; None where a draft does not know
the keyword."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.atoms import (
    TYPES,
    Above,
    AllItems,
    AllMembers,
    AllNames,
    AtLeast,
    AtLeastCharacters,
    AtLeastItems,
    AtLeastProperties,
    Contains,
    IsMultiple,
    IsSpelledInteger,
)
from harness.oracle.json_schema.facts import (
    at_least,
    bound,
    count,
    has_name,
    if_type,
    is_text,
    is_type,
    one_of,
)
from harness.oracle.json_schema.formats import format_of
from harness.oracle.json_schema.formula import TRUE, Formula, atom, conjunction, disjunction, negation

if TYPE_CHECKING:
    from harness.oracle.json_schema.schemas import Schemas

MOST_VALUES = 12
"""Values of which `uniqueItems` is followed, one by one."""


def of_any(
    schemas: Schemas, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
) -> Formula | None:
    """Returns what a keyword asks that speaks of values of every type; None for other keywords."""

    def below() -> list[Formula]:
        return [schemas.formula(each, resolver) for each in value]

    if keyword == "type":
        return disjunction(
            _of_type_name(schemas, each) for each in ([value] if isinstance(value, str) else value)
        )
    if keyword == "enum":
        return schemas.enumeration(value)
    if keyword == "const" and schemas.draft != "draft4":
        return schemas.enumeration([value])
    if keyword == "allOf":
        parts = below()
        schemas.applied.add(parts)
        return conjunction(parts)
    if keyword == "anyOf":
        return disjunction(below())
    if keyword == "oneOf":
        return one_of(below())
    if keyword == "not":
        return negation(schemas.formula(value, resolver))
    if keyword == "if" and schemas.draft not in ("draft4", "draft6"):
        condition = schemas.formula(value, resolver)
        then, otherwise = (schemas.formula(schema.get(name, True), resolver) for name in ("then", "else"))
        return conjunction([disjunction([negation(condition), then]), disjunction([condition, otherwise])])
    return None


def of_string(
    schemas: Schemas, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
) -> Formula | None:
    """Returns what a keyword asks of strings; None if it is none of theirs, or asks nothing."""
    if keyword == "minLength":
        return if_type("string", at_least(AtLeastCharacters, value))
    if keyword == "maxLength":
        return if_type("string", negation(at_least(AtLeastCharacters, count(value) + 1)))
    if keyword == "pattern":
        return if_type("string", schemas.finds(value))
    if keyword == "format" and schemas.asserts_formats and isinstance(value, str):
        wanted = format_of(value)
        if wanted is None:
            return None
        excluded = [] if wanted.but_not is None else [negation(schemas.whole(wanted.but_not))]
        return if_type("string", conjunction([schemas.whole(wanted.pattern), *excluded]))
    return None


def of_number(
    schemas: Schemas, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
) -> Formula | None:
    """Returns what a keyword asks of numbers; None if it is none of theirs, or asks nothing."""
    if keyword == "minimum":
        is_exclusive = schemas.draft == "draft4" and schema.get("exclusiveMinimum") is True
        return if_type("number", atom((Above if is_exclusive else AtLeast)(bound(value))))
    if keyword == "maximum":
        is_exclusive = schemas.draft == "draft4" and schema.get("exclusiveMaximum") is True
        return if_type("number", negation(atom((AtLeast if is_exclusive else Above)(bound(value)))))
    if keyword == "exclusiveMinimum" and schemas.draft != "draft4":
        return if_type("number", atom(Above(bound(value))))
    if keyword == "exclusiveMaximum" and schemas.draft != "draft4":
        return if_type("number", negation(atom(AtLeast(bound(value)))))
    if keyword == "multipleOf":
        return if_type("number", atom(IsMultiple(bound(value))))
    return None


def of_array(
    schemas: Schemas, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
) -> Formula | None:
    """Returns what a keyword asks of arrays; None if it is none of theirs, or asks nothing."""
    is_new = schemas.draft == "draft2020-12"
    if keyword == "minItems":
        return if_type("array", at_least(AtLeastItems, value))
    if keyword == "maxItems":
        return if_type("array", negation(at_least(AtLeastItems, count(value) + 1)))
    if keyword == "items":
        if isinstance(value, list) and not is_new:
            rest = schemas.formula(schema.get("additionalItems", True), resolver)
            return if_type(
                "array", atom(AllItems(tuple(schemas.later(each, resolver) for each in value), rest))
            )
        prefix = (
            tuple(schemas.later(each, resolver) for each in schema.get("prefixItems", ())) if is_new else ()
        )
        rest = schemas.later(value, resolver)
        return if_type("array", atom(AllItems((TRUE,) * len(prefix), rest)))
    if keyword == "prefixItems" and is_new:
        return if_type("array", atom(AllItems(tuple(schemas.later(each, resolver) for each in value), TRUE)))
    if keyword == "contains" and schemas.draft != "draft4":
        wanted = schemas.later(value, resolver)
        is_counted = schemas.draft in ("draft2019-09", "draft2020-12")
        least = count(schema.get("minContains", 1)) if is_counted else 1
        found = atom(Contains(wanted, least)) if least else TRUE
        if is_counted and "maxContains" in schema:
            most = count(schema["maxContains"])
            found = conjunction([found, negation(atom(Contains(wanted, most + 1)))])
        return if_type("array", found)
    if keyword == "uniqueItems" and value is True:
        return if_type("array", _all_different(schemas, schema))
    return None


def of_object(
    schemas: Schemas, keyword: str, value: Any, schema: Mapping[str, Any], resolver: Any
) -> Formula | None:
    """Returns what a keyword asks of objects; None if it is none of theirs, or asks nothing."""
    if keyword == "minProperties":
        return if_type("object", at_least(AtLeastProperties, value))
    if keyword == "maxProperties":
        return if_type("object", negation(at_least(AtLeastProperties, count(value) + 1)))
    if keyword == "required" and isinstance(value, list):
        return if_type("object", conjunction(has_name(name) for name in value))
    members = ("properties", "patternProperties", "additionalProperties")
    if keyword in members:
        # One atom for the three, where the first of them stands.
        return (
            _of_members(schemas, schema, resolver)
            if keyword == next(k for k in members if k in schema)
            else TRUE
        )
    if keyword == "propertyNames" and schemas.draft != "draft4":
        return if_type("object", atom(AllNames(schemas.later(value, resolver))))
    if keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        is_new = schemas.draft in ("draft2019-09", "draft2020-12")
        if is_new == (keyword == "dependencies") and is_new:
            return None
        if not is_new and keyword != "dependencies":
            return None
        asked = []
        for name, needs in value.items():
            then = (
                conjunction(has_name(each) for each in needs)
                if isinstance(needs, list)
                else schemas.formula(needs, resolver)
            )
            asked.append(disjunction([negation(has_name(name)), then]))
        return if_type("object", conjunction(asked))
    return None


def _of_type_name(schemas: Schemas, name: str) -> Formula:
    if name == "integer":
        whole = IsSpelledInteger() if schemas.draft == "draft4" else IsMultiple(Fraction(1))
        return conjunction([is_type("number"), atom(whole)])
    if name not in TYPES:
        raise NoOracle(f"unknown type {name[:40]!r}")
    return is_type(name)


def _all_different(schemas: Schemas, schema: Mapping[str, Any]) -> Formula:
    """Returns the formula that no two items are equal. Raises NoOracle unless they come from a short list of
    values."""
    longest, items = schema.get("maxItems"), schema.get("items")
    if isinstance(longest, int) and longest <= 1:
        return TRUE
    values = None
    if isinstance(items, Mapping) and not {"$ref", "prefixItems"} & {*items, *schema}:
        has_const = "const" in items and schemas.draft != "draft4"
        values = [items["const"]] if has_const else items.get("enum")
        if values is None:
            values = {"boolean": [True, False], "null": [None]}.get(str(items.get("type")))
    if values is None or len(values) > MOST_VALUES:
        raise NoOracle("uniqueItems compares values, which no such language does")
    equal = dict.fromkeys(schemas.equals(value) for value in values)
    return conjunction(negation(atom(Contains(formula, 2))) for formula in equal)


def _of_members(schemas: Schemas, schema: Mapping[str, Any], resolver: Any) -> Formula:
    named = tuple(
        (name, schemas.later(each, resolver))
        for name, each in schema.get("properties", {}).items()
        if is_text(name)
    )
    patterns = tuple(
        (schemas.search(pattern), schemas.later(each, resolver))
        for pattern, each in schema.get("patternProperties", {}).items()
    )
    others = schemas.later(schema.get("additionalProperties", True), resolver)
    is_default = "additionalProperties" not in schema
    return if_type("object", atom(AllMembers(named, patterns, others, is_default)))
