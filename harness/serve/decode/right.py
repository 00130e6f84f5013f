"""How many texts came out right: counts over requests, each with its denominator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from harness.serve.decode.record import Judged
from harness.walk.loop.outcome import ANSWERED

AGAIN = re.compile(r" \(\d+\)$")


@dataclass(frozen=True)
class Share:
    """A part of a whole; `share` is None if the whole is empty."""

    part: int
    whole: int

    @property
    def share(self) -> float | None:
        return self.part / self.whole if self.whole else None

    def __str__(self) -> str:
        return f"{self.part}/{self.whole}" if self.whole else "-"


def valid(requests: Sequence[Judged]) -> Share:
    """Returns how many of the judged texts are valid. Requests that ran without their grammar are not among
    them; `fallback` counts those."""
    judged = [
        request for request in requests if request.right != "unjudged" and not request.completed.fallback
    ]
    return Share(sum(request.right == "valid" for request in judged), len(judged))


def as_replayed(requests: Sequence[Judged]) -> Share:
    """Returns how many replayed requests gave the reference byte for byte; one that was refused on the way
    did not."""
    replayed = [request for request in requests if request.as_replayed is not None]
    return Share(sum(request.as_replayed is True for request in replayed), len(replayed))


def canonical(requests: Sequence[Judged]) -> Share:
    """Returns how many of the outputs for which this was asked have the tokenizer's own ids of their text."""
    asked = [request.completed.canonical for request in requests if request.completed.canonical is not None]
    return Share(sum(asked), len(asked))


def fallback(requests: Sequence[Judged]) -> Share:
    """Returns how many of the requests with a grammar ran without it."""
    constrained = [request for request in requests if request.completed.compile_state]
    return Share(sum(bool(request.completed.fallback) for request in constrained), len(constrained))


def solved(requests: Sequence[Judged]) -> Share:
    """Returns how many of all requests came to their end, neither with an invalid text nor without their
    grammar. One that was cut at its limit is not among them (`cut`)."""
    whole = [request for request in requests if request.completed.end != "limit"]
    return Share(solved_or_cut(whole).part, len(requests))


def solved_or_cut(requests: Sequence[Judged]) -> Share:
    """Returns how many of all requests are solved, or were cut at their limit with nothing wrong in them so
    far."""
    fine = [
        request
        for request in requests
        if request.completed.end in ANSWERED and request.right != "invalid" and not request.completed.fallback
    ]
    return Share(len(fine), len(requests))


def cut(requests: Sequence[Judged]) -> Share:
    """Returns how many of all requests were cut at their limit, so that nobody knows how they would have
    ended."""
    return Share(sum(request.completed.end == "limit" for request in requests), len(requests))


def ends(requests: Sequence[Judged]) -> dict[str, int]:
    """Returns the number of requests by how they ended."""
    return dict(Counter(request.completed.end for request in requests).most_common())


def refusals(requests: Sequence[Judged]) -> dict[str, int]:
    """Returns the reasons for which requests were refused, aborted, failed or ran without their grammar, the
    most frequent first."""
    endings = (
        (request.completed.fallback or request.completed.end, request.completed.why) for request in requests
    )
    reasons = (
        f"{kind}: {why}" if why else kind for kind, why in endings if kind not in (*ANSWERED, "cancelled")
    )
    return dict(Counter(reasons).most_common())


def drift(requests: Sequence[Judged], own_spelling: Mapping[str, int]) -> float | None:
    """Returns the retokenization drift: ids emitted over the ids of the tokenizer's own spelling, less one,
    over the texts that came out as replayed and whole; 0.01 means one percent more tokens than needed. None
    if no such text is known.

    `own_spelling` has the number of ids of each text's own spelling, by the text's name.
    """
    known = [
        (request.completed, own_spelling.get(text_of(request.completed.name, own_spelling)))
        for request in requests
        if request.as_replayed and request.completed.end == "end_of_sequence"
    ]
    pairs = [(len(completed.ids), needed) for completed, needed in known if needed is not None]
    return sum(ids for ids, _ in pairs) / sum(needed for _, needed in pairs) - 1 if pairs else None


def text_of(name: str, texts: Container[str]) -> str:
    """Returns the name of a request's text. Requests beyond the first for a text have a number behind that
    name: `call (2)`."""
    return name if name in texts else AGAIN.sub("", name)
