"""A share of a run's cases, so that several machines walk one plan: equal in size, disjoint, and together the
whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """The share with this `number`, from 1, of so many."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse(text: str) -> Shard:
    """Returns the shard that a text like `2/4` names. Raises ValueError."""
    number, slash, of = text.partition("/")
    shard = Shard(int(number), int(of))
    if not slash or not 1 <= shard.number <= shard.of or str(shard) != text:
        raise ValueError
    return shard


def share(keys: Iterable[tuple[str, str]], shard: Shard) -> list[int]:
    """Returns the places of the shard's cases among all cases of a plan, named by suite and id, in the plan's
    order.

    Dealt in turn in the order of a hash: wherever a case stands in its suite it goes to the same shard, and
    cases that were made together, and take long together, are spread."""

    def rank(key: tuple[str, str]) -> bytes:
        return hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).digest()

    places = sorted((rank(key), place) for place, key in enumerate(keys))
    return sorted(place for _, place in places[shard.number - 1 :: shard.of])
