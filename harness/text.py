"""What a command says: text that fits its terminal, or one JSON document for machines."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import sys
import textwrap
from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

WIDTH = 80
"""Columns where stdout is no terminal, or does not say how wide it is."""

NARROWEST = 40

MOST_LINES = 4
"""The most lines that one line is folded into; the middle of what is longer is left out."""

MOST_FOLDED = 12
"""The most lines for a sentence of an answer, which is ours and needs its end."""

Style = Literal["bad", "good", "open", "head"]

CODES: dict[Style, str] = {"bad": "31", "good": "32", "open": "33", "head": "1"}

# What would steer a terminal or turn the text around, and what no file can hold.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
SURROGATES = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """Returns the text with control characters, invisible ones and lone surrogates spelled out; line breaks
    and tabs stay."""
    return _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str, longest: int | None = None, *, spelled: bool = False, folded: bool = False) -> str:
    """Returns a text from elsewhere as one line that steers no terminal, log or comment.

    Line breaks and characters that cannot be seen become blanks; with `spelled` they become escapes such as
    `\\n`, so that nothing is lost. With `folded`, runs of white space become one blank first. A line of more
    than `longest` characters is cut, and ends in `…`.
    """
    if folded:
        text = " ".join((text if longest is None else text[: 4 * longest]).split())
    if spelled:
        text = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    elif not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def beginning(content: bytes, most: int) -> tuple[str, int]:
    """Returns the beginning of a text in at most so many bytes, without a piece of a character at its end,
    and the number of bytes that are left off. Bytes that are no UTF-8 become escapes."""
    if len(content) <= most:
        return content.decode("utf-8", "backslashreplace"), 0
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    text = decoder.decode(content[:most])
    return text, len(content) - most + len(decoder.getstate()[0])


def shorten(text: str, room: int) -> str:
    """Returns the text on one line of at most `room` columns; where it is longer, `…` stands for its
    middle."""
    from rich.cells import cell_len

    if len(text) > 2 * 4096:
        text = f"{text[:4096]}…{text[-4096:]}"
    shown = one_line(text, spelled=True)
    if cell_len(shown) <= room:
        return shown
    return f"{_taken(shown, room // 2)}…{_taken(shown[::-1], (room - 1) // 2)[::-1]}"


def _taken(text: str, room: int) -> str:
    """Returns as much of the text's beginning as has room."""
    from rich.cells import cell_len

    used = 0
    for place, character in enumerate(text):
        used += cell_len(character)
        if used > room:
            return text[:place]
    return text


@dataclass(frozen=True)
class Console:
    """The width in columns of what is written on, and whether it shows colours."""

    width: int = WIDTH
    styled: bool = False

    def paint(self, text: str, style: Style) -> str:
        """Returns the text in the style's colour; it must be fit to be shown already."""
        return f"\x1b[{CODES[style]}m{text}\x1b[0m" if self.styled and text else text

    def fold(self, line: str, most: int = MOST_LINES) -> list[str]:
        """Returns one line as lines that fit, each but the first a little further in; without what a terminal
        obeys.
        """
        from rich.cells import cell_len, chop_cells

        inner = line.lstrip(" ")
        indent = " " * min(len(line) - len(inner), self.width // 2)
        shown = shorten(inner, (self.width - len(indent) - 2) * most)
        if cell_len(indent + shown) <= self.width:
            return [indent + shown]
        further = indent + "  "
        folded = textwrap.wrap(
            shown, self.width, initial_indent=indent, subsequent_indent=further, drop_whitespace=True
        )
        return [part for line in folded for part in chop_cells(line, self.width)]

    def fit(self, text: str) -> str:
        """Returns every line folded."""
        return "\n".join(part for line in text.split("\n") for part in self.fold(line))


PIPE = Console()
"""What is written on where stdout is no terminal."""


def console() -> Console:
    """Returns the console behind stdout.

    It has colours only on a terminal, and not where NO_COLOR is set (no-color.org) or the terminal is dumb.
    """
    if not sys.stdout.isatty():
        return PIPE
    styled = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns), styled)


LONG_HEAD = 16
"""Columns from which a head is broken where the table is too wide."""


