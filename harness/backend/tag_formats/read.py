"""Reads a structural tag of the new form from JSON. What is wrong is said in one line, with its place as a
JSON Pointer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from harness.backend.tag_formats.forms import (
    STYLES,
    SYNTAXES,
    Alternatives,
    AnyText,
    AnyTokens,
    ConstString,
    Dispatch,
    Format,
    GrammarText,
    JsonSchema,
    OneToken,
    OtherToken,
    Regex,
    Repetition,
    SeparatedTags,
    Sequence,
    TagFormat,
    TokenDispatch,
    TokenName,
    TokenTriggeredTags,
    TriggeredTags,
)
from harness.errors import did_you_mean
from harness.text import one_line

DEEPEST = 100
"""Formats may stand in each other so deep; deeper ones are refused."""
LARGEST = 2**31 - 1
"""The largest number that may stand in a format."""


class FormatError(ValueError):
    """A structural tag is wrong: the message gives the place, as a JSON Pointer, and the reason."""


def has_format(form: object) -> bool:
    """Returns whether a parsed structural tag is meant in the new form: it is an object that has not both
    "triggers" and "structures"."""
    return isinstance(form, dict) and not {"triggers", "structures"} <= form.keys()


def read_tag(form: Any) -> Format:
    """Returns the format of a parsed structural tag of the new form. Raises FormatError."""
    fields = _Fields(form, "", 0)
    if "format" not in fields.value:
        raise FormatError('an object with "format" is needed, or one with "triggers" and "structures"')
    fields.takes("type", "format")
    if fields.value.get("type", "structural_tag") != "structural_tag":
        fields.refuse("type", 'must be "structural_tag"')
    return fields.format("format")


class _Fields:
    """The fields of one object, each read as what it should be. Raises FormatError with the field's place."""

    def __init__(self, value: Any, place: str, depth: int) -> None:
        self.place, self._depth = place, depth
        if not isinstance(value, dict):
            self.refuse("", f"must be an object, not {_kind(value)}")
        if depth > DEEPEST:
            self.refuse("", f"more than {DEEPEST} formats stand in each other")
        self.value: dict[str, Any] = value

    def refuse(self, path: str, reason: str) -> NoReturn:
        """Raises FormatError for a field of the object, or for what stands at a path below it."""
        place = "/".join(part for part in (self.place, path) if part)
        raise FormatError(f"at /{place if len(place) < 200 else place[:200] + '…'}: {reason}")

    def takes(self, *fields: str) -> None:
        """Refuses every other field; a misspelt one would be passed over."""
        for name in self.value:
            if name not in ("type", *fields):
                path = one_line(name.replace("~", "~0").replace("/", "~1"), 60, spelled=True)
                self.refuse(path, f"there is no such field here{did_you_mean(name, fields)}")

    def _get(self, field: str, default: Any, is_right: Callable[[Any], bool], what: str) -> Any:
        if field not in self.value:
            if default is _NEEDED:
                self.refuse(field, f"is missing: {what}")
            return default
        value = self.value[field]
        if not is_right(value):
            self.refuse(field, f"must be {what}, not {_kind(value)}")
        return value

    def flag(self, field: str, default: bool) -> bool:
        return bool(self._get(field, default, lambda value: isinstance(value, bool), "true or false"))

    def text(self, field: str) -> str:
        text: str = self._get(field, _NEEDED, lambda value: isinstance(value, str), "a string")
        return self.unicode(field, text)

    def unicode(self, field: str, text: str) -> str:
        """Returns the text, unless no UTF-8 exists for it."""
        try:
            text.encode()
        except UnicodeEncodeError:
            self.refuse(field, "holds half a surrogate pair, which no output can")
        return text

    def texts(self, field: str, default: Any = ()) -> tuple[str, ...]:
        """Returns a list of texts, none of which is empty."""
        texts = self._list(field, default)
        for number, text in enumerate(texts):
            if not isinstance(text, str) or not text:
                self.refuse(f"{field}/{number}", "must be a string that is not empty")
            self.unicode(field, text)
        return tuple(texts)

    def _list(self, field: str, default: Any) -> list[Any]:
        values = self._get(field, default, lambda value: isinstance(value, list), "a list")
        if default is _NEEDED and not values:
            self.refuse(field, "is empty")
        return list(values)

    def number(self, field: str, least: int, default: Any) -> int | None:
        number: int | None = self._get(
            field,
            default,
            lambda value: (value is None and default is None) or _is_number(value, least),
            f"a whole number from {least} to {LARGEST}",
        )
        return number

    def token(self, field: str, value: Any) -> TokenName:
        if isinstance(value, str) and value:
            return self.unicode(field, value)
        if _is_number(value, 0):
            return int(value)
        self.refuse(field, "a token is an id or a name: a whole number or a string that is not empty")

    def tokens(self, field: str, default: Any = ()) -> tuple[TokenName, ...]:
        values = self._list(field, default)
        return tuple(self.token(f"{field}/{number}", value) for number, value in enumerate(values))

    def below(self, field: str, value: Any) -> _Fields:
        return _Fields(value, f"{self.place}/{field}".lstrip("/"), self._depth + 1)

    def format(self, field: str) -> Format:
        if field not in self.value:
            self.refuse(field, "is missing: a format")
        return _format(self.below(field, self.value[field]))

    def elements(self) -> tuple[Format, ...]:
        values = self._list("elements", _NEEDED)
        return tuple(_format(self.below(f"elements/{number}", value)) for number, value in enumerate(values))

    def tags(self, begins_with_token: bool | None) -> tuple[TagFormat, ...]:
        """Returns the field `tags`; each begins as said: with a token, with a text, or as it likes."""
        tags = []
        for number, value in enumerate(self._list("tags", _NEEDED)):
            fields = self.below(f"tags/{number}", value)
            if fields.value.get("type", "tag") != "tag":
                fields.refuse("type", 'must be "tag"')
            tag = _tag(fields)
            if begins_with_token is not None and isinstance(tag.begin, OneToken) != begins_with_token:
                fields.refuse("begin", f"must be {'a token' if begins_with_token else 'a text'} here")
            tags.append(tag)
        return tuple(tags)

    def rules(self, key: Callable[[str, Any], Any]) -> tuple[tuple[Any, Format], ...]:
        rules = []
        for number, rule in enumerate(self._list("rules", _NEEDED)):
            if not isinstance(rule, list) or len(rule) != 2:
                self.refuse(f"rules/{number}", "a rule is a list of two: what begins it, and a format")
            begin = key(f"rules/{number}/0", rule[0])
            rules.append((begin, _format(self.below(f"rules/{number}/1", rule[1]))))
        return tuple(rules)

    def pattern(self, field: str, value: Any) -> str:
        if not isinstance(value, str) or not value:
            self.refuse(field, "must be a string that is not empty")
        return self.unicode(field, value)


