"""How a token is chosen: greedily, drawn at temperature 1, or as a reference text has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.walk.loop.device import sent

if TYPE_CHECKING:
    import torch

BONUS = 1e6
"""The bonus added to the reference token's logit before the mask. It is larger than any logit, so that only a
mask can keep the token away."""

NOTHING = -1
"""The id that stands for no token, where the mask allows nothing."""


class Sampler:
    """Chooses tokens from logits on one device."""

    def __init__(self, device: torch.device) -> None:
        import torch

        self._device = device
        self._on_host = device.type == "cpu"
        self._generator = torch.Generator(device)

    def favour(self, logits: torch.Tensor, wanted: Sequence[int]) -> None:
        """Adds the bonus to the logit of `wanted[i]` in row i, in place; NOTHING leaves the row as it is."""
        if self._on_host:
            rows: Any = logits.numpy()
            for row, token in enumerate(wanted):
                if token != NOTHING:
                    rows[row, token] += BONUS
            return
        tokens = sent(wanted, self._device)[:, None]
        logits.scatter_add_(1, tokens.clamp(min=0), (tokens >= 0) * BONUS)

    def disturb(self, logits: torch.Tensor, seed: int, position: int) -> None:
        """Adds Gumbel noise to one row in place: its largest logit is then a draw at temperature 1.

        The noise follows from the seed and the position in the output alone, so that neither the batch nor
        rejected drafts change a draw.
        """
        import torch

        self._generator.manual_seed((seed * 2654435761 + position) % 2**32)
        noise = torch.empty_like(logits).exponential_(generator=self._generator)
        logits.sub_(noise.clamp_(min=torch.finfo(noise.dtype).tiny).log_())

    def choose(self, logits: torch.Tensor) -> list[int]:
        """Returns the token of the largest logit of each row; NOTHING where all are minus infinity. Waits for
        the device."""
        if self._on_host:
            rows: Any = logits.numpy()
            chosen = [
                int(row.argmax()) for row in rows
            ]  # numpy's is several times as fast as torch's on a CPU
            return [token if rows[at, token] != float("-inf") else NOTHING for at, token in enumerate(chosen)]
        values, tokens = logits.max(dim=1)
        largest: list[int] = tokens.masked_fill_(values.isneginf(), NOTHING).tolist()
        return largest
