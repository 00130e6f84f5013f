"""A model without content and without cost, for decoding a reference text where only grammar and strategy are
of interest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class SilentModel:
    """A model whose logits are all zero, on the host, and whose rows have no end."""

    positions = 2**31
    chunk = 2**20
    began: None = None

    def __init__(self, vocabulary_size: int, rows: int) -> None:
        import torch

        self.vocabulary_size, self.rows = vocabulary_size, rows
        self.device: torch.device = torch.device("cpu")
        self._lengths = [0] * rows

    def extend(self, tokens: Mapping[int, Sequence[int]], *, every: bool = False) -> torch.Tensor:
        """Zeros, in the shapes of `Forward.extend`."""
        import torch

        size = self.vocabulary_size
        for row, added in tokens.items():
            self._lengths[row] += len(added)
        shape = (len(tokens), max(map(len, tokens.values())), size) if every else (len(tokens), size)
        return torch.from_numpy(np.zeros(shape, np.float32))

    def extend_unseen(self, rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        """Zeros, in the shape of `Forward.extend_unseen`."""
        return self.extend(dict.fromkeys(rows, (0,)))

    def length(self, row: int) -> int:
        """Returns how many tokens the row holds."""
        return self._lengths[row]

    def rollback(self, row: int, length: int) -> None:
        """Keeps the row's first `length` tokens."""
        self._lengths[row] = length

    def finish(self) -> None:
        """Does nothing: there is nothing to wait for."""
