"""Finds the schema or the grammar to which a request to a model server holds its answer, and refuses what
stands there and is not read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from harness.cases.answer_forms import (
    ANSWERING,
    PLACES,
    SETTINGS,
    TEXTS,
    Answer,
    at_place,
    holds,
    object_of_text,
    unpacked,
)
from harness.cases.bare_schema import is_schema
from harness.cases.case import json_text
from harness.cases.tool_lists import format_of_custom, is_marked, may_be_request
from harness.errors import BadInput

COMMON = ("format", "output_format")
"""The places of a format whose names are also ordinary words: they stand for one in a request only."""

IN_PLACE = {
    "regex_pattern": 'write "guided_regex"',
    "grammar_string": 'write "guided_grammar"',
    **{
        f"{holder}{of_vllm}.disable_additional_properties": 'write "additionalProperties": false'
        for holder in ("", "sampling_params.")
        for of_vllm in ("structured_outputs", "guided_decoding")
    },
}
"""What TabbyAPI, text-generation-webui and vLLM hold an answer to and is not read, each with what is read in
its place. The names without a holder are also ordinary words."""
NEAR = 0.85
"""The likeness (difflib's ratio) from which on a key is taken for a misspelt one of a request."""


def answers(values: Iterable[object], where: str) -> list[tuple[str, Answer]]:
    """Returns what the answer to a request is held to, from the request and what it wraps, each behind its
    place; a `response_format` may stand alone.

    Raises BadInput, its text starting with `where`, also where something stands at the place of a format and
    is not read, and for a key of a request that may be misspelt.
    """
    requests = [
        unpacked(value, TEXTS, f'{where}: "')
        for value in map(_as_request, values)
        if isinstance(value, dict) and not is_schema(value) and format_of_custom(value) is None
    ]
    for request in requests:
        for place, advice in IN_PLACE.items():
            if at_place(request, place) and ("." in place or is_marked(request)):
                raise BadInput(f'{where}: "{place}" is not read; {advice}')
    found = [_answers_of(request, where) for request in requests]
    if any(map(may_be_request, requests)):
        for request, read in zip(requests, found, strict=True):
            _refuse_unread(request, read, where)
    if any(map(is_known, requests)):
        _refuse_misspelt(requests, where)
    return [held for read in found for held in read.items()]


def is_known(request: dict[str, Any]) -> bool:
    """Is this a request to a model server by its keys, or by having no tools where it may have some?"""
    return is_marked(request) or request.get("tools") in ([], "[]")


def _as_request(value: object) -> object:
    """Returns a `response_format` that stands alone as a request with it, and every other value as it is."""
    is_format = isinstance(value, dict) and value.get("type") == "json_schema" and "json_schema" in value
    return {"response_format": value} if is_format else value


def _answers_of(request: dict[str, Any], where: str) -> dict[str, Answer]:
    """Returns what the request says that its answer is held to, each under its place. Raises BadInput."""
    found = {
        place: read(value, f'{where}: "{place}"')
        for place, read in PLACES.items()
        if (value := at_place(request, place)) not in (None, "")
    }
    return {place: answer for place, answer in found.items() if answer is not None}


def _refuse_unread(request: dict[str, Any], read: Iterable[str], where: str) -> None:
    """Raises BadInput for what stands where nothing but a format stands, and is not among the places that
    were read."""
    places = [f"{place}." for place in read]
    for place in ANSWERING:
        held = at_place(request, place)
        if held is None or any(each.startswith(f"{place}.") for each in places):
            continue
        if place in COMMON and not (is_marked(request) and isinstance(held, dict)):
            continue
        what = f'{where}: "{place}"'
        if holds(object_of_text(held, what)):
            raise BadInput(f"{what} is {json_text(held)[:60]}, in which nothing is read")


def _refuse_misspelt(requests: Iterable[dict[str, Any]], where: str) -> None:
    """Raises BadInput for a key that may be meant for one that holds a format, or a schema in a case of ours.
    Keys of the request itself with a value that can be no format are not compared."""
    for request in requests:
        for key, value in request.items():
            if isinstance(value, dict) or key.startswith("guided"):
                _refuse_near("", key[:60], where)
        for holder in SETTINGS:
            held = at_place(request, holder)
            for key, value in held.items() if isinstance(held, dict) else ():
                if value not in (None, ""):
                    _refuse_near(f"{holder}.", key[:60], where)


def _refuse_near(before: str, key: str, where: str) -> None:
    if meant := _meant(before, key):
        raise BadInput(f'{where}: a key that is not read; is "{before}{key}" a misspelt "{before}{meant}"?')


@lru_cache(4096)
def _meant(before: str, key: str) -> str:
    """Returns the key that this one may be meant for, of the object whose place is `before` (empty: of the
    request); empty if that is none, or if it is that key."""
    if before:
        known = [place.removeprefix(before).partition(".")[0] for place in PLACES if place.startswith(before)]
    else:
        known = [place for place in (*ANSWERING, "schema") if "." not in place]
    close = get_close_matches(key, known, 1, NEAR)
    # A plural is a word of its own: beside its requests a log may keep its `schemas`.
    return close[0] if close and close[0] not in (key, key.removesuffix("s")) else ""
