"""What documents are wanted of a schema: for each keyword one that breaks just it, one at its boundary, and
one that it is asked about.

Each is a difference of two schemas: a document that the one takes and the other refuses. Where the one is
the schema itself and the other a variant with a keyword less, or with one more, the document shows what that
keyword does, wherever it stands: below `not`, `oneOf` or `$ref` too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from harness.cases.case import json_text
from harness.cases.generated.longer_names import longer_names
from harness.cases.subschemas import (
    ASKED_OF,
    ASSERTIONS,
    NEVER,
    Path,
    Schema,
    at,
    object_subschemas,
    place_in_words,
    pointer,
    put,
    without_keys,
)
from harness.text import one_line

HOLDERS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "allOf", "prefixItems", "dependentSchemas")
)
"""Keywords that ask something by their subschemas only; each of these is looked at where it stands."""
COUNTS = {
    "maxLength": 1, "maxItems": 1, "maxProperties": 1, "maximum": 1, "exclusiveMaximum": 1, "maxContains": 1,
    "minLength": -1, "minItems": -1, "minProperties": -1, "minimum": -1, "exclusiveMinimum": -1,
    "minContains": -1,
}  # fmt: skip
"""Keywords with a number as bound, and the sign with which it becomes weaker."""
STRICT = {"maximum": "exclusiveMaximum", "minimum": "exclusiveMinimum"}
ASKING_LESS_OR_MORE = frozenset(
    ("not", "oneOf", "if", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties")
)
"""Keywords by which a schema may take fewer documents where a part of it asks less."""
REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
"""Keywords that hide what stands beside them, in older drafts."""
FEW_PLACES = 6
"""Documents that a keyword has before others have their first."""
MOST_VALUES = 30
"""Values of one `enum` that have a document each."""
MOST_TEXTS = 3
"""Places for strings that have documents with the texts of `TEXTS`."""
FREE_NAMES = tuple("abcdef")
"""Names for an object that has few of its own."""
TEXTS = {"characters beyond ASCII": "é 日本 😀", "escapes": 'a"b\\c\n'}


Variant = Callable[[], Schema]
"""Makes a schema when it is needed: of a wide schema, all variants together have a size that is quadratic."""


@dataclass(frozen=True)
class Difference:
    """A document is wanted that `taken` takes and `refused` refuses."""

    name: str
    path: Path
    """The place of the keyword in the schema."""
    make_taken: Variant
    make_refused: Variant
    valid: bool
    """Is the document one of the schema itself?"""
    is_reverse: bool = False
    """Does the schema that refuses the document ask less than the one that takes it?"""

    @cached_property
    def taken(self) -> Schema:
        """Returns the schema that takes the document."""
        return self.make_taken()

    @cached_property
    def refused(self) -> Schema:
        """Returns the schema that refuses the document."""
        return self.make_refused()

    @cached_property
    def taken_text(self) -> str:
        """Returns the schema that takes the document, as JSON text."""
        return json_text(self.taken)

    @cached_property
    def refused_text(self) -> str:
        """Returns the schema that refuses it, as JSON text."""
        return json_text(self.refused)

    @property
    def pointer(self) -> str:
        """Returns the place of the keyword as a JSON Pointer."""
        return pointer(self.path)


def differences(schema: Schema) -> Iterator[Difference]:
    """Yields what is wanted of a schema that is parsed JSON: of each keyword the first few places before
    others, so that a large schema has something for each, and the places that lie outermost first."""
    counts: Counter[tuple[str, bool]] = Counter()
    ranked: list[tuple[int, Difference]] = []
    for difference in _differences(schema):
        kind = str(difference.path[-1]) if difference.path else "", difference.valid
        counts[kind] += 1
        ranked.append((counts[kind] // FEW_PLACES, difference))
    ranked.sort(key=lambda pair: pair[0])
    ranked.reverse()
    while ranked:  # what was yielded is not kept: it has made its schemas
        yield ranked.pop()[1]


def as_it_is(schema: Schema) -> Variant:
    """Returns the variant that is the schema itself."""
    return lambda: schema


def _differences(schema: Schema) -> Iterator[Difference]:
    itself = as_it_is(schema)
    texts_left = MOST_TEXTS
    nodes = object_subschemas(schema)
    takes_more = all(ASKING_LESS_OR_MORE.isdisjoint(node) for _, node in nodes)
    for path, node in nodes:
        where = place_in_words(path)
        yield from _visits(schema, path, node, where)
        for keyword, value in node.items():
            for wanted in _of_keyword(schema, path, node, keyword, value, where):
                # Where all that asks less takes more, no document keeps a keyword and breaks its variant.
                if not (wanted.is_reverse and takes_more and keyword not in REFERENCES):
                    yield wanted
        if texts_left and _is_free_text(node):
            texts_left -= 1
            for what, text in TEXTS.items():
                refused = partial(_with_demand, schema, path, {"not": {"enum": [text]}})
                yield Difference(f"{where}: {what}", (*path, "type"), itself, refused, True)


def _visits(schema: Schema, path: Path, node: dict[str, Any], where: str) -> Iterator[Difference]:
    """Yields the valid documents in which the subschema is asked about a value, of each type that its
    keywords are about; and one that has a name longer than it must be, one that has all its names, and one
    that has none of the optional ones."""
    itself = as_it_is(schema)
    if path:
        yield Difference(f"{where} is there", path, itself, partial(_with_demand, schema, path, NEVER), True)
    for kind, keywords in ASKED_OF.items():
        keyword = next((keyword for keyword in keywords if keyword in node), None)
        if keyword:
            refused = partial(_with_demand, schema, path, {"not": {"type": kind}})
            yield Difference(f"{where} is of type {kind}", (*path, keyword), itself, refused, True)
    for place, make_demand in longer_names(node):
        refused = partial(_with_demand_made, schema, path, make_demand)
        yield Difference(f"{where} has a longer name", (*path, *place), itself, refused, True)
    names = list(node["properties"]) if isinstance(node.get("properties"), dict) else []
    required = node["required"] if isinstance(node.get("required"), list) else []
    optional = [name for name in names if name not in required]
    if optional:
        place = (*path, "properties")
        full = partial(_with_demand, schema, path, {"required": names})
        never = partial(_with_demand_of, full, path, {"not": {"type": "object"}})
        yield Difference(f"{where} has all its names", place, full, never, True)
        some = {"anyOf": [{"required": [name]} for name in optional]}
        lacking = partial(_with_demand, schema, path, some)
        yield Difference(f"{where} has no optional name", place, itself, lacking, True)


def _of_keyword(
    schema: Schema, path: Path, node: dict[str, Any], keyword: str, value: Any, where: str
) -> Iterator[Difference]:
    if keyword not in ASSERTIONS or keyword in HOLDERS:
        return
    itself, here = as_it_is(schema), (*path, keyword)
    name = f"{where} > {keyword}"

    def instead(new: dict[str, Any]) -> Variant:
        """Returns the schema in which the keyword is replaced by these."""
        return lambda: put(schema, path, {**without_keys(node, {keyword}), **new})

    if keyword in COUNTS and _is_number(value):
        weaker = partial(_put_in, schema, path, node, keyword, value + COUNTS[keyword])
        known = itself
        if keyword in ("minProperties", "maxProperties"):
            known = partial(with_known_names, schema, path, node)
            fewer = partial(_with_known_names_of, weaker, path, node)
            yield Difference(f"breaks {name} by one", here, fewer, itself, False)
        yield from _both_ways(itself, weaker, f"{name} by one", here)
        if keyword in STRICT and STRICT[keyword] not in node:
            # Draft 4 has no strict bound that is a number.
            at_bound = partial(_with_demand, schema, path, {"not": {"enum": [value]}})
        else:
            at_bound = partial(_put_in, schema, path, node, keyword, value - COUNTS[keyword])
        yield Difference(f"{name}: at the bound", here, known, at_bound, True)
    if keyword == "required" and isinstance(value, list):
        for number, needed in enumerate(value):
            # Draft 4 has no empty list of required names.
            others = partial(_without_item, schema, here, number)
            without_it = others if len(value) > 1 else instead({})
            yield from _both_ways(itself, without_it, f"{name} {needed}", here)
        return
    if keyword in ("enum", "const"):
        values = value if keyword == "enum" and isinstance(value, list) else [value]
        for one in values[:MOST_VALUES] if len(values) > 1 else ():
            refused = partial(_with_demand, schema, path, {"not": {"enum": [one]}})
            yield Difference(f"{where} is {one_line(repr(one), 40)}", here, itself, refused, True)
        if "type" not in node and all(isinstance(one, str) for one in values):
            text = instead({"type": "string"})
            yield Difference(f"breaks {name}: another text", here, text, itself, False)
    if keyword == "oneOf" and isinstance(value, list) and "anyOf" not in node:
        yield from _both_ways(itself, instead({"anyOf": value}), f"{name}: more than one", here)
    if keyword in ("anyOf", "oneOf") and isinstance(value, list) and len(value) > 1:
        for number in range(len(value)):
            without = partial(_without_item, schema, here, number)
            yield Difference(f"{where} > {keyword}: alternative {number + 1}", here, itself, without, True)
    if keyword == "type" and value == "integer":
        wider = partial(_put_in, schema, path, node, keyword, "number")
        yield from _both_ways(itself, wider, f"{name}: a fraction", here)
    if keyword == "type" and isinstance(value, list):
        for kind in value:
            refused = partial(_with_demand, schema, path, {"not": {"type": kind}})
            yield Difference(f"{where} is of type {kind}", here, itself, refused, True)
    yield from _both_ways(itself, instead({}), name, here)


def with_known_names(schema: Schema, path: Path, node: dict[str, Any]) -> Schema:
    """Returns the schema with objects at this place that have names from a list only: an automaton follows
    which of these there were, but may repeat a name that no schema lists."""
    names = node["properties"] if isinstance(node.get("properties"), dict) else {}
    listed: dict[str, Schema] = {known: {} for known in (*FREE_NAMES, *names)}
    return _with_demand(schema, path, {"properties": listed, "additionalProperties": False})


def _with_known_names_of(variant: Variant, path: Path, node: dict[str, Any]) -> Schema:
    return with_known_names(variant(), path, node)


def _both_ways(itself: Variant, variant: Variant, name: str, here: Path) -> Iterator[Difference]:
    """Yields the document that breaks the schema and not the variant, and the one that only the schema takes:
    below a `not` the variant that asks less is the one that refuses more."""
    yield Difference(f"breaks {name}", here, variant, itself, False)
    yield Difference(f"keeps {name}", here, itself, variant, True, is_reverse=True)


def _put_in(schema: Schema, path: Path, node: dict[str, Any], keyword: str, value: Any) -> Schema:
    return put(schema, path, {**node, keyword: value})


def _without_item(schema: Schema, here: Path, number: int) -> Schema:
    """Returns the schema without one item of the list at this place."""
    items = at(schema, here)
    return put(schema, here, items[:number] + items[number + 1 :])


def _with_demand_made(schema: Schema, path: Path, make_demand: Variant) -> Schema:
    return _with_demand(schema, path, make_demand())


def _with_demand_of(variant: Variant, path: Path, demand: Schema) -> Schema:
    return _with_demand(variant(), path, demand)


def _with_demand(schema: Schema, path: Path, demand: Schema) -> Schema:
    """Returns the schema with one demand more at this place. It stands last in an `allOf`, so that references
    into the place still find what they found; around a `$ref`, beside which older drafts read nothing."""
    node = at(schema, path)
    if not isinstance(node, dict) or "$ref" in node:
        return put(schema, path, {"allOf": [node, demand]})
    others = node["allOf"] if isinstance(node.get("allOf"), list) else []
    return put(schema, path, {**node, "allOf": [*others, demand]})


def _is_free_text(node: dict[str, Any]) -> bool:
    return node.get("type") == "string" and not {"enum", "const", "format", "pattern"} & node.keys()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
