"""Two runs as wholes: may they be compared, and what of the first is missing in the second?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.backend.arm import Arm, are_versions, arm, arm_names, version_key
from harness.backend.environments.releases import same_or_newest
from harness.errors import BadInput
from harness.outcomes.settings import differing, digests, other_inputs, other_tokenizers, other_vocabularies
from harness.rows.row import RunInfo
from harness.rows.sample import cases_left_out
from harness.rows.store import read_info


def refuse_other_settings(base: Path, head: Path, *, gates: bool) -> None:
    """Raises BadInput for two runs that looked at different places, or at other shares of the cases; for a
    gate also where another seed drew the places."""
    old, new = read_info(base), read_info(head)
    shards = [info.shard or "the whole" for info in (old, new)]
    if shards[0] != shards[1]:
        raise BadInput(
            f"{base} is {shards[0]} of a run, {head} is {shards[1]}; put the shards together "
            "first (grammarbench merge)"
        )
    settings = [
        ("effort", old.effort, new.effort),
        ("decode", old.decode, new.decode),
        ("checks", _checks(old), _checks(new)),
        *(_seeds(old, new) if gates else []),
    ]
    others = other_vocabularies(str(base), str(head), digests(old.vocabularies), digests(new.vocabularies))
    others += other_tokenizers(str(base), str(head), old.vocabularies, new.vocabularies)
    if different := "; ".join([*differing(f"{base} was walked", str(head), settings), *others]):
        raise BadInput(
            f"{base} and {head} cannot be compared: {different}; walk one of them again with the settings "
            "of the other"
        )


def _checks(info: RunInfo) -> str:
    return ", ".join(sorted(info.checks)) or "all"


def counterpart(head: Arm, base: Iterable[Arm]) -> Arm | None:
    """Returns what an arm is held against of the arms of another run: the one with its options and its
    version, else the newest version with its options; None if there is none."""
    return same_or_newest(head.version, (other for other in base if are_versions(other, head)))


def not_compared(base: Path, head: Path) -> str:
    """Says in a line which arms of two runs are held against nothing; empty if all are. Raises BadInput."""
    old, new = (read_info(folder).arms for folder in (base, head))
    held = {after: counterpart(after, old) for after in new}
    before = set(held.values())
    parts = [
        f"{', '.join(left)} (in {folder} only)"
        for folder, arms, compared in (
            (base, old, before),
            (head, new, {after for after, there in held.items() if there}),
        )
        if (left := [name for name, one in zip(_names(arms), arms, strict=True) if one not in compared])
    ]
    return f"not compared: {'; '.join(parts)}" if parts else ""


def _names(arms: Sequence[Arm]) -> list[str]:
    names = arm_names(arms)
    return [names[version_key(one)] for one in arms]


def other_inputs_of(base: Path, head: Path) -> Iterator[str]:
    """Yields what of the inputs of two runs is another and still may be compared. Raises BadInput."""
    old, new = read_info(base), read_info(head)
    return other_inputs(str(base), str(head), (old.suites, new.suites), (old.memory_bytes, new.memory_bytes))


def missing(base: Path, head: Path) -> Iterator[str]:
    """Yields why the second run proves nothing of all that the first one walked. Raises BadInput."""
    old, new = read_info(base), read_info(head)
    for what, lost in (
        ("backend", _without(_arms(old), _arms(new))),
        ("suite", _without(list(old.suites), list(new.suites))),
    ):
        if lost:
            yield f"{head} has no {what} {', '.join(lost)}, which {base} has"
    yield from differing(f"{base} was walked", str(head), _seeds(old, new))


def _seeds(old: RunInfo, new: RunInfo) -> list[tuple[str, int, int]]:
    """Returns the seeds to compare; none where they drew neither cases nor places nor tokens."""
    drew = any(info.effort or info.decode or cases_left_out(info) for info in (old, new))
    return [("seed", old.seed, new.seed)] if drew else []


def _arms(info: RunInfo) -> list[str]:
    """Returns the arms of a run without their versions, each once."""
    return list(dict.fromkeys(map(arm, info.arms)))


def _without(mine: list[str], other: list[str]) -> list[str]:
    return [name for name in mine if name not in other]
