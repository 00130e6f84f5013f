"""What a format of a structural tag can be. Each class is one form or several that mean the same; which texts
it stands for is said in docs/structural_tags.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

TokenName: TypeAlias = int | str
"""A token by its id or by its name."""

Style = Literal[
    "json",
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "glm_xml",
    "cohere_xml",
    "kimi_k3_xml",
    "gemma",
]
"""How a document is written: as JSON, or in the form of one family of models."""
STYLES: tuple[str, ...] = get_args(Style)


@dataclass(frozen=True)
class ConstString:
    """`const_string`: one text."""

    value: str


@dataclass(frozen=True, eq=False)
class JsonSchema:
    """`json_schema`: the documents of a schema."""

    schema: Any
    style: Style
    any_order: bool
    longest_run: int | None
    """The field `max_whitespace_cnt`: the most characters of white space in a row; None is any number."""
    excludes: tuple[str, ...]


@dataclass(frozen=True)
class Regex:
    """`regex`: what a pattern matches as a whole."""

    pattern: str


Syntax = Literal["ebnf", "lark"]
"""How a grammar is written; each is a dialect of cases too."""
SYNTAXES: tuple[Syntax, ...] = get_args(Syntax)


@dataclass(frozen=True)
class GrammarText:
    """`grammar`: the sentences of a grammar."""

    text: str
    syntax: Syntax


@dataclass(frozen=True)
class AnyText:
    """`any_text`: free text."""

    excludes: tuple[str, ...]
    most_tokens: int | None
    most_characters: int | None


@dataclass(frozen=True)
class OneToken:
    """`token`: one token, by its id."""

    token: TokenName


@dataclass(frozen=True)
class OtherToken:
    """`exclude_token`: any one token but these."""

    excluded: tuple[TokenName, ...]


@dataclass(frozen=True)
class AnyTokens:
    """`any_tokens`: any number of tokens, none of which is excluded."""

    excluded: tuple[TokenName, ...]
    most: int | None


@dataclass(frozen=True, eq=False)
class Sequence:
    """`sequence`: one format after another."""

    elements: tuple[Format, ...]


@dataclass(frozen=True, eq=False)
class Alternatives:
    """`or`: one of several formats."""

    elements: tuple[Format, ...]


@dataclass(frozen=True, eq=False)
class Repetition:
    """`optional`, `plus`, `star` and `repeat`: a format so many times in a row."""

    content: Format
    least: int
    most: int | None
    """None is any number."""


@dataclass(frozen=True, eq=False)
class TagFormat:
    """`tag`: a begin, a format and an end."""

    begin: str | OneToken
    content: Format
    end: tuple[str, ...] | OneToken
    """Texts, any of which ends the tag, or one token."""


@dataclass(frozen=True, eq=False)
class TriggeredTags:
    """`triggered_tags`: free text, in which a trigger begins a tag."""

    triggers: tuple[str, ...]
    tags: tuple[TagFormat, ...]
    at_least_one: bool
    stop_after_first: bool
    excludes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TokenTriggeredTags:
    """`token_triggered_tags`: any tokens, of which a trigger begins a tag."""

    triggers: tuple[TokenName, ...]
    tags: tuple[TagFormat, ...]
    at_least_one: bool
    stop_after_first: bool
    excluded: tuple[TokenName, ...]


@dataclass(frozen=True, eq=False)
class SeparatedTags:
    """`tags_with_separator`: tags, and a text between each two."""

    tags: tuple[TagFormat, ...]
    separator: str
    at_least_one: bool
    stop_after_first: bool


@dataclass(frozen=True, eq=False)
class Dispatch:
    """`dispatch`: free text, in which a pattern must be followed by its format."""

    rules: tuple[tuple[str, Format], ...]
    loop: bool
    excludes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TokenDispatch:
    """`token_dispatch`: any tokens, of which some must be followed by a format."""

    rules: tuple[tuple[TokenName, Format], ...]
    loop: bool
    excluded: tuple[TokenName, ...]


Format: TypeAlias = (
    ConstString
    | JsonSchema
    | Regex
    | GrammarText
    | AnyText
    | OneToken
    | OtherToken
    | AnyTokens
    | Sequence
    | Alternatives
    | Repetition
    | TagFormat
    | TriggeredTags
    | TokenTriggeredTags
    | SeparatedTags
    | Dispatch
    | TokenDispatch
)

TOKEN_FORMS = (OneToken, OtherToken, AnyTokens, TokenTriggeredTags, TokenDispatch)


def formats_in(format: Format) -> Iterator[Format]:
    """Yields the format and all formats inside it, the tokens that begin and end tags included."""
    waiting: list[Format] = [format]
    while waiting:
        here = waiting.pop()
        yield here
        match here:
            case Sequence(elements) | Alternatives(elements):
                waiting += reversed(elements)
            case Repetition(content):
                waiting.append(content)
            case TagFormat(begin, content, end):
                waiting += [each for each in (end, content, begin) if not isinstance(each, str | tuple)]
            case TriggeredTags() | TokenTriggeredTags() | SeparatedTags():
                waiting += reversed(here.tags)
            case Dispatch() | TokenDispatch():
                waiting += [content for _, content in reversed(here.rules)]


def has_tokens(format: Format) -> bool:
    """Returns whether some part of the format is about tokens by their ids."""
    return any(isinstance(each, TOKEN_FORMS) for each in formats_in(format))
