"""The judge of structural tags in the new form: is a text, or a row of tokens, an output?

Kept apart from the harness on purpose: it reads the JSON itself, shares no code with the automata, and tries
all places where a part can end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import regex
from jsonschema import Draft202012Validator
from lark import Lark
from lark.exceptions import UnexpectedInput
from recognising import is_valid_json
from reference_ebnf import accepts, parse
from referencing import Registry
from small_gemma import is_right

SPECIAL = 0xE000
"""A token that is no text stands in the symbols as the character with this number and its id."""

Ends = frozenset[int]


def is_output(form: dict[str, Any], text: str) -> bool:
    """Is the text an output of the structural tag, which has no part about tokens?"""
    return len(text) in Recogniser(text).ends(form["format"], 0, None)


def is_output_of_tokens(
    form: dict[str, Any], tokens: Sequence[int], texts: Sequence[str], excluded_always: frozenset[int]
) -> bool:
    """Is the row of tokens an output? `texts` are those of all tokens, empty for special ones; those of
    `excluded_always` are never meant by "any token"."""
    symbols, starts = "", {}
    for token in tokens:
        part = texts[token] or chr(SPECIAL + token)
        starts[len(symbols)] = (len(symbols) + len(part), token)
        symbols += part
    recogniser = Recogniser(symbols, starts, excluded_always)
    return len(symbols) in recogniser.ends(form["format"], 0, None)


class Recogniser:
    """Where parts of one row of symbols can end. Tokens must be given by their ids."""

    def __init__(
        self,
        symbols: str,
        starts: dict[int, tuple[int, int]] | None = None,
        excluded_always: frozenset[int] = frozenset(),
    ) -> None:
        self.symbols = symbols
        self.starts = starts or {}
        self.never = excluded_always
        self._known: dict[tuple[int, int, str], Ends] = {}

    def ends(self, format: dict[str, Any], start: int, tag: dict[str, Any] | None) -> Ends:
        """Returns where the format can end that begins at `start`, in the innermost tag around it."""
        key = (id(format), start, repr(tag and tag["end"]))
        if key not in self._known:
            self._known[key] = frozenset(getattr(self, f"_{format.get('type', 'tag')}")(format, start, tag))
        return self._known[key]

    # Texts

    def _spans(self, start: int) -> Iterable[tuple[int, str]]:
        """Yields every end of a text that begins here, and the text; no special token is part of one."""
        for end in range(start, len(self.symbols) + 1):
            text = self.symbols[start:end]
            if any(SPECIAL <= ord(symbol) < 0xF8FF for symbol in text):
                return
            yield end, text

    def _const(self, text: str, start: int) -> set[int]:
        return {start + len(text)} if self.symbols.startswith(text, start) else set()

    def _const_string(self, format: Any, start: int, tag: Any) -> set[int]:
        return self._const(format["value"], start)

    def _json_schema(self, format: Any, start: int, tag: Any) -> set[int]:
        if format.get("style") == "gemma":
            return {end for end, text in self._spans(start) if is_right(text, format["json_schema"])}
        validator = Draft202012Validator(format["json_schema"], registry=Registry())
        most = format.get("max_whitespace_cnt")
        return {
            end
            for end, text in self._spans(start)
            if is_valid_json(validator, text) and (most is None or longest_space(text) <= most)
        }

    def _regex(self, format: Any, start: int, tag: Any) -> set[int]:
        pattern = regex.compile(format["pattern"])
        return {end for end, text in self._spans(start) if pattern.fullmatch(text)}

    def _grammar(self, format: Any, start: int, tag: Any) -> set[int]:
        if format.get("syntax") == "lark":
            parser = Lark(format["grammar"], parser="earley", lexer="dynamic_complete")
            return {end for end, text in self._spans(start) if is_parsed(parser, text)}
        grammar = parse(format["grammar"])
        return {end for end, text in self._spans(start) if accepts(grammar, text)}

    def _any_text(self, format: Any, start: int, tag: Any) -> set[int]:
        banned = [*format.get("excludes", []), *text_ends(tag)]
        most = format.get("max_chars")
        return {
            end
            for end, text in self._spans(start)
            if not any(each in text for each in banned) and (most is None or len(text) <= most)
        }

    # Rows

    def _row(self, formats: Sequence[Any], start: int, tag: Any) -> set[int]:
        here = {start}
        for format in formats:
            here = {end for place in here for end in self.ends(format, place, tag)}
        return here

    def _sequence(self, format: Any, start: int, tag: Any) -> set[int]:
        return self._row(format["elements"], start, tag)

    def _or(self, format: Any, start: int, tag: Any) -> set[int]:
        return {end for each in format["elements"] for end in self.ends(each, start, tag)}

    def _again(self, format: Any, start: int, tag: Any, least: int, most: float) -> set[int]:
        here, found = {start}, set[int]()
        # Behind so many rounds a further one that reads something is impossible.
        for count in range(int(min(most, least + len(self.symbols) + 1)) + 1):
            if count >= least:
                found |= here
            here = {end for place in here for end in self.ends(format["content"], place, tag)}
        return found

    def _optional(self, format: Any, start: int, tag: Any) -> set[int]:
        return self._again(format, start, tag, 0, 1)

    def _star(self, format: Any, start: int, tag: Any) -> set[int]:
        return self._again(format, start, tag, 0, float("inf"))

    def _plus(self, format: Any, start: int, tag: Any) -> set[int]:
        return self._again(format, start, tag, 1, float("inf"))

    def _repeat(self, format: Any, start: int, tag: Any) -> set[int]:
        most = float("inf") if format["max"] == -1 else format["max"]
        return self._again(format, start, tag, format["min"], most)

    # Tags

    def _tag(self, format: Any, start: int, tag: Any) -> set[int]:
        begin = format["begin"]
        behind = self._const(begin, start) if isinstance(begin, str) else self._token(begin, start, tag)
        return {end for place in behind for end in self._inside(format, place)}

    def _inside(self, format: Any, start: int) -> set[int]:
        """Where a tag can end whose content begins here."""
        places = self.ends(format["content"], start, format)
        if isinstance(format["end"], dict):
            return {end for place in places for end in self._token(format["end"], place, None)}
        texts = [format["end"]] if isinstance(format["end"], str) else format["end"]
        return {end for place in places for text in texts for end in self._const(text, place)}

    def _free(
        self, start: int, rules: Sequence[tuple[str, Any]], banned: Sequence[str]
    ) -> tuple[set[int], set[tuple[int, int]]]:
        """Returns where free text can end, and where with which of the rules' patterns."""
        patterns = [pattern for pattern, _ in rules]
        whole, with_pattern = set[int](), set[tuple[int, int]]()
        for end, text in self._spans(start):
            if any(each in text for each in banned):
                continue
            first = min((place for each in patterns if (place := text.find(each)) >= 0), default=None)
            if first is None:
                whole.add(end)
            with_pattern |= {
                (end, number)
                for number, pattern in enumerate(patterns)
                if text.endswith(pattern) and len(text) - len(pattern) == first
            }
        return whole, with_pattern

    def _looped(self, start: int, step: Any, loop: bool) -> set[int]:
        """`step` says of a place where the free part can end, and where a pattern and its content can."""
        found, seen, waiting = set[int](), {start}, [start]
        while waiting:
            whole, behind = step(waiting.pop())
            found |= whole
            if not loop:
                found |= behind
                continue
            waiting += behind - seen
            seen |= behind
        return found

    def _dispatch(self, format: Any, start: int, tag: Any) -> set[int]:
        rules = format["rules"]

        def step(place: int) -> tuple[set[int], set[int]]:
            whole, patterns = self._free(place, rules, format.get("excludes", []))
            behind = {end for at, number in patterns for end in self.ends(rules[number][1], at, tag)}
            return whole, behind

        return self._looped(start, step, format.get("loop", True))

    def _triggered_tags(self, format: Any, start: int, tag: Any) -> set[int]:
        banned = [*format.get("excludes", []), *text_ends(tag)]

        def tags_at(place: int) -> set[int]:
            return {end for each in format["tags"] for end in self._tag(each, place, None)}

        def step(place: int) -> tuple[set[int], set[int]]:
            whole, patterns = self._free(place, [(trigger, None) for trigger in format["triggers"]], banned)
            behind = {
                end
                for at, number in patterns
                for each in format["tags"]
                if each["begin"].startswith(format["triggers"][number])
                for end in self._tag(each, at - len(format["triggers"][number]), None)
            }
            return whole, behind

        return self._maybe_one(format, start, tags_at, step)

    def _maybe_one(self, format: Any, start: int, tags_at: Any, step: Any) -> set[int]:
        loop = not format.get("stop_after_first", False)
        if not format.get("at_least_one", False):
            return self._looped(start, step, loop)
        first: set[int] = tags_at(start)
        return {end for place in first for end in self._looped(place, step, loop)} if loop else first

    def _tags_with_separator(self, format: Any, start: int, tag: Any) -> set[int]:
        found = set[int]() if format.get("at_least_one", False) else {start}
        here, seen = {start}, set[int]()
        while here:
            behind = {
                end for place in here for each in format["tags"] for end in self._tag(each, place, None)
            }
            found |= behind
            if format.get("stop_after_first", False):
                break
            here = {end for place in behind - seen for end in self._const(format["separator"], place)}
            seen |= behind
        return found

    # Tokens

    def _token(self, format: Any, start: int, tag: Any) -> set[int]:
        end, token = self.starts.get(start, (0, -1))
        return {end} if token == format["token"] and token not in self.never else set()

    def _other(self, start: int, excluded: Iterable[int]) -> set[int]:
        end, token = self.starts.get(start, (0, -1))
        return {end} if token >= 0 and token not in {*excluded, *self.never} else set()

    def _exclude_token(self, format: Any, start: int, tag: Any) -> set[int]:
        return self._other(start, [*format.get("exclude_tokens", []), *token_ends(tag)])

    def _any_tokens(self, format: Any, start: int, tag: Any) -> set[int]:
        one = {"type": "exclude_token", **{k: v for k, v in format.items() if k == "exclude_tokens"}}
        most = format.get("max_tokens")
        here, found = {start}, {start}
        for _ in range(len(self.symbols) if most is None else most):
            here = {end for place in here for end in self._exclude_token(one, place, tag)}
            found |= here
        return found

    def _free_tokens(
        self, start: int, triggers: Iterable[int], banned: Sequence[int]
    ) -> tuple[set[int], set[int]]:
        """Returns where free tokens can end, and where they end before a trigger."""
        whole, before = {start}, set[int]()
        here = start
        while here in self.starts:
            end, token = self.starts[here]
            if token in banned or token in self.never:
                break
            if token in triggers:
                before.add(here)
                break
            whole.add(end)
            here = end
        return whole, before

    def _token_dispatch(self, format: Any, start: int, tag: Any) -> set[int]:
        rules = format["rules"]
        banned = format.get("exclude_tokens", [])

        def step(place: int) -> tuple[set[int], set[int]]:
            whole, before = self._free_tokens(place, {token for token, _ in rules}, banned)
            behind = {
                end
                for at in before
                for token, content in rules
                if self.starts[at][1] == token
                for end in self.ends(content, self.starts[at][0], tag)
            }
            return whole, behind

        return self._looped(start, step, format.get("loop", True))

    def _token_triggered_tags(self, format: Any, start: int, tag: Any) -> set[int]:
        banned = [*format.get("exclude_tokens", []), *token_ends(tag)]

        def tags_at(place: int) -> set[int]:
            return {end for each in format["tags"] for end in self._tag(each, place, None)}

        def step(place: int) -> tuple[set[int], set[int]]:
            whole, before = self._free_tokens(place, format["trigger_tokens"], banned)
            return whole, {end for at in before for end in tags_at(at)}

        return self._maybe_one(format, start, tags_at, step)


def longest_space(document: str) -> int:
    """How many characters of white space stand in a row outside of strings?"""
    outside = regex.sub(r'"(?:[^"\\]|\\.)*"', '""', document)
    return max(map(len, regex.findall(r"[ \t\r\n]*", outside)))


def text_ends(tag: Any) -> list[str]:
    """The texts that end a tag, which no free text right in it holds."""
    if tag is None or isinstance(tag["end"], dict):
        return []
    return [text for text in ([tag["end"]] if isinstance(tag["end"], str) else tag["end"]) if text]


def token_ends(tag: Any) -> list[int]:
    return [tag["end"]["token"]] if tag is not None and isinstance(tag["end"], dict) else []


def is_parsed(parser: Lark, text: str) -> bool:
    """Does the parser take the text as a whole?"""
    try:
        parser.parse(text)
    except UnexpectedInput:
        return False
    return True
