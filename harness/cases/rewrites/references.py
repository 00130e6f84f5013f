"""References written out."""

from __future__ import annotations

from typing import Any

from harness.cases.rewrites.merging import Collides, merged
from harness.cases.subschemas import Schema, at, is_before_2019, path_of, put, subschemas_below, without_keys

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
            beside = without_keys(node, ("$ref", "$defs", "definitions"))
            found = written(target, (*around, reference))
            if is_before_2019(draft) or not isinstance(found, dict):
                return found if isinstance(found, dict) or not beside else merged(beside, found)
            silent = {key: beside.pop(key) for key in ("title", "description", "default") if key in beside}
            both = merged(written(beside, around), {key: found[key] for key in found if key not in silent})
            return {**silent, **both} if isinstance(both, dict) else both
        result: Any = without_keys(node, ("$defs", "definitions"))
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
    try:
        target = schema if reference == "#" else at(schema, path_of(schema, reference))
    except (LookupError, TypeError, ValueError):
        raise Collides from None
    if not isinstance(target, dict | bool):
        raise Collides
    return target
