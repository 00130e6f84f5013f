"""Where the subschemas of a JSON Schema are: what is no subschema, such as data or the name of a property, is
never taken for one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

Schema = Any

ONE = frozenset(
    """
    additionalProperties items additionalItems contains not if then else propertyNames unevaluatedItems unevaluatedProperties contentSchema
    """.split()  # noqa: E501, SIM905
)
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
Path = tuple[str | int, ...]
"""Keys and indices that lead from a value into it."""


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


def subschemas(schema: Schema) -> Iterator[tuple[Path, Schema]]:
    """Yields every subschema and its place, the root first."""
    waiting: deque[tuple[Path, Schema]] = deque([((), schema)])
    while waiting:
        path, node = waiting.popleft()
        yield path, node
        waiting.extend(((*path, *step), child) for step, child in subschemas_below(node))


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
