"""Small random structural tags of the new form, all small texts and rows of tokens, and what is wrong with
the automaton of such a tag: it is held against the judge of the tests."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from random import Random
from typing import Any

from against_the_judge import DeadEnd, completion
from all_texts import all_texts
from recognising_formats import is_output, is_output_of_tokens

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD
from harness.oracle.language import outputs_of
from harness.oracle.tag_formats.automaton import FormatAutomaton
from harness.oracle.trie import trie_of

ALPHABETS = ("ab", "ab1", "a<>", "aé", "éê", '1"a', "[1]")
SCHEMAS: tuple[Any, ...] = ({"const": 1}, {"type": "integer"}, {"enum": ["", "a", 1]}, {"maxItems": 1}, False)
SPECIALS = {4: "<s>", 5: "</s>"}
TOKENS = Vocabulary("small", (b"a", b"b", b"ab", b"1", b"", b"", b""), (5,), SPECIALS, frozenset({6}))
"""Four tokens that are text, one special token, end-of-sequence and one id of padding."""
TEXTS = ("a", "b", "ab", "1", "", "", "")
MOST_STATES = 400
"""States for which a completion is sought."""


class Drawing:
    """Draws formats, of at most so many parts."""

    def __init__(self, random: Random, alphabet: str, with_tokens: bool) -> None:
        self.random, self.alphabet, self.with_tokens = random, alphabet, with_tokens
        self.left = random.randint(1, 7)

    def text(self, least: int = 0, most: int = 2) -> str:
        return "".join(self.random.choice(self.alphabet) for _ in range(self.random.randint(least, most)))

    def texts(self, least: int, most: int) -> list[str]:
        return [self.text(1, 3) for _ in range(self.random.randint(least, most))]

    def flag(self) -> bool:
        return self.random.random() < 0.4

    def token(self) -> dict[str, Any]:
        return {"type": "token", "token": self.random.choice((0, 0, 1, 2, 4, 4, 5))}

    def tokens(self) -> list[int]:
        return self.random.sample(range(6), self.random.randint(0, 2))

    def format(self, depth: int = 0) -> dict[str, Any]:
        self.left -= 1
        simple = ["const", "const", "any_text", "json", "regex", "grammar"]
        rich = ["sequence", "sequence", "or", "optional", "plus", "star", "repeat", "tag", "tag"]
        rich += ["triggered", "triggered", "separated", "dispatch", "dispatch"]
        if self.with_tokens:
            simple += ["token", "token", "exclude_token", "any_tokens"]
            rich += ["tag", "token_triggered", "token_triggered", "token_dispatch"]
        kinds = simple if self.left <= 0 or depth > 3 else simple + 2 * rich
        return self._of_kind(self.random.choice(kinds), depth)

    def _of_kind(self, kind: str, depth: int) -> dict[str, Any]:
        random = self.random
        match kind:
            case "const":
                return {"type": "const_string", "value": self.text()}
            case "any_text":
                limit = {"max_chars": random.randint(0, 2)} if random.random() < 0.2 else {}
                return {"type": "any_text", "excludes": self.texts(0, 2), **limit}
            case "json":
                return {"type": "json_schema", "json_schema": random.choice(SCHEMAS)}
            case "regex":
                one, two = (re.escape(random.choice(self.alphabet)) for _ in range(2))
                patterns = (f"{one}*", f"({one}|{two}){{1,2}}", f"{one}?{two}", f"[{one}{two}]*{one}")
                return {"type": "regex", "pattern": random.choice(patterns)}
            case "grammar":
                text = json.dumps(self.text(1, 2), ensure_ascii=False)
                mark = json.dumps(random.choice(self.alphabet), ensure_ascii=False)
                grammars = (f"root ::= {text}", f"root ::= {mark} root {mark} | {text}", f"root ::= {text}*")
                return {"type": "grammar", "grammar": random.choice(grammars)}
            case "sequence" | "or":
                return {
                    "type": kind,
                    "elements": [self.format(depth + 1) for _ in range(random.randint(1, 3))],
                }
            case "optional" | "plus" | "star":
                return {"type": kind, "content": self.format(depth + 1)}
            case "repeat":
                least = random.randint(0, 2)
                most = random.choice((-1, least, least + 1))
                return {"type": kind, "min": least, "max": most, "content": self.format(depth + 1)}
            case "tag":
                return self.tag(depth, self.with_tokens and self.flag())
            case "triggered":
                triggers = self.texts(1, 2)
                if self.flag():
                    triggers.append(random.choice(triggers) + random.choice(self.alphabet))
                tags = [self.tag(depth, False, random.choice(triggers)) for _ in range(random.randint(1, 2))]
                own = {
                    "triggers": triggers,
                    "tags": tags,
                    "excludes": self.texts(0, 1) if self.flag() else [],
                }
                return {"type": "triggered_tags", **own, **self.flags()}
            case "separated":
                tags = [
                    self.tag(depth, self.with_tokens and self.flag()) for _ in range(random.randint(1, 2))
                ]
                return {"type": "tags_with_separator", "tags": tags, "separator": self.text(), **self.flags()}
            case "dispatch":
                rules = [[pattern, self.format(depth + 1)] for pattern in self.texts(1, 3)]
                excludes = self.texts(0, 1) if self.flag() else []
                return {"type": "dispatch", "rules": rules, "loop": not self.flag(), "excludes": excludes}
            case "token":
                return self.token()
            case "exclude_token":
                return {"type": kind, "exclude_tokens": self.tokens()}
            case "any_tokens":
                limit = {"max_tokens": random.randint(0, 2)} if self.flag() else {}
                return {"type": kind, "exclude_tokens": self.tokens(), **limit}
            case "token_triggered":
                tags = [self.tag(depth, True) for _ in range(random.randint(1, 2))]
                of_tags = sorted({*(tag["begin"]["token"] for tag in tags), *self.tokens()[:1]})
                own = {"trigger_tokens": of_tags, "tags": tags, "exclude_tokens": self.tokens()}
                return {"type": "token_triggered_tags", **own, **self.flags()}
            case "token_dispatch":
                of_tokens = [[token, self.format(depth + 1)] for token in self.tokens() or [0]]
                return {
                    "type": kind,
                    "rules": of_tokens,
                    "loop": not self.flag(),
                    "exclude_tokens": self.tokens(),
                }
        raise AssertionError(kind)

    def flags(self) -> dict[str, bool]:
        return {"at_least_one": self.flag(), "stop_after_first": self.flag()}

    def tag(self, depth: int, begins_with_token: bool, begin: str | None = None) -> dict[str, Any]:
        end: Any = self.text()
        if self.flag():
            end = [self.text(), self.text()]
        if self.with_tokens and self.flag():
            end = self.token()
        text = (begin or "") + self.text(0, 1)
        return {
            "type": "tag",
            "begin": self.token() if begins_with_token else text,
            "content": self.format(depth + 1),
            "end": end,
        }


def tag(format: dict[str, Any]) -> Grammar:
    """Returns the structural tag of that format."""
    return Grammar("structural_tag", json.dumps({"type": "structural_tag", "format": format}))


def small_format(number: int) -> tuple[str, dict[str, Any]]:
    """Returns an alphabet and a structural tag whose texts are written in it."""
    random = Random(f"text {number}")
    alphabet = random.choice(ALPHABETS)
    return alphabet, {"type": "structural_tag", "format": Drawing(random, alphabet, False).format()}


def small_token_format(number: int) -> dict[str, Any]:
    """Returns a structural tag some of whose parts may be tokens."""
    return {"type": "structural_tag", "format": Drawing(Random(f"token {number}"), "ab1", True).format()}


def _automaton(form: dict[str, Any], vocabulary: Vocabulary | None = None) -> FormatAutomaton:
    grammar = Grammar("structural_tag", json.dumps(form))
    automaton = outputs_of.__wrapped__(grammar, seconds=60.0, vocabulary=vocabulary)
    assert isinstance(automaton, FormatAutomaton)
    return automaton


def format_differences(number: int) -> list[str]:
    """What is wrong with the automaton of one small tag, a line each: every text of up to five or six
    characters is judged, every beginning of an output must be open, and of each state that was found some
    completion must be an output."""
    alphabet, form = small_format(number)
    automaton = _automaton(form)
    shown = json.dumps(form["format"], ensure_ascii=False)
    wrong, seen, begun = [], set[bytes](), set[bytes]()
    for output in all_texts(alphabet, 6 if len(alphabet) == 2 else 5):
        content = output.encode()
        truth = is_output(form, output)
        beginnings = {content[:size] for size in range(len(content) + 1)}
        seen |= beginnings
        if truth:
            begun |= beginnings
        if automaton.accepts(content) != truth:
            wrong.append(f"{number}: {output!r} is {truth} by {shown}")
    states: dict[int, bytes] = {}
    for content in sorted(seen):
        state = automaton.run(automaton.start, content)
        if state != DEAD:
            states.setdefault(state, content)
        elif content in begun:
            wrong.append(f"{number}: {content!r} begins an output of {shown}, and is refused")
    for state, content in list(states.items())[:MOST_STATES]:
        try:
            rest = completion(automaton, state)
        except DeadEnd:
            wrong.append(f"{number}: nothing goes on from {content!r} in {shown}")
            continue
        if rest is not None and len(rest) < 12 and not _is_output_of_bytes(form, content + rest):
            wrong.append(f"{number}: {content + rest!r} is allowed by {shown}")
    return wrong


def _is_output_of_bytes(form: dict[str, Any], content: bytes) -> bool:
    try:
        return is_output(form, content.decode())
    except UnicodeDecodeError:
        return False


@cache
def rows_of_tokens(longest: int) -> tuple[tuple[int, ...], ...]:
    """All rows of up to so many tokens of the small vocabulary."""
    return tuple(row for size in range(longest + 1) for row in product(range(7), repeat=size))


def token_differences(number: int, longest: int = 3) -> list[str]:
    """What is wrong with the automaton of one small tag over tokens, a line each.

    Every short row of tokens is judged, a mask holds just the tokens with which the automaton goes on, every
    beginning of an output must be open, and of each state that was found some completion must be an output.
    """
    form = small_token_format(number)
    shown = json.dumps(form["format"])
    automaton, trie = _automaton(form, TOKENS), trie_of(TOKENS)
    never = frozenset({5, 6})
    wrong, begun = [], set[tuple[int, ...]]()
    states: dict[tuple[int, ...], int] = {(): automaton.start}
    for row in rows_of_tokens(longest):
        if row:
            before = states[row[:-1]]
            after = DEAD if before == DEAD else automaton.after_token(before, row[-1], TOKENS.tokens[row[-1]])
            states[row] = after
            if (
                before != DEAD
                and row[-1] != 5
                and bool(trie.mask(automaton, before)[row[-1]]) != (after != DEAD)
            ):
                wrong.append(f"{number}: the mask says otherwise of the last token of {row} in {shown}")
        truth = is_output_of_tokens(form, row, TEXTS, never)
        if automaton.accepting(states[row]) != truth:
            wrong.append(f"{number}: {row} is {truth} by {shown}")
        if truth:
            begun |= {row[:size] for size in range(len(row) + 1)}
    wrong += [f"{number}: {row} begins an output of {shown}" for row in begun if states[row] == DEAD]
    for state, row in {state: row for row, state in reversed(states.items()) if state != DEAD}.items():
        rest = _completing_tokens(automaton, state)
        if rest is None:
            wrong.append(f"{number}: nothing goes on from {row} in {shown}")
        elif -1 not in rest and not is_output_of_tokens(form, (*row, *rest), TEXTS, never):
            wrong.append(f"{number}: {(*row, *rest)} is allowed by {shown}")
    return wrong


def _completing_tokens(automaton: FormatAutomaton, state: int) -> tuple[int, ...] | None:
    """Some tokens that lead to an end; None if there are none. Where a text is needed that the tokens of the
    small vocabulary cannot spell, or too many states would be looked at, -1 is among them."""
    found: dict[int, tuple[int, ...]] = {state: ()}
    for here in (waiting := [state]):
        if automaton.accepting(here):
            return found[here]
        if len(found) > MOST_STATES:
            return (-1,)
        steps = [
            (token, automaton.after_token(here, token, text)) for token, text in enumerate(TOKENS.tokens)
        ]
        steps += [(-1, automaton.step(here, byte)) for byte in range(256)]
        for token, after in steps:
            if after != DEAD and after not in found:
                found[after] = (*found[here], token)
                waiting.append(after)
    return None
