"""Where the subschemas of a JSON Schema are, and which keywords ask something of a value. What is no
subschema, such as data or the name of a property, is never taken for one."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any
from urllib.parse import unquote, urljoin

from harness.oracle.judge.drafts import DRAFTS, class_name

Schema = Any

ONE = frozenset(
    """
    additionalProperties items additionalItems contains not if then else propertyNames unevaluatedItems unevaluatedProperties contentSchema
    """.split()  # noqa: E501, SIM905
)
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
ALTERNATIVES = frozenset(("anyOf", "oneOf", "if", "dependentSchemas", "dependencies"))
"""The keywords whose subschemas may list names of which only some apply."""
Path = tuple[str | int, ...]
"""Keys and indices that lead from a value into it."""

OF_DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")
"""How the identifiers of the drafts' own schemas begin. The judge has these schemas without a network."""
INDEX = re.compile(r"0|[1-9][0-9]*")
"""How an item of a list is named in a JSON Pointer (RFC 6901)."""
NEVER: Schema = {"not": {}}
"""No value satisfies it, in each draft but the third, which has no `not`."""
ASKED_OF = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "minItems",
              "maxItems", "uniqueItems", "unevaluatedItems"),
    "object": ("properties", "patternProperties", "additionalProperties", "propertyNames", "required",
               "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies",
               "unevaluatedProperties"),
}  # fmt: skip
"""The type of the values that a keyword says something about; all others say something about any value."""
ASSERTIONS = frozenset(
    (*chain.from_iterable(ASKED_OF.values()), "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if",
     "then", "else", "$ref", "$dynamicRef", "$recursiveRef")
)  # fmt: skip
"""Keywords that can refuse a value."""


def at(value: Any, path: Path) -> Any:
    """Returns the value at this path."""
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """Returns the value with `new` at this path; what lies beside the path is shared."""
    if not path:
        return new
    parents = [value]
    for step in path[:-1]:
        parents.append(parents[-1][step])
    for parent, step in zip(reversed(parents), reversed(path), strict=True):
        copy = parent.copy()
        copy[step] = new
        new = copy
    return new


