"""References."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cases.rewrites.merging import Collides
from harness.cases.rewrites.references import written_out
from harness.cases.rewrites.rewrite import Change, Place


def reference_written_out(place: Place) -> Iterator[Change]:
    """Writes what a `$ref` points to in its place, where it does not come back to itself."""
    if "$ref" in place.body:
        try:
            body = written_out(place.schema, place.node, place.draft)
        except Collides:
            return
        words = f"write what `$ref: {place.body['$ref']}` points to in its place"
        yield Change(body, ("$ref",), words)
