"""The rows of a run folded by keyword: what each backend makes of each keyword of JSON Schema, alone, in
pairs, and by place.

Any case counts that has a tag `decides:KEYWORD` and whose invalid instances are forbidden by that keyword
alone. The other tags say where it counts: `pair:A+B` for the pair, `keyword:K` with `at:PLACE` for the
keyword at that place, else `keyword:K` for the keyword and, with `value:V`, for that value of it too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Literal

from harness.rows.row import OURS, Row, verdict

State = Literal[
    "broken",
    "silently ignored",
    "partly enforced",
    "wrongly enforced",
    "not measured",
    "declined",
    "enforced",
]
Section = Literal["keyword", "pair", "place"]

STATES: dict[State, tuple[str, str]] = {
    "broken": ("BROKEN", "a crash, a timeout, out of memory, or an exception that is no refusal"),
    "silently ignored": ("IGNORED", "compiled; every instance that only this keyword forbids is accepted"),
    "partly enforced": ("PARTLY", "compiled; some of these instances are accepted, others refused"),
    "wrongly enforced": ("WRONG", "compiled; a valid instance is refused"),
    "not measured": ("-", "no such row, or lost through our own fault"),
    "declined": ("declined", "the backend says that it cannot compile the schema, or will not"),
    "enforced": ("yes", "compiled; forbidden instances are refused and valid ones accepted"),
}
"""Worst first: the short word, and what it says. A key with several cases has the worst of their states."""

FAULTS: tuple[State, ...] = ("broken", "silently ignored", "partly enforced", "wrongly enforced")

LEGEND = {
    **dict(STATES.values()),
    "*": "here; by itself the keyword is enforced, or has a milder fault",
    "1/2": "so many of the cases are in that state; the others are in a better one",
}
"""The short words of a table, and what they say."""

SECTIONS: dict[Section, str] = {"keyword": "keyword", "pair": "pair", "place": "keyword in place"}

ArmName = tuple[str, str, str]
"""Backend, version, options."""


@dataclass(frozen=True)
class Decision:
    """What one arm did in one case."""

    case: str
    decides: str
    state: State


@dataclass(frozen=True)
class Cell:
    """What one arm makes of one keyword, pair or place."""

    state: State
    cases: tuple[Decision, ...] = ()
    interaction: bool = False
    """The state is a fault, and a worse one than that of the keyword by itself, if it has one there."""
    text: str = ""
    """What the backend said where it declined or broke, of the first such case."""

    @property
    def counts(self) -> dict[State, int]:
        """How many cases are in each state, worst first."""
        counted = Counter(each.state for each in self.cases)
        return {state: counted[state] for state in STATES if counted[state]}

    @property
    def worst(self) -> list[Decision]:
        """The cases that are in the cell's state."""
        return [each for each in self.cases if each.state == self.state]


@dataclass(frozen=True)
class TruthTable:
    """`cells[section][key][arm]`; every key has every arm."""

    arms: tuple[ArmName, ...]
    cells: dict[Section, dict[str, dict[ArmName, Cell]]]


@dataclass(slots=True)
class _CaseSeen:
    """The walks of one case through one arm, over all vocabularies."""

    decides: str
    forbidden: Counter[str] = field(default_factory=Counter)
    valid: Counter[str] = field(default_factory=Counter)
    text: str = ""

    def add(self, row: Row) -> None:
        """Take in one more walk."""
        what = row.status if row.status in OURS else verdict(row.status, row.valid, row.accepted)
        (self.valid if row.valid else self.forbidden)[what] += 1
        if what in ("declined", "broken") and not self.text:
            self.text = row.text

    @property
    def state(self) -> State:
        """The worst that can be said of the case; `enforced` only where both kinds of instance were walked
        and judged rightly."""
        seen = self.valid + self.forbidden
        if seen["broken"]:
            return "broken"
        if self.forbidden["under_constrained"]:
            return "partly enforced" if self.forbidden["pass"] else "silently ignored"
        if self.valid["over_constrained"]:
            return "wrongly enforced"
        if seen["declined"]:
            return "declined"
        return "enforced" if self.valid.keys() == {"pass"} == self.forbidden.keys() else "not measured"


