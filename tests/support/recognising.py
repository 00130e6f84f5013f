"""Whether a reference automaton takes a text."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from reference_ebnf import accepts, parse
from referencing import Registry

from harness.cases.case import Case
from harness.oracle.judge import is_valid


def recognises(structural_tag: dict[str, Any], text: str) -> bool:
    """Is the text free text and tags in turn, as the structural tag wants them?

    The output starts outside of all tags and may end only there. Outside, any text is free in which no
    trigger occurs. At the first place where a trigger begins, the free text is over, and the `begin` of a
    structure must stand right there; it must start with a trigger that occurs there (every `begin` starts
    with one). After `begin` comes one JSON text (RFC 8259, so whitespace may stand between its tokens and
    around it) that is valid by the structure's schema (draft 2020-12); what stands inside it triggers nothing
    and ends nothing. Right after it comes `end`. Behind `end` one is outside again, and triggers are looked
    for from there on.
    """
    triggers, structures = structural_tag["triggers"], structural_tag["structures"]
    validators = [Draft202012Validator(structure["schema"], registry=Registry()) for structure in structures]

    @cache
    def may_go_on_outside(start: int) -> bool:
        for place in range(start, len(text)):
            here = tuple(trigger for trigger in triggers if text.startswith(trigger, place))
            if here:
                return any(
                    structure["begin"].startswith(here)
                    and text.startswith(structure["begin"], place)
                    and may_go_on_inside(number, place)
                    for number, structure in enumerate(structures)
                )
        return True

    def may_go_on_inside(number: int, place: int) -> bool:
        content_start = place + len(structures[number]["begin"])
        end = structures[number]["end"]
        content_end = text.find(end, content_start)
        while content_end >= 0:
            if is_valid_json(validators[number], text[content_start:content_end]) and may_go_on_outside(
                content_end + len(end)
            ):
                return True
            content_end = text.find(end, content_end + 1)
        return False

    return may_go_on_outside(0)


def is_valid_json(validator: Draft202012Validator, text: str) -> bool:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    try:
        return bool(validator.is_valid(json.loads(text, parse_constant=refuse)))
    except ValueError:
        return False


def allows(case: Case, content: bytes) -> bool:
    """Is this an output of the case's grammar?"""
    if case.grammar.dialect in ("json_schema", "regex", "choice"):
        formats = case.options.get("format") == "assert"
        return is_valid(case.grammar, content, draft=case.options.get("draft"), assert_formats=formats)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    if case.grammar.dialect == "ebnf":
        return accepts(parse(case.grammar.text), text)
    return recognises(json.loads(case.grammar.text), text)
