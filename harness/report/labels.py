"""Short names that tell arms apart: the same on the page and on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count

from harness.text import shorten

LONGEST = 90
"""The most columns of a label, but for its number."""


def told_apart(names: Sequence[str], particulars: Iterable[Sequence[str]]) -> list[str]:
    """Returns a short name for each arm, no two the same.

    Each of the `particulars` (the versions, say, one for each arm) is added only where it tells arms of one
    name apart. Where a name is too long its middle goes, for arms often differ at their end alone; what is
    the same then is numbered.
    """
    labels = list(names)
    for parts in particulars:
        kinds: dict[str, set[str]] = {}
        for label, part in zip(labels, parts, strict=True):
            kinds.setdefault(label, set()).add(part)
        labels = [
            f"{label} · {part}" if len(kinds[label]) > 1 else label
            for label, part in zip(labels, parts, strict=True)
        ]
    labels = [label if len(label) <= LONGEST else shorten(label, LONGEST) for label in labels]
    known, taken = Counter(labels), {*labels}
    numbered = []
    for label in labels:
        if known[label] > 1:
            label = next(name for number in count(1) if (name := f"{label} · {number}") not in taken)
            taken.add(label)
        numbered.append(label)
    return numbered
