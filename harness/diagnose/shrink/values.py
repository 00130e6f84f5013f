"""Makes smaller JSON values: less of an object, an array, a string, a number."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any

from harness.cases.case import json_text
from harness.cases.subschemas import Path, put, without_keys
from harness.diagnose.shrink.cut import spans, text_cuts


def places(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yields every place of the value, outermost first."""
    waiting: deque[tuple[Path, Any]] = deque([((), value)])
    while waiting:
        path, node = waiting.popleft()
        yield path, node
        if isinstance(node, dict):
            waiting.extend(((*path, key), child) for key, child in node.items())
        elif isinstance(node, list):
            waiting.extend(((*path, index), child) for index, child in enumerate(node))


def smaller_values(value: Any) -> Iterator[Any]:
    """Yields values made from this one by one step, the biggest steps first."""
    yield from _inner(value)
    for path, node in places(value):
        for less in smaller_node(node):
            yield put(value, path, less)


def with_a_part_less(value: Any) -> Iterator[Any]:
    """Yields the value without one member or element, outermost first."""
    for path, node in places(value):
        if isinstance(node, dict):
            yield from (put(value, path, without_keys(node, {key})) for key in node)
        elif isinstance(node, list):
            yield from (put(value, path, [*node[:index], *node[index + 1 :]]) for index in range(len(node)))


def _inner(value: Any) -> Iterator[Any]:
    """Yields the value deep inside, along the way that goes deepest into it, then what lies less deep, and
    the children."""
    chain = [value]
    while isinstance(chain[-1], dict | list) and chain[-1]:
        children = list(chain[-1].values() if isinstance(chain[-1], dict) else chain[-1])
        chain.append(next((child for child in children if isinstance(child, dict | list)), children[0]))
    step = len(chain) - 1
    while step > 1:
        yield chain[step]
        step //= 2
    if isinstance(value, dict | list):
        yield from value.values() if isinstance(value, dict) else value


def smaller_node(node: Any) -> Iterator[Any]:
    """Yields what may stand in the place of this value, with its children left as they are."""
    match node:
        case dict():
            keys = list(node)
            for start, end in spans(len(keys)):
                yield without_keys(node, set(keys[start:end]))
        case list():
            for start, end in spans(len(node)):
                yield node[:start] + node[end:]
        case str():
            yield from text_cuts(node)
        case bool() | None:
            pass
        case int() | float():
            yield from smaller_numbers(node)


def smaller_numbers(number: int | float) -> Iterator[int | float]:
    """Yields smaller numbers: 0, 1, the whole part, fewer digits."""
    yield from (simple for simple in (0, 1, -1) if simple != number)
    if isinstance(number, float):
        if abs(number) < 1e15:
            yield int(number)
            yield from (round(number, digits) for digits in (1, 2, 3))
        return
    quotient = abs(number)
    while quotient > 9:
        quotient //= 10
        yield quotient if number > 0 else -quotient
    if number < 0:
        yield -number
    if 1 < number <= 9:
        yield number - 1


def parse(text: str | bytes) -> Any:
    """Returns the JSON value. Raises ValueError if there is none, or if it cannot be written again."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except RecursionError as error:
        raise ValueError("nests too deeply") from error
    return value


def writers(content: bytes) -> tuple[bool, bool]:
    """Returns whether this JSON text is written compactly, and whether in ASCII only; both are False for the
    form in which models write."""
    value = parse(content)
    for compact, ascii_only in ((False, False), (True, False), (False, True), (True, True)):
        if write(value, compact, ascii_only) == content:
            return compact, ascii_only
    return False, False


def write(value: Any, compact: bool = False, ascii_only: bool = False) -> bytes:
    """Returns the value as JSON text."""
    if not compact and not ascii_only:
        return json_text(value).encode()
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":") if compact else None)
    return text.encode("utf-8", "backslashreplace")