def truth_table(rows: Iterable[Row]) -> TruthTable:
    """The table of a run; rows of other cases, and of modes that do not walk single instances, are passed
    over."""
    seen: dict[ArmName, dict[tuple[Section, str], dict[str, _CaseSeen]]] = {}
    for row in rows:
        decides = next((tag.removeprefix("decides:") for tag in row.tags if tag.startswith("decides:")), "")
        if row.valid is None or not decides:
            continue
        keys = seen.setdefault((row.backend, row.backend_version, row.options), {})
        for key in _keys(row.tags):
            keys.setdefault(key, {}).setdefault(row.case, _CaseSeen(decides)).add(row)
    order = list(dict.fromkeys(key for keys in seen.values() for key in keys))
    cells: dict[Section, dict[str, dict[ArmName, Cell]]] = {section: {} for section in SECTIONS}
    # The keywords by themselves first: the other sections look them up.
    for section, name in sorted(order, key=lambda key: (key[0] != "keyword", _order(key[1]))):
        cells[section][name] = {}
        for arm, keys in seen.items():
            alone = (
                {key: line[arm].state for key, line in cells["keyword"].items() if arm in line}
                if section != "keyword"
                else {}
            )
            cells[section][name][arm] = _cell(keys.get((section, name), {}), alone)
    return TruthTable(tuple(seen), cells)


def _keys(tags: Sequence[str]) -> Iterator[tuple[Section, str]]:
    values = {
        name: value
        for name, _, value in (tag.partition(":") for tag in tags)
        if name in ("keyword", "pair", "at", "value")
    }
    if "pair" in values:
        yield "pair", values["pair"]
    elif "at" in values:
        yield "place", f"{values.get('keyword', '')} in {values['at']}"
    elif "keyword" in values:
        yield "keyword", values["keyword"]
        if "value" in values:
            yield "keyword", f"{values['keyword']}: {values['value']}"


def _order(name: str) -> tuple[str, str]:
    """Alphabetical, `$ref` among the `r`; the values of a keyword right after it."""
    return name.replace("$", "").casefold(), name


def _cell(cases: dict[str, _CaseSeen], alone: dict[str, State]) -> Cell:
    decisions = tuple(Decision(name, case.decides, case.state) for name, case in cases.items())
    worst: State = next(
        (state for state in STATES if any(each.state == state for each in decisions)), "not measured"
    )
    milder = ("enforced", *FAULTS[FAULTS.index(worst) + 1 :]) if worst in FAULTS else ()
    interaction = any(each.state == worst and alone.get(each.decides) in milder for each in decisions)
    text = next((case.text for case in cases.values() if case.text), "")
    return Cell(worst, decisions, interaction, text)


# ---------------------------------------------------------------------------------------------------- as text


def as_json(table: TruthTable) -> str:
    """One object: the arms, and per section and key the arms' states in the same order, with the cases behind
    them."""
    arms = [dict(zip(("backend", "version", "options"), arm, strict=True)) for arm in table.arms]
    sections = {
        section: {
            key: [
                {**vars(line[arm]), "cases": [vars(each) for each in line[arm].cases]} for arm in table.arms
            ]
            for key, line in lines.items()
        }
        for section, lines in table.cells.items()
    }
    return json.dumps({"arms": arms, "states": list(STATES), **sections}, indent=1) + "\n"


