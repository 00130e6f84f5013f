"""A second validator, jsonschema-rs behind the JSON parser jiter: neither shares a line of code with the
first one."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from harness.oracle.judge.drafts import CLASSES, DIALECT_URI
from harness.oracle.judge.strict_json import exact_double, no_constant, refusal

_NO_ANSWER = (ValueError, RecursionError, AttributeError, KeyError)
"""What is raised where this validator has no answer; the last two are of a draft that it does not know."""


def second_verdict(
    schema_text: str, content: bytes, draft: str | None, assert_formats: bool
) -> tuple[bool | None, str]:
    """Is the document valid, and which keyword says that it is not?

    None where this validator has no answer: a name twice in one object, a number of the document or of the
    schema that is another one as a double, a document beyond jiter's limits, a draft or a schema that it does
    not take.
    """
    why = refusal(content)
    if why is None:
        return None, ""
    if why:
        return False, "no_json"
    try:
        error = _first_error(schema_text, content, draft, assert_formats)
    except _NO_ANSWER:
        return None, ""
    return (True, "") if error is None else (False, _keyword(error))


def violated_constraint(schema_text: str, content: bytes, draft: str | None, assert_formats: bool) -> str:
    """Returns the first constraint that the document violates, as the place in the document and the keyword:
    `tags.uniqueItems`, `then.required` at the top, `items[0].not`, `output[0].not` where the whole document
    is an array. Empty where this validator knows none."""
    if refusal(content) != "":
        return ""
    try:
        error = _first_error(schema_text, content, draft, assert_formats)
    except _NO_ANSWER:
        return ""
    if error is None:
        return ""
    place = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    ).removeprefix(".")
    place = f"output{place}" if place.startswith("[") else place
    keywords = [step for step in error.schema_path[-2:] if isinstance(step, str)]
    branch = keywords[-2:-1] if keywords[-2:-1] in (["then"], ["else"]) else []
    return ".".join(filter(None, (place, *branch, *keywords[-1:])))


def _first_error(schema_text: str, content: bytes, draft: str | None, assert_formats: bool) -> Any:
    """Returns what this validator first finds wrong; None if it finds nothing. Raises one of `_NO_ANSWER`."""
    try:
        return _found_first(schema_text, content, draft, assert_formats)
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # what pyo3 makes of a panic; it is no Exception
            raise ValueError("the validator panicked") from error
        raise


def _found_first(schema_text: str, content: bytes, draft: str | None, assert_formats: bool) -> Any:
    import pydantic_core

    _look_for_what_is_open(content)
    document = pydantic_core.from_json(content, allow_inf_nan=False)
    return next(iter(_validator(schema_text, draft, assert_formats).iter_errors(document)), None)


@lru_cache(maxsize=4)
def _validator(schema_text: str, draft: str | None, assert_formats: bool) -> Any:
    import jsonschema_rs

    schema: Any = json.loads(schema_text, parse_float=exact_double)
    makes: Any = jsonschema_rs.validator_for
    if not isinstance(schema, dict) or not DIALECT_URI.fullmatch(str(schema.get("$schema"))):
        # The first judge does the same: an unknown `$schema` counts as absent.
        schema = (
            {name: value for name, value in schema.items() if name != "$schema"}
            if isinstance(schema, dict)
            else schema
        )
        makes = getattr(jsonschema_rs, CLASSES[draft or "draft2020-12"])
    return makes(schema, validate_formats=assert_formats, offline=True)


def _look_for_what_is_open(content: bytes) -> None:
    """Raises ValueError for a name twice in one object and for a number that is another one as a double."""

    def members(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name occurs twice")

    json.loads(
        content.decode("utf-8"),
        parse_constant=no_constant,
        parse_float=exact_double,
        object_pairs_hook=members,
    )


def _keyword(error: Any) -> str:
    """Returns the keyword that is violated, e.g. `minLength`."""
    name = type(error.kind).__name__
    return name[:1].lower() + name[1:]
