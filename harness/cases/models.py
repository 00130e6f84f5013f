"""Pydantic models as sources: `module:Model` names the JSON Schema of a model, or of any type that pydantic
knows."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from harness.backend.environments.build import cache_folder
from harness.errors import BadInput
from harness.text import one_line

NAMED = re.compile(r"(?:[^\W\d]\w*\.)*[^\W\d]\w*:(?:[^\W\d]\w*\.)*[^\W\d]\w*")
"""A module and a name in it, as in entry points."""
SECONDS = 60.0
PROGRAM = """
import functools, importlib, json, os, sys
sys.path.insert(0, os.getcwd())
module, name = sys.argv[1:]
found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
if hasattr(found, "model_json_schema"):
    schema = found.model_json_schema()
else:
    import pydantic
    schema = pydantic.TypeAdapter(found).json_schema()
print("\\n" + json.dumps(schema))
"""


def model_file(wanted: str) -> Path | None:
    """Returns a file with the JSON Schema of the model that `module:Model` names; None if the text has not
    that form. Raises BadInput where there is no such model.

    The user's module is imported in a process of its own, with the working directory on its path; it may
    print and end as it likes.
    """
    if not NAMED.fullmatch(wanted):
        return None
    module, _, name = wanted.partition(":")
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, module, name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"{wanted}: importing it took more than {SECONDS:g} s") from error
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode or not lines:
        errors = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it printed no schema"]
        raise BadInput(f"{wanted}: no JSON Schema of it: {one_line(errors[-1], 200)}")
    text = lines[-1]
    try:
        json.loads(text)
    except ValueError as error:
        raise BadInput(f"{wanted}: it printed no JSON Schema") from error
    folder = cache_folder() / "models" / hashlib.sha256(f"{wanted}\n{text}".encode()).hexdigest()[:12]
    path = folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{os.getpid()}.part"
        draft.write_text(text, "utf-8")
        draft.replace(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    return path
