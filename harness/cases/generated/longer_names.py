"""Names of objects that are longer than they must be: where a schema asks for names without listing them, the
shortest one says little of how a backend reads the pattern."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from harness.cases.case import json_text
from harness.cases.subschemas import Path, Schema
from harness.oracle.automaton import NoOracle
from harness.oracle.completion import short_completion
from harness.oracle.json_schema.automaton import json_schema_automaton

SHORT = 2
"""A name with at most so many characters is a short one, where nothing longer is asked for."""
SECONDS = 0.3
"""Processor time for the shortest name."""


def longer_names(node: dict[str, Any]) -> Iterator[tuple[Path, Callable[[], Schema]]]:
    """Yields the keywords of a subschema that ask for names without listing them, as places in it, each with
    what makes a schema that takes only objects without a longer name of this kind. Draft 4, which has no
    `propertyNames`, reads nothing in these schemas."""
    listed = node["properties"] if isinstance(node.get("properties"), dict) else {}
    patterns = node["patternProperties"] if isinstance(node.get("patternProperties"), dict) else {}
    names, others = node.get("propertyNames"), node.get("additionalProperties")
    known: list[Schema] = [{"enum": [*listed]}] if listed else []
    for pattern, asked in patterns.items():
        if asked is not False:
            beside = [*known, {"not": {"pattern": pattern}}]
            yield ("patternProperties", pattern), partial(_only_short, {"pattern": pattern}, beside)
    known += [{"pattern": pattern} for pattern in patterns]
    is_asked = isinstance(names, dict) and others is not False
    if isinstance(others, dict) or is_asked:
        keyword = "additionalProperties" if isinstance(others, dict) else "propertyNames"
        yield (keyword,), partial(_only_short, names if isinstance(names, dict) else {}, known, SHORT)


def _only_short(names: dict[str, Any], beside: list[Schema], least: int = 0) -> Schema:
    """Returns the schema of objects whose names are as `beside` lists it, or have no more characters than the
    shortest name that is as `names` asks, and than `least`."""
    longest = max(least, _shortest(names))
    return {"propertyNames": {"anyOf": [*beside, {"maxLength": longest}]}}


def _shortest(names: dict[str, Any]) -> int:
    """Returns how many characters the shortest of the strings has that a schema takes; 0 if that is not found
    out."""
    try:
        texts = json_schema_automaton(json_text({"allOf": [{"type": "string"}, names]}), seconds=SECONDS)
        text = short_completion(texts, texts.start)
    except NoOracle:
        return 0
    return 0 if text is None else len(json.loads(text))