def markdown(table: TruthTable) -> str:
    """A table for each section, after one of how often each state occurs."""
    heads = [
        _plain(" ".join(part for part in arm if part)).replace("[", "\\[") for arm in table.arms
    ]  # no link
    parts = [
        _markdown_table(
            ["", *heads], [[f"{title}: {word}", *counts] for title, word, counts in _totals(table)]
        )
    ]
    for section, lines in table.cells.items():
        if lines:
            cells = [
                [f"`{_plain(key)}`", *(_word(line[arm], named=True) for arm in table.arms)]
                for key, line in lines.items()
            ]
            parts.append(_markdown_table([SECTIONS[section], *heads], cells))
    parts.append("".join(f"- {word}: {meaning}\n" for word, meaning in LEGEND.items()))
    return "\n".join(parts)


def text(table: TruthTable, width: int = 80) -> str:
    """The same for a terminal; arms that do not fit into the width stand in a table of their own below."""
    fit = max(1, (width - _NAME) // _COLUMN)
    blocks = []
    for start in range(0, max(1, len(table.arms)), fit):
        arms = table.arms[start : start + fit]
        heads = [[_plain(part) for part in arm if part] for arm in arms]
        lines = list(_columns("", [_cut(head) for head in heads]))
        part = TruthTable(arms, table.cells)
        lines += [_line(f"{title}: {word}", counts) for title, word, counts in _totals(part)]
        for section, keys in table.cells.items():
            if keys:
                lines += ["", SECTIONS[section].upper()]
            for key, line in keys.items():
                lines += _wrapped(_plain(key), [_word(line[arm]) for arm in arms])
        blocks.append("\n".join(line.rstrip() for line in lines))
    legend = "\n".join(f"{word:8} {meaning}" for word, meaning in LEGEND.items())
    return "\n\n".join([*blocks, legend]) + "\n"


_NAME, _COLUMN = 24, 14
"""The widths of the first column and of the others, in a terminal; four arms fit into 80 columns."""


def _totals(table: TruthTable) -> Iterator[tuple[str, str, list[str]]]:
    """Section, short word, and how many keys of the section each arm has in that state; then how many of them
    have the star."""
    for section, lines in table.cells.items():
        for state, (word, _) in reversed(STATES.items()):
            counts = [sum(line[arm].state == state for line in lines.values()) for arm in table.arms]
            if any(counts):
                yield section, word, [str(count) for count in counts]
        stars = [sum(line[arm].interaction for line in lines.values()) for arm in table.arms]
        if any(stars):
            yield section, "*", [str(count) for count in stars]


def _word(cell: Cell, named: bool = False) -> str:
    """The short word of the state; which keywords are so, or how many of the cases, where not all are; `*`
    where it takes company."""
    word = STATES[cell.state][0] + "*" * cell.interaction
    if len(cell.worst) == len(cell.cases):
        return word
    decides = {each.decides for each in cell.worst}
    if named and not decides & {each.decides for each in cell.cases if each.state != cell.state}:
        return f"{word} ({_plain(', '.join(sorted(decides)))})"
    return f"{word} {len(cell.worst)}/{len(cell.cases)}"


def _plain(words: str) -> str:
    """Tags and options are anybody's: nothing in them steers a terminal or ends a cell of a table."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in words)
    return shown.replace("|", "/").replace("`", "'").replace("<", "&lt;")


def _markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(heads)
    return "".join("| " + " | ".join(line) + " |\n" for line in [heads, rule, *lines])


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:{_NAME}}" + "".join(f"{cell:{_COLUMN}}" for cell in cells)


def _cut(head: list[str]) -> list[str]:
    """The parts of an arm's name in lines that fit a column."""
    return [line for part in head for line in wrap(part, _COLUMN - 1)]


def _columns(name: str, columns: list[list[str]]) -> Iterator[str]:
    for number in range(max(map(len, columns), default=0)):
        yield _line(name, [column[number] if number < len(column) else "" for column in columns])


def _wrapped(key: str, cells: Sequence[str]) -> list[str]:
    """One line, or two where the key is too long for its column."""
    if len(key) < _NAME - 1:
        return [_line(f" {key}", cells)]
    return [f" {key[: _NAME + 2 * _COLUMN]}", _line("", cells)]
