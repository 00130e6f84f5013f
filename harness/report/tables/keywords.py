"""The truth table of keywords as JSON, as Markdown and for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.outcomes.keywords import LEGEND, SECTIONS, STATES, KeywordCell, TruthTable
from harness.text import WIDTH, grid, markdown, markdown_table, one_line

NAME, COLUMN = 24, 14
"""The columns of a terminal that the names, and each arm, take; four arms fit into 80."""


def keywords_json(table: TruthTable) -> str:
    """Returns one object: the arms, and per section and key the arms' states in the same order, with the
    cases behind them."""
    arms = [dict(zip(("backend", "version", "options"), arm, strict=True)) for arm in table.arms]
    sections = {
        section: {
            key: [
                {**vars(line[arm]), "cases": [vars(case) for case in line[arm].cases]} for arm in table.arms
            ]
            for key, line in lines.items()
        }
        for section, lines in table.cells.items()
    }
    return json.dumps({"arms": arms, "states": list(STATES), **sections}, indent=1) + "\n"


def keywords_markdown(table: TruthTable) -> str:
    """Returns the tables of `keyword_tables`, and what the words in them say."""
    legend = "".join(f"- {word}: {meaning}\n" for word, meaning in LEGEND.items())
    return "\n".join([*keyword_tables(table), legend])


def keyword_tables(table: TruthTable) -> list[str]:
    """Returns a table of how often each state occurs, and then one for each section, in Markdown."""
    heads = [markdown(" ".join(part for part in arm if part)) for arm in table.arms]
    parts = [
        markdown_table(
            ["", *heads], [[f"{title}: {word}", *counts] for title, word, counts in _totals(table)]
        )
    ]
    for section, lines in table.cells.items():
        if lines:
            cells = [
                [markdown(key), *(_word(line[arm], named=True) for arm in table.arms)]
                for key, line in lines.items()
            ]
            parts.append(markdown_table([SECTIONS[section], *heads], cells))
    return parts


def keywords_text(table: TruthTable) -> str:
    """Returns the tables for a terminal; arms that do not fit into its width stand in tables of their own
    below."""
    fit = max(1, (WIDTH - NAME) // COLUMN)
    blocks = []
    for start in range(0, max(1, len(table.arms)), fit):
        arms = table.arms[start : start + fit]
        heads = ["\n".join(one_line(part, spelled=True) for part in arm if part) for arm in arms]
        totals = [
            (f"{title}: {word}", counts) for title, word, counts in _totals(TruthTable(arms, table.cells))
        ]
        sections = [totals]
        for section, keys in table.cells.items():
            lines = [
                (f" {one_line(key, spelled=True)}", [_word(line[arm]) for arm in arms])
                for key, line in keys.items()
            ]
            if lines:
                sections.append([(SECTIONS[section].upper(), [""] * len(arms)), *lines])
        blocks.append(grid("", heads, sections, WIDTH, widest=COLUMN - 1))
    legend = "\n".join(f"{word:8} {meaning}" for word, meaning in LEGEND.items())
    return "\n\n".join([*blocks, legend]) + "\n"


def _totals(table: TruthTable) -> Iterator[tuple[str, str, list[str]]]:
    """Yields section, short word, and how many keys of the section each arm has in that state; then how many
    of them have the star. The values of a keyword, which have lines of their own, are in its line already."""
    for section, keys in table.cells.items():
        lines = [line for key, line in keys.items() if not (": " in key and key.partition(": ")[0] in keys)]
        for state, (word, _) in reversed(STATES.items()):
            counts = [sum(line[arm].state == state for line in lines) for arm in table.arms]
            if any(counts):
                yield section, word, [str(count) for count in counts]
        stars = [sum(line[arm].interaction for line in lines) for arm in table.arms]
        if any(stars):
            yield section, "*", [str(count) for count in stars]


def _word(cell: KeywordCell, named: bool = False) -> str:
    """Returns the short word of the state; which keywords are so, or how many of the cases, where not all
    are; `*` where it takes company."""
    word = STATES[cell.state][0] + "*" * cell.interaction
    if len(cell.worst) == len(cell.cases):
        return word
    decides = {decision.decides for decision in cell.worst}
    if named and not decides & {case.decides for case in cell.cases if case.state != cell.state}:
        return f"{word} ({markdown(', '.join(sorted(decides)))})"
    return f"{word} {len(cell.worst)}/{len(cell.cases)}"
