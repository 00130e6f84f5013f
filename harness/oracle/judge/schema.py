"""Judges JSON documents with the jsonschema library, made strict: RFC 8259 JSON, exact numbers and ECMA-262
patterns.

RFC 8259 allows a name twice in one object, but JSON Schema leaves its meaning undefined, so such a document
is not judged. Nothing is fetched: a `$ref` that points out of the schema is not judged either, except to the
meta-schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache, lru_cache
from ipaddress import ip_address
from typing import Any, NoReturn

from harness.oracle.judge.drafts import DRAFTS
from harness.oracle.judge.pattern import finds, is_pattern
from harness.text import one_line

DIALECT_URI = re.compile(r"https?://json-schema\.org/draft(?:-0([3467])|/(2019-09|2020-12))/schema#?")


class Unjudgeable(Exception):
    """There is no verdict; the message says why in one line."""


def reason(text: str) -> str:
    """Returns why there is no verdict, as one line of at most 300 characters."""
    return one_line(text, 300, folded=True)


def document_is_valid(schema_text: str, content: bytes, draft: str | None, assert_formats: bool) -> bool:
    """Is `content` a JSON document that the schema allows?  Raises `Unjudgeable`.

    A text that one JSON parser reads and another refuses is not judged, unless the schema forbids the
    document as the first one reads it.
    """
    readable, instance, contested = _read(content)
    if not readable:
        return False
    try:
        valid: bool = _validator(schema_text, draft, assert_formats).is_valid(instance)
    except Unjudgeable:
        raise
    except RecursionError:
        raise Unjudgeable("the schema or the document nests too deeply") from None
    except Exception as error:  # jsonschema lets escape whatever a schema provokes
        raise Unjudgeable(reason(f"{type(error).__name__}: {error}")) from error
    if valid and contested:
        raise Unjudgeable(contested)
    return valid


def is_json(content: bytes) -> bool:
    """Is the content one JSON document of RFC 8259 in UTF-8, by two parsers?

    Raises `Unjudgeable` where they differ, as on a lone surrogate.
    """
    readable, _, contested = _read(content)
    if contested:
        raise Unjudgeable(contested)
    return readable


def _read(content: bytes) -> tuple[bool, Any, str]:
    """Whether Python's parser reads the content, its value, and a sentence on why jiter differs (empty if it
    agrees).

    Raises `Unjudgeable` where only jiter reads it.
    """
    from harness.oracle.judge.second import refusal

    value, why = None, ""
    try:
        value = _parse(content.decode("utf-8"))
    except RecursionError:
        raise Unjudgeable("the document nests too deeply") from None
    except ValueError as error:
        why = str(error)
    other = refusal(content)
    if other is not None and bool(other) != bool(why):
        if why:
            raise Unjudgeable(reason(f"contested: one JSON parser reads it, Python's json says: {why}"))
        return True, value, reason(f"contested: one JSON parser reads it, jiter says: {other}")
    return not why, value, ""


def check_schema(schema_text: str, draft: str | None = None) -> str | None:
    """What is wrong with the schema by its meta-schema, in one line; None if nothing is, or if it nests too
    deeply to be checked."""
    try:
        schema = _parse_schema(schema_text)
        return _schema_error(schema, draft_of(schema, draft))
    except RecursionError:
        return None
    except Unjudgeable as error:
        return str(error)


# --- JSON


def _parse(text: str) -> Any:
    """The value of strict JSON with exact numbers. Raises `ValueError` for anything else, and `Unjudgeable`
    for a name that occurs twice."""
    twice: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            twice.append(next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1))
        return value

    value = json.loads(
        text, parse_float=_decimal, parse_int=_integer, parse_constant=_no_constant, object_pairs_hook=members
    )
    if twice:
        raise Unjudgeable(reason(f"the name {twice[0]!r} occurs twice in one object"))
    return value


def _parse_schema(text: str) -> dict[str, Any] | bool:
    try:
        schema = _parse(text)
    except ValueError as error:
        raise Unjudgeable(reason(f"the schema is not JSON: {error}")) from error
    if not isinstance(schema, dict | bool):
        raise Unjudgeable("a schema must be an object or a boolean")
    return schema


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _decimal(literal: str) -> Decimal:
    try:
        return Decimal(literal)
    except InvalidOperation:
        raise Unjudgeable("a number's exponent is too large") from None


def _integer(literal: str) -> int:
    if len(literal) > 4300:  # where Python's own int() refuses
        raise Unjudgeable("a number has more than 4300 digits")
    return int(literal)


def _is_multiple(value: int | Decimal, divisor: int | Decimal) -> bool:
    for number in (value, divisor):
        if isinstance(number, Decimal) and abs(number.adjusted()) > 5000:
            raise Unjudgeable("a number's exponent is too large")
    return (Fraction(value) / Fraction(divisor)).denominator == 1


def _identity(value: Any) -> Any:
    """A hashable value that is equal for two JSON values exactly when JSON Schema calls them equal."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return tuple(_identity(each) for each in value)
    if isinstance(value, dict):
        return frozenset((name, _identity(each)) for name, each in value.items())
    return value


