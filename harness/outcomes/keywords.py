"""The rows of a run folded by keyword: what each backend makes of each keyword of JSON Schema, alone, in
pairs, and by place.

Any case counts that has a tag `decides:KEYWORD` and whose invalid instances are forbidden by that keyword
alone. The other tags say where it counts: `pair:A+B` for the pair, `keyword:K` with `at:PLACE` for the
keyword at that place, else `keyword:K` for the keyword and, with `value:V`, for that value of it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness.backend.arm import version_key
from harness.outcomes.outcome import walk_verdict
from harness.rows.row import Row
from harness.rows.store import read_info, read_rows

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

CaseKey = tuple[str, str]
"""Suite and id of a case, whose name need not be its own."""


@dataclass(frozen=True)
class Decision:
    """What one arm did in one case."""

    case: str
    decides: str
    state: State


@dataclass(frozen=True)
class KeywordCell:
    """What one arm makes of one keyword, pair or place."""

    state: State
    cases: tuple[Decision, ...] = ()
    interaction: bool = False
    """The state is a fault, and a worse one than that of the keyword by itself, if it has one there."""
    text: str = ""
    """What the backend said where it declined or broke, of the first such case."""

    @property
    def counts(self) -> dict[State, int]:
        """Returns how many cases are in each state, worst first."""
        counted = Counter(case.state for case in self.cases)
        return {state: counted[state] for state in STATES if counted[state]}

    @property
    def worst(self) -> list[Decision]:
        """Returns the cases that are in the cell's state."""
        return [case for case in self.cases if case.state == self.state]


@dataclass(frozen=True)
class TruthTable:
    """`cells[section][key][arm]`; every key has every arm."""

    arms: tuple[ArmName, ...]
    cells: dict[Section, dict[str, dict[ArmName, KeywordCell]]]


@dataclass(slots=True)
class _CaseWalks:
    """The walks of one case through one arm, over all vocabularies."""

    name: str
    decides: str
    forbidden: Counter[str] = field(default_factory=Counter)
    valid: Counter[str] = field(default_factory=Counter)
    text: str = ""

    def add(self, row: Row) -> None:
        """Take in one more walk."""
        what = walk_verdict(row)
        (self.valid if row.valid else self.forbidden)[what] += 1
        if what in ("declined", "broken") and not self.text:
            self.text = row.text

    @property
    def state(self) -> State:
        """Returns the worst that can be said of the case; `enforced` only where both kinds of instance were
        walked and judged rightly."""
        states = self.valid + self.forbidden
        if states["broken"]:
            return "broken"
        if self.forbidden["under_constrained"]:
            return "partly enforced" if self.forbidden["pass"] else "silently ignored"
        if self.valid["over_constrained"]:
            return "wrongly enforced"
        if states["declined"]:
            return "declined"
        return "enforced" if self.valid.keys() == {"pass"} == self.forbidden.keys() else "not measured"


def table_of(run: Path) -> TruthTable:
    """Returns the table of the run in a folder, with its arms in the order in which the run has them, and not
    in that in which they were done. Raises BadInput."""
    table = truth_table(read_rows(run))
    ordered = [version_key(arm) for arm in read_info(run).arms]
    return replace(table, arms=tuple(arm for arm in ordered if arm in table.arms))


def truth_table(rows: Iterable[Row]) -> TruthTable:
    """Returns the table of these rows; rows of other cases, and of modes that do not walk single instances,
    are passed over."""
    walks_by_arm: dict[ArmName, dict[tuple[Section, str], dict[CaseKey, _CaseWalks]]] = {}
    for row in rows:
        decides = next((tag.removeprefix("decides:") for tag in row.tags if tag.startswith("decides:")), "")
        if row.valid is None or not decides:
            continue
        keys = walks_by_arm.setdefault(row.version_key, {})
        for key in _keys(row.tags):
            cases = keys.setdefault(key, {})
            cases.setdefault((row.suite, row.case_id), _CaseWalks(row.case, decides)).add(row)
    order = list(dict.fromkeys(key for keys in walks_by_arm.values() for key in keys))
    cells: dict[Section, dict[str, dict[ArmName, KeywordCell]]] = {section: {} for section in SECTIONS}
    alone: dict[ArmName, dict[str, State]] = {arm: {} for arm in walks_by_arm}
    # The keywords by themselves first: the other sections look them up.
    for section, name in sorted(order, key=lambda key: (key[0] != "keyword", _order(key[1]))):
        cells[section][name] = {}
        for arm, keys in walks_by_arm.items():
            is_alone = section == "keyword"
            cell = _cell(keys.get((section, name), {}), {} if is_alone else alone[arm])
            cells[section][name][arm] = cell
            if is_alone:
                alone[arm][name] = cell.state
    return TruthTable(tuple(walks_by_arm), cells)


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


def _cell(cases: dict[CaseKey, _CaseWalks], alone: dict[str, State]) -> KeywordCell:
    decisions = tuple(Decision(case.name, case.decides, case.state) for case in cases.values())
    worst: State = next(
        (state for state in STATES if any(decision.state == state for decision in decisions)), "not measured"
    )
    milder = ("enforced", *FAULTS[FAULTS.index(worst) + 1 :]) if worst in FAULTS else ()
    interaction = any(
        decision.state == worst and alone.get(decision.decides) in milder for decision in decisions
    )
    text = next((case.text for case in cases.values() if case.text), "")
    return KeywordCell(worst, decisions, interaction, text)