def grid(
    title: str,
    heads: Sequence[str],
    sections: Sequence[Sequence[tuple[str, Sequence[str]]]],
    width: int = WIDTH,
    styled: bool = False,
    widest: int | None = 18,
) -> str:
    """Returns a table for a terminal: named lines, section by section, their cells to the right under the
    heads.

    No line has more than `width` columns; a cell of more than `widest` columns takes several lines. Where the
    table would be wider, a long head is broken behind a hyphen, a colon or a comma.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console as Grid
    from rich.table import Table
    from rich.text import Text

    file = io.StringIO()
    drawn = Grid(
        file=file,
        width=width,
        force_terminal=styled,
        highlight=False,
        emoji=False,
        no_color=None if styled else True,
    )
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(title, no_wrap=not title)
    for head in heads:
        table.add_column(Text(head), justify="right", overflow="fold", max_width=widest)
    for section in sections:
        for name, cells in section:
            table.add_row(Text(name), *(Text(cell) for cell in cells))
        table.add_section()
    if drawn.measure(table).maximum >= width:
        for column, head in zip(table.columns[1:], heads, strict=True):
            column.header = Text(_broken(head))
    drawn.print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _broken(head: str) -> str:
    """Returns a head in lines of at most LONG_HEAD columns, where it has places to break it."""
    lines = [""]
    for piece in re.split(r"(?<=[-:,])", head):
        if lines[-1] and len(lines[-1]) + len(piece) > LONG_HEAD:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def command(words: Sequence[str], width: int = WIDTH) -> str:
    """Returns a command to copy, broken after words as a shell takes it; only a single word can be wider than
    that.
    """
    import shlex

    lines = [""]
    for word in map(visible, map(shlex.quote, words)):
        if lines[-1].strip() and len(lines[-1]) + len(word) + 3 > width:
            lines[-1] += " \\"
            lines.append("    ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return "\n".join(lines)


def our_command(*words: str) -> str:
    """Returns a command of ours in backticks, on one line as a shell takes it, to stand in a sentence."""
    import shlex

    return f"`{shlex.join(['grammarbench', *words])}`"


def counted(number: int, noun: str) -> str:
    """Returns the number with the noun, in the plural unless it is one: `1 case`, `1,204 cases`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Iterable[str]) -> str:
    """Returns the items as an enumeration: `a`, `a and b`, `a, b and c`; nothing for none."""
    *most, last = ["", *items]
    return " and ".join(filter(None, (", ".join(most[1:]), last)))


def some(names: Sequence[str], most: int, between: str = ", ", more: int = 0) -> str:
    """Returns the names; where they are more than so many, the first ones and how many more there are, with
    `more` that are not among the names."""
    left = len(names[most:]) + more
    return between.join(names[:most]) + (f" and {left:,} more" if left > 0 else "")


def duration(nanoseconds: float) -> str:
    """Returns a time for people: three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size * 0.9995:
            value = nanoseconds / size
            return f"{value:,.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


MARKUP = re.compile(
    r"([\\`*\[\]|<>~@$&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|^[#+=-]|:(?=//|[\w+-]+:)|(?<=www)\.)",
    re.IGNORECASE,
)
"""What is markup in a cell or at the start of a line: `_` at the edge of a word only, `:` before an address
or in an emoji's name, and a dot behind `www`."""


def markdown(text: str, longest: int | None = 120) -> str:
    """Returns the text as one line of which Markdown makes no markup, link, mention or HTML comment, at most
    `longest` characters before escaping; hyphens, underscores and dots of ordinary names stay readable."""
    escaped = MARKUP.sub(r"\\\1", one_line(text, longest, spelled=True))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """Returns a table in Markdown; heads and cells must be Markdown already. With `numbers`, all columns but
    the first are set to the right."""
    rule = ["---", *["---:" if numbers else "---"] * (len(heads) - 1)]
    return "".join("| " + " | ".join(line) + " |\n" for line in [heads, rule, *lines])


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Returns lines of CSV, each ended by a line feed, of which a spreadsheet runs nothing."""
    lines = []
    for row in rows:
        line = io.StringIO()
        # Python's csv quotes a cell with a carriage return only where its lines end with one; a reader would
        # begin a line there.
        writer = csv.writer(line, lineterminator="\r\n")
        writer.writerow([spreadsheet(cell) if isinstance(cell, str) else cell for cell in row])
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def spreadsheet(text: str) -> str:
    """Returns a cell of CSV that a spreadsheet does not run as a formula; some take the wide signs of East
    Asian fonts for the plain ones."""
    return (
        f"'{text}"
        if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
        else text
    )
