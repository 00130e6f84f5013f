"""Whether two runs are parts of one: what their first lines must share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from harness.backend.arm import Arm, arm, version_key, with_version
from harness.errors import BadInput
from harness.rows.row import RunInfo, checks_named, names_every_check
from harness.rows.store import read_rows
from harness.text import counted, one_line, some

FREE = {"run", "started", "argv", "machine", "jobs", "executor", "asked", "readings"}
"""The fields of a run's first line in which two parts of one run may differ."""

OF_CODE = ("harness", "format")
"""The fields that no option sets: they tell which GrammarBench made the run."""


MOST_NAMED = 12
"""Most checks that a line names."""


class Difference(NamedTuple):
    """The first field in which two runs differ."""

    was: str
    """The field with its value in the one run, short."""
    is_now: str
    """Its value in the other."""
    is_of_code: bool
    """Does another GrammarBench or adapter make it, so that no option and no repeated command undoes it?"""


def first_difference(one: RunInfo, two: RunInfo, free: Collection[str] = ()) -> Difference | None:
    """Returns the first field, but for FREE and those that are `free` too, in which two runs differ. None if
    they may be parts of one run."""
    for field in fields(RunInfo):
        before, after = getattr(one, field.name), getattr(two, field.name)
        if field.name == "vocabularies":
            before, after = known_to_both(before, after), known_to_both(after, before)
        if field.name not in {*FREE, *free} and before != after:
            if field.name == "arms" and _versions(before) == _versions(after):
                return _described(before, after)
            return Difference(*_shortened(field.name, before, after), field.name in OF_CODE)
    return None


def known_to_both(
    mine: Mapping[str, Mapping[str, Any]], others: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns what a run says of its vocabularies, without what another one does not say of the same."""
    return {
        name: {what: value for what, value in about.items() if what in others.get(name, about)}
        for name, about in mine.items()
    }


def refuse_changes(then: RunInfo, now: RunInfo, folder: Path) -> None:
    """Raises BadInput unless the run in the folder goes on as what it was."""
    different = first_difference(then, now)
    if different is None:
        return
    told = f"({different.was}; now {different.is_now})"
    if not different.is_of_code:
        raise BadInput(
            f"{folder} was started with other options {told}; repeat its command, or give another --out"
        )
    way = "; end it with that one, or begin anew, with another --out"
    if any(one in now.arms for one in then.arms):
        way += f": --take-over {folder} keeps what the backends walked that are as they were"
    raise BadInput(f"{folder} was started with another GrammarBench or adapter {told}{way}")


def refuse_other_checks(folder: Path, names: Collection[str]) -> None:
    """Raises BadInput if the run was begun by a GrammarBench that has other checks than these, which would
    make a run of which a part of the cases lacks some. `names`: the checks that are to be made."""
    if apart := other_checks(folder, names):
        raise BadInput(
            f"{folder} was begun with another GrammarBench ({apart}); end it with that one, or begin anew, "
            f"with another --out: --take-over {folder} keeps the cases that it walked, with the checks that "
            "it made"
        )


def other_checks(folder: Path, names: Collection[str]) -> str:
    """Returns in words which of these checks the run in the folder did not make, and which others it made;
    empty where it made the same, and where it does not tell. Raises BadInput for a damaged run."""
    there = checks_of(folder) if names else None
    return "" if there is None else checks_apart(there, set(names))


def checks_of(folder: Path) -> frozenset[str] | None:
    """Returns the checks that a run made, by the first case whose checks came to their end; None where none
    did. Raises BadInput for a damaged run."""
    rows = read_rows(folder, whole=False)
    return next((checks_named(row) for row in rows if names_every_check(row)), None)


def checks_apart(there: Set[str], here: Set[str]) -> str:
    """Returns in words which checks only one of two runs has; empty where these are the same."""
    parts = [
        f"{counted(len(alone), 'check')} {where}: {some(sorted(alone), MOST_NAMED)}"
        for where, alone in (("only there", there - here), ("only here", here - there))
        if alone
    ]
    return "; ".join(parts)


def _versions(arms: Sequence[Arm]) -> list[tuple[str, str, str]]:
    return [version_key(each) for each in arms]


def _described(before: Sequence[Arm], after: Sequence[Arm]) -> Difference:
    """Returns the first thing that an adapter says of itself otherwise than before, at the same version and
    with the same options; of a list only what was left out and what came."""
    old, new = next((old, new) for old, new in zip(before, after, strict=True) if old != new)
    name = next(
        field.name
        for field in fields(Arm)
        if field.compare and getattr(old, field.name) != getattr(new, field.name)
    )
    values = [getattr(old, name), getattr(new, name)]
    if all(isinstance(value, tuple) for value in values) and set(values[0]) != set(values[1]):
        theirs, ours = (", ".join(sorted({*one} - {*other})) for one, other in (values, reversed(values)))
        values = [
            f"with {theirs}" if theirs else f"without {ours}",
            f"with {ours}" if ours else f"without {theirs}",
        ]
    who = with_version(arm(old), old.version)
    return Difference(f"{name} of {who} {one_line(str(values[0]), 160)}", one_line(str(values[1]), 160), True)


def _shortened(name: str, before: Any, after: Any) -> tuple[str, str]:
    """Returns a field with its value before, and its value after, both short: of a table, and of a table in
    it, only what differs."""
    if name == "arms":
        before, after = (
            [f"{each.backend} {each.version} {each.options}".strip() for each in arms]
            for arms in (before, after)
        )
    before, after = _differing(before, after)
    return f"{name} {one_line(str(before), 160)}", one_line(str(after), 160)


def _differing(before: Any, after: Any) -> tuple[Any, Any]:
    """Returns both without the keys at which they are equal, where both are tables, at any depth."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before, after
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    pairs = {key: _differing(before.get(key), after.get(key)) for key in changed}
    return {key: was for key, (was, _) in pairs.items()}, {key: now for key, (_, now) in pairs.items()}
