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

from harness.backend.process.child import Answer, Handler
from harness.errors import BadInput, describe
from harness.text import one_line

NAMED = re.compile(r"(?:[^\W\d]\w*\.)*[^\W\d]\w*:(?:[^\W\d]\w*\.)*[^\W\d]\w*")
"""A module and a name in it, as in entry points."""
SECONDS = 60.0
"""The time that importing the module and making the schema may take."""


def model_file(wanted: str) -> Path | None:
    """Returns a file with the JSON Schema of the model that `module:Model` names; None if the text has not
    that form. Raises BadInput where there is no such model.

    The user's module is imported in a process of its own, with the working directory on its path and
    without the network; it may print and end as it likes.
    """
    if not NAMED.fullmatch(wanted):
        return None
    from harness.backend.environments.build import cache_folder
    from harness.backend.process.lost import Lost
    from harness.backend.process.service import Service

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
    folder = cache_folder() / "models" / hashlib.sha256(wanted.encode() + b"\n" + content).hexdigest()[:12]
    path = folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{os.getpid()}.part"
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    return path


def open_models() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that imports a module, and answers the JSON Schema of a name in it as the bytes
    behind the answer. Whatever the module raises is bad input."""

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
            return {}, json.dumps(schema).encode()
        except (Exception, SystemExit) as error:
            why = one_line(describe(error), 200)
            raise BadInput(f"{module}:{name}: no JSON Schema of it: {why}") from error

    return answer, {}
