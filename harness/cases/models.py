"""Pydantic models as sources: `module:Model` names the JSON Schema of a model, or of any type that pydantic
knows."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.backend.cache import cache_home
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.cases.subschemas import Schema, at, put, subschemas, without_keys
from harness.errors import BadInput, error_text
from harness.text import one_line
from harness.whole_files import write_whole

NAMED = re.compile(r"(?:[^\W\d]\w*\.)*[^\W\d]\w*:(?:[^\W\d]\w*\.)*[^\W\d]\w*")
"""A module and a name in it, as in entry points."""
SECONDS = 60.0
"""The time that importing the module and making the schema may take."""


def model_file(wanted: str) -> Path | None:
    """Returns a file with a case, whose schema is that of the model that `module:Model` names; None if the
    text has not that form. Raises BadInput where there is no such model.

    The user's module is imported in a process of its own, with the working directory on its path and
    without the network; it may print and end as it likes.
    """
    if not NAMED.fullmatch(wanted):
        return None
    module, _, name = wanted.partition(":")
    try:
        with Service("harness.cases.models:open_models", keeps_output=True) as service:
            _, content = service.ask({"module": module, "name": name}, seconds=SECONDS)
    except Lost as lost:
        if lost.cause == "timeout":
            raise BadInput(f"{wanted}: importing it took more than {SECONDS:g} s") from lost
        raise BadInput(
            f"{wanted}: no JSON Schema of it: {one_line(f'{lost}{lost.last_line()}', 200)}"
        ) from lost
    folder = cache_home() / "models" / hashlib.sha256(wanted.encode() + b"\n" + content).hexdigest()[:12]
    path = folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    return path


def open_models() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that imports a module, and answers the JSON Schema of a name in it as the bytes
    behind the answer, as a case. Whatever the module raises is bad input."""

    def answer(question: dict[str, Any], content: bytes) -> Answer:
        module, name = question["module"], question["name"]
        try:
            sys.path.insert(0, os.getcwd())
            found: Any = reduce(getattr, name.split("."), import_module(module))
            if hasattr(found, "model_json_schema"):
                schema = found.model_json_schema()
            else:
                import pydantic

                schema = pydantic.TypeAdapter(found).json_schema()
            # A case, and not the schema by itself, which a reader might take for something else.
            return {}, json.dumps({"schema": _in_json(schema)}, allow_nan=False).encode()
        except (Exception, SystemExit) as error:
            why = one_line(error_text(error), 200)
            raise BadInput(f"{module}:{name}: no JSON Schema of it: {why}") from error

    return answer, {}


def _in_json(schema: Schema) -> Schema:
    """Returns the schema without defaults and examples that JSON cannot write (NaN), which ask nothing.
    Raises TypeError for what is no schema."""
    if not isinstance(schema, dict | bool):
        raise TypeError(f"a schema is an object or a boolean, not {type(schema).__name__}")
    made = schema
    for path, node in subschemas(schema):
        if isinstance(node, dict):
            left_out = [key for key in ("default", "examples") if key in node and not _is_json(node[key])]
            made = put(made, path, without_keys(at(made, path), left_out)) if left_out else made
    return made


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True
