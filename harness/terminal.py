"""What a command says: text that fits its terminal, or one JSON document for machines."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from pathlib import PurePath
from typing import Any, Literal

from harness.errors import one_line

WIDTH = 80
"""Columns where stdout is no terminal, or does not say how wide it is."""

NARROWEST = 40

MOST_LINES = 4
"""Of one line that is folded; the middle of what is longer is left out."""

Style = Literal["bad", "good", "open", "head"]

CODES: dict[Style, str] = {"bad": "31", "good": "32", "open": "33", "head": "1"}

# What would steer a terminal or turn the text around, and what no file can hold.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
SURROGATES = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with control characters, invisible ones and lone surrogates spelled out; line breaks and tabs stay."""
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(text: str) -> str:
    """The same on one line, for a terminal."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shorten(text: str, room: int) -> str:
    """On one line of at most `room` columns; where it is longer, `…` stands for its middle."""
    from rich.cells import cell_len

    if len(text) > 2 * 4096:
        text = f"{text[:4096]}…{text[-4096:]}"
    shown = printable(text)
    if cell_len(shown) <= room:
        return shown
    return f"{_taken(shown, room // 2)}…{_taken(shown[::-1], (room - 1) // 2)[::-1]}"


def _taken(text: str, room: int) -> str:
    """As much of the beginning as has room."""
    from rich.cells import cell_len

    used = 0
    for place, each in enumerate(text):
        used += cell_len(each)
        if used > room:
            return text[:place]
    return text


@dataclass(frozen=True)
class Paper:
    """What is written on: so many columns, with colours or without."""

    width: int = WIDTH
    styled: bool = False

    def paint(self, text: str, style: Style) -> str:
        """The text in the style's colour; it must be fit to be shown already."""
        return f"\x1b[{CODES[style]}m{text}\x1b[0m" if self.styled and text else text

    def fold(self, line: str, most: int = MOST_LINES) -> list[str]:
        """One line as lines that fit, each but the first a little further in; without what a terminal obeys."""
        from rich.cells import cell_len, chop_cells

        inner = line.lstrip(" ")
        indent = " " * min(len(line) - len(inner), self.width // 2)
        shown = shorten(inner, (self.width - len(indent) - 2) * most)
        if cell_len(indent + shown) <= self.width:
            return [indent + shown]
        further = indent + "  "
        folded = textwrap.wrap(shown, self.width, initial_indent=indent, subsequent_indent=further, drop_whitespace=True)
        return [part for each in folded for part in chop_cells(each, self.width)]

    def fit(self, text: str) -> str:
        """Every line folded."""
        return "\n".join(part for line in text.split("\n") for part in self.fold(line))


PIPE = Paper()
"""Where stdout is no terminal."""


def paper() -> Paper:
    """Of stdout: colours on a terminal only, and not where NO_COLOR is set (no-color.org) or the terminal is a dumb one."""
    if not sys.stdout.isatty():
        return PIPE
    styled = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Paper(max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns), styled)


def command(words: Sequence[str], width: int = WIDTH) -> str:
    """A command to copy, broken after words as a shell takes it; only a single word can be wider than that."""
    import shlex

    lines = [""]
    for word in map(visible, map(shlex.quote, words)):
        if lines[-1].strip() and len(lines[-1]) + len(word) + 3 > width:
            lines[-1] += " \\"
            lines.append("    ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return "\n".join(lines)


def teller(options: argparse.Namespace) -> Callable[[str], None]:
    """Prints progress and notes: to stdout, with `--json` to stderr."""
    stream = sys.stderr if options.json else sys.stdout
    return lambda said: print(one_line(said), file=stream, flush=True)


def emit(options: argparse.Namespace, value: Callable[[], Any], text: Callable[[], str]) -> None:
    """The command's answer on stdout: with `--json` the value as one document, else the text; the other one is not made."""
    if options.json:
        print(json.dumps(plain(value()), allow_nan=False))
    else:
        print(text())


def plain(value: Any) -> Any:
    """The value as strict JSON has it: null for a number that is not finite, text for a path, U+FFFD for a lone surrogate."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(each) for key, each in value.items()}
    if isinstance(value, Set):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | PurePath):
        return SURROGATES.sub("\ufffd", str(value))
    return value
