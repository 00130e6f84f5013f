"""Judges one output of a grammar here, in the time that it takes."""

from __future__ import annotations

from functools import lru_cache

from harness.backend.grammar import Grammar
from harness.oracle.choice import choices_of
from harness.oracle.judge.membership import membership
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable, reason
from harness.oracle.regex.syntax import has_negated_class


def is_valid(
    grammar: Grammar, content: bytes, *, draft: str | None = None, assert_formats: bool = False
) -> bool:
    """Is `content` a complete output of the grammar?

    A JSON Schema is read by its `$schema`, else by `draft` ("draft3" to "draft2020-12"), else by 2020-12; an
    unknown `$schema` counts as absent.  A regex is read as the `regex` library reads it, and must match the
    whole text. Of regexes, EBNF and Lark the reference automaton judges; of a regex without one, the
    library's matcher. Raises `Unjudgeable` for structural tags, a wrong grammar, a reference that leaves the
    schema, a subschema that names another draft and has no `$id`, a name twice in one object, nesting deeper
    than Python's stack, and a text that one JSON parser reads and another refuses.
    """
    if grammar.dialect == "json_schema":
        return document_is_valid(grammar.text, content, draft, assert_formats)
    if grammar.dialect == "regex":
        return _text_matches(grammar.text, content)
    if grammar.dialect == "choice":
        return content in [choice.encode("utf-8", "surrogatepass") for choice in _choices(grammar.text)]
    if grammar.dialect in ("ebnf", "lark"):
        return membership(grammar, content) == "sentence"
    raise Unjudgeable(f"no judge for {grammar.dialect}")


def _text_matches(pattern: str, content: bytes) -> bool:
    r"""The automaton comes first: version 2026.11.15 of the library reads patterns rightly, but its matcher
    refuses `a` for `[^a]|[^b]`, and takes `[^\s\S]` for every character. So it gives no verdict on a pattern
    with a negated class."""
    import regex

    if _has_automaton(pattern):
        try:
            return membership(Grammar("regex", pattern), content) == "sentence"
        except Unjudgeable:  # the automaton grows too large along this text
            pass
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if has_negated_class(pattern):
        raise Unjudgeable("the pattern has no automaton, and a negated class, which the library may misread")
    try:
        return regex.fullmatch(pattern, text) is not None
    except (regex.error, RecursionError) as error:
        raise Unjudgeable(reason(f"not a regex: {error}")) from error


@lru_cache(maxsize=256)
def _has_automaton(pattern: str) -> bool:
    """Is there a reference automaton of the pattern? A pattern that has none may take seconds to say so, and
    each of its texts would."""
    try:
        membership(Grammar("regex", pattern), b"")
    except Unjudgeable:
        return False
    return True


def _choices(text: str) -> list[str]:
    try:
        return choices_of(text)
    except ValueError as error:
        raise Unjudgeable(reason(str(error))) from error
