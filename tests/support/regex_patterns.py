"""Patterns whose meaning is known: hypothesis writes them down together with what they match, by a definition
of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from all_texts import all_texts
from hypothesis import strategies as st

ALPHABET = "ab\né"

Ends = Callable[[str, int], list[int]]


@dataclass(frozen=True)
class Pattern:
    """Its text, and where it may end in a text if it begins at a place: all ends, in the order in which
    backtracking tries them."""

    text: str
    ends: Ends

    def matches(self, text: str) -> bool:
        return len(text) in self.ends(text, 0)


def texts(longest: int, alphabet: str = ALPHABET) -> list[str]:
    return all_texts(alphabet, longest)


def _in_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalpha()


_SINGLE: dict[str, Callable[[str], bool]] = {
    "a": lambda one: one == "a",
    "b": lambda one: one == "b",
    "é": lambda one: one == "é",
    r"\n": lambda one: one == "\n",
    "[ab]": lambda one: one in "ab",
    "[^a]": lambda one: one != "a",
    "[^é]": lambda one: one != "é",
    "[à-ï]": lambda one: one == "é",
    ".": lambda one: one != "\n",
    "(?s:.)": lambda one: True,
    r"\w": str.isalpha,
    r"\W": lambda one: not one.isalpha(),
    r"\s": str.isspace,
    "(?i:A)": lambda one: one == "a",
    r"\p{L}": str.isalpha,
    "[^\\x00-\U0010ffff]": lambda one: False,
}
_PLACES: dict[str, Callable[[str, int], bool]] = {
    "^": lambda text, at: at == 0,
    r"\A": lambda text, at: at == 0,
    "(?m:^)": lambda text, at: at == 0 or text[at - 1] == "\n",
    "$": lambda text, at: text[at:] in ("", "\n"),
    r"\Z": lambda text, at: at == len(text),
    "(?m:$)": lambda text, at: text[at : at + 1] in ("", "\n"),
    r"\b": lambda text, at: _in_word(text, at - 1) != _in_word(text, at),
    r"\B": lambda text, at: _in_word(text, at - 1) == _in_word(text, at),
}


def _single(text: str) -> Pattern:
    return Pattern(
        text, lambda subject, at: [at + 1] if at < len(subject) and _SINGLE[text](subject[at]) else []
    )


def _place(text: str) -> Pattern:
    return Pattern(text, lambda subject, at: [at] if _PLACES[text](subject, at) else [])


def _once(ends: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(ends))


def _sequence(left: Pattern, right: Pattern) -> Pattern:
    return Pattern(
        left.text + right.text,
        lambda subject, at: _once(
            end for middle in left.ends(subject, at) for end in right.ends(subject, middle)
        ),
    )


def _choice(left: Pattern, right: Pattern) -> Pattern:
    return Pattern(
        f"(?:{left.text}|{right.text})",
        lambda subject, at: _once(left.ends(subject, at) + right.ends(subject, at)),
    )


def repeat(body: Pattern, low: int, high: int | None, text: str, lazy: bool = False) -> Pattern:
    def ends(subject: str, at: int, turn: int = 0) -> list[int]:
        if high is not None and turn == high:
            return [at]
        further = [
            end
            for middle in body.ends(subject, at)
            if middle > at or turn < low  # an empty turn too many is not tried
            for end in ends(subject, middle, turn + 1)
        ]
        here = [at] if turn >= low else []
        return _once(here + further if lazy else further + here)

    return Pattern(f"(?:{body.text}){text}", ends)


def atomic(body: Pattern, text: str) -> Pattern:
    return Pattern(text, lambda subject, at: body.ends(subject, at)[:1])


def look(body: Pattern, kind: str) -> Pattern:
    def holds(subject: str, at: int) -> bool:
        if "<" in kind:
            return any(at in body.ends(subject, start) for start in range(at + 1))
        return bool(body.ends(subject, at))

    return Pattern(
        f"(?{kind}{body.text})", lambda subject, at: [at] if holds(subject, at) == ("=" in kind) else []
    )


_COUNTS: dict[str, tuple[int, int | None]] = {
    "*": (0, None), "+": (1, None), "?": (0, 1), "{2}": (2, 2), "{1,2}": (1, 2), "{0,3}": (0, 3), "{2,}": (2,
    None),
}  # fmt: skip


def _repeats(bodies: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    return st.builds(
        lambda body, count, lazy: repeat(body, *_COUNTS[count], count + "?" * lazy, lazy),
        bodies,
        st.sampled_from(sorted(_COUNTS)),
        st.booleans(),
    )


def _possessive(bodies: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    def build(body: Pattern, count: str) -> Pattern:
        greedy = repeat(body, *_COUNTS[count], count)
        return atomic(greedy, f"{greedy.text}+")

    return st.builds(build, bodies, st.sampled_from(sorted(_COUNTS)))


def _larger(parts: st.SearchStrategy[Pattern], lookaround: bool) -> st.SearchStrategy[Pattern]:
    plain = [st.builds(_sequence, parts, parts), st.builds(_choice, parts, parts), _repeats(parts)]
    if not lookaround:
        return st.one_of(plain)
    looks = st.builds(look, parts, st.sampled_from(["=", "!", "<=", "<!"]))
    atomics = st.builds(lambda body: atomic(body, f"(?>{body.text})"), parts)
    return st.one_of(*plain, looks, atomics, _possessive(parts))


def patterns(lookaround: bool) -> st.SearchStrategy[Pattern]:
    leaves = st.one_of(
        st.sampled_from(sorted(_SINGLE)).map(_single),
        st.sampled_from(["", *sorted(_PLACES)]).map(
            lambda text: _place(text) if text else Pattern("", lambda subject, at: [at])
        ),
    )
    return st.recursive(leaves, lambda parts: _larger(parts, lookaround), max_leaves=8)