_NEEDED: Any = object()


def _is_number(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), repr(value)[:40])


def _format(fields: _Fields) -> Format:
    kind = fields.value.get("type")
    if "type" not in fields.value:
        fields.refuse("type", f"is missing; a format is one of {', '.join(READERS)}")
    if not isinstance(kind, str) or kind not in READERS:
        name = kind if isinstance(kind, str) else json.dumps(kind)[:60]
        shown = one_line(name, 60, spelled=True)
        fields.refuse("type", f'there is no format "{shown}"{did_you_mean(name, tuple(READERS))}')
    return READERS[kind](fields)


def _const_string(fields: _Fields) -> Format:
    fields.takes("value")
    return ConstString(fields.text("value"))


def _json_schema(fields: _Fields) -> Format:
    fields.takes("json_schema", "style", "any_order", "max_whitespace_cnt", "excludes")
    style = fields.value.get("style", "json")
    if not isinstance(style, str) or style not in STYLES:
        fields.refuse("style", f"must be one of {', '.join(STYLES)}")
    return _document(fields, style)


def _qwen_xml_parameter(fields: _Fields) -> Format:
    fields.takes("json_schema")
    return _document(fields, "qwen_xml")


def _document(fields: _Fields, style: Any) -> Format:
    schema = fields.value.get("json_schema")
    if not isinstance(schema, dict | bool):
        fields.refuse("json_schema", "must be a JSON Schema: an object or a boolean")
    return JsonSchema(
        schema,
        style,
        fields.flag("any_order", False),
        fields.number("max_whitespace_cnt", 0, None),
        fields.texts("excludes"),
    )


def _grammar(fields: _Fields) -> Format:
    fields.takes("grammar", "syntax")
    syntax = fields.value.get("syntax", "ebnf")
    if syntax not in SYNTAXES:
        fields.refuse("syntax", f"must be one of {', '.join(SYNTAXES)}")
    return GrammarText(fields.text("grammar") or fields.refuse("grammar", "is empty"), syntax)


def _regex(fields: _Fields) -> Format:
    fields.takes("pattern")
    return Regex(fields.text("pattern") or fields.refuse("pattern", "is empty"))


def _any_text(fields: _Fields) -> Format:
    fields.takes("excludes", "max_tokens", "max_chars")
    return AnyText(
        fields.texts("excludes"), fields.number("max_tokens", 0, None), fields.number("max_chars", 0, None)
    )


def _token(fields: _Fields) -> OneToken:
    fields.takes("token")
    return OneToken(fields.token("token", fields.value.get("token")))


