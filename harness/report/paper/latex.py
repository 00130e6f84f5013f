"""Text and tables as LaTeX sets them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from harness.text import one_line

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "µ": r"\textmu{}",
    "×": r"\texttimes{}",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
"""What LaTeX would read as markup, and how it is written as text."""

ACCENTED = "À-ÏÑ-ÖØ-Ýß-ïñ-öø-ýÿĆćČčĎďĚěĹĺĽľŁłŃńŇňŐőŒœŔŕŘřŚśŞşŠšŤťŮůŰűŸŹźŻżŽž"
"""Latin letters that every font encoding has or puts together, unlike those with an ogonek."""

SAFE = re.compile(rf"[A-Za-z0-9{ACCENTED} .,:;()/+=@!?*\[\]-]")
"""Characters that stand for themselves in every font encoding, in a file in UTF-8."""

DRAWN_TOGETHER = re.compile(r"([-,])(?=\1)")
"""Two hyphens would become a dash, and two commas a quotation mark."""

OPTION = re.compile(r"^( *)([\[*])")
"""What stands first in a line of a table and is taken for an option of the line before."""


def escape(text: str, longest: int | None = 120) -> str:
    """Returns the text as one line that LaTeX prints as it is, whatever it holds.

    Text of more than `longest` characters is cut, and ends in an ellipsis. Characters that pdfLaTeX does not
    know without further packages are spelled as `\\u4e2d`.
    """
    escaped = "".join(map(_escaped, one_line(text, longest, spelled=True)))
    return OPTION.sub(r"\1{\2}", DRAWN_TOGETHER.sub(r"\1{}", escaped))


def _escaped(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if SAFE.fullmatch(character):
        return character
    return "".join(SPECIAL.get(one, one) for one in character.encode("unicode_escape").decode())


def table(
    heads: Sequence[str], lines: Sequence[Sequence[str]], *, caption: str, label: str, left: int
) -> str:
    """Returns a floating table with the rules of the package booktabs; heads, cells and caption must be LaTeX
    already. The first `left` columns are set to the left, the others to the right. A head has each word on a
    line of its own, and type and gaps are small, so that more columns fit."""
    stacked = [_stacked(head) for head in heads]
    frame = pd.DataFrame([list(line) for line in lines], columns=stacked, dtype=object)
    made: str = frame.style.hide(axis="index").to_latex(
        hrules=True,
        position="t",
        position_float="centering",
        column_format="l" * left + "r" * (len(heads) - left),
        caption=caption,
        label=f"tab:{label}",
    )
    return f"% needs \\usepackage{{booktabs}}\n{made.replace(CENTERED, CENTERED + SMALL, 1)}"


CENTERED = "\\centering\n"
SMALL = "\\small\\setlength{\\tabcolsep}{4pt}\\setlength{\\belowcaptionskip}{4pt}\n"
"""What a table begins with; the caption stands above it, from which LaTeX itself leaves no distance."""


def _stacked(head: str) -> str:
    words = head.split(" ")
    return head if len(words) == 1 else r"\shortstack[r]{" + r" \\ ".join(words) + "}"
