"""What the decode loop needs of a model. `harness.serve.decode.model.model` is the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch


class Forward(Protocol):
    """A model with a static cache of `rows` rows, each at a position of its own."""

    rows: int
    positions: int
    """The most tokens of a row, prompt and output together."""
    chunk: int
    """The most tokens by which one call extends a row."""
    vocabulary_size: int
    """The number of logits; at least the vocabulary's size."""
    device: torch.device

    @property
    def began(self) -> Any:
        """Returns when the last pass began on the device, by `device.clock_of`, without what the host did to
        prepare it. It is asked for on a device that works beside the host."""
        ...

    def extend(self, tokens: Mapping[int, Sequence[int]], *, every: bool = False) -> torch.Tensor:
        """Append tokens (1 to `chunk` for each row named) in one forward pass, and return float32 logits,
        which the caller may overwrite.

        The logits are `[len(tokens), vocabulary_size]`, in the order of the mapping, at each row's last
        token. With `every` they are `[len(tokens), longest, vocabulary_size]`, at every appended token;
        values beyond a row's own count mean nothing. On CUDA the call returns before the device has done the
        work.
        """
        ...

    def extend_unseen(self, rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        """Append one token to each row as `extend` does, given as int64 `[len(rows)]` on the device, so that
        the host need not know them yet; return the logits `[len(rows), vocabulary_size]`."""
        ...

    def length(self, row: int) -> int:
        """Returns how many tokens the row holds."""
        ...

    def rollback(self, row: int, length: int) -> None:
        """Keeps the row's first `length` tokens; 0 empties the row."""
        ...

    def finish(self) -> None:
        """Waits for the device."""
        ...