def _exclude_token(fields: _Fields) -> Format:
    fields.takes("exclude_tokens")
    return OtherToken(fields.tokens("exclude_tokens"))


def _any_tokens(fields: _Fields) -> Format:
    fields.takes("exclude_tokens", "max_tokens")
    return AnyTokens(fields.tokens("exclude_tokens"), fields.number("max_tokens", 0, None))


def _sequence(fields: _Fields) -> Format:
    fields.takes("elements")
    return Sequence(fields.elements())


def _or(fields: _Fields) -> Format:
    fields.takes("elements")
    return Alternatives(fields.elements())


def _repeated(least: int, most: int | None) -> Callable[[_Fields], Format]:
    def read(fields: _Fields) -> Format:
        fields.takes("content")
        return Repetition(fields.format("content"), least, most)

    return read


def _repeat(fields: _Fields) -> Format:
    fields.takes("min", "max", "content")
    least, most = fields.number("min", 0, _NEEDED), fields.number("max", -1, _NEEDED)
    assert least is not None and most is not None
    if 0 <= most < least:
        fields.refuse("max", f"is {most}, which is less than the least, {least}")
    return Repetition(fields.format("content"), least, None if most < 0 else most)


def _tag(fields: _Fields) -> TagFormat:
    fields.takes("begin", "content", "end")
    begin, end = fields.value.get("begin"), fields.value.get("end")
    ends: tuple[str, ...] | OneToken
    if isinstance(end, dict):
        ends = _edge_token(fields, "end")
    elif isinstance(end, list):
        if not end or not all(isinstance(text, str) for text in end):
            fields.refuse("end", "must be a text, some texts, or a token")
        ends = tuple(fields.unicode("end", text) for text in end)
    else:
        ends = (fields.text("end"),)
    is_token = isinstance(begin, dict)
    return TagFormat(
        _edge_token(fields, "begin") if is_token else fields.text("begin"), fields.format("content"), ends
    )


def _edge_token(fields: _Fields, field: str) -> OneToken:
    """Returns the token that begins or ends a tag."""
    token = fields.below(field, fields.value[field])
    if token.value.get("type", "token") != "token":
        token.refuse("type", 'must be "token"')
    return _token(token)


def _triggered_tags(fields: _Fields) -> Format:
    fields.takes("triggers", "tags", "at_least_one", "stop_after_first", "excludes")
    triggers, tags = fields.texts("triggers", _NEEDED), fields.tags(False)
    for number, tag in enumerate(tags):
        if isinstance(tag.begin, str) and not tag.begin.startswith(triggers):
            fields.refuse(f"tags/{number}/begin", "starts with none of the triggers")
    return TriggeredTags(
        triggers,
        tags,
        fields.flag("at_least_one", False),
        fields.flag("stop_after_first", False),
        fields.texts("excludes"),
    )


def _token_triggered_tags(fields: _Fields) -> Format:
    fields.takes("trigger_tokens", "tags", "at_least_one", "stop_after_first", "exclude_tokens")
    return TokenTriggeredTags(
        fields.tokens("trigger_tokens", _NEEDED),
        fields.tags(True),
        fields.flag("at_least_one", False),
        fields.flag("stop_after_first", False),
        fields.tokens("exclude_tokens"),
    )


def _tags_with_separator(fields: _Fields) -> Format:
    fields.takes("tags", "separator", "at_least_one", "stop_after_first")
    return SeparatedTags(
        fields.tags(None),
        fields.text("separator"),
        fields.flag("at_least_one", False),
        fields.flag("stop_after_first", False),
    )


def _dispatch(fields: _Fields) -> Format:
    fields.takes("rules", "loop", "excludes")
    return Dispatch(fields.rules(fields.pattern), fields.flag("loop", True), fields.texts("excludes"))


def _token_dispatch(fields: _Fields) -> Format:
    fields.takes("rules", "loop", "exclude_tokens")
    return TokenDispatch(
        fields.rules(fields.token), fields.flag("loop", True), fields.tokens("exclude_tokens")
    )


READERS: dict[str, Callable[[_Fields], Format]] = {
    "const_string": _const_string,
    "json_schema": _json_schema,
    "grammar": _grammar,
    "regex": _regex,
    "any_text": _any_text,
    "sequence": _sequence,
    "or": _or,
    "optional": _repeated(0, 1),
    "plus": _repeated(1, None),
    "star": _repeated(0, None),
    "repeat": _repeat,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "tags_with_separator": _tags_with_separator,
    "dispatch": _dispatch,
    "token": _token,
    "exclude_token": _exclude_token,
    "any_tokens": _any_tokens,
    "token_triggered_tags": _token_triggered_tags,
    "token_dispatch": _token_dispatch,
    "qwen_xml_parameter": _qwen_xml_parameter,
}
"""What reads the fields of each type of format."""