# --- JSON Schema: the jsonschema library, with its keywords replaced where Python's numbers or regexes show
# through


def draft_of(schema: Any, draft: str | None) -> str:
    """The draft by which a schema is read: its own, else the given one, else 2020-12.

    Raises `Unjudgeable`.
    """
    if draft is not None and draft not in DRAFTS:
        raise Unjudgeable(f"unknown draft {draft!r}; known: {', '.join(DRAFTS)}")
    named = schema.get("$schema") if isinstance(schema, dict) else None
    dialect = DIALECT_URI.fullmatch(named) if isinstance(named, str) else None
    if dialect:
        return f"draft{dialect[1] or dialect[2]}"
    return draft or "draft2020-12"


@lru_cache(maxsize=64)
def _validator(schema_text: str, draft: str | None, assert_formats: bool) -> Any:
    import referencing

    schema = _parse_schema(schema_text)
    dialect = draft_of(schema, draft)
    wrong = _schema_error(schema, dialect)
    if wrong is not None:
        raise Unjudgeable(f"the schema is wrong: {wrong}")
    # A registry without `retrieve` knows the meta-schemas and nothing else; jsonschema's default one would
    # fetch.
    return _validator_class(dialect)(
        schema, format_checker=_format_checker() if assert_formats else None, registry=referencing.Registry()
    )


def _schema_error(schema: Any, dialect: str) -> str | None:
    import referencing
    from jsonschema import FormatChecker
    from jsonschema.exceptions import best_match

    patterns_only = FormatChecker(formats=())
    patterns_only.checks("regex")(lambda value: not isinstance(value, str) or is_pattern(value))
    validator_class = _validator_class(dialect)
    validator = validator_class(
        validator_class.META_SCHEMA, format_checker=patterns_only, registry=referencing.Registry()
    )
    error = best_match(validator.iter_errors(schema))
    return None if error is None else reason(f"{error.json_path}: {error.message}")


