"""Makes smaller regular expressions and EBNF rules by dropping alternatives, items, groups and counts from
the tree that both share.

Whether the result is a valid grammar is judged elsewhere; a text that cannot be read here is cut as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from harness.diagnose.shrink.cut import cuts, spans, text_cuts

_ESCAPE = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[uxpP]\{[^}]*\}|c[A-Za-z]|.)"
_CLASS = rf"\[\^?(?:\](?=[^\[\]]*\])|)(?:{_ESCAPE}|[^\]\\])*\]"
_COUNT = r"\{\s*(?:[0-9]+\s*(?:,\s*[0-9]*\s*)?|,\s*[0-9]+\s*)\}"

_REGEX_TOKEN = re.compile(
    rf"(?P<flags>\(\?[A-Za-z-]+\))|(?P<open>\((?:\?(?:P?<[A-Za-z_]\w*>|[:=!>|]|<[=!]|[A-Za-z-]*:))?)|(?P<close>\))|(?P<bar>\|)"
    rf"|(?P<repeat>(?:[*+?]|{_COUNT})[?+]?)|(?P<leaf>{_CLASS}|{_ESCAPE}|.)",
    re.DOTALL,
)
_EBNF_TOKEN = re.compile(
    rf"(?P<layout>(?:\s|\#[^\r\n]*)+)|(?P<open>\()|(?P<close>\))|(?P<bar>\|)|(?P<repeat>[*+?]|{_COUNT})"
    rf'|(?P<leaf>"(?:[^"\\\r\n]|\\.)*"|{_CLASS}|[A-Za-z_][\w-]*)'
)
_LAYOUT = re.compile(r"(?:\s|#[^\r\n]*)+")
_RULE = re.compile(r"^[ \t]*([A-Za-z_][\w-]*)\s*::=", re.MULTILINE)
_MEMBER = re.compile(rf"(?:{_ESCAPE}|[^\\])(?:-(?:{_ESCAPE}|[^\\]))?", re.DOTALL)
_CHARACTER = re.compile(rf"{_ESCAPE}|[^\\]", re.DOTALL)


@dataclass(frozen=True)
class Item:
    """A leaf, or a group (`opening` and what is inside), and how often it is repeated."""

    leaf: str = ""
    group: Alternatives | None = None
    opening: str = "("
    repeat: str = ""


Sequence = tuple[Item, ...]
Alternatives = tuple[Sequence, ...]


LONGEST = 10_000
"""The most characters of a text that is read; a longer one is cut as text."""


class Unreadable(ValueError):
    """The text does not have the form that is read here."""


def smaller_regexes(pattern: str) -> Iterator[str]:
    """Yields patterns made from this one by one step, the biggest steps first; then with pieces of its text
    cut out.
    """
    with suppress(ValueError, RecursionError):
        yield from map(write_regex, smaller(read_regex(pattern)))
    yield from text_cuts(pattern)


def smaller_grammars(text: str) -> Iterator[str]:
    """Yields EBNF made from this by one step, the biggest steps first; then with pieces of its text cut
    out."""
    with suppress(ValueError, RecursionError):
        yield from map(_write_rules, _smaller_rules(_rules(text)))
    yield from text_cuts(text)


# --- reading and writing


def _tree(token: re.Pattern[str], text: str) -> Alternatives:
    """Returns the alternatives that the text holds. Raises Unreadable."""
    if len(text) > LONGEST:
        raise Unreadable("long")
    outer: list[tuple[list[Sequence], list[Item], str]] = []
    done: list[Sequence] = []
    items: list[Item] = []
    position = 0
    while position < len(text):
        match = token.match(text, position)
        if match is None:
            raise Unreadable(text[position : position + 20])
        position = match.end()
        match match.lastgroup:
            case "open":
                outer.append((done, items, match[0]))
                done, items = [], []
            case "close" if outer:
                group = (*done, tuple(items))
                done, items, opening = outer.pop()
                items.append(Item(group=group, opening=opening))
            case "bar":
                done.append(tuple(items))
                items = []
            case "repeat" if items and not items[-1].repeat:
                items[-1] = replace(items[-1], repeat=match[0])
            case "leaf" | "flags":
                items.append(Item(match[0]))
            case "layout":
                pass
            case _:
                raise Unreadable(text[position : position + 20])
    if outer:
        raise Unreadable("a group is not closed")
    return (*done, tuple(items))


def read_regex(pattern: str) -> Alternatives:
    """Returns the tree of a regular expression. Raises Unreadable."""
    return _tree(_REGEX_TOKEN, pattern)


def write_regex(tree: Alternatives) -> str:
    """Returns the regular expression of the tree."""
    return _write(tree, "", "")


def _write(tree: Alternatives, blank: str, empty: str) -> str:
    """Returns the text of the tree: `blank` between items, `empty` for a sequence of none."""
    return f"{blank}|{blank}".join(
        blank.join(_write_item(item, blank, empty) for item in sequence) or empty for sequence in tree
    )


def _write_item(item: Item, blank: str, empty: str) -> str:
    if item.group is None:
        return item.leaf + item.repeat
    return f"{item.opening}{_write(item.group, blank, empty)}){item.repeat}"


# --- smaller trees


def smaller(tree: Alternatives) -> Iterator[Alternatives]:
    """Yields trees made from this one by one step."""
    if len(tree) > 1:
        yield from ((sequence,) for sequence in tree)
        yield from (less for less in cuts(tree) if len(less) > 1)
    for number, sequence in enumerate(tree):
        for less in _smaller_sequence(sequence):
            yield (*tree[:number], less, *tree[number + 1 :])


def _smaller_sequence(sequence: Sequence) -> Iterator[Sequence]:
    yield from cuts(sequence)
    for number, item in enumerate(sequence):
        for less in _smaller_item(item):
            yield (*sequence[:number], *less, *sequence[number + 1 :])


def _smaller_item(item: Item) -> Iterator[Sequence]:
    if item.repeat:
        yield (replace(item, repeat=""),)
        yield from ((replace(item, repeat=less),) for less in _smaller_repeats(item.repeat))
    if item.group is None:
        yield from ((replace(item, leaf=less),) for less in _smaller_leaves(item.leaf))
        return
    for sequence in item.group:
        yield sequence
        if item.repeat and len(sequence) == 1 and not sequence[0].repeat:
            yield (replace(sequence[0], repeat=item.repeat),)
    yield from ((replace(item, group=less),) for less in smaller(item.group))


def _smaller_repeats(repeat: str) -> Iterator[str]:
    if not repeat.startswith("{"):
        return
    yield from ("?", "*", "+")
    inside = repeat[1:].rstrip("?+")[:-1]
    low_text, comma, high_text = (part.strip() for part in inside.partition(","))
    low, high = int(low_text or 0), int(high_text) if high_text else None
    for less in dict.fromkeys((0, 1, low // 2, low - 1)):
        if 0 <= less < low:
            yield f"{{{less}{comma}{high_text}}}"
    if comma:
        yield f"{{{low}}}"
        yield from (
            f"{{{low},{less}}}"
            for less in dict.fromkeys((low, (low + (high or low)) // 2, (high or low) - 1))
            if less >= low
        )


def _smaller_leaves(leaf: str) -> Iterator[str]:
    if leaf.startswith("["):
        negation = "^" if leaf.startswith("[^") else ""
        members = _MEMBER.findall(leaf[1 + len(negation) : -1])
        yield from (f"[{negation}{''.join(less)}]" for less in cuts(members) if less)
        for number, member in enumerate(members):
            if len(member) > 2 and "-" in member[1:-1]:
                for end in (member.split("-")[0], member.rpartition("-")[2]):
                    yield f"[{negation}{''.join((*members[:number], end, *members[number + 1 :]))}]"
        if negation:
            yield f"[{''.join(members)}]"
    elif leaf.startswith('"'):
        yield from (f'"{"".join(less)}"' for less in cuts(_CHARACTER.findall(leaf[1:-1])))


# --- EBNF rules

Rules = tuple[tuple[str, Alternatives], ...]


def _rules(text: str) -> Rules:
    heads = list(_RULE.finditer(text)) if len(text) <= LONGEST else []
    before = _LAYOUT.match(text)
    if not heads or (before.end() if before else 0) < heads[0].start():
        raise Unreadable("no rule at the start")
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return tuple(
        (head[1], _tree(_EBNF_TOKEN, text[head.end() : end])) for head, end in zip(heads, ends, strict=True)
    )


def _write_rules(rules: Rules) -> str:
    used = _reached(rules)
    return "\n".join(f"{name} ::= " + _write(tree, " ", '""') for name, tree in rules if name in used)


def _reached(rules: Rules) -> set[str]:
    """Returns the rules that `root` needs: only they are written."""
    bodies = dict(rules)
    reached: set[str] = set()
    waiting = ["root"]
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in reached:
            reached.add(name)
            waiting += [item.leaf for item in _items(bodies[name]) if item.group is None]
    return reached


def _items(tree: Alternatives) -> Iterator[Item]:
    for sequence in tree:
        for item in sequence:
            yield item
            if item.group is not None:
                yield from _items(item.group)


def _smaller_rules(rules: Rules) -> Iterator[Rules]:
    yield rules  # without comments, layout and rules that nobody needs
    bodies = dict(rules)
    for name, tree in rules:
        if name != "root":
            yield tuple(
                ("root", tree) if other == "root" else (other, body) for other, body in rules
            )  # this rule is the whole grammar
    for name in bodies:
        if name != "root":
            yield _replaced(rules, name, ((),))
            yield _replaced(rules, name, bodies[name])
    for start, end in spans(len(rules)):
        less = rules
        for name, _ in rules[start:end]:
            if name != "root":
                less = _replaced(less, name, ((),))
        yield less
    for number, (name, tree) in enumerate(rules):
        yield from ((*rules[:number], (name, less), *rules[number + 1 :]) for less in smaller(tree))
    for name in bodies:
        short = next((letter for letter in "abcdefgh" if letter not in bodies), name)
        if name != "root" and len(name) > 1 and short != name:
            called = _replaced(rules, name, ((Item(short),),), keep=True)
            yield tuple((short if other == name else other, body) for other, body in called)


def _replaced(rules: Rules, name: str, body: Alternatives, keep: bool = False) -> Rules:
    """Returns the rules with each use of this one written out; it stays only if it is kept."""
    return tuple((other, _with(tree, name, body)) for other, tree in rules if keep or other != name)


def _with(tree: Alternatives, name: str, body: Alternatives) -> Alternatives:
    return tuple(
        tuple(part for item in sequence for part in _with_item(item, name, body)) for sequence in tree
    )


def _with_item(item: Item, name: str, body: Alternatives) -> Sequence:
    if item.group is not None:
        return (replace(item, group=_with(item.group, name, body)),)
    if item.leaf != name:
        return (item,)
    if len(body) == 1 and (not item.repeat or (len(body[0]) == 1 and not body[0][0].repeat)):
        return tuple(replace(part, repeat=item.repeat or part.repeat) for part in body[0])
    return (Item(group=body, repeat=item.repeat),)
