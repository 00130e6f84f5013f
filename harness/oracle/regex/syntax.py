"""Reads patterns of the `regex` library into trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from harness.oracle.automaton import NoOracle
from harness.oracle.regex.char_classes import (
    EVERY,
    NEWLINE,
    Ranges,
    asked,
    complement,
    one,
    ranges_of,
    union,
    with_simple_cases,
)
from harness.oracle.regex.tree import (
    END,
    LAST_LINE_END,
    LINE_END,
    LINE_START,
    NOTHING,
    START,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    atomic,
    boundary,
    no_boundary,
    word_end,
    word_start,
)
from harness.oracle.utf8 import LAST


class Placeholders:
    """Private-use characters that stand for nodes, in a pattern that is written for `parsed`."""

    def __init__(self) -> None:
        self._names: dict[int, Node] = {}

    def of(self, node: Node) -> str:
        point = 0xF0000 + len(self._names)
        if point > LAST:
            raise NoOracle("the pattern is too long")
        self._names[point] = node
        return chr(point)

    def parsed(self, pattern: str) -> Node:
        """Returns the tree of a pattern that holds nothing but these characters, groups, alternatives and
        quantifiers."""
        return parsed(pattern, self._names)


def parsed(pattern: str, names: Mapping[int, Node] | None = None, *, folds: bool = False) -> Node:
    """Returns the tree of a pattern of the `regex` library, version 0, for Unicode text. `names` gives the
    characters that stand for a node. With `folds` each character stands for all of the same simple case
    folding, which the library's own flag does not quite say (`(?i)i` matches the I with a dot). Raises
    NoOracle.

    The library's own parser reads it (as hypothesis lets the parser of `re` read its patterns): what a group,
    a flag, a count or a brace that begins none means is then what it means to the library, whose dialect
    suites/regex.jsonl is written in.
    """
    import regex

    core = _parser()
    pattern = _CLASS.sub(_without_contradiction, pattern)
    flags = 0
    while True:
        source, info = core.Source(pattern), core.Info(flags, str)
        info.guess_encoding = core.UNICODE
        source.ignore_space = bool(info.flags & core.VERBOSE)
        try:
            tree = core._parse_pattern(source, info)
        except core._UnscopedFlagSet:  # one that holds from the beginning: once more, with it
            flags = info.global_flags
            continue
        except (regex.error, ValueError, OverflowError) as error:
            raise NoOracle(f"not a pattern: {error}"[:200]) from error
        break
    if not source.at_end():
        raise NoOracle("not a pattern: unbalanced parenthesis")
    strange = (
        core.ASCII
        | core.LOCALE
        | core.WORD
        | core.REVERSE
        | core.POSIX
        | core.VERSION1
        | core.BESTMATCH
        | core.ENHANCEMATCH
    )
    if info.flags & strange:
        raise NoOracle("a flag that has no reference automaton")
    return _node(tree, names or {}, folds)


def _parser() -> Any:
    return import_module("regex._regex_core")


_CLASS = re.compile(r"\\.|(\[\^(?:\]|\\.|\[:[^\]:]*:\]|[^\\\]])(?:\\.|\[:[^\]:]*:\]|[^\\\]])*\])", re.DOTALL)
_NO_CHARACTER = "[^\\x00-\\U0010ffff]"


def _without_contradiction(match: re.Match[str]) -> str:
    r"""The library takes `[^\s\S]` for every character, as it does `[\s\S]`, although no character is in it;
    this returns a class that the library reads as empty instead."""
    import regex

    negated = match[1]
    try:
        wrong = negated and all(regex.fullmatch(text, "a") for text in (negated, _without_negation(negated)))
    except regex.error:
        wrong = None
    return _NO_CHARACTER if wrong else match[0]


def _without_negation(negated: str) -> str:
    """Returns the class of the characters that a negated class leaves out; `^` may be the first of them."""
    return f"[\\{negated[2:]}" if negated[2] == "^" else f"[{negated[2:]}"


def has_negated_class(pattern: str) -> bool:
    """May the pattern have a class that begins with `[^`?"""
    return any(match[1] for match in _CLASS.finditer(pattern))


def _node(tree: Any, names: Mapping[int, Node], folds: bool) -> Node:
    """Returns a node of the library's parser as one of ours. Raises NoOracle for the kinds that have no
    reference."""

    def inner(part: Any) -> Node:
        return _node(part, names, folds)

    kind = type(tree).__name__
    if kind in _ASSERTIONS:
        _check_encoding(tree)
        return _ASSERTIONS[kind](tree.positive)
    match kind:
        case "Character" if tree.value in names:
            return names[tree.value]
        case "Character" | "Range" | "Property" | "SetUnion":
            return Chars(_folded(tree) if folds else _characters(tree))
        case "Any":
            return Chars(complement(NEWLINE))
        case "AnyAll":
            return Chars(EVERY)
        case "String":
            characters = map(one, tree.characters)
            return Sequence(tuple(map(Chars, map(with_simple_cases, characters) if folds else characters)))
        case "Sequence":
            return Sequence(tuple(map(inner, tree.items)))
        case "Branch":
            return Choice(tuple(map(inner, tree.branches)))
        case "Group":
            return inner(tree.subpattern)
        case "GreedyRepeat" | "LazyRepeat" | "PossessiveRepeat":
            repeat = Repeat(inner(tree.subpattern), tree.min_count, tree.max_count, kind == "LazyRepeat")
            return atomic(repeat) if kind == "PossessiveRepeat" else repeat
        case "Atomic":
            return atomic(inner(tree.subpattern))
        case "LookAround":
            return Look(inner(tree.subpattern), tree.behind, not tree.positive)
        case "LookAroundConditional" if tree.positive:
            body, yes, no = map(inner, (tree.subpattern, tree.yes_item, tree.no_item))
            if_so = Look(body, tree.behind, negative=False)
            if_not = Look(body, tree.behind, negative=True)
            return Choice((Sequence((if_so, yes)), Sequence((if_not, no))))
        case "Failure":
            return NOTHING
    raise NoOracle(f"{_IN_WORDS.get(kind, kind)} has no reference automaton")


_IN_WORDS = {
    "RefGroup": "a backreference",
    "CallGroup": "recursion",
    "Conditional": "a condition on a group",
    "LookAroundConditional": "a negative condition, whose branches the library does not always try,",
    "Fuzzy": "fuzzy matching",
}
_ASSERTIONS: dict[str, Callable[[bool], Node]] = {
    "StartOfString": lambda _: START,
    "SearchAnchor": lambda _: START,
    "EndOfString": lambda _: END,
    "EndOfStringLine": lambda _: LAST_LINE_END,
    "StartOfLine": lambda _: LINE_START,
    "EndOfLine": lambda _: LINE_END,
    "StartOfWord": lambda _: word_start(asked(r"\w")),
    "EndOfWord": lambda _: word_end(asked(r"\w")),
    "Boundary": lambda positive: (boundary if positive else no_boundary)(asked(r"\w")),
}


def _check_encoding(tree: Any) -> None:
    if tree.encoding == _parser().ASCII_ENCODING:
        raise NoOracle("a flag that has no reference automaton")


def _characters(tree: Any) -> Ranges:
    """Returns the characters of a class, found by asking the library without the negation: `(?i)[^a-z]` is
    not the complement of `(?i)[a-z]` to the library."""
    if tree.case_flags and tree.case_flags != _parser().IGNORECASE:
        raise NoOracle("full case folding has no reference automaton")
    ranges = (
        union(_written(tree), asked(f"(?i:{_class_text(tree)})")) if tree.case_flags else _without_cases(tree)
    )
    return ranges if tree.positive else complement(ranges)


def _folded(tree: Any) -> Ranges:
    """Returns the characters of a class with those of the same simple case folding. What such a folding makes
    of a property is left to the library."""
    match type(tree).__name__:
        case "SetUnion":
            ranges = union(*map(_folded, tree.items))
        case "Property":
            ranges = asked(f"(?i:{_class_text(tree)})")
        case _:
            ranges = with_simple_cases(_written(tree))
    return ranges if tree.positive else complement(ranges)


def _written(tree: Any) -> Ranges:
    """Returns the characters of a class that are written down in it, by themselves or as ranges: those no
    table of Unicode takes away."""
    match type(tree).__name__:
        case "Character":
            return one(tree.value)
        case "Range":
            return ranges_of([(tree.lower, tree.upper)])
        case "SetUnion":
            return union(*map(_written, tree.items))
    return ()


def _without_cases(tree: Any) -> Ranges:
    """Returns the characters of a class before it is negated: those written in it, and those of properties by
    the tables of Unicode."""
    match type(tree).__name__:
        case "Character" | "Range":
            return _written(tree)
        case "SetUnion":
            return union(
                *(
                    _without_cases(item) if item.positive else complement(_without_cases(item))
                    for item in tree.items
                )
            )
    return asked(_class_text(tree))


def _class_text(tree: Any) -> str:
    """Returns the class in the library's syntax, without the outermost negation."""
    match type(tree).__name__:
        case "Character":
            return f"\\U{tree.value:08x}"
        case "Range":
            return f"[\\U{tree.lower:08x}-\\U{tree.upper:08x}]"
        case "Property":
            _check_encoding(tree)
            name, values = _parser().PROPERTY_NAMES[tree.value >> 16]
            return f"\\p{{{name}={values[tree.value & 0xFFFF]}}}"
        case "SetUnion":
            return f"[{''.join(map(_member_text, tree.items))}]"
    raise NoOracle(f"{type(tree).__name__} has no reference automaton")


def _member_text(tree: Any) -> str:
    text = _class_text(tree)
    if not tree.positive:
        return text.replace("p", "P", 1)  # of members only a property can be negative
    return text if text[0] == "\\" else text[1:-1]
