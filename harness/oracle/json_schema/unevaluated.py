"""`unevaluatedProperties` and `unevaluatedItems`: what the keywords beside them leave over.

Which members or items a subschema beside them has evaluated may depend on whether a value satisfies it, as
with `anyOf`. So there is one formula for each combination of such conditions. Names, patterns and leading
items are those of JSON Schema 2020-12, core, section 11, as the judge has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.atoms import AllItems, AllMembers
from harness.oracle.json_schema.facts import has_name, is_text
from harness.oracle.json_schema.formula import TRUE, Formula, atom, conjunction, disjunction, negation

if TYPE_CHECKING:
    from harness.oracle.json_schema.schemas import Schemas

MOST_CONDITIONS = 6
"""More conditions than these have no reference: there would be a formula for each of 2^n combinations."""


class Evaluated(NamedTuple):
    """What one subschema evaluates of a value for which `condition` holds."""

    condition: Formula
    is_all: bool = False
    names: tuple[str, ...] = ()
    patterns: tuple[int, ...] = ()
    """The numbers of the automata of names."""
    items: int = 0
    """How many of the first items are evaluated."""
    some_items: tuple[Formula, ...] = ()
    """Every item that satisfies one of these is evaluated."""


def unevaluated_members(schemas: Schemas, schema: Mapping[str, Any], resolver: Any) -> Formula:
    """Returns what `unevaluatedProperties` asks of an object that satisfies all keywords beside it."""
    wanted = schemas.later(schema["unevaluatedProperties"], resolver)
    beside = {name: value for name, value in schema.items() if name != "unevaluatedProperties"}

    def rest(evaluated: list[Evaluated]) -> Formula:
        names = dict.fromkeys(name for entry in evaluated for name in entry.names)
        patterns = dict.fromkeys(number for entry in evaluated for number in entry.patterns)
        return atom(
            AllMembers(
                tuple((name, TRUE) for name in names),  # in the order in which the schema has them
                tuple((number, TRUE) for number in patterns),
                wanted,
            )
        )

    return _by_conditions(_of_members(schemas, beside, resolver, TRUE, (), set()), rest)


def unevaluated_items(schemas: Schemas, schema: Mapping[str, Any], resolver: Any) -> Formula:
    """Returns what `unevaluatedItems` asks of an array that satisfies all keywords beside it."""
    wanted = schemas.later(schema["unevaluatedItems"], resolver)
    beside = {name: value for name, value in schema.items() if name != "unevaluatedItems"}

    def rest(evaluated: list[Evaluated]) -> Formula:
        count = max((entry.items for entry in evaluated), default=0)
        found = [formula for entry in evaluated for formula in entry.some_items]
        return atom(AllItems((TRUE,) * count, disjunction([wanted, *found])))

    return _by_conditions(_of_items(schemas, beside, resolver, TRUE, (), set()), rest)


def _by_conditions(evaluated: Iterable[Evaluated], rest: Any) -> Formula:
    """Returns, for each combination of conditions, what is asked where exactly those hold."""
    entries = list(evaluated)
    always = [entry for entry in entries if entry.condition is TRUE]
    if any(entry.is_all for entry in always):
        return TRUE
    conditions = list(dict.fromkeys(entry.condition for entry in entries if entry.condition is not TRUE))
    if len(conditions) > MOST_CONDITIONS:
        raise NoOracle("what is unevaluated depends on too many conditions")
    parts = []
    for truths in product((True, False), repeat=len(conditions)):
        held = {condition for condition, truth in zip(conditions, truths, strict=True) if truth}
        known = always + [entry for entry in entries if entry.condition in held]
        asked = TRUE if any(entry.is_all for entry in known) else rest(known)
        signs = [condition if condition in held else negation(condition) for condition in conditions]
        parts.append(conjunction([*signs, asked]))
    return disjunction(parts)


Seen = set[tuple[Formula, int]]
"""The conditions under which a subschema (its `id`) was looked at: by another way it evaluates the same, and
a chain of shared references has 2^n ways."""


def _of_members(
    schemas: Schemas, schema: Any, resolver: Any, condition: Formula, above: tuple[int, ...], seen: Seen
) -> Iterator[Evaluated]:
    if not isinstance(schema, Mapping) or (condition, id(schema)) in seen:
        return
    seen.add((condition, id(schema)))
    schema = schemas.asking(schema)
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        yield Evaluated(condition, is_all=True)
        return
    names = tuple(filter(is_text, schema.get("properties", {})))
    patterns = tuple(schemas.search(pattern) for pattern in schema.get("patternProperties", {}))
    if names or patterns:
        yield Evaluated(condition, names=names, patterns=patterns)
    for inner, below, resolved, path in _in_place(schemas, schema, resolver, condition, above):
        yield from _of_members(schemas, below, resolved, inner, path, seen)
    for name, below in schema.get("dependentSchemas", {}).items():
        inner = conjunction([condition, has_name(name)])
        inside = schemas.references.inside(below, resolver)
        yield from _of_members(schemas, below, inside, inner, above, seen)


def _of_items(
    schemas: Schemas, schema: Any, resolver: Any, condition: Formula, above: tuple[int, ...], seen: Seen
) -> Iterator[Evaluated]:
    if not isinstance(schema, Mapping) or (condition, id(schema)) in seen:
        return
    seen.add((condition, id(schema)))
    schema = schemas.asking(schema)
    is_new = schemas.draft == "draft2020-12"
    items = schema.get("items")
    if (
        "unevaluatedItems" in schema
        or ("items" in schema and (is_new or not isinstance(items, list)))
        or (isinstance(items, list) and "additionalItems" in schema)
    ):
        yield Evaluated(condition, is_all=True)
        return
    count = len(schema.get("prefixItems", ())) if is_new else len(items or ())
    # In draft 2019-09 `contains` evaluates no item.
    found = (schemas.later(schema["contains"], resolver),) if is_new and "contains" in schema else ()
    if count or found:
        yield Evaluated(condition, items=count, some_items=found)
    for inner, below, resolved, path in _in_place(schemas, schema, resolver, condition, above):
        yield from _of_items(schemas, below, resolved, inner, path, seen)


def _in_place(
    schemas: Schemas, schema: Mapping[str, Any], resolver: Any, condition: Formula, above: tuple[int, ...]
) -> Iterator[tuple[Formula, Any, Any, tuple[int, ...]]]:
    """Yields the subschemas that are applied to the value itself: the condition under which they accept it,
    the subschema, the resolver within it, and the references followed to it. The given resolver is the one
    within the schema."""

    def branch(below: Any, *conditions: Formula) -> tuple[Formula, Any, Any, tuple[int, ...]]:
        return conjunction([condition, *conditions]), below, schemas.references.inside(below, resolver), above

    for keyword in schemas.references.keywords:
        if keyword in schema:
            contents, resolved = schemas.references.followed(keyword, schema[keyword], resolver)
            if id(contents) in above:
                raise NoOracle("what is unevaluated refers to itself")
            yield condition, contents, resolved, (*above, id(contents))
    for below in schema.get("allOf", ()):
        yield branch(below)
    for keyword in ("anyOf", "oneOf"):
        for below in schema.get(keyword, ()):
            yield branch(below, schemas.formula(below, resolver))
    if "if" in schema:
        held = schemas.formula(schema["if"], resolver)
        yield branch(schema["if"], held)
        yield branch(schema.get("then", True), held)
        yield branch(schema.get("else", True), negation(held))
