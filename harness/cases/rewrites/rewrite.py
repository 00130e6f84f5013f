"""What a transformation is given and returns, and all rewrites of a schema, not yet proven."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from harness.cases.rewrites import transformations
from harness.cases.rewrites.json_values import is_same
from harness.cases.rewrites.patterns import has_end
from harness.cases.rewrites.words import sentence_of
from harness.cases.subschemas import (
    ASSERTIONS,
    NEVER,
    Path,
    Schema,
    is_before_2019,
    place_in_words,
    pointer,
    put,
    subschemas,
    without_keys,
)

ASKS = ASSERTIONS - {"$dynamicRef", "$recursiveRef"}
"""The keywords that are rewritten. Everything else stays where it stands in the schema: titles, definitions,
identifiers, references whose target hangs on the way to them, and keywords that nobody knows."""


@dataclass(frozen=True)
class Rewrite:
    """A change of one subschema, by which the whole schema is meant to ask the same as before."""

    sentence: str
    """What a person has to write, e.g. "at `count`: write `enum: [1, 2]` instead of ..."."""
    keywords: tuple[str, ...]
    """What is written in another way, as JSON Pointers into the schema before the change."""
    path: Path
    """The place of the subschema that changes, in the schema before the change."""
    schema: Schema
    """The whole schema after the change."""
    transformation: str
    """The name of the function that made it."""
    writes_an_end: bool = False
    """Does it write a pattern that asks with `$` for the end of a text, where there was none?"""


@dataclass(frozen=True)
class Place:
    """A subschema that is an object, with the schema around it."""

    schema: Schema
    path: Path
    node: dict[str, Any]
    draft: str

    @property
    def body(self) -> dict[str, Any]:
        """Returns the keywords of the subschema that ask something."""
        return {keyword: value for keyword, value in self.node.items() if keyword in ASKS}

    @property
    def is_old(self) -> bool:
        """Is the draft one that ignores whatever stands beside a `$ref`?"""
        return is_before_2019(self.draft)

    def without(self, *gone: str) -> dict[str, Any]:
        """Returns the keywords that ask something but for some."""
        return without_keys(self.body, gone)


@dataclass(frozen=True)
class Change:
    """What stands in place of the keywords of a subschema that ask something."""

    body: Schema
    keywords: tuple[str, ...] = ()
    """The keywords that are written in another way; if there are none, those that differ."""
    words: str = ""
    """What a person has to write; if it is empty, it is told by what differs."""


Transformation = Callable[[Place], Iterator[Change]]


@cache
def all_transformations() -> dict[str, Transformation]:
    """Returns every public function of the modules in `transformations`, by its name."""
    found: dict[str, Transformation] = {}
    for module_info in pkgutil.iter_modules(transformations.__path__):
        module = import_module(f"{transformations.__name__}.{module_info.name}")
        found |= {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, FunctionType) and value.__module__ == module.__name__ and name[0] != "_"
        }
    return found


def rewrites(schema: Schema, draft: str) -> Iterator[Rewrite]:
    """Yields what each transformation makes of each subschema; the outermost subschemas come first.

    Nothing is proven: a rewrite may ask something else than the schema (`is_equivalent` tells). `draft` is
    that by which the schema is read, as `draft_of` returns it.
    """
    for path, node in subschemas(schema):
        if isinstance(node, dict):
            yield from rewrites_at(Place(schema, path, node, draft))


def rewrites_at(place: Place) -> Iterator[Rewrite]:
    """Yields what each transformation makes of one subschema."""
    body, where = place.body, place_in_words(place.path)
    if not body:
        return
    for name, transformation in all_transformations().items():
        if place.is_old and "$ref" in body and name != "reference_written_out":
            continue
        for change in transformation(place):
            asked = NEVER if change.body is False else {} if change.body is True else change.body
            kept = without_keys(place.node, ASKS)
            new = _in_order(place.node, kept | {key: asked[key] for key in asked if key in ASKS})
            if place.draft == "draft4":
                new = _without_boolean_schemas(new)
            if is_same(new, place.node):
                continue
            gone = change.keywords or _differing(place.node, new)
            words = change.words or sentence_of(place.node, new)
            yield Rewrite(
                f"at `{where}`: {words}",
                tuple(pointer((*place.path, keyword)) for keyword in gone or tuple(body)),
                place.path,
                put(place.schema, place.path, new),
                name,
                _has_end(new) and not _has_end(place.node),
            )


def _has_end(node: dict[str, Any]) -> bool:
    """Does a pattern below the subschema ask with `$` for the end of a text?"""
    return any(
        has_end(str(pattern))
        for _, each in subschemas(node)
        if isinstance(each, dict)
        for pattern in (each.get("pattern"), *each.get("patternProperties", ()))
    )


def _without_boolean_schemas(node: dict[str, Any]) -> dict[str, Any]:
    """Returns a subschema as draft 4 has it, where true and false are no schemas."""
    result = node
    for path, child in list(subschemas(node)):
        if isinstance(child, bool) and path[-1] not in ("additionalProperties", "additionalItems"):
            result = put(result, path, {} if child else NEVER)
    return result


def _in_order(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Returns the second with its keywords in the order of the first, new ones where the first one that is
    gone stood."""
    new = [keyword for keyword in after if keyword not in before]
    result: dict[str, Any] = {}
    for keyword in before:
        if keyword in after:
            result[keyword] = after[keyword]
        elif keyword in ASKS:
            result |= {name: after[name] for name in new}
            new = []
    return result | {name: after[name] for name in new}


def _differing(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """Returns the keywords of the first that the second lacks or has with another value."""
    return tuple(
        keyword
        for keyword, value in before.items()
        if keyword in ASKS and (keyword not in after or not is_same(after[keyword], value))
    )
