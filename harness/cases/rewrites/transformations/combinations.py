"""Schemas made of schemas: allOf, anyOf, oneOf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.cases.rewrites.merging import Collides, merged
from harness.cases.rewrites.references import written_out
from harness.cases.rewrites.rewrite import Change, Place
from harness.cases.subschemas import Schema


def all_of_merged(place: Place) -> Iterator[Change]:
    """Writes what `allOf` asks beside it, its references written out."""
    parts = place.body.get("allOf")
    if not isinstance(parts, list):
        return
    try:
        bare = [_asking(written_out(place.schema, part, place.draft)) for part in parts]
        body = merged(place.without("allOf", "unevaluatedProperties"), *bare)
    except Collides:
        return
    if "unevaluatedProperties" in place.body and isinstance(body, dict):
        body = {**body, "unevaluatedProperties": place.body["unevaluatedProperties"]}
    yield Change(body, ("allOf",), "write what `allOf` asks into the schema itself")


def one_of_as_any_of(place: Place) -> Iterator[Change]:
    """Writes `oneOf` as `anyOf`: its alternatives exclude each other."""
    if isinstance(place.body.get("oneOf"), list) and "anyOf" not in place.body:
        words = "write `anyOf` instead of `oneOf`; the alternatives exclude each other"
        yield Change({**place.without("oneOf"), "anyOf": place.body["oneOf"]}, ("oneOf",), words)


def siblings_in_each_alternative(place: Place) -> Iterator[Change]:
    """Writes what is asked beside alternatives into each of them."""
    for keyword in ("anyOf", "oneOf"):
        parts = place.body.get(keyword)
        rest = place.without(keyword)
        if not isinstance(parts, list) or not rest or not parts:
            continue
        try:
            alternatives = [
                merged(rest, _asking(written_out(place.schema, part, place.draft))) for part in parts
            ]
        except Collides:
            continue
        alternatives = [part for part in alternatives if part is not False]
        words = f"write what stands beside `{keyword}` into each of its alternatives"
        if alternatives:
            yield Change({keyword: alternatives}, (keyword, *rest), words)


def only_alternative(place: Place) -> Iterator[Change]:
    """Writes a single alternative without its keyword."""
    for keyword in ("anyOf", "oneOf"):
        parts = place.body.get(keyword)
        if isinstance(parts, list) and len(parts) == 1:
            try:
                part = (
                    written_out(place.schema, parts[0], place.draft) if place.without(keyword) else parts[0]
                )
                body = merged(place.without(keyword), _asking(part))
            except Collides:
                continue
            yield Change(body, (keyword,), f"write the only alternative of `{keyword}` without it")


def _asking(schema: Schema) -> Schema:
    """Returns a schema without its titles and other annotations, which would collide."""
    if not isinstance(schema, dict):
        return schema
    silent: tuple[str, ...] = ("title", "description", "default", "examples", "$comment")
    kept: dict[str, Any] = {keyword: value for keyword, value in schema.items() if keyword not in silent}
    return kept
