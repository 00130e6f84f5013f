"""Validates records on read: a value from a file becomes an instance of the type that its readers work with.

A record may have been written by anybody. What `shaped` returns has the types that the annotations name,
numbers that can be counted with, and no unknown fields; so no reader meets a list where it adds.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from json import JSONDecoder  # bound before a backend is imported, which may put something else in its place
from pathlib import Path
from typing import (
    IO,
    Any,
    Literal,
    NoReturn,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from harness.errors import BadInput, damaged
from harness.text import one_line

T = TypeVar("T")

LARGEST = 2**62
"""The largest whole number in a record: two of them can still be added as int64."""

DEEPEST = 200
"""Most levels of nesting in a record; ours have fewer than ten."""

SHOWN = 80
"""Most characters of a name or a value that a message shows."""

LONGEST_LINE = 32 << 20
"""Most bytes of a line that is read. A file of a few kilobytes, if packed, may hold one that fills any
memory."""


def bounded_lines(file: IO[bytes], where: object, most: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yields the lines of the file, each with its line end. Raises BadInput for one of more than `most` bytes
    before the whole of it is in memory."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise BadInput(f"{where}:{number}: a line of more than {most >> 20} MiB, which is not read")
        yield line


def json_line(content: bytes | str, where: str) -> Any:
    """Returns the JSON value of a line or a file of a record. Raises BadInput, its text starting with
    `where`."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8", "surrogatepass")
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise damaged(f"{where}: nested too deeply") from error
    except ValueError as error:
        raise damaged(f"{where}: not JSON ({one_line(str(error), SHOWN)})") from error
    if text.count("[") + text.count("{") > DEEPEST and _is_deep(value):
        raise damaged(f"{where}: nested too deeply")
    return value


def whole_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the whole lines, numbered from 1. A last line that is cut off is left out: it was being written
    when its writer was killed."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(bounded_lines(file, path), 1):
                if not line.endswith(b"\n"):
                    return
                value = json_line(line, f"{path}:{number}")
                if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
                    raise BadInput(f"{path}:{number}: not a line of such a record: no object with its kind")
                yield number, value
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file of a record. Raises BadInput."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def _constant(name: str) -> float:
    """Returns the float of `Infinity` and `-Infinity`, which bounds of intervals may be; NaN raises
    ValueError."""
    if name == "NaN":
        raise ValueError("NaN is no number")
    return float(name)


_DECODER = JSONDecoder(parse_constant=_constant)
"""Made once: `json.loads` makes another for each line."""


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for container in level
            for inner in (container.values() if isinstance(container, dict) else container)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def shaped(kind: type[T], value: object, **ready: Any) -> T:
    """Returns the value as an instance of the type: a dataclass or a TypedDict from an object, a tuple from
    an array, and so on.

    `ready` are fields of a dataclass that the caller has made itself. Raises ValueError, which says where the
    value is another.
    """
    return cast(T, _shaped(kind, value, "", ready))


def _shaped(kind: Any, value: Any, where: str, ready: Mapping[str, Any] = types.MappingProxyType({})) -> Any:
    if kind is Any or kind is object:
        return value
    if kind is str and type(value) is str:  # most values are text, and this is asked for every case of a run
        return value
    origin, arguments = _parts(kind)
    if origin is Literal:
        if not isinstance(value, str | int) or value not in arguments or isinstance(value, bool):
            _refuse(where, " or ".join(map(repr, arguments)), value)
        return value
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, where)
    if is_dataclass(kind):
        return _dataclass(kind, value, where, ready)
    if is_typeddict(kind):
        return _typed_dict(kind, value, where)
    if origin in (list, tuple):
        return _sequence(origin, arguments, value, where)
    if origin in (dict, Mapping) or kind is dict:
        if not isinstance(value, dict):
            _refuse(where, "an object", value)
        of = arguments[1] if arguments else Any
        return {
            name: _shaped(of, member, f"{where}/{one_line(name, SHOWN)}") for name, member in value.items()
        }
    return _scalar(kind, value, where)


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    for kind in others[:-1]:
        try:
            return _shaped(kind, value, where)
        except ValueError:
            continue
    return _shaped(others[-1], value, where)


def _sequence(origin: Any, arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, list | tuple):
        _refuse(where, "an array", value)
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        if len(value) != len(arguments):
            _refuse(where, f"an array of {len(arguments)}", value)
        return tuple(
            _shaped(kind, item, f"{where}/{place}")
            for place, (kind, item) in enumerate(zip(arguments, value, strict=True))
        )
    return origin(_shaped(arguments[0], item, f"{where}/{place}") for place, item in enumerate(value))


def _scalar(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, int):
            return float(_bounded(value, where))
        if math.isnan(value):
            _refuse(where, "a number", value)
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return _bounded(value, where)
    if kind in (str, bool, float, int):
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            _refuse(
                where,
                {str: "a string", bool: "true or false", float: "a number", int: "a whole number"}[kind],
                value,
            )
        return value
    if kind is type(None):
        if value is not None:
            _refuse(where, "null", value)
        return value
    raise TypeError(f"a record has a field of the type {kind!r}, which its reader does not know")


def _bounded(value: int, where: str) -> int:
    if abs(value) > LARGEST:
        raise ValueError(f"{where or 'it'} is a number beyond 2^62")
    return value


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the origin of a type and its arguments."""
    return get_origin(kind), get_args(kind)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _fields(kind: Any) -> dict[str, bool]:
    """Returns the fields of a dataclass, and whether a record must have each."""
    return {
        field.name: field.default is MISSING and field.default_factory is MISSING
        for field in fields(kind)
        if field.init
    }


@cache
def _required(kind: type) -> tuple[str, ...]:
    """Returns the keys that a TypedDict must have.

    `__required_keys__` does not see a `NotRequired` in an annotation that is still text.
    """
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if get_origin(hint) is not NotRequired)


def _dataclass(kind: Any, value: Any, where: str, ready: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        _refuse(where, "an object", value)
    known = _fields(kind)
    for name in value:
        if name not in known or name in ready:
            raise ValueError(f"{where}/{one_line(str(name), SHOWN)} is no field that this version knows")
    for name, is_required in known.items():
        if is_required and name not in value and name not in ready:
            raise ValueError(f"{where}/{name} is missing")
    hints = _hints(kind)
    return kind(
        **{name: _shaped(hints[name], member, f"{where}/{name}") for name, member in value.items()}, **ready
    )


def _typed_dict(kind: Any, value: Any, where: str) -> Any:
    """Returns the object with its known keys validated; other keys are kept as they are."""
    if not isinstance(value, dict):
        _refuse(where, "an object", value)
    hints = _hints(kind)
    for name in _required(kind):
        if name not in value:
            raise ValueError(f"{where}/{name} is missing")
    return {
        name: _shaped(hints[name], member, f"{where}/{name}") if name in hints else member
        for name, member in value.items()
    }


def _refuse(where: str, wanted: str, value: Any) -> NoReturn:
    kinds = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    kind = kinds.get(type(value), "null")
    shown = (
        f" ({one_line(repr(value), SHOWN)})"
        if isinstance(value, str | float | bool) and len(repr(value)) < 100
        else ""
    )
    raise ValueError(f"{where or 'it'} is {kind}{shown} where {wanted} is expected")
