"""Proves that two schemas ask the same: by the reference automaton, no document separates them."""

from __future__ import annotations

from typing import Any

from harness.cases.demands import URN, compound
from harness.cases.rewrites.half_pairs import half_a_pair_matters
from harness.cases.rewrites.patterns import escaped
from harness.cases.subschemas import (
    NEVER,
    Path,
    Schema,
    at,
    has_inner_identifiers,
    is_before_2019,
    object_subschemas,
    pointer,
    put,
    subschemas,
    subschemas_below,
    without_keys,
)
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton

SECONDS = 0.5
"""Processor time for the proof of one rewrite; most take two milliseconds."""
FAR_REACHING = frozenset(
    ("unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor")
)
"""Keywords by which more of a subschema can matter to the schema around it than what it takes."""
OF_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double")
"""Formats of OpenAPI that are about numbers; all others are about strings."""


def is_equivalent_to_all(
    one: Schema,
    other: Schema,
    draft: str,
    asserts_formats: bool,
    place: Path,
    seconds: float,
) -> bool:
    """Do two schemas take the same documents by the draft, and also by a validator that applies what the
    draft leaves open: each `format`, and `dependencies` where the draft has it no more?

    False where that is not proven.
    """
    readings = [(one, other)]
    applied = (_applied(one, draft), _applied(other, draft))
    if applied[0] is not one or applied[1] is not other:
        readings.append(applied)
    return all(is_equivalent(*both, draft, asserts_formats, place, seconds) is True for both in readings)


def _applied(node: Schema, draft: str) -> Schema:
    """Returns a schema that asks what its formats and `dependencies` ask. A format, which validators read
    differently, becomes one text or one number that is its own; values of other types it lets pass."""
    if not isinstance(node, dict):
        return node
    for path, child in list(subschemas_below(node)):
        if (new := _applied(child, draft)) is not child:
            node = put(node, path, new)
    asked: list[Schema] = []
    left_out = []
    if isinstance(name := node.get("format"), str):
        if name in OF_NUMBERS:
            asked.append({"anyOf": [{"enum": [OF_NUMBERS.index(name)]}, {"not": {"type": "number"}}]})
        else:
            asked.append({"pattern": f"^{escaped(f'format {name}')}$"})
        left_out.append("format")
    if isinstance(depending := node.get("dependencies"), dict) and not is_before_2019(draft):
        names = {name: value for name, value in depending.items() if isinstance(value, list)}
        asked.append({"dependentRequired": names, "dependentSchemas": without_keys(depending, names)})
        left_out.append("dependencies")
    if not asked:
        return node
    return {**without_keys(node, left_out), "allOf": [*node.get("allOf", []), *asked]}


def is_equivalent(
    one: Schema,
    other: Schema,
    draft: str,
    asserts_formats: bool,
    place: Path = (),
    seconds: float = SECONDS,
) -> bool | None:
    """Do two schemas take the same documents? None where there is no reference automaton, or it takes longer
    than so many seconds of processor time, or half a surrogate pair, which it never reads, may tell them
    apart.

    Where they differ only at a place, the subschemas there are compared first, if nothing but what they take
    can matter around them: that needs no automaton of the rest.
    """
    if has_inner_identifiers(one) or has_inner_identifiers(other):
        return None  # both would define them
    is_apart = place and _is_apart(one, place) and _is_apart(other, place)
    if is_apart and _is_equivalent_at(one, other, draft, asserts_formats, place, seconds):
        return True
    return _is_equivalent_at(one, other, draft, asserts_formats, (), seconds)


def _is_equivalent_at(
    one: Schema, other: Schema, draft: str, asserts_formats: bool, place: Path, seconds: float
) -> bool | None:
    if half_a_pair_matters([_looked_at(one, place), _looked_at(other, place)]):
        return None
    resources = {"one": one, "other": other}
    for name in ("one", "other"):
        if not isinstance(resources[name], dict):
            resources[name] = (
                {"allOf": [resources[name]]} if draft != "draft4" else _of_draft4(resources[name])
            )
    where = pointer(place)
    for taker, refuser in (("one", "other"), ("other", "one")):
        demands = [{"$ref": f"{URN}{taker}#{where}"}, {"not": {"$ref": f"{URN}{refuser}#{where}"}}]
        try:
            automaton = json_schema_automaton(
                compound(resources, demands, draft), draft, asserts_formats, seconds=seconds
            )
        except NoOracle:
            return None
        if automaton.start != DEAD:
            return False
    return True


def _looked_at(schema: Schema, place: Path) -> Schema:
    """Returns the subschema at a place; the whole schema if there is none, or a reference leads from there to
    somewhere."""
    try:
        part = at(schema, place)
    except (LookupError, TypeError):
        return schema
    has_reference = any("$ref" in node for _, node in object_subschemas(part))
    return schema if has_reference else part


def _of_draft4(schema: Schema) -> Schema:
    return {} if schema is True else NEVER


def _is_apart(schema: Schema, place: Path) -> bool:
    """Can nothing but what the subschema at a place takes matter to the schema around it?"""
    inside = f"#{pointer(place)}/"
    for _, node in subschemas(schema):
        if not isinstance(node, dict):
            continue
        target: Any = node.get("$ref")
        if FAR_REACHING & node.keys() or (isinstance(target, str) and not _stays_out(target, inside)):
            return False
    return True


def _stays_out(target: str, inside: str) -> bool:
    """Does a reference point neither into a place nor to something whose place is not known?"""
    return (target == "#" or target.startswith("#/")) and "%" not in target and not target.startswith(inside)
