"""Defines a case (one grammar and its instances), and reads cases from parsed JSON in any of the forms in
use."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from harness.backend.grammar import DIALECTS, Dialect, Grammar
from harness.backend.tag_formats import FormatError, has_format, read_tag
from harness.backend.tag_formats.forms import TokenName
from harness.backend.tag_formats.tokens import token_id
from harness.backend.vocabulary import Vocabulary
from harness.cases.tool_lists import is_tool, tool_list, tool_schema
from harness.errors import BadInput, did_you_mean
from harness.oracle.judge.drafts import DRAFT_URIS
from harness.shape import LONGEST_LINE, json_line, shaped

GRAMMAR_KEYS: dict[str, Dialect] = {
    ("schema" if dialect == "json_schema" else dialect): dialect for dialect in DIALECTS
}
CASE_KEYS = [*GRAMMAR_KEYS, "description", "tests", "tags", "options", "notes"]
OPTIONS = ["draft", "format"]

LONGEST_CASE = 4 * LONGEST_LINE
"""Most bytes of a case in `cases.jsonl`. A suite's line of `LONGEST_LINE` fits: what is longer here are the
escapes of the grammar (at most three times its bytes) and the base64 of the instances."""

# A file with one of these at its top, and none of the grammar keys, is taken for a bare JSON Schema.
SCHEMA_KEYWORDS = frozenset(
    """
    $schema $id id $ref $defs definitions $anchor $dynamicRef type properties required additionalProperties patternProperties
    propertyNames items prefixItems enum const anyOf oneOf allOf not if then else minimum maximum exclusiveMinimum
    exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems uniqueItems contains minProperties
    maxProperties title description $comment default examples
    """.split()  # noqa: E501, SIM905
)


@dataclass(frozen=True)
class Instance:
    """One output text, and whether the grammar allows it (None: unknown)."""

    name: str
    content: bytes
    valid: bool | None
    contested: bool | None = None
    """The `valid` that the case states but that the judges contradict; `valid` is None then. See
    `harness.cases.flags`."""
    contrary: tuple[str, ...] = ()
    """The other readings of a regular expression (dialect and version of Unicode, e.g. `rust`) by which
    `valid` would be the opposite."""
    made_for: tuple[str, ...] = ()
    """The keywords of the schema, as JSON Pointers, for which we made the document: an invalid one breaks
    just these. Empty for an instance that came with its case."""
    tokens: tuple[TokenName, ...] = ()
    """The tokens of which the output consists, by id or name, where the case says them and not a text:
    `content` only shows them then."""

    def ids(self, vocabulary: Vocabulary) -> list[int]:
        """Returns the output's tokens: those that the case says, or those that the tokenizer writes for the
        text. Raises ValueError where the vocabulary has none for them."""
        if self.tokens:
            return [token_id(vocabulary, token) for token in self.tokens]
        return vocabulary.encode(self.content)


@dataclass(frozen=True)
class Case:
    """One grammar and its instances.

    `id` comes from dialect and grammar as handed over; `name` is for people.
    """

    id: str
    name: str
    grammar: Grammar
    instances: tuple[Instance, ...] = ()
    tags: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """`draft` names the JSON Schema draft where the schema does not (it is then written into the grammar's
    own `$schema`); `format: assert` makes formats constraints."""

    @property
    def draft(self) -> str | None:
        """Returns the draft of JSON Schema of a schema that does not name its own; None is 2020-12."""
        return self.options.get("draft")

    @property
    def asserts_formats(self) -> bool:
        """Is `format` a constraint, not an annotation?"""
        return self.options.get("format") == "assert"


def case_id(grammar: Grammar) -> str:
    """Returns the case's id: 12 hex digits of a hash of dialect and text, so that moving or reordering a
    suite changes nothing."""
    return hashlib.sha256(f"{grammar.dialect}\0{grammar.text}".encode("utf-8", "surrogatepass")).hexdigest()[
        :12
    ]


def json_text(value: object) -> str:
    """Returns the value as JSON text in the form in which models write it and MaskBench serialises it: `",
    "`, `": "`, and non-ASCII characters as themselves (but lone surrogates escaped)."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def cases_from_json(value: Any, stem: str, where: str, draft: str | None) -> Iterator[Case]:
    """Yields the cases of one parsed file: a case, a bare schema, or a list of cases as in the
    JSON-Schema-Test-Suite.

    Raises BadInput, its text starting with `where`.
    """
    if (tools := tool_list(value)) is not None:
        for number, tool in enumerate(tools, 1):
            yield _case_of_tool(tool, f"{where}: tool {number}", draft)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            here = f"{where}: case {number}"
            if not isinstance(item, dict):
                raise BadInput(f"{here} is {_kind(item)}, not an object with a grammar and tests")
            yield _case(item, f"{stem}: {item.get('description', number)}", here, draft)
    elif isinstance(value, dict) and (GRAMMAR_KEYS.keys() & value.keys() or "tests" in value):
        yield _case(value, stem, where, draft)
    elif isinstance(value, bool) or (
        isinstance(value, dict) and (not value or SCHEMA_KEYWORDS & value.keys())
    ):
        grammar = Grammar("json_schema", json_text(_with_draft("json_schema", value, draft)))
        yield Case(case_id(grammar), stem, grammar, options={"draft": draft} if draft else {})
    else:
        known = ", ".join(GRAMMAR_KEYS)
        raise BadInput(
            f"{where} is neither a case nor a JSON Schema ({_kind(value)}); a case is an object "
            f"with one of {known}, and tests"
        )