def without_keys(value: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Returns the object without these members."""
    return {key: child for key, child in value.items() if key not in keys}


def subschemas(schema: Schema) -> Iterator[tuple[Path, Schema]]:
    """Yields every subschema and its place, the root first."""
    waiting: deque[tuple[Path, Schema]] = deque([((), schema)])
    while waiting:
        path, node = waiting.popleft()
        yield path, node
        waiting.extend(((*path, *step), child) for step, child in subschemas_below(node))


def object_subschemas(schema: Schema) -> list[tuple[Path, dict[str, Any]]]:
    """Returns every subschema that is an object, and so no boolean, and its place, the root first."""
    return [(path, node) for path, node in subschemas(schema) if isinstance(node, dict)]


def subschemas_below(node: Schema) -> Iterator[tuple[Path, Schema]]:
    """Yields the subschemas that the keywords of a schema hold, and the way from it to each."""
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in LISTS and isinstance(value, list):
            yield from (
                ((key, index), item) for index, item in enumerate(value) if isinstance(item, dict | bool)
            )
        elif key in MAPS and isinstance(value, dict):
            yield from (
                ((key, name), member) for name, member in value.items() if isinstance(member, dict | bool)
            )
        elif key in ONE and isinstance(value, dict | bool):
            yield (key,), value


def applied_below(node: Schema, draft: str) -> Iterator[Schema]:
    """Yields the subschemas that the keywords of a schema hold and that its draft applies to a value."""
    import jsonschema

    if not isinstance(node, dict) or (is_before_2019(draft) and "$ref" in node):
        return
    applied = set(getattr(jsonschema, class_name(draft)).VALIDATORS)
    if "if" in applied and "if" in node:
        applied |= {"then", "else"}  # jsonschema reads them with the `if`
    if not isinstance(node.get("items"), list):
        applied -= {"additionalItems"}
    yield from (child for (keyword, *_), child in subschemas_below(node) if keyword in applied)


def is_before_2019(draft: str) -> bool:
    """Is this a draft that ignores whatever stands beside a `$ref`?"""
    return DRAFTS.index(draft) <= DRAFTS.index("draft7")


def pointer(path: Path) -> str:
    """Returns the path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def place_in_words(path: Path) -> str:
    """Returns what a subschema is about, e.g. `filters[].price`; `$` is the document itself. What is no name
    and no item stands as it is in the schema: `$/anyOf/0`."""
    text, steps = "", list(path)
    while steps:
        step = steps.pop(0)
        if step in ("properties", "$defs", "definitions") and steps:
            prefix = "" if step == "properties" else f"{step}."
            text += f"{'.' if text else ''}{prefix}{steps.pop(0)}"
        elif step in ("items", "prefixItems") and steps and isinstance(steps[0], int):
            text += f"[{steps.pop(0)}]"
        elif step == "items":
            text += "[]"
        else:
            text += f"/{step}"
    return text if text and text[0] not in "[/" else f"${text}"


def has_target(schema: Schema, reference: Any) -> bool:
    """Does a reference by its place in this schema lead to a value? True for every other reference."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return True  # not a place that we can look up
    try:
        at(schema, path_of(schema, reference))
    except (LookupError, TypeError, ValueError):
        return False
    return True


def path_of(schema: Schema, reference: str) -> Path:
    """Returns the path of a local reference, e.g. `#/$defs/a`."""
    path: list[str | int] = []
    for part in unquote(reference[2:]).split("/"):
        step = part.replace("~1", "/").replace("~0", "~")
        path.append(index(step) if isinstance(at(schema, tuple(path)), list) else step)
    return tuple(path)


def index(step: str) -> int:
    """Returns the index of a list that a step of a JSON Pointer is. Raises ValueError where it is none, such
    as `-1` or `01`."""
    if not INDEX.fullmatch(step):
        raise ValueError(f"{step!r} is no index")
    return int(step)


def has_inner_identifiers(schema: Schema) -> bool:
    """Has a subschema an identifier of its own?"""
    return any(
        path
        and isinstance(node, dict)
        and (isinstance(node.get("$id"), str) or isinstance(node.get("id"), str))
        for path, node in subschemas(schema)
    )


def lost_reference(schema: Schema, draft: str) -> str:
    """Returns a `$ref` to a place of the schema that is not there, or to anything outside it that is no
    draft's own schema, as nothing is fetched; empty if there is none.

    What the draft does not apply binds no document, such as definitions that nothing refers to, and is not
    looked at; nor is a schema of which a part has an identifier of its own, from which places are counted
    there.
    """
    if has_inner_identifiers(schema):
        return ""
    waiting: deque[Schema] = deque([schema])
    seen = {"", "#"}
    while waiting:
        node = waiting.popleft()
        waiting.extend(applied_below(node, draft))
        given = node.get("$ref") if isinstance(node, dict) else None
        reference = _place_within(schema, given) if isinstance(given, str) else ""
        if reference in seen or reference.startswith(OF_DRAFTS):
            continue
        seen.add(reference)
        if reference.startswith("#/") and has_target(schema, reference):
            waiting.append(at(schema, path_of(schema, reference)))
        elif named := _with_anchor(schema, reference):
            waiting.extend(named)
        else:
            return reference
    return ""


def _place_within(schema: Schema, reference: str) -> str:
    """Returns the place of the schema (`#/$defs/a`) that a reference names with the schema's own identifier
    before it, and every other reference as it is."""
    base = next((schema[key] for key in ("$id", "id") if isinstance(schema.get(key), str)), "").rstrip("#")
    try:
        whole, _, fragment = urljoin(base, reference).partition("#")
    except ValueError:  # no address, such as `http://[`
        return reference
    return f"#{fragment}" if base and whole == base else reference


def _with_anchor(schema: Schema, reference: str) -> list[Schema]:
    """Returns the subschemas that a reference by a name (`#a`) means."""
    if not reference.startswith("#"):
        return []
    anchors = ("$anchor", "$dynamicAnchor")
    return [node for _, node in object_subschemas(schema) if reference[1:] in map(node.get, anchors)]
