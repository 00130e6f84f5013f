"""How far the grammar moves a model away from what it would have written: the figures of texts that were
scored (`harness.serve.decode.scoring`).

P is the model, x the output's ids, and A_t the ids that the mask allows at place t. The mask keeps
Z_t = sum of P(v | x before t) over v in A_t; the decode loop draws from Q_t = P / Z_t on A_t, which is
grammar-constrained decoding (arXiv:2405.21047). So -log Z_t is the Kullback-Leibler divergence of
Q_t from P, the "projection tax" of the step (arXiv:2603.03305), and its sum over a text is log Q(x) / P(x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.rows.appending import Integers

PLACE_COLUMNS = {
    "tax_nnat": "minus the logarithm of the probability that the mask keeps, in 1e-9 nats",
    "surprise_nnat": "minus the logarithm of the model's own probability of the id, in 1e-9 nats",
    "favourite_masked": "1 if the mask forbids the id that the model finds most probable, else 0",
    "written": "1 if the id was written without logits, else 0",
}
"""The int64 columns of one place of a text: an id of the answer, the end of the sequence included."""

NAT = 10**9
"""How many of the unit of the columns are one nat."""


@dataclass(frozen=True)
class ScoredText:
    """One text that was fed to the model again, and what the model and the mask said at each place."""

    name: str
    """The request's name."""
    ids: int
    """How many of its ids have text: special ones such as the end of the sequence do not."""
    other: int | None
    """How many of those are not the ids that the tokenizer itself puts over these bytes of the text; None if
    the vocabulary cannot spell the text."""
    places: Integers
    """Int64 `[places, len(PLACE_COLUMNS)]`. The thinking part of a request that thinks first has none."""

    def column(self, name: str) -> Integers:
        """Returns one column by its name, int64 `[places]`."""
        return self.places[:, list(PLACE_COLUMNS).index(name)]


@dataclass(frozen=True)
class Goodness:
    """The texts of one setting on one arm: those of the first fork's last round that were answered under
    their grammar."""

    arm: str
    setting: int
    """The setting's place in `DecodeSetup.settings`."""
    texts: tuple[ScoredText, ...]
    left_out: dict[str, int]
    """How many texts could not be scored, by reason."""
    why: str = ""
    """Why nothing was scored; empty if something was."""


def with_places(texts: Sequence[ScoredText]) -> list[ScoredText]:
    """Returns the texts that have a place. One whose thinking never ended has none: no mask was asked for, so
    that its tax is unknown and not 0."""
    return [text for text in texts if len(text.places)]


def removed(texts: Sequence[ScoredText]) -> list[float]:
    """Returns the share of the model's probability that the mask removes, 1 - Z, at each place of all
    texts."""
    shares: list[float] = (-np.expm1(-_pooled(texts, "tax_nnat") / NAT)).tolist()
    return shares


def taxes(texts: Sequence[ScoredText]) -> list[float]:
    """Returns the projection tax of each text, in nats."""
    return [int(text.column("tax_nnat").sum()) / NAT for text in texts]


def tax_per_id(texts: Sequence[ScoredText]) -> float | None:
    """Returns the tax of all texts over their places, in nats; None if there is no place."""
    pooled = _pooled(texts, "tax_nnat")
    return float(pooled.sum()) / NAT / len(pooled) if len(pooled) else None


def imposed(texts: Sequence[ScoredText]) -> list[float]:
    """Returns for each text what its ids written without logits cost beyond their masks, in nats.

    Such an id is no choice of the model's: there the output has log 1 / P(id) instead of the tax. It is
    negative only where a strategy writes ids that the mask forbids.
    """
    return [
        int(((text.column("surprise_nnat") - text.column("tax_nnat")) * text.column("written")).sum()) / NAT
        for text in texts
    ]


def favourite_masked(texts: Sequence[ScoredText]) -> float | None:
    """Returns the share of places at which the mask forbids the model's favourite; None if there is no
    place."""
    pooled = _pooled(texts, "favourite_masked")
    return float(pooled.mean()) if len(pooled) else None


def canonical_ids(texts: Sequence[ScoredText]) -> float | None:
    """Returns the share of ids that the tokenizer itself puts over the same bytes; None if no text can be
    spelled by it."""
    spelled = [(text.ids, text.other) for text in texts if text.other is not None]
    ids = sum(count for count, _ in spelled)
    return 1 - sum(other for _, other in spelled) / ids if ids else None


def _pooled(texts: Sequence[ScoredText], column: str) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *(text.column(column) for text in texts)])
