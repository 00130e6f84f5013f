"""References written out."""

from __future__ import annotations

from typing import Any

from harness.cases.rewrites.merging import Collides, merged
from harness.cases.subschemas import Schema, at, index, is_before_2019, put, subschemas_below

LARGEST = 2000
"""Subschemas that are written while references are written out."""


def written_out(schema: Schema, part: Schema, draft: str) -> Schema:
    """Returns a part of a schema with what its references point to in their places. Raises Collides where a
    reference comes back to itself, points out of the schema, or does not fit what stands beside it."""
    left = [LARGEST]

    def written(node: Schema, around: tuple[str, ...]) -> Schema:
        left[0] -= 1
        if left[0] < 0:
            raise Collides
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            reference = node["$ref"]
            if reference in around:
                raise Collides
            target = _target(schema, reference)
            beside = {
                key: value for key, value in node.items() if key not in ("$ref", "$defs", "definitions")
            }
            found = written(target, (*around, reference))
            if is_before_2019(draft) or not isinstance(found, dict):
                return found if isinstance(found, dict) or not beside else merged(beside, found)
            silent = {key: beside.pop(key) for key in ("title", "description", "default") if key in beside}
            both = merged(written(beside, around), {key: found[key] for key in found if key not in silent})
            return {**silent, **both} if isinstance(both, dict) else both
        result: Any = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
        for path, child in list(subschemas_below(result)):
            result = put(result, path, written(child, around))
        return result

    return written(part, ())


def _target(schema: Schema, reference: Any) -> Schema:
    """Returns what a reference points to. Raises Collides where that is not in the schema."""
    if (
        not isinstance(reference, str)
        or "%" in reference
        or not (reference == "#" or reference.startswith("#/"))
    ):
        raise Collides
    target = schema
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            target = at(target, (index(key) if isinstance(target, list) else key,))
        except (LookupError, TypeError, ValueError):
            raise Collides from None
    if not isinstance(target, dict | bool):
        raise Collides
    return target