@cache
def _validator_class(dialect: str) -> Any:
    import jsonschema

    base: Any = getattr(jsonschema, dialect.title().replace("-", "") + "Validator")
    integer_is_a_spelling = dialect in ("draft3", "draft4")

    def is_integer(_checker: Any, value: Any) -> bool:
        if isinstance(value, Decimal):
            return not integer_is_a_spelling and value == value.to_integral_value()
        return isinstance(value, int) and not isinstance(value, bool)

    keywords = {name: keyword for name, keyword in _KEYWORDS.items() if name in base.VALIDATORS}
    if dialect != "draft2019-09":
        keywords.pop("unevaluatedItems", None)
    extend: Any = jsonschema.validators.extend
    extended = extend(base, keywords, type_checker=base.TYPE_CHECKER.redefine("integer", is_integer))
    fields = [(field.name, field.alias) for field in extended.__attrs_attrs__ if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        """Does what jsonschema's `evolve` does, but keeps our class; jsonschema's goes back to its own where
        a subschema has `$schema`."""
        schema = changes.get("schema", self.schema)
        kept = {alias: getattr(self, name) for name, alias in fields}
        return _validator_class(draft_of(schema, dialect))(**{**kept, **changes})

    extended.evolve = evolve
    return extended


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not finds(pattern, instance):
        yield _error("does not match the pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if finds(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            if name not in known and not any(finds(pattern, name) for pattern in patterns):
                yield from validator.descend(value, subschema, path=name)


def _unevaluated_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        others = {name: keyword for name, keyword in schema.items() if name != "unevaluatedProperties"}
        evaluated = _evaluated_names(validator, instance, others)
        for name, value in instance.items():
            if name not in evaluated:
                yield from validator.descend(value, subschema, path=name)


def _evaluated_names(validator: Any, instance: dict[str, Any], schema: Any) -> set[str]:
    """The names that a schema which accepts `instance` has applied some subschema to."""
    if isinstance(schema, bool):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    names = {name for name in instance if name in schema.get("properties", {})}
    names |= {
        name
        for name in instance
        if any(finds(pattern, name) for pattern in schema.get("patternProperties", {}))
    }
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            resolved = _resolve(validator, keyword, schema[keyword])
            target = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            names |= _evaluated_names(target, instance, resolved.contents)
    for branch in _branches(validator, instance, schema):
        names |= _evaluated_names(validator, instance, branch)
    return names


def _unevaluated_items(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Applies `unevaluatedItems` of draft 2019-09: unlike in 2020-12, and unlike in both libraries,
    `contains` evaluates no item."""
    if isinstance(instance, list):
        others = {name: keyword for name, keyword in schema.items() if name != "unevaluatedItems"}
        for index in range(_evaluated_items(validator, instance, others), len(instance)):
            yield from validator.descend(instance[index], subschema, path=index)


def _evaluated_items(validator: Any, instance: list[Any], schema: Any) -> int:
    """How many items, from the first on, a schema of draft 2019-09 which accepts `instance` has applied some
    subschema to."""
    if isinstance(schema, bool):
        return 0
    items = schema.get("items")
    if (
        "unevaluatedItems" in schema
        or isinstance(items, dict | bool)
        or (isinstance(items, list) and "additionalItems" in schema)
    ):
        return len(instance)
    counts = [len(items) if isinstance(items, list) else 0]
    for keyword in ("$ref", "$recursiveRef"):
        if keyword in schema:
            resolved = _resolve(validator, keyword, schema[keyword])
            target = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            counts.append(_evaluated_items(target, instance, resolved.contents))
    counts += [
        _evaluated_items(validator, instance, branch) for branch in _branches(validator, instance, schema)
    ]
    return min(len(instance), max(counts))


def _branches(validator: Any, instance: Any, schema: Any) -> list[Any]:
    """The subschemas that are applied to the instance itself and accept it."""
    branches = [branch for keyword in ("allOf", "anyOf", "oneOf") for branch in schema.get(keyword, [])]
    if isinstance(instance, dict):
        branches += [
            branch for name, branch in schema.get("dependentSchemas", {}).items() if name in instance
        ]
    if "if" in schema:
        holds = _accepts(validator, schema["if"], instance)
        branches += [schema["if"], schema.get("then", True)] if holds else [schema.get("else", True)]
    return [branch for branch in branches if _accepts(validator, branch, instance)]


def _resolve(validator: Any, keyword: str, reference: str) -> Any:
    from referencing.jsonschema import lookup_recursive_ref

    return (
        lookup_recursive_ref(validator._resolver)
        if keyword == "$recursiveRef"
        else validator._resolver.lookup(reference)
    )


def _accepts(validator: Any, subschema: Any, instance: Any) -> bool:
    return next(iter(validator.descend(instance, subschema)), None) is None


def _multiple_of(_validator: Any, divisor: int | Decimal, instance: Any, _schema: Any) -> Iterator[Any]:
    if (
        isinstance(instance, int | Decimal)
        and not isinstance(instance, bool)
        and not _is_multiple(instance, divisor)
    ):
        yield _error("is not a multiple")


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[Any]:
    if wanted and isinstance(instance, list) and len({_identity(item) for item in instance}) < len(instance):
        yield _error("has an item twice")


def _format(validator: Any, name: str, instance: Any, _schema: Any) -> Iterator[Any]:
    checker = validator.format_checker
    if checker is not None and isinstance(instance, str):
        if name in UNCHECKED_FORMATS:
            raise Unjudgeable(f"no checker for the format {name}")
        if name == "hostname" and "xn--" in instance.lower():
            raise Unjudgeable("no checker for a punycode host name")
        if not checker.conforms(instance, name):
            yield _error(f"{instance[:80]!r} is not of the format {name}")


_KEYWORDS: dict[str, Callable[[Any, Any, Any, Any], Iterator[Any]]] = {
    "additionalProperties": _additional_properties,
    "divisibleBy": _multiple_of,
    "format": _format,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}


# --- formats, asserted on request only; jsonschema's own need packages for most and take any text with an @
# for an e-mail address

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_TIME = r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"  # noqa: E501
_URI_CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_AUTHORITY = rf"(?:(?:(?!@){_URI_CHARACTER})*@)?(?:\[(?P<ip>[0-9A-Fa-f:.]+)\]|(?:(?![:@]){_URI_CHARACTER})*)(?::[0-9]*)?"  # noqa: E501
_URI_REST = rf"(?://{_AUTHORITY}(?:/{_URI_CHARACTER}*)*|/?(?:{_URI_CHARACTER}+(?:/{_URI_CHARACTER}*)*)?)"
_URI_TAIL = rf"(?:\?(?:{_URI_CHARACTER}|[/?])*)?(?:#(?:{_URI_CHARACTER}|[/?])*)?"
FORMATS = {
    "duration": r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"
    r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)",
    "email": rf"(?:{_ATOM}(?:\.{_ATOM})*|\"(?:[^\"\\]|\\.)*\")@(?:\[(?:IPv6:)?(?P<ip>[0-9A-Fa-f:.]+)\]|{_HOST})",  # noqa: E501
    "hostname": _HOST,
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "uri": rf"[A-Za-z][A-Za-z0-9+.-]*:{_URI_REST}{_URI_TAIL}",
    "uri-reference": rf"(?:[A-Za-z][A-Za-z0-9+.-]*:|(?![^/?#]*:)){_URI_REST}{_URI_TAIL}",
}
UNCHECKED_FORMATS = frozenset(
    ("idn-email", "idn-hostname", "iri", "iri-reference", "relative-json-pointer", "uri-template")
)


@cache
def _format_checker() -> Any:
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=("date", "ipv4", "ipv6"))
    checker.checks("regex")(lambda value: not isinstance(value, str) or is_pattern(value))
    checker.checks("time")(lambda value: not isinstance(value, str) or _is_time(value))
    checker.checks("date-time")(lambda value: not isinstance(value, str) or _is_date_time(value, checker))
    for name, pattern in FORMATS.items():
        checker.checks(name)(
            lambda value, pattern=pattern: not isinstance(value, str) or _has_form(pattern, value)
        )
    return checker


def _has_form(pattern: str, text: str) -> bool:
    found = re.fullmatch(pattern, text)
    address = found.groupdict().get("ip") if found else None
    if address is not None:
        with suppress(ValueError):
            return bool(ip_address(address))
    return found is not None and address is None


def _is_date_time(text: str, checker: Any) -> bool:
    return text[10:11] in ("T", "t") and bool(checker.conforms(text[:10], "date")) and _is_time(text[11:])


def _is_time(text: str) -> bool:
    """Is the text a full-time of RFC 3339? A leap second is one only where UTC has one."""
    found = re.fullmatch(_TIME, text)
    if found is None:
        return False
    offset = (int(found[5]) * 60 + int(found[6])) * (1 if found[4] == "+" else -1) if found[4] else 0
    return found[3] != "60" or (int(found[1]) * 60 + int(found[2]) - offset) % 1440 == 1439