def case_from_suite_line(value: Any, where: str) -> Case:
    """Returns the case of one line of a suite file; its description is its name. Raises BadInput."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {_kind(value)}, not an object with a grammar and tests")
    if is_tool(value):
        return _case_of_tool(value, where, None)
    return _case(value, str(value.get("description", where)), where, None)


def _case_of_tool(value: object, where: str, draft: str | None) -> Case:
    """Returns the case of one tool of a model server's interface: the schema of its arguments, under the
    tool's name.
    """
    name, schema = tool_schema(value, where)
    grammar = Grammar("json_schema", json_text(schema))
    return Case(case_id(grammar), name, grammar, options={"draft": draft} if draft else {})


def _case(value: dict[str, Any], name: str, where: str, draft: str | None) -> Case:
    tests = value.get("tests", [])
    if not isinstance(tests, list):
        raise BadInput(f'{where}: "tests" is {_kind(tests)}, not a list')
    tags = value.get("tags", [])
    if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise BadInput(f'{where}: "tags" must be a list of strings')
    features = value.get("meta", {}).get("features", []) if isinstance(value.get("meta"), dict) else []
    if not isinstance(features, list | dict):
        raise BadInput(f'{where}: "features" of "meta" is {_kind(features)}, neither a list nor an object')
    options = value.get("options", {})
    if not (isinstance(options, dict) and all(isinstance(option, str) for option in options.values())):
        raise BadInput(f'{where}: "options" must be an object of strings')
    for option in options:
        if option not in OPTIONS:
            raise BadInput(f'{where}: unknown option "{option}"{did_you_mean(option, OPTIONS)}')
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
    )


def _grammar(value: dict[str, Any], where: str, draft: str | None) -> Grammar:
    keys = [key for key in GRAMMAR_KEYS if key in value]
    if not keys:
        close = [
            key for key in value if did_you_mean(key, CASE_KEYS).startswith("; did") and key not in CASE_KEYS
        ]
        hint = f' (is "{close[0]}" misspelt?)' if close else ""
        raise BadInput(f"{where}: a case without grammar{hint}; give it one of {', '.join(GRAMMAR_KEYS)}")
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
        raise BadInput(f'{where}: "tokens" must be a list of ids (0 or more) and names, and not empty')
    if valid is None:
        raise BadInput(f'{where}: "tokens" need a "valid", because no judge reads ids')
    shown = "".join(token if isinstance(token, str) else f"<[{token}]>" for token in tokens)
    content = shown.encode("utf-8", "backslashreplace")
    return Instance(str(value.get("description", f"test {number}")), content, valid, tokens=tuple(tokens))


def _is_token(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (type(value) is int and value >= 0)


def _kind(value: object) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), "null")


def case_to_line(suite: str, suite_version: str, case: Case) -> bytes:
    """Returns the case as one line of a run's `cases.jsonl`, grammar as text and contents in base64."""
    line = {
        "suite": suite,
        "suite_version": suite_version,
        "id": case.id,
        "name": case.name,
        "dialect": case.grammar.dialect,
        "grammar": case.grammar.text,
        "instances": [
            [instance.name, base64.b64encode(instance.content).decode(), instance.valid, *_flags(instance)]
            for instance in case.instances
        ],
        "tags": case.tags,
        "options": case.options,
    }
    # ASCII escapes: a lone surrogate in a name or a grammar must survive the file.
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _flags(instance: Instance) -> list[Any]:
    """Returns the values behind `valid` in an instance's line; most instances have none."""
    flags: list[Any] = [instance.contested, list(instance.contrary), list(instance.made_for)]
    if instance.tokens:
        return [*flags, list(instance.tokens)]
    if instance.made_for:
        return flags
    return flags[:2] if instance.contrary else flags[:1] if instance.contested is not None else []


