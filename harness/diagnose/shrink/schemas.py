"""Makes smaller JSON Schemas, each with the instance that goes with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.cases.subschemas import (
    LISTS,
    MAPS,
    ONE,
    Path,
    at,
    has_target,
    object_subschemas,
    path_of,
    put,
    subschemas,
    subschemas_below,
    without_keys,
)
from harness.diagnose.shrink.cut import spans, text_cuts
from harness.diagnose.shrink.patterns import smaller_regexes
from harness.diagnose.shrink.values import places, smaller_node

Schema = Any
Pair = tuple[Schema, Any]
"""A schema and an instance; the instance is `NOTHING` where it is no JSON text."""

NOTHING = object()

SAME_INSTANCE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly")
)
CARRIED = ("$schema", "$defs", "definitions")
"""The keywords that the root must keep when a subschema becomes the root."""

MOST_PARTS = 8
"""How many elements of an instance are tried as the instance of the subschema for all of them."""


def plainer_schemas(schema: Schema, instance: Any) -> Iterator[Pair]:
    """Yields the schema without what only annotates it, then every subschema as the root, each with the part
    of the instance that it is for."""
    bare = schema
    for path, node in reversed(object_subschemas(schema)):
        bare = put(bare, path, without_keys(at(bare, path), ANNOTATIONS & node.keys()))
    yield bare, instance
    yield from _subschemas_as_root(schema, instance)


def smaller_schemas(schema: Schema, instance: Any) -> Iterator[Pair]:
    """Yields pairs made from this one by a smaller step, the biggest first."""
    sites = object_subschemas(schema)
    for path, node in sites:
        yield from _fewer_properties(schema, path, node, instance)
        keys = list(node)
        for start, end in spans(len(keys)):
            yield put(schema, path, without_keys(node, set(keys[start:end]))), instance
        for new in _instead(node):
            yield put(schema, path, new), instance
    yield from ((less, instance) for less in _without_references(schema))
    for path, node in sites:
        for key, value in node.items():
            yield from ((put(schema, (*path, key), less), instance) for less in _smaller_keyword(key, value))
    yield from _shorter_names(schema, instance)
    yield from _shorter_texts(schema, instance)


def dangling(schema: Schema) -> bool:
    """Does a `$ref` point to a place of this schema that is not there?"""
    return any(
        not has_target(schema, node["$ref"])
        for _, node in places(schema)
        if isinstance(node, dict) and "$ref" in node
    )


# --- a subschema as the root


def _subschemas_as_root(schema: Schema, instance: Any) -> Iterator[Pair]:
    if not isinstance(schema, dict):
        return
    for (key, *rest), child in subschemas_below(schema):
        if key in ("$defs", "definitions"):
            continue
        for part in _parts(schema, str(key), rest[0] if rest else None, instance):
            yield _as_root(schema, child), part
    for path, node in subschemas(schema):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if (
            isinstance(reference, str)
            and reference.startswith("#/")
            and path in ((), ("items",))
            and has_target(schema, reference)
        ):
            target = at(schema, path_of(schema, reference))
            yield _as_root(schema, put(schema, path, target) if path else target), instance


def _as_root(schema: dict[str, Any], child: Schema) -> Schema:
    if not isinstance(child, dict):
        return child
    refers = '"$ref"' in json.dumps(child)
    return {key: schema[key] for key in CARRIED if key in schema and (refers or key == "$schema")} | child


def _parts(schema: dict[str, Any], key: str, step: str | int | None, instance: Any) -> Iterator[Any]:
    """Yields the parts of the instance to which the child at `key`, `step` applies; without an instance,
    that."""
    if instance is NOTHING or key in SAME_INSTANCE:
        yield instance
    elif isinstance(instance, dict):
        if key in ("properties", "dependentSchemas", "dependencies") and step in instance:
            yield instance[step] if key == "properties" else instance
        elif key in ("patternProperties", "additionalProperties", "unevaluatedProperties"):
            named = schema.get("properties", {})
            yield from [value for name, value in instance.items() if name not in named][:MOST_PARTS]
        elif key == "propertyNames":
            yield from list(instance)[:MOST_PARTS]
    elif isinstance(instance, list):
        if step is not None and isinstance(step, int) and step < len(instance):
            yield instance[step]
        elif step is None and key in ("items", "additionalItems", "contains", "unevaluatedItems"):
            yield from instance[:MOST_PARTS]


# --- less of a schema


def _fewer_properties(schema: Schema, path: Path, node: dict[str, Any], instance: Any) -> Iterator[Pair]:
    """Yields pairs with properties dropped together with what else names them, here and in the instance."""
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return
    names = list(properties)
    for start, end in spans(len(names)):
        gone = set(names[start:end])
        less = {**node, "properties": without_keys(properties, gone)}
        if isinstance(node.get("required"), list):
            less["required"] = [name for name in node["required"] if name not in gone]
        smaller = put(schema, path, less)
        bare = _without_members(instance, _located(instance, path), gone)
        if bare != instance:
            yield smaller, bare
        yield smaller, instance


def _located(instance: Any, schema_path: Path) -> list[Path]:
    """Returns the places of the instance to which a subschema applies; all of them where that does not follow
    from its own place."""
    if instance is NOTHING:
        return []
    paths: list[Path] = [()]
    way = list(schema_path)
    while way:
        key = way.pop(0)
        step = way.pop(0) if key in MAPS or (way and isinstance(way[0], int)) else None
        nodes = [(path, at(instance, path)) for path in paths]
        if key == "properties":
            paths = [(*path, str(step)) for path, node in nodes if isinstance(node, dict) and step in node]
        elif key in ("items", "prefixItems", "contains", "additionalItems"):
            indices = [(path, range(len(node))) for path, node in nodes if isinstance(node, list)]
            paths = [
                (*path, index)
                for path, all_of_them in indices
                for index in all_of_them
                if step in (None, index)
            ]
        elif key not in SAME_INSTANCE:
            return [path for path, _ in places(instance)]
    return paths


def _without_members(instance: Any, where: list[Path], names: set[str]) -> Any:
    """Returns the instance without members of these names in these places."""
    for path in reversed(where):
        node = at(instance, path)
        if isinstance(node, dict) and not names.isdisjoint(node):
            instance = put(instance, path, without_keys(node, names))
    return instance


def _instead(node: dict[str, Any]) -> Iterator[Schema]:
    """Yields what may stand in place of a subschema."""
    # not `true`, which says the same: a backend may know only one of them, and that would be another failure
    yield {}
    if "type" in node and len(node) > 1:
        yield {"type": node["type"]}
    for _, child in subschemas_below(node):
        yield child


def _without_references(schema: Schema) -> Iterator[Schema]:
    """Yields the schema with each definition in turn written out where it is used and removed. Whether that
    is smaller is judged by the caller.
    """
    for holder in ("$defs", "definitions"):
        definitions = schema.get(holder) if isinstance(schema, dict) else None
        if not isinstance(definitions, dict):
            continue
        for name, definition in definitions.items():
            reference = f"#/{holder}/{name}"
            if json.dumps(reference) in json.dumps(definition):
                continue  # refers to itself
            result = {**schema, holder: without_keys(definitions, {name})}
            if not result[holder]:
                del result[holder]
            uses = [path for path, node in object_subschemas(result) if node.get("$ref") == reference]
            for path in reversed(uses):
                result = put(result, path, definition)
            yield result


def _smaller_keyword(key: str, value: Any) -> Iterator[Any]:
    if (
        key in ("type", "required")
        or (key in LISTS and isinstance(value, list))
        or (key in MAPS and isinstance(value, dict))
    ):
        if isinstance(value, list) and len(value) == 1 and key == "type":
            yield value[0]
        if not isinstance(value, str):
            yield from smaller_node(value)
    elif key == "pattern" and isinstance(value, str):
        yield from smaller_regexes(value)
    elif key not in ("$ref", "$schema", "format", *ONE):
        for path, node in places(value):
            yield from (put(value, path, less) for less in smaller_node(node))


# --- shorter names, the same ones everywhere


def _shorter_names(schema: Schema, instance: Any) -> Iterator[Pair]:
    """Yields pairs in which a property, a definition or a text of `enum` and `const` is named by one letter,
    in schema and instance alike."""
    names: dict[str, None] = {}
    for _, node in subschemas(schema):
        if isinstance(node, dict):
            for key in ("properties", "$defs", "definitions"):
                names |= dict.fromkeys(node[key] if isinstance(node.get(key), dict) else ())
            names |= dict.fromkeys(_texts(node, "enum", "required"))
    used = {*names, *(node for _, node in places(schema) if isinstance(node, str))}
    free = [letter for letter in "abcdefghij" if letter not in used]
    for name in names:
        if len(name) > 1 and free:
            yield _renamed_schema(schema, name, free[0]), _renamed(instance, name, free[0])


def _shorter_texts(schema: Schema, instance: Any) -> Iterator[Pair]:
    """Yields pairs in which a text of `enum` and `const` that stands in the instance is shorter in both."""
    if instance is NOTHING:
        return
    held = {node for _, node in places(instance) if isinstance(node, str)}
    texts: dict[str, None] = {}
    for _, node in subschemas(schema):
        if isinstance(node, dict):
            texts |= dict.fromkeys(text for text in _texts(node, "enum") if text in held)
    for text in texts:
        for less in text_cuts(text):
            yield _renamed_schema(schema, text, less), _renamed(instance, text, less)


def _texts(node: dict[str, Any], *lists: str) -> list[str]:
    """Returns the text of a subschema's `const` and those of these lists of it."""
    values = [node.get("const")]
    for key in lists:
        values += node[key] if isinstance(node.get(key), list) else []
    return [value for value in values if isinstance(value, str)]


def _renamed_schema(schema: Schema, old: str, new: str) -> Schema:
    for path, node in reversed(object_subschemas(schema)):
        node = at(schema, path)
        renamed: dict[str, Any] = {}
        for key, value in node.items():
            if key in (
                "properties",
                "$defs",
                "definitions",
                "dependentSchemas",
                "dependentRequired",
            ) and isinstance(value, dict):
                value = {(new if name == old else name): child for name, child in value.items()}
            elif key in ("required", "enum", "const"):
                value = _renamed(value, old, new)
            elif key == "$ref" and isinstance(value, str):
                value = "/".join(new if part == old else part for part in value.split("/"))
            renamed[key] = value
        schema = put(schema, path, renamed)
    return schema


def _renamed(value: Any, old: str, new: str) -> Any:
    """Returns the value with this text, as a whole text or as a name, replaced."""
    if value is NOTHING:
        return value
    for path, node in list(places(value))[::-1]:
        if node == old and isinstance(node, str):
            value = put(value, path, new)
        elif isinstance(node, dict) and old in node:
            current = at(value, path)
            value = put(
                value, path, {(new if name == old else name): child for name, child in current.items()}
            )
    return value
