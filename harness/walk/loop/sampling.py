"""How a token is chosen: greedily, drawn at temperature 1, or as a reference text has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.walk.loop.device import Sender

if TYPE_CHECKING:
    import torch

BONUS = 1e6
"""The bonus added to the reference token's logit before the mask. It is larger than any logit, so that only a
mask can keep the token away."""

NOTHING = -1
"""The id that stands for no token, where the mask allows nothing."""


@dataclass(frozen=True)
class Chosen:
    """The tokens that were chosen from the logits of a pass."""

    ids: Any
    """The token of the largest logit of each row, int64 on the host once it has `arrived`; any token where
    all are minus infinity."""
    largest: Any
    """These logits, float32, likewise."""
    there: torch.Tensor | None = None
    """The ids on the device, which the next pass may be fed before the host knows them. None where the host
    itself chose."""
    arrived: Any = None
    """The CUDA event; None on a CPU."""

    def known(self) -> list[int]:
        """Returns the token of each row, NOTHING where all logits are minus infinity. Waits for the
        device."""
        if self.arrived is not None:
            self.arrived.synchronize()
        pairs = zip(self.ids.tolist(), self.largest.tolist(), strict=True)
        return [NOTHING if logit == -inf else token for token, logit in pairs]


class Sampler:
    """Chooses tokens from logits on one device."""

    def __init__(self, device: torch.device) -> None:
        import torch

        self._device = device
        self._on_host = device.type == "cpu"
        self._generator = torch.Generator(device)
        self._wanted = Sender(device)
        self._bonus = torch.full((1, 1), BONUS, device=device)
        self._arriving: tuple[torch.Tensor, torch.Tensor] | None = None

    def favour(self, logits: torch.Tensor, wanted: Sequence[int]) -> None:
        """Adds the bonus to the logit of `wanted[i]` in row i, in place; NOTHING leaves the row as it is. The
        tokens that were chosen after the last call must be known by then."""
        if self._on_host:
            rows: Any = logits.numpy()
            for row, token in enumerate(wanted):
                if token != NOTHING:
                    rows[row, token] += BONUS
            return
        tokens = self._wanted.send(wanted).unsqueeze(1)
        bonus = self._bonus.expand_as(tokens)
        if NOTHING in wanted:
            bonus, tokens = bonus * (tokens != NOTHING), tokens.clamp(min=0)
        logits.scatter_add_(1, tokens, bonus)

    def disturb(self, logits: torch.Tensor, seed: int, position: int) -> None:
        """Adds Gumbel noise to one row in place: its largest logit is then a draw at temperature 1.

        The noise follows from the seed and the position in the output alone, so that neither the batch nor
        rejected drafts change a draw.
        """
        import torch

        self._generator.manual_seed((seed * 2654435761 + position) % 2**32)
        noise = torch.empty_like(logits).exponential_(generator=self._generator)
        logits.sub_(noise.clamp_(min=torch.finfo(noise.dtype).tiny).log_())

    def choose(self, logits: torch.Tensor) -> Chosen:
        """Returns the tokens of the largest logits `[rows, vocabulary]`, without waiting for the device. What
        the last call returned must be known by then."""
        import torch

        if self._on_host:
            rows: Any = logits.numpy()
            # numpy's is several times as fast as torch's on a CPU.
            ids = np.array([row.argmax() for row in rows])
            return Chosen(ids, rows[np.arange(len(ids)), ids])
        largest, tokens = logits.max(dim=1)
        if self._device.type == "cpu":
            return Chosen(tokens, largest, tokens)
        if self._arriving is None or len(self._arriving[0]) < len(tokens):
            self._arriving = (
                torch.empty(len(tokens), dtype=torch.int64, pin_memory=True),
                torch.empty(len(tokens), dtype=torch.float32, pin_memory=True),
            )
        here = [arriving[: len(tokens)] for arriving in self._arriving]
        here[0].copy_(tokens, non_blocking=True)
        here[1].copy_(largest, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return Chosen(here[0], here[1], tokens, arrived)