def case_from_line(line: bytes) -> tuple[str, str, Case]:
    """Returns the suite, the suite's version and the case from one line of `cases.jsonl`.

    Raises BadInput for any other line."""
    value = json_line(line, "cases.jsonl")
    try:
        stored = shaped(_Line, value)
        if not _ID.fullmatch(stored.id):
            raise ValueError(f"{stored.id[:80]!r} is no id of a case")
        instances = tuple(map(_instance_of, stored.instances))
    except ValueError as error:
        raise BadInput(
            f"cases.jsonl: a line that is no case ({error}); the file was changed or damaged"
        ) from error
    return (
        stored.suite,
        stored.suite_version,
        Case(
            stored.id,
            stored.name,
            Grammar(stored.dialect, stored.grammar),
            instances,
            stored.tags,
            stored.options,
        ),
    )


@dataclass(frozen=True)
class _Line:
    """A line of `cases.jsonl`; each of its instances has the parts of `_InstanceParts`, in their order."""

    suite: str
    suite_version: str
    id: str
    name: str
    dialect: Dialect
    grammar: str
    instances: tuple[tuple[Any, ...], ...]
    tags: tuple[str, ...]
    options: dict[str, str]


@dataclass(frozen=True)
class _InstanceParts:
    """An instance in a line of `cases.jsonl`, its content in base64; what `_flags` adds need not be there."""

    name: str
    content: str
    valid: bool | None
    contested: bool | None = None
    contrary: tuple[str, ...] = ()
    made_for: tuple[str, ...] = ()
    tokens: tuple[int | str, ...] = ()


_ID = re.compile(r"[0-9a-f]{12}(-[0-9]+)?")
_PARTS = tuple(part.name for part in fields(_InstanceParts))


def _instance_of(parts: tuple[Any, ...]) -> Instance:
    """Returns the instance from its parts. Raises ValueError."""
    if len(parts) > len(_PARTS):
        raise ValueError(f"an instance of {len(parts)} parts")
    stored = shaped(_InstanceParts, dict(zip(_PARTS, parts, strict=False)))
    return Instance(
        stored.name,
        base64.b64decode(stored.content, validate=True),
        stored.valid,
        stored.contested,
        stored.contrary,
        stored.made_for,
        stored.tokens,
    )


def case_at(cases: str, offset: int) -> Case:
    """Returns the case that begins at this offset of a run's `cases.jsonl`."""
    with open(cases, "rb") as file:
        file.seek(offset)
        _, _, case = case_from_line(file.readline())
    return case
