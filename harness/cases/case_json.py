"""Reads cases from parsed JSON in any of the forms in use: our own, bare schemas, those of the
JSON-Schema-Test-Suite, and lists of tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from types import UnionType
from typing import Any

from harness.backend.grammar import Dialect, Grammar
from harness.backend.tag_formats import FormatError, has_format, read_tag
from harness.cases.answer_forms import Answer
from harness.cases.answers import answers
from harness.cases.bare_schema import SCHEMA_KEYWORDS, is_schema, names_a_draft, why_not_meant
from harness.cases.case import CASE_KEYS, GRAMMAR_KEYS, OF_TOOL, Case, Instance, Literal, case_id, json_text
from harness.cases.requests import (
    is_of_another_server,
    is_request_for_nothing,
    listed_requests,
    refuse_wrapping_schema,
    requests_in,
    unheld_place,
)
from harness.cases.tool_lists import built_in, tool_grammar, tool_list
from harness.errors import BadInput, did_you_mean
from harness.oracle.judge.drafts import DRAFT_URIS, DRAFTS
from harness.shape import LARGEST

NEAR = 0.6
"""The likeness (difflib's ratio) from which on a key is taken for a misspelt one."""
OPTIONS = {"draft": DRAFTS, "format": ("assert",)}
"""The options of a case, each with its values."""
OPENAPI = {"openapi": "OpenAPI", "swagger": "OpenAPI", "asyncapi": "AsyncAPI"}
"""The keys by which a file that describes an interface says its version, each with the name of its language.
OpenAPI's second version has `definitions`, as schemas have."""
OF_SCHEMAS = ("type", "properties")
"""The keys by which a schema is told from a file of OpenAPI, though it has such a key of its own."""
HELD: dict[str, type | UnionType] = {"schema": dict | bool, "structural_tag": dict, "choice": list}
"""What a case's grammar is in JSON, where it is not text."""


def cases_from_json(
    value: Any, stem: str, where: str, draft: str | None, unheld: dict[str, None]
) -> Iterator[Case]:
    """Yields the cases of one parsed file: a case, a bare schema, what a request holds, or a list of cases as
    in the JSON-Schema-Test-Suite or of requests. The places of requests that hold nothing are added to
    `unheld`.

    Raises BadInput, its text starting with `where`.
    """
    word, value = ("request", entries) if (entries := listed_requests(value, where)) else ("case", value)
    if of_request := _cases_of_request(value, stem, where, draft):
        yield from of_request
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _cases_of_item(item, number, stem, f"{where}: {word} {number}", draft, unheld)
    elif place := unheld_place(value, where):
        unheld[place] = None
    elif isinstance(value, dict) and (GRAMMAR_KEYS.keys() & value.keys() or "tests" in value):
        yield _case(value, stem, where, draft)
    elif isinstance(value, dict) and (language := _openapi(value)):
        raise BadInput(
            f"{where} is a file of {language}, which is not read; take each schema out of it "
            "(components.schemas, or definitions in version 2) into a file of its own"
        )
    elif isinstance(value, bool) or value == {} or is_schema(value):
        if isinstance(value, dict):
            refuse_wrapping_schema(value, where)
            if why := why_not_meant(value):
                raise BadInput(f"{where} {why}")
        yield _case_of_schema(value, stem, draft)
    else:
        known = ", ".join(GRAMMAR_KEYS)
        raise BadInput(
            f"{where} is neither a case nor a JSON Schema ({_kind(value)}); a case is an object "
            f"with one of {known}, and tests"
        )


def _openapi(value: dict[str, Any]) -> str:
    """Returns the language of a file that describes an interface; empty for any other, such as a schema that
    has a key of that name too."""
    if names_a_draft(value) or any(key in value for key in OF_SCHEMAS):
        return ""
    return next((OPENAPI[key] for key in OPENAPI if isinstance(value.get(key), str)), "")


def cases_of_line(
    value: Any, stem: str, where: str, draft: str | None, unheld: dict[str, None]
) -> Iterator[Case]:
    """Yields the cases of one line of a suite file: one, whose name is its description, or those that a
    request holds; the place of a request that holds nothing is added to `unheld`. What has no name is called
    `stem`. Raises BadInput."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {_kind(value)}, not an object with a grammar and tests")
    if entries := listed_requests(value, where):
        for number, item in enumerate(entries, 1):
            yield from _cases_of_item(item, number, stem, f"{where}: request {number}", draft, unheld)
        return
    name = str(value.get("description", stem))
    yield from _cases_of_request(value, stem, where, draft) or _own(value, name, where, draft, unheld)


def _cases_of_item(
    item: Any, number: int, stem: str, where: str, draft: str | None, unheld: dict[str, None]
) -> list[Case]:
    """Returns the cases of one of several: of a list of cases as in the JSON-Schema-Test-Suite, or of a list
    of requests. What a browser recorded of other servers is added to `unheld`. Raises BadInput."""
    if not isinstance(item, dict):
        raise BadInput(f"{where} is {_kind(item)}, not an object with a grammar and tests")
    name = f"{stem}: {item.get('description', number)}"
    try:
        return _cases_of_request(item, name, where, draft) or _own(item, name, where, draft, unheld)
    except BadInput:
        if not is_of_another_server(item):
            raise
    unheld[where] = None
    return []


def _own(
    value: dict[str, Any], name: str, where: str, draft: str | None, unheld: dict[str, None]
) -> list[Case]:
    """Returns the case in our own form; none for a request that holds nothing, whose place is added to
    `unheld`."""
    if place := unheld_place(value, where):
        unheld[place] = None
        return []
    refuse_wrapping_schema(value, where)
    if not set(CASE_KEYS) & value.keys() and not _hint(value):
        raise BadInput(
            f"{where}: neither a case nor a request is read here ({json_text(value)[:60]}); take it out, or "
            f"give it one of {', '.join(GRAMMAR_KEYS)}"
        )
    return [_case(value, name, where, draft)]


def _case_of_schema(schema: object, name: str, draft: str | None) -> Case:
    grammar = Grammar("json_schema", json_text(_with_draft("json_schema", schema, draft)))
    return Case(case_id(grammar), name, grammar, options={"draft": draft} if draft else {})


def _cases_of_request(value: object, stem: str, where: str, draft: str | None) -> list[Case]:
    """Returns a case for each tool of a list of tools or of a request to a model server (the schema of its
    arguments, under the tool's name), and one for what the answer is held to; none where there are none."""
    requests = list(requests_in(value, where)) if isinstance(value, dict) else [value]
    tools = [tool for request in requests for tool in tool_list(request, where)]
    found: list[tuple[str, Answer]] = []
    left_out = []
    for number, tool in enumerate(tools, 1):
        if kind := built_in(tool):
            left_out.append(f"tool {number} ({kind}) of {where}")
        else:
            found.append((OF_TOOL, tool_grammar(tool, f"{where}: tool {number}")))
    found += answers(requests, where)
    return [
        replace(
            _case({key: grammar}, name or stem, where, draft),
            request=where,
            asked_at=place,
            is_unnamed=not name,
            left_out=tuple(left_out),
        )
        for place, (name, key, grammar) in found
    ]


def _case(value: dict[str, Any], name: str, where: str, draft: str | None) -> Case:
    tests = value.get("tests", [])
    if not isinstance(tests, list):
        raise BadInput(f'{where}: "tests" is {_kind(tests)}, not a list')
    tags = value.get("tags", [])
    if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise BadInput(f'{where}: "tags" must be a list of strings')
    meta = value["meta"] if isinstance(value.get("meta"), dict) else {}
    features = meta.get("features", [])
    if not isinstance(features, list | dict):
        raise BadInput(f'{where}: "features" of "meta" is {_kind(features)}, neither a list nor an object')
    options = value.get("options", {})
    if not (isinstance(options, dict) and all(isinstance(option, str) for option in options.values())):
        raise BadInput(f'{where}: "options" must be an object of strings')
    for option, chosen in options.items():
        if option not in OPTIONS:
            raise BadInput(f'{where}: unknown option "{option}"{did_you_mean(option, list(OPTIONS))}')
        if chosen not in OPTIONS[option]:
            guess = did_you_mean(chosen, OPTIONS[option])
            raise BadInput(f'{where}: the option "{option}" has no value "{chosen[:60]}"{guess}')
    if draft:
        options = {"draft": draft} | options
    grammar = _grammar(value, where, options.get("draft"))
    instances = tuple(
        _instance(test, f"{where}: test {number}", number) for number, test in enumerate(tests, 1)
    )
    return Case(
        case_id(grammar),
        name,
        grammar,
        instances,
        tuple(tags or (str(feature) for feature in features)),
        options,
        is_published="raw_features" in meta,
    )


def _grammar(value: dict[str, Any], where: str, draft: str | None) -> Grammar:
    given = [key for key in GRAMMAR_KEYS if key in value and not is_request_for_nothing(value)]
    keys = [key for key in given if value[key] is not None] or given[:1]
    if not keys:
        raise BadInput(
            f"{where}: a case without grammar{_hint(value)}; give it one of {', '.join(GRAMMAR_KEYS)}"
        )
    if len(keys) > 1:
        raise BadInput(
            f"{where}: a case with {len(keys)} grammars ({', '.join(keys)}); make it {len(keys)} cases"
        )
    key, grammar = keys[0], value[keys[0]]
    dialect = GRAMMAR_KEYS[key]
    if dialect == "json_schema":
        if not isinstance(grammar, dict | bool):
            raise BadInput(f'{where}: "schema" is {_kind(grammar)}; a JSON Schema is an object or a boolean')
    elif dialect == "choice":
        if not (isinstance(grammar, list) and grammar and all(isinstance(choice, str) for choice in grammar)):
            raise BadInput(f'{where}: "choice" must be a non-empty list of strings')
    elif dialect == "structural_tag":
        if not isinstance(grammar, dict):
            raise BadInput(f'{where}: "structural_tag" is {_kind(grammar)}, not an object')
        if has_format(grammar):
            try:
                read_tag(grammar)
            except FormatError as error:
                raise BadInput(f'{where}: "structural_tag": {error}') from error
    elif not isinstance(grammar, str):
        raise BadInput(f'{where}: "{key}" is {_kind(grammar)}, not a string')
    return Grammar(
        dialect, grammar if isinstance(grammar, str) else json_text(_with_draft(dialect, grammar, draft))
    )


def _hint(value: dict[str, Any]) -> str:
    """Returns what may be meant by a case without grammar, in parentheses; empty if that is not known."""
    if is_schema(value):
        return ' (a bare schema stands alone in its file; here write {"schema": ...})'
    known = {*CASE_KEYS, *SCHEMA_KEYWORDS}
    for key, held in value.items():
        close = [] if key in known else get_close_matches(key, GRAMMAR_KEYS, 1, NEAR)
        # The `choices` of a model's answer are objects.
        is_answer = isinstance(held, list) and not all(isinstance(each, str) for each in held)
        if close and not is_answer and isinstance(held, HELD.get(close[0], str)):
            return f' (is "{key}" misspelt?)'
    return ""


def _with_draft(dialect: Dialect, grammar: Any, draft: str | None) -> Any:
    """Returns the parsed grammar with the draft of each schema in front of it as `$schema`, unless the schema
    names one already.

    The backend reads it by that draft then, and so do the judges, the scripts and whoever copies it. The
    schemas `true` and `false` cannot name a draft, and mean the same in every draft that has them.
    """
    if draft not in DRAFT_URIS:
        return grammar
    if dialect == "json_schema":
        return {"$schema": DRAFT_URIS[draft]} | grammar if isinstance(grammar, dict) else grammar
    if dialect == "structural_tag" and has_format(grammar):
        return _with_draft_in_formats(grammar, draft)
    if dialect == "structural_tag" and isinstance(grammar["structures"], list):
        structures = [
            structure | {"schema": _with_draft("json_schema", structure["schema"], draft)}
            if isinstance(structure, dict) and "schema" in structure
            else structure
            for structure in grammar["structures"]
        ]
        return grammar | {"structures": structures}
    return grammar


def _with_draft_in_formats(form: Any, draft: str | None) -> Any:
    """Does the same in a structural tag of the new form, or in a part of it."""
    if isinstance(form, list):
        return [_with_draft_in_formats(each, draft) for each in form]
    if not isinstance(form, dict):
        return form
    return {
        name: _with_draft("json_schema", value, draft)
        if name == "json_schema"
        else _with_draft_in_formats(value, draft)
        for name, value in form.items()
    }


def _instance(value: Any, where: str, number: int) -> Instance:
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {_kind(value)}, not an object")
    valid = value.get("valid")
    if not (valid is None or isinstance(valid, bool)):
        raise BadInput(f'{where}: "valid" is {_kind(valid)}, not true or false')
    forms = [key for key in ("data", "text", "bytes", "tokens") if key in value]
    if len(forms) != 1:
        raise BadInput(
            f'{where} needs exactly one of "data", "text", "bytes" (hex) and "tokens"; it has '
            f"{' and '.join(forms) or 'none'}"
        )
    content = value[forms[0]]
    if forms[0] == "tokens":
        return _instance_of_tokens(value, where, number)
    if forms[0] == "data":
        encoded = json_text(content).encode("utf-8")
    elif not isinstance(content, str):
        raise BadInput(f'{where}: "{forms[0]}" is {_kind(content)}, not a string')
    elif forms[0] == "text":
        try:
            encoded = content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput(
                f'{where}: "text" holds a lone surrogate; give the bytes as hex in "bytes"'
            ) from error
    else:
        try:
            encoded = bytes.fromhex(content)
        except ValueError as error:
            raise BadInput(f'{where}: "bytes" is no hex: {error}') from error
    return Instance(str(value.get("description", f"test {number}")), encoded, valid)


def _instance_of_tokens(value: dict[str, Any], where: str, number: int) -> Instance:
    tokens, valid = value["tokens"], value.get("valid")
    if not (isinstance(tokens, list) and tokens and all(map(_is_token, tokens))):
        raise BadInput(f'{where}: "tokens" must be a list of ids (from 0 to 2^62) and names, and not empty')
    if valid is None:
        raise BadInput(f'{where}: "tokens" need a "valid", because no judge reads ids')
    shown = "".join(token if isinstance(token, str) else f"<[{token}]>" for token in tokens)
    content = shown.encode("utf-8", "backslashreplace")
    return Instance(str(value.get("description", f"test {number}")), content, valid, tokens=tuple(tokens))


def _is_token(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (type(value) is int and 0 <= value <= LARGEST)


def _kind(value: object) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        Literal: "a number",
    }
    return kinds.get(type(value), "null")
