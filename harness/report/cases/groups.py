"""Cases that came out alike: the same state on every arm, and the keywords that tell them from
the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.cases.failing import AS_DOCUMENTED

LEAST = 3
"""Cases of one vector that a tag must join before it makes a group of its own."""
TELLING = 1.3
"""How much more frequent a tag must be among cases of one vector than in the whole run."""
SHOWN_TAGS = 8


@dataclass(frozen=True)
class Signed:
    """What a group is found by: a case's tags, and what it came to on each arm (empty where it was not
    run)."""

    tags: tuple[str, ...]
    vector: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Cases that came to the same on each arm, and a tag in common where one tells them apart."""

    vector: tuple[str, ...]
    tags: tuple[str, ...]
    """What all its cases have in common, the most telling first."""
    members: tuple[int, ...]
    different: bool
    """The arms do not agree on it."""


def differs(vector: Sequence[str], left_out: frozenset[int] = frozenset()) -> bool:
    """Is the case in different states on two arms that ran it, could be judged and are not left out?

    What a backend documents is no difference.
    """
    kinds = {
        "works" if kind == AS_DOCUMENTED else kind
        for position, kind in enumerate(vector)
        if position not in left_out and kind not in ("", "not_measured", "not_judged")
    }
    return len(kinds) > 1


def grouped(
    cases: Sequence[Signed], chosen: Sequence[int], left_out: frozenset[int] = frozenset()
) -> list[Group]:
    """Returns the chosen cases (by index) in groups: those on which arms differ first, then by size.

    `cases` are all of the run: a tag tells something only where it is more frequent among the group's cases
    than among these. What a case comes to on an arm that is left out (it solves nothing) tells no two cases
    apart.
    """
    everywhere = Counter(tag for case in cases for tag in set(case.tags))
    by_vector: dict[tuple[str, ...], list[int]] = {}
    for index in chosen:
        vector = tuple(
            "" if position in left_out else kind for position, kind in enumerate(cases[index].vector)
        )
        by_vector.setdefault(vector, []).append(index)
    groups = [
        Group(vector, tags, tuple(members), differs(vector, left_out))
        for vector, indices in by_vector.items()
        for tags, members in _split(cases, indices, everywhere, len(cases))
    ]
    return sorted(
        groups,
        key=lambda group: (not group.different, -len(group.members), group.vector, group.tags, group.members),
    )


def _split(
    cases: Sequence[Signed], indices: list[int], everywhere: Counter[str], total: int
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Returns the cases of one vector by the tag that tells the most of them, then by the one that tells most
    of the rest, and so on."""
    parts = []
    rest = indices
    while rest:
        here = Counter(tag for index in rest for tag in set(cases[index].tags))

        def lift(tag: str, size: int = len(rest), here: Counter[str] = here) -> float:
            return (here[tag] / size) / (everywhere[tag] / total)

        telling = [tag for tag, count in here.items() if count >= LEAST and lift(tag) >= TELLING]
        best = max(telling, key=lambda tag: (here[tag] * math.log(lift(tag)), here[tag], tag), default=None)
        mine = [index for index in rest if best is None or best in cases[index].tags]
        parts.append((_common(cases, mine, best, everywhere), mine))
        if best is None:
            break
        rest = [index for index in rest if best not in cases[index].tags]
    return parts


def _common(
    cases: Sequence[Signed], members: list[int], best: str | None, everywhere: Counter[str]
) -> tuple[str, ...]:
    """Returns the tags of all of them; the rarer a tag is in the run, the more it says."""
    shared = set.intersection(*(set(cases[index].tags) for index in members)) - {best}
    return (*((best,) if best is not None else ()), *sorted(shared, key=lambda tag: (everywhere[tag], tag)))[
        :SHOWN_TAGS
    ]
