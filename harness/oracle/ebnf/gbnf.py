"""Writes grammars in GBNF: regular expressions, the EBNF form of docs/ebnf.md, and choices.

The result is what a person would write: a group for a group, a count for a count. Raises NoOracle for what
GBNF cannot express.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from harness.oracle.automaton import NoOracle
from harness.oracle.ebnf import syntax as ebnf_syntax
from harness.oracle.regex.char_classes import Ranges
from harness.oracle.regex.nfa import settled
from harness.oracle.regex.syntax import parsed
from harness.oracle.regex.tree import NOTHING, Chars, Choice, Look, Node, Repeat, Sequence

_MARKS: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}
_SPELLED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'}


def gbnf_of_regex(pattern: str) -> str:
    """Returns the GBNF of a pattern in Python's dialect that describes the whole output."""
    try:
        tree = settled(parsed(pattern))
        if tree is NOTHING:
            raise NoOracle("nothing matches the pattern, and GBNF has no way to say so")
        return f"root ::= {_alternatives(tree)}\n"
    except RecursionError as error:
        raise NoOracle("the pattern is nested too deeply") from error


def gbnf_of_choice(text: str) -> str:
    """Returns the GBNF of a choice, given as a JSON array of strings. Raises ValueError if it is none."""
    choices = json.loads(text)
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise ValueError("a choice must be a JSON array of at least one string")
    return f"root ::= {' | '.join(map(literal, choices))}\n"


def gbnf_of_ebnf(text: str) -> str:
    r"""Returns the same rules, one on a line, without what only our form has: `_` in a name and the escape
    `\^`."""
    ebnf_syntax.productions(text)
    tokens = list(ebnf_syntax.tokens(text))
    names = _names(name for kind, name in tokens if kind == "head")
    written: list[str] = []
    for kind, part in tokens:
        if kind == "head":
            written.append(f"\n{names[part]}")
        elif kind == "name":
            written.append(names[part])
        elif kind == "class":
            written.append(re.sub(r"\\(.)", lambda escape: "\\x5E" if escape[1] == "^" else escape[0], part))
        else:
            written.append(re.sub(r"\s", "", part) if kind == "operator" else part)
    return " ".join(written).strip() + "\n"


def literal(text: str) -> str:
    """Returns the text as a literal in quotes, with escapes for what cannot stand there."""
    return (
        '"'
        + "".join(
            _SPELLED.get(character) or _plain(ord(character), character.isprintable()) for character in text
        )
        + '"'
    )


def _names(names: Iterable[str]) -> dict[str, str]:
    """Returns a name without `_` for each name, all of them different."""
    names = sorted(names)
    taken = {name for name in names if "_" not in name}
    renamed = {name: name for name in taken}
    for name in names:
        if name not in renamed:
            new = name.strip("_").replace("_", "-") or "rule"
            while new in taken:
                new += "-"
            taken.add(new)
            renamed[name] = new
    return renamed


def _alternatives(node: Node) -> str:
    return " | ".join(map(_sequence, node.branches)) if isinstance(node, Choice) else _sequence(node)


def _sequence(node: Node) -> str:
    parts = node.parts if isinstance(node, Sequence) else (node,)
    written: list[str] = []
    run = ""
    for part in parts:
        point = _only(part)
        if point is not None:
            run += chr(point)
            continue
        written += [literal(run)] if run else []
        run = ""
        written.append(_item(part))
    return " ".join([*written, *([literal(run)] if run else [])]) or '""'


def _item(node: Node) -> str:
    match node:
        case Chars():
            point = _only(node)
            return _class(node.ranges) if point is None else literal(chr(point))
        case Repeat():
            # An operator follows one item; GBNF has no two of them in a row.
            body = _item(node.body) if isinstance(node.body, Chars) else f"({_alternatives(node.body)})"
            return body + operator(node.low, node.high)
        case Look():
            raise NoOracle("GBNF has no lookaround")
    return f"({_alternatives(node)})"


def operator(low: int, high: int | None) -> str:
    """Returns what says behind an item how often it stands there; None is without end. Lark writes it so
    too."""
    if (low, high) in _MARKS:
        return _MARKS[low, high]
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def _only(node: Node) -> int | None:
    """Returns the code point of the only character that the node matches; None if the node is not such."""
    if isinstance(node, Chars) and len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return node.ranges[0][0]
    return None


def _class(ranges: Ranges) -> str:
    return (
        "["
        + "".join(_member(first) + (f"-{_member(last)}" if last > first else "") for first, last in ranges)
        + "]"
    )


def _member(point: int) -> str:
    return _plain(point, chr(point).isalnum() and point < 128)


def _plain(point: int, as_it_is: bool) -> str:
    return (
        chr(point)
        if as_it_is
        else f"\\x{point:02X}"
        if point < 256
        else f"\\u{point:04X}"
        if point < 65536
        else f"\\U{point:08X}"
    )
