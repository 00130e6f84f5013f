"""A second validator, jsonschema-rs, in a service: it shares no line of code with the judge's."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any, NoReturn

from harness.service.child import Answer, Handler, case_at

KNOWN = re.compile(r"https?://json-schema\.org/draft(?:-0[467]|/2019-09|/2020-12)/schema#?")
CLASSES = {
    "draft4": "Draft4Validator",
    "draft6": "Draft6Validator",
    "draft7": "Draft7Validator",
    "draft2019-09": "Draft201909Validator",
    "draft2020-12": "Draft202012Validator",
}


def load_second(cases: str) -> tuple[Handler, dict[str, Any]]:
    """Its answers: is the document valid for the case that begins at `offset`, and which keyword says that it is not."""
    import jsonschema_rs

    def answer(message: dict[str, Any], blob: bytes) -> Answer:
        try:
            text = blob.decode("utf-8")
            document = json.loads(text, parse_constant=_no_constant, parse_float=_double, object_pairs_hook=_members)
        except Ambiguous:
            return {"valid": None}, b""
        except ValueError:
            return {"valid": False, "keyword": "no_json"}, b""
        error = next(iter(validator(message["offset"], message["formats"]).iter_errors(document)), None)
        return ({"valid": True} if error is None else {"valid": False, "keyword": _keyword(error)}), b""

    @lru_cache(maxsize=4)
    def validator(offset: int, formats: bool) -> Any:
        case = case_at(cases, offset)
        schema, draft = json.loads(case.grammar.text), case.options.get("draft")
        makes: Any = jsonschema_rs.validator_for
        if not isinstance(schema, dict) or not KNOWN.fullmatch(str(schema.get("$schema"))):
            # As the judge has it: an unknown `$schema` counts as absent.
            schema = {name: each for name, each in schema.items() if name != "$schema"} if isinstance(schema, dict) else schema
            makes = getattr(jsonschema_rs, CLASSES[draft or "draft2020-12"])
        return makes(schema, validate_formats=formats, offline=True)

    return answer, {}


class Ambiguous(Exception):
    """A name twice in one object, or a number that is no double: this validator has no answer to these."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise Ambiguous
    return value


def _double(literal: str) -> float:
    value = float(literal)
    mantissa = literal.lower().partition("e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("-0.")):
        raise Ambiguous
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _keyword(error: Any) -> str:
    """The keyword that is violated, e.g. `minLength`."""
    name = type(error.kind).__name__
    return name[:1].lower() + name[1:]
