"""A schema that asks several things of one value, of which each may be what another whole schema asks."""

from __future__ import annotations

from harness.cases.case import json_text
from harness.cases.subschemas import Schema
from harness.oracle.judge.drafts import DRAFT_URIS, DRAFTS

URN = "urn:grammarbench:"
"""What a demand puts before the name of a resource to refer to it."""


def is_before_2019(draft: str) -> bool:
    """Is this a draft that ignores whatever stands beside a `$ref`?"""
    return DRAFTS.index(draft) <= DRAFTS.index("draft7")


def compound(resources: dict[str, Schema], demands: list[Schema], draft: str) -> str:
    """Returns the text of a schema with several demands on one value. The schemas that they refer to, as
    `urn:grammarbench:NAME`, are resources of their own in it, so that each finds what its references point
    to."""
    is_old = is_before_2019(draft)
    name_of_id = "id" if draft == "draft4" else "$id"
    held: dict[str, Schema] = {}
    for name, schema in resources.items():
        body = {key: value for key, value in schema.items() if key not in ("$schema", "id", "$id")}
        if is_old and "$ref" in body:  # where older drafts see a reference, they see nothing beside it
            definitions = {key: body[key] for key in ("definitions", "$defs") if key in body}
            body = {**definitions, "allOf": [{"$ref": body["$ref"]}]}
        held[name] = {name_of_id: f"{URN}{name}", **body}
    definitions_keyword = "definitions" if is_old else "$defs"
    return json_text({"$schema": DRAFT_URIS[draft], definitions_keyword: held, "allOf": demands})
