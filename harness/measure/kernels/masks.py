"""The masks of one timed point in every form that a subject reads, and how many bytes each form makes a
subject move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Form = Literal["packed", "bool", "forbidden_ids", "allowed_ids"]
"""Forms of masks. `packed`: int32 words, 1 = allowed. `bool`: a byte for each token, True = forbidden. Ids:
int64 indices of the flattened logits."""


@dataclass(frozen=True, eq=False)
class KernelMasks:
    """`allowed` is `[batch, vocabulary]`; the forms are made on the device when they are first asked for."""

    allowed: NDArray[np.bool_]
    device: str

    @cached_property
    def count(self) -> int:
        """Returns the number of allowed tokens over all rows."""
        return int(self.allowed.sum())

    @cached_property
    def packed(self) -> torch.Tensor:
        batch, vocabulary = self.allowed.shape
        padded = np.zeros((batch, -(-vocabulary // 32) * 32), dtype=np.bool_)
        padded[:, :vocabulary] = self.allowed
        return self._there(np.packbits(padded, axis=1, bitorder="little").view(np.int32))

    @cached_property
    def bool(self) -> torch.Tensor:
        return self._there(~self.allowed)

    @cached_property
    def forbidden_ids(self) -> torch.Tensor:
        return self._there(np.flatnonzero(~self.allowed))

    @cached_property
    def allowed_ids(self) -> torch.Tensor:
        return self._there(np.flatnonzero(self.allowed))

    def of(self, form: Form) -> torch.Tensor:
        """Returns the mask in that form."""
        made: torch.Tensor = getattr(self, form)
        return made

    def _there(self, array: NDArray[np.generic]) -> torch.Tensor:
        import torch

        return torch.from_numpy(array).to(self.device)


def random_masks(vocabulary: int, batch: int, share: float, device: str) -> KernelMasks:
    """Returns random masks, the same each time. Each row allows the same number of tokens: `share` of the
    vocabulary, but at least one."""
    random = np.random.default_rng((vocabulary, batch, round(share * 1e6)))
    count = max(1, round(share * vocabulary))
    allowed = np.zeros((batch, vocabulary), dtype=np.bool_)
    for row in allowed:
        if 2 * count <= vocabulary:
            row[random.choice(vocabulary, count, replace=False, shuffle=False)] = True
        else:
            row[:] = True
            row[random.choice(vocabulary, vocabulary - count, replace=False, shuffle=False)] = False
    return KernelMasks(allowed, device)


def bytes_needed(form: Form, vocabulary: int, batch: int, allowed: int, item_bytes: int) -> int:
    """Returns the bytes that count: the logits that must be written, once each, and the mask in its own form,
    read once.

    Logits written are the forbidden ones. `allowed_ids` is another algorithm (keep the allowed values, fill
    everything, put them back): there the allowed logits are read and written besides. Logits that a kernel
    reads or rewrites without need do not count, nor does the rest of a cache line of which a kernel writes a
    part, nor what it allocates on its way: these are what keeps it below the bandwidth of a copy.
    """
    cells = vocabulary * batch
    forbidden = (cells - allowed) * item_bytes
    if form == "packed":
        return forbidden + batch * -(-vocabulary // 32) * 4
    if form == "bool":
        return forbidden + cells
    if form == "forbidden_ids":
        return forbidden + (cells - allowed) * 8
    return cells * item_bytes + 2 * allowed * item_bytes + allowed * 8
