"""Makes smaller structural tags of the new form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.cases.subschemas import Path, put, without_keys
from harness.diagnose.shrink.cut import cuts, text_cuts
from harness.diagnose.shrink.schemas import NOTHING, smaller_schemas


def smaller_formats(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the structural tag with one of its parts smaller; some results are no tags."""
    for path, value in _parts_of(form, ()):
        if isinstance(value, dict) and path:
            if isinstance(value.get("json_schema"), dict):
                for schema, _ in smaller_schemas(value["json_schema"], NOTHING):
                    yield put(form, (*path, "json_schema"), schema)
            yield from (put(form, path, inner) for inner in _formats_right_in(value))
            yield from (put(form, path, without_keys(value, [name])) for name in value)
        elif isinstance(value, list):
            yield from (put(form, path, list(less)) for less in cuts(value) if less)
        elif isinstance(value, str) and path[-1] not in ("type", "style"):
            yield from (put(form, path, less) for less in text_cuts(value))


def _parts_of(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yields the value and what is in it, each with its path; schemas are not looked into."""
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        if name != "json_schema":
            yield from _parts_of(inner, (*path, name))


def _formats_right_in(format: dict[str, Any]) -> Iterator[Any]:
    """Yields the formats that a format has as its parts."""
    for value in format.values():
        for inner in value if isinstance(value, list) else [value]:
            part = inner[-1] if isinstance(inner, list) and inner else inner
            if isinstance(part, dict) and "type" in part:
                yield part
