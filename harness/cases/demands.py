"""A schema that asks several things of one value, of which each may be what another whole schema asks."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import unquote, urldefrag, urljoin

from harness.cases.case import json_text
from harness.cases.subschemas import (
    Path,
    Schema,
    at,
    is_before_2019,
    object_subschemas,
    put,
    subschemas,
    without_keys,
)
from harness.oracle.judge.drafts import DRAFT_URIS

URN = "urn:grammarbench:"
"""What a demand puts before the name of a resource to refer to it."""
BESIDE = "urn:grammarbench:beside"
"""The name, among the definitions of a resource, of what stands beside its `$ref` and asks nothing there."""
STATIC = {"$dynamicAnchor": "$anchor", "$dynamicRef": "$ref"}
"""The keywords of 2020-12 that are resolved while a value is read, and those that are not."""


def compound(resources: dict[str, Schema], demands: list[Schema], draft: str) -> str:
    """Returns the text of a schema with several demands on one value. The schemas that they refer to, as
    `urn:grammarbench:NAME`, are resources of their own in it, so that each finds what its references point
    to."""
    is_old = is_before_2019(draft)
    held = {name: _resource(schema, f"{URN}{name}", draft) for name, schema in resources.items()}
    definitions_keyword = "definitions" if is_old else "$defs"
    return json_text({"$schema": DRAFT_URIS[draft], definitions_keyword: held, "allOf": demands})


def _resource(schema: Schema, name: str, draft: str) -> Schema:
    """Returns the schema under another name than its own."""
    schema = _static(schema) if draft == "draft2020-12" else schema
    name_of_id = _name_of_id(draft)
    beside: dict[str, Schema] = {}
    definitions: dict[str, Schema] = {}
    if is_before_2019(draft) and "$ref" in schema:
        # Where older drafts see a reference, they see nothing beside it, but others may point there.
        definitions = {key: schema[key] for key in ("definitions", "$defs") if key in schema}
        beside = without_keys(schema, ("$schema", "id", "$id", "$ref", *definitions))
    body = without_keys(_referring(schema, name, beside, draft), ("$schema", "id", "$id"))
    if is_before_2019(draft) and "$ref" in body:
        definitions = {key: body[key] for key in definitions}
        others = definitions.get("definitions", {})
        if beside and isinstance(others, dict):
            definitions["definitions"] = {**others, BESIDE: {key: body[key] for key in beside}}
        body = {**definitions, "allOf": [{"$ref": body["$ref"]}]}
    return {name_of_id: name, **body}


def _static(schema: Schema) -> Schema:
    """Returns the schema with plain references for its dynamic ones where these have no choice, because each
    dynamic anchor has a name of its own: in copies of the schema it would be no more."""
    nodes = object_subschemas(schema)
    names = [node["$dynamicAnchor"] for _, node in nodes if "$dynamicAnchor" in node]
    taken = any("$anchor" in node or {"$ref", "$dynamicRef"} <= node.keys() for _, node in nodes)
    # The dynamic anchor of the meta-schema is called `meta`, and a schema may refer to it.
    if not names or taken or "meta" in names or len({*names}) < len(names):
        return schema
    for path, node in nodes:
        if not STATIC.keys().isdisjoint(node):
            made = {STATIC.get(key, key): value for key, value in at(schema, path).items()}
            schema = put(schema, path, made)
    return schema


def _name_of_id(draft: str) -> str:
    return "id" if draft == "draft4" else "$id"


def _referring(schema: Schema, name: str, moved: Collection[str], draft: str) -> Schema:
    """Returns the schema with its references to itself as they must be once it has this name, and these of
    its members lie in its definitions."""
    made, own = schema, ""
    bases: dict[Path, str] = {}
    for path, node in subschemas(schema):
        base = bases.get(path[:-1], bases.get(path[:-2], ""))
        if not isinstance(node, dict):
            continue
        identifier = node.get(_name_of_id(draft))
        if isinstance(identifier, str) and not (is_before_2019(draft) and "$ref" in node):
            base, _ = _resolved(base, identifier)
        bases[path] = base
        own = own if path else base
        if not own and not moved:
            return schema
        for keyword in ("$ref", "$dynamicRef"):
            target = node.get(keyword)
            if not isinstance(target, str):
                continue
            where, fragment = _resolved(base, target)
            if where != own:
                continue
            if unquote(fragment).partition("/")[2].partition("/")[0] in moved:
                fragment = f"/definitions/{BESIDE}{fragment}"
            made = put(made, (*path, keyword), f"{'' if target.startswith('#') else name}#{fragment}")
    return made


def _resolved(base: str, target: str) -> tuple[str, str]:
    """Returns the resource to which a reference leads, and the fragment in it; the reference itself where it
    is no URI."""
    if target.startswith("#"):
        return base, target[1:]  # a base that is a URN has no other way to be joined
    try:
        where, fragment = urldefrag(urljoin(base, target))
    except ValueError:
        return target, ""
    return where, fragment
