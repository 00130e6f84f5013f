"""One case = one grammar and its instances; reading them out of parsed JSON in any of the forms that the field has."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.errors import BadInput, did_you_mean
from harness.grammar import DIALECTS, Dialect, Grammar

GRAMMAR_KEYS: dict[str, Dialect] = {("schema" if each == "json_schema" else each): each for each in DIALECTS}
CASE_KEYS = [*GRAMMAR_KEYS, "description", "tests", "tags", "options", "notes"]
OPTIONS = ["draft", "format"]

# A file with one of these at its top, and none of the grammar keys, is taken for a bare JSON Schema.
SCHEMA_KEYWORDS = frozenset(
    """
    $schema $id id $ref $defs definitions $anchor $dynamicRef type properties required additionalProperties patternProperties
    propertyNames items prefixItems enum const anyOf oneOf allOf not if then else minimum maximum exclusiveMinimum
    exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems uniqueItems contains minProperties
    maxProperties title description $comment default examples
    """.split()  # noqa: SIM905 - a list of forty strings says no more
)


@dataclass(frozen=True)
class Instance:
    """One output text, and whether the grammar allows it (None: nobody said)."""

    name: str
    content: bytes
    valid: bool | None


@dataclass(frozen=True)
class Case:
    """One grammar and its instances. `id` comes from dialect and grammar alone; `name` is for people."""

    id: str
    name: str
    grammar: Grammar
    instances: tuple[Instance, ...] = ()
    tags: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """`draft`: the JSON Schema draft where the schema does not say; `format: assert`: formats are constraints."""


def case_id(grammar: Grammar) -> str:
    """12 hex digits: moving or reordering a suite changes nothing."""
    return hashlib.sha256(f"{grammar.dialect}\0{grammar.text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


def json_text(value: object) -> str:
    """JSON as models write it and MaskBench serialises it: `", "`, `": "`, non-ASCII as itself (but lone surrogates escaped)."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def cases_from_json(value: Any, stem: str, where: str, draft: str | None) -> Iterator[Case]:
    """The cases of one parsed file: a case, a bare schema, or a list of cases as in the JSON-Schema-Test-Suite.

    Raises BadInput, its text starting with `where`.
    """
    if isinstance(value, list):
        for number, each in enumerate(value, 1):
            here = f"{where}: case {number}"
            if not isinstance(each, dict):
                raise BadInput(f"{here} is {_kind(each)}, not an object with a grammar and tests")
            yield _case(each, f"{stem}: {each.get('description', number)}", here, draft)
    elif isinstance(value, dict) and (GRAMMAR_KEYS.keys() & value.keys() or "tests" in value):
        yield _case(value, stem, where, draft)
    elif isinstance(value, bool) or (isinstance(value, dict) and (not value or SCHEMA_KEYWORDS & value.keys())):
        grammar = Grammar("json_schema", json_text(value))
        yield Case(case_id(grammar), stem, grammar, options={"draft": draft} if draft else {})
    else:
        known = ", ".join(GRAMMAR_KEYS)
        raise BadInput(f"{where} is neither a case nor a JSON Schema ({_kind(value)}); a case is an object with one of {known}, and tests")


