"""Did the text come out right? Counts over requests, each with its denominator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from harness.decode.record import Judged
from harness.loop.outcome import ANSWERED

AGAIN = re.compile(r" \(\d+\)$")


@dataclass(frozen=True)
class Share:
    """A part of a whole; `share` is None where there is nothing to be a part of."""

    part: int
    whole: int

    @property
    def share(self) -> float | None:
        return self.part / self.whole if self.whole else None

    def __str__(self) -> str:
        return f"{self.part}/{self.whole}" if self.whole else "-"


def valid(requests: Sequence[Judged]) -> Share:
    """Of the texts that a judge judged, those that it calls valid; a request that ran without its grammar has its own count (fallback)."""
    judged = [each for each in requests if each.right != "unjudged" and not each.completed.fallback]
    return Share(sum(each.right == "valid" for each in judged), len(judged))


def as_replayed(requests: Sequence[Judged]) -> Share:
    """Of the replayed requests, those whose text is the reference byte for byte; one that was refused on the way is not."""
    replayed = [each for each in requests if each.as_replayed is not None]
    return Share(sum(each.as_replayed is True for each in replayed), len(replayed))


def canonical(requests: Sequence[Judged]) -> Share:
    """Of the outputs that were asked, those whose ids are the tokenizer's own of their text."""
    asked = [each.completed.canonical for each in requests if each.completed.canonical is not None]
    return Share(sum(asked), len(asked))


def fallback(requests: Sequence[Judged]) -> Share:
    """Of the requests with a grammar, those that ran without it."""
    constrained = [each for each in requests if each.completed.compile_state]
    return Share(sum(bool(each.completed.fallback) for each in constrained), len(constrained))


def solved(requests: Sequence[Judged]) -> Share:
    """Of all requests, those answered and neither invalid nor without their grammar."""
    fine = [each for each in requests if each.completed.end in ANSWERED and each.right != "invalid" and not each.completed.fallback]
    return Share(len(fine), len(requests))


def ends(requests: Sequence[Judged]) -> dict[str, int]:
    """How many ended how."""
    return dict(Counter(each.completed.end for each in requests).most_common())


def refusals(requests: Sequence[Judged]) -> dict[str, int]:
    """Why requests were refused, aborted, failed or ran without their grammar, the most frequent first."""
    said = ((each.completed.fallback or each.completed.end, each.completed.why) for each in requests)
    told = (f"{kind}: {why}" if why else kind for kind, why in said if kind not in (*ANSWERED, "cancelled"))
    return dict(Counter(told).most_common())


def drift(requests: Sequence[Judged], own_spelling: Mapping[str, int]) -> float | None:
    """Retokenization drift: ids emitted over the ids of the tokenizer's own spelling, less one, over texts that came out as replayed.

    0.01: one percent more tokens than the text needs. `own_spelling`: by the text's name. None where no text is known.
    """
    known = [(each.completed, own_spelling.get(text_of(each.completed.name, own_spelling))) for each in requests if each.as_replayed]
    pairs = [(len(completed.ids), needed) for completed, needed in known if needed is not None]
    return sum(ids for ids, _ in pairs) / sum(needed for _, needed in pairs) - 1 if pairs else None


def text_of(name: str, texts: Container[str]) -> str:
    """The name of a request's text; requests beyond the first of a text have a number behind it: `call (2)`."""
    return name if name in texts else AGAIN.sub("", name)
