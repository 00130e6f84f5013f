"""Judges JSON documents with the jsonschema library, made strict: RFC 8259 JSON, exact numbers and ECMA-262
patterns.

Nothing is fetched: a `$ref` that points out of the schema is not judged, except to the meta-schemas.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

from harness.oracle.judge.drafts import CLASSES, DRAFT_URIS, class_name, draft_of, specification
from harness.oracle.judge.formats import format_checker
from harness.oracle.judge.keywords import KEYWORDS, open_dependencies
from harness.oracle.judge.pattern import is_pattern
from harness.oracle.judge.references import entered, inner_resolver
from harness.oracle.judge.strict_json import parse_json, read_document
from harness.oracle.judge.unjudgeable import Unjudgeable, reason

ROOT = "urn:grammarbench:schema"
"""The identifier of a schema that has none."""


def document_is_valid(schema_text: str, content: bytes, draft: str | None, assert_formats: bool) -> bool:
    """Is `content` a JSON document that the schema allows?  Raises `Unjudgeable`.

    A text that one JSON parser reads and another refuses is not judged, unless the schema forbids the
    document as the first one reads it.
    """
    readable, instance, contested = read_document(content)
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


def check_schema(schema_text: str, draft: str | None = None) -> str | None:
    """Returns what is wrong with the schema by its meta-schema, in one line; None if nothing is, or if it
    nests too deeply to be checked."""
    try:
        schema = _parsed_schema(schema_text)
        return schema_error(schema, draft_of(schema, draft))
    except RecursionError:
        return None
    except Unjudgeable as error:
        return str(error)


def _parsed_schema(text: str) -> dict[str, Any] | bool:
    try:
        schema = parse_json(text)
    except ValueError as error:
        raise Unjudgeable(reason(f"the schema is not JSON: {error}")) from error
    if not isinstance(schema, dict | bool):
        raise Unjudgeable("a schema must be an object or a boolean")
    return schema


@lru_cache(maxsize=64)
def _validator(schema_text: str, draft: str | None, assert_formats: bool) -> Any:
    schema = _parsed_schema(schema_text)
    dialect = draft_of(schema, draft)
    wrong = schema_error(schema, dialect)
    if wrong is not None:
        raise Unjudgeable(f"the schema is wrong: {wrong}")
    resolver = _resolver(schema, dialect)
    return _validator_class(dialect)(
        schema, format_checker=format_checker() if assert_formats else None, _resolver=resolver
    )


def _resolver(schema: Any, dialect: str) -> Any:
    """Returns the resolver of a schema's references. Its registry knows the meta-schemas and nothing else;
    jsonschema's default one would fetch, and would lose a schema without identifier out of the scope of
    `$dynamicRef`."""
    from jsonschema_specifications import REGISTRY

    registry: Any = REGISTRY
    resource = specification(DRAFT_URIS[dialect]).create_resource(schema)
    name = resource.id() or ROOT
    return registry.with_resource(name, resource).resolver(name)


def schema_error(schema: Any, dialect: str) -> str | None:
    """Returns what is wrong with a schema of a draft by its meta-schema, in one line; None if nothing is."""
    import referencing
    from jsonschema import FormatChecker
    from jsonschema.exceptions import best_match

    if _is_surely_a_schema(schema, dialect):
        return None
    patterns_only = FormatChecker(formats=())
    patterns_only.checks("regex")(lambda value: not isinstance(value, str) or is_pattern(value))
    validator_class = _validator_class(dialect)
    validator = validator_class(
        validator_class.META_SCHEMA, format_checker=patterns_only, registry=referencing.Registry()
    )
    errors = list(validator.iter_errors(schema))
    try:
        error = best_match(errors)
    except TypeError:  # it cannot rank errors of draft 3, whose types may be schemas
        error = errors[0]
    return None if error is None else reason(f"{error.json_path}: {error.message}")


def _is_surely_a_schema(schema: Any, dialect: str) -> bool:
    """Returns whether jsonschema_rs finds nothing wrong by the meta-schema, with more formats asserted.

    It takes a hundredth of jsonschema's time. What it objects to is asked of jsonschema, which has the last
    word.
    """
    quick = _quick_validator(dialect)
    try:
        return quick is not None and quick.is_valid(schema)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False


@cache
def _quick_validator(dialect: str) -> Any:
    import jsonschema_rs

    if dialect not in CLASSES:
        return None
    makes = getattr(jsonschema_rs, CLASSES[dialect])
    formats = {"regex": is_pattern}
    meta_schema = _validator_class(dialect).META_SCHEMA
    return makes(meta_schema, validate_formats=True, formats=formats, offline=True)


@cache
def _validator_class(dialect: str) -> Any:
    import jsonschema

    base: Any = getattr(jsonschema, class_name(dialect))
    integer_is_a_spelling = dialect in ("draft3", "draft4")

    def is_integer(_checker: Any, value: Any) -> bool:
        if isinstance(value, Decimal):
            return not integer_is_a_spelling and value == value.to_integral_value()
        return isinstance(value, int) and not isinstance(value, bool)

    keywords = {name: keyword for name, keyword in KEYWORDS.items() if name in base.VALIDATORS}
    if "dependentRequired" in base.VALIDATORS:
        keywords["dependencies"] = open_dependencies
    extend: Any = jsonschema.validators.extend
    extended = extend(base, keywords, type_checker=base.TYPE_CHECKER.redefine("integer", is_integer))
    fields = [(field.name, field.alias) for field in extended.__attrs_attrs__ if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        """Does what jsonschema's `evolve` does, but keeps our class, where jsonschema's goes back to its own
        if a subschema has `$schema`, and enters a subschema that has an identifier, which jsonschema's `not`,
        `if`, `contains` and `oneOf` do not."""
        schema = changes.get("schema", self.schema)
        named = draft_of(schema, dialect)
        if named != dialect and not _is_resource(schema, {named, dialect}):
            raise Unjudgeable("a subschema without an identifier names another draft")
        resolver = changes.get("_resolver") or inner_resolver(self, schema)
        kept = {alias: getattr(self, name) for name, alias in fields}
        changes["_resolver"] = entered(self._resolver, resolver)
        return _validator_class(named)(**{**kept, **changes})

    extended.evolve = evolve
    return extended


def _is_resource(schema: Any, drafts: set[str]) -> bool:
    """Is a subschema a resource of its own by both drafts, the one around it and its own? `$schema` may stand
    in such a one only. Before draft 6 an identifier has another name, and before 2019-09 a reference hides
    it."""
    return isinstance(schema.get("$id"), str) and "$ref" not in schema and not drafts & {"draft3", "draft4"}