def case_from_suite_line(value: Any, where: str) -> Case:
    """The case of one line of a suite file; its description is its name. Raises BadInput."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {_kind(value)}, not an object with a grammar and tests")
    return _case(value, str(value.get("description", where)), where, None)


def _case(value: dict[str, Any], name: str, where: str, draft: str | None) -> Case:
    grammar = _grammar(value, where)
    tests = value.get("tests", [])
    if not isinstance(tests, list):
        raise BadInput(f'{where}: "tests" is {_kind(tests)}, not a list')
    tags = value.get("tags", [])
    if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise BadInput(f'{where}: "tags" must be a list of strings')
    features = value.get("meta", {}).get("features", []) if isinstance(value.get("meta"), dict) else []
    options = value.get("options", {})
    if not (isinstance(options, dict) and all(isinstance(each, str) for each in options.values())):
        raise BadInput(f'{where}: "options" must be an object of strings')
    for option in options:
        if option not in OPTIONS:
            raise BadInput(f'{where}: unknown option "{option}"{did_you_mean(option, OPTIONS)}')
    if draft:
        options = {"draft": draft} | options
    instances = tuple(_instance(each, f"{where}: test {number}", number) for number, each in enumerate(tests, 1))
    return Case(case_id(grammar), name, grammar, instances, tuple(tags or (str(each) for each in features)), options)


def _grammar(value: dict[str, Any], where: str) -> Grammar:
    keys = [key for key in GRAMMAR_KEYS if key in value]
    if not keys:
        close = [key for key in value if did_you_mean(key, CASE_KEYS).startswith("; did") and key not in CASE_KEYS]
        hint = f' (is "{close[0]}" misspelt?)' if close else ""
        raise BadInput(f"{where}: a case without grammar{hint}; give it one of {', '.join(GRAMMAR_KEYS)}")
    if len(keys) > 1:
        raise BadInput(f"{where}: a case with {len(keys)} grammars ({', '.join(keys)}); make it {len(keys)} cases")
    key, grammar = keys[0], value[keys[0]]
    dialect = GRAMMAR_KEYS[key]
    if dialect == "json_schema":
        if not isinstance(grammar, dict | bool):
            raise BadInput(f'{where}: "schema" is {_kind(grammar)}; a JSON Schema is an object or a boolean')
    elif dialect == "choice":
        if not (isinstance(grammar, list) and grammar and all(isinstance(each, str) for each in grammar)):
            raise BadInput(f'{where}: "choice" must be a non-empty list of strings')
    elif dialect == "structural_tag":
        if not (isinstance(grammar, dict) and {"triggers", "structures"} <= grammar.keys()):
            raise BadInput(f'{where}: "structural_tag" must be an object with "triggers" and "structures"')
    elif not isinstance(grammar, str):
        raise BadInput(f'{where}: "{key}" is {_kind(grammar)}, not a string')
    return Grammar(dialect, grammar if isinstance(grammar, str) else json_text(grammar))


def _instance(value: Any, where: str, number: int) -> Instance:
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {_kind(value)}, not an object")
    valid = value.get("valid")
    if not (valid is None or isinstance(valid, bool)):
        raise BadInput(f'{where}: "valid" is {_kind(valid)}, not true or false')
    forms = [key for key in ("data", "text", "bytes") if key in value]
    if len(forms) != 1:
        raise BadInput(f'{where} needs exactly one of "data", "text" and "bytes" (hex); it has {" and ".join(forms) or "none"}')
    content = value[forms[0]]
    if forms[0] == "data":
        encoded = json_text(content).encode("utf-8")
    elif not isinstance(content, str):
        raise BadInput(f'{where}: "{forms[0]}" is {_kind(content)}, not a string')
    elif forms[0] == "text":
        try:
            encoded = content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput(f'{where}: "text" holds a lone surrogate; give the bytes as hex in "bytes"') from error
    else:
        try:
            encoded = bytes.fromhex(content)
        except ValueError as error:
            raise BadInput(f'{where}: "bytes" is no hex: {error}') from error
    return Instance(str(value.get("description", f"test {number}")), encoded, valid)


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def case_to_line(suite: str, suite_version: str, case: Case) -> bytes:
    """The case as one line of a run's `cases.jsonl`, grammar as text and contents in base64."""
    line = {
        "suite": suite,
        "suite_version": suite_version,
        "id": case.id,
        "name": case.name,
        "dialect": case.grammar.dialect,
        "grammar": case.grammar.text,
        "instances": [[each.name, base64.b64encode(each.content).decode(), each.valid] for each in case.instances],
        "tags": case.tags,
        "options": case.options,
    }
    # ASCII escapes: a lone surrogate in a name or a grammar must survive the file.
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def case_from_line(line: bytes) -> tuple[str, str, Case]:
    """Suite, suite version and case of one line of `cases.jsonl`."""
    value = json.loads(line)
    instances = tuple(Instance(name, base64.b64decode(content), valid) for name, content, valid in value["instances"])
    grammar = Grammar(value["dialect"], value["grammar"])
    case = Case(value["id"], value["name"], grammar, instances, tuple(value["tags"]), value["options"])
    return value["suite"], value["suite_version"], case
