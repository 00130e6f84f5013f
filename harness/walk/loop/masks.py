"""The masks of a batch: filled on the host, moved to the device, and applied to the logits of the rows that
have a grammar."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import Adapter, Bitmask, unpack_mask
from harness.errors import BadInput

if TYPE_CHECKING:
    import torch


class Masks:
    """One mask for each slot: packed int32 `[slots, words]` or bool `[slots, vocabulary]`, as the adapter has
    them. The host's memory is pinned for CUDA."""

    def __init__(self, adapter: Adapter, slots: int, device: torch.device, kernel: str = "") -> None:
        """Raises BadInput if `kernel` is not one of the adapter's that works on this device."""
        import torch

        self.size = adapter.vocabulary.size
        self.packed = adapter.mask_format == "bitmask"
        self._on_host = device.type == "cpu"
        self._kernel = load_kernel(adapter, kernel, device) if kernel else None
        width, dtype = ((self.size + 31) // 32, torch.int32) if self.packed else (self.size, torch.bool)
        self._host = torch.zeros((slots, width), dtype=dtype, pin_memory=device.type == "cuda")
        self._there = self._host if self._on_host else torch.zeros((slots, width), dtype=dtype, device=device)
        whole: NDArray[Any] = self._host.numpy()
        self.rows = list(whole)
        """The rows to fill, by slot. They are always the same arrays, because adapters remember an array's
        address."""
        self._batches = [whole[:count] for count in range(slots + 1)]
        # Bytes and not int32, where the sign bit of a word would be shifted along.
        self._bits = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=device)
        self._stream: torch.cuda.Stream | None = None
        """On CUDA the queue in which masks are brought and unpacked while the pass runs in the usual one;
        None elsewhere."""
        if device.type == "cuda":
            self._stream = stream_of(device)
            self._stream.wait_stream(torch.cuda.current_stream(device))
        self._spread: torch.Tensor | None = None
        """A byte for each bit of every mask, in which masks are unpacked; made with the first."""
        self._forbidden: torch.Tensor | None = None
        """What the masks that were moved last forbid, bool `[count, vocabulary]`; None for a kernel of the
        adapter's, which reads them packed."""

    def batch(self, count: int) -> Bitmask:
        """Returns the first `count` rows as one array."""
        batch: Bitmask = self._batches[count]
        return batch

    def move(self, count: int) -> None:
        """Copies the first `count` masks to the device and unpacks them there, beside its other work; what is
        queued from here on waits for them. The masks that were moved before must be applied by then."""
        if self._on_host:
            return
        import torch

        with torch.cuda.stream(self._stream):  # does nothing without one
            self._there[:count].copy_(self._host[:count], non_blocking=True)
            if self._kernel is None:
                self._forbidden = self._unpacked(count)
        if self._stream is not None:
            torch.cuda.current_stream(self._there.device).wait_stream(self._stream)

    def apply(self, logits: torch.Tensor) -> None:
        """Sets forbidden logits to minus infinity in place: float32 `[count, vocabulary]`, row i under mask
        i."""
        count = len(logits)
        if self._kernel is not None:
            self._kernel(logits, self._there[:count])
        elif self._on_host:  # numpy's are three to ten times as fast as torch's own on a CPU
            rows = self._batches[count]
            forbidden = unpack_mask(~rows, self.size) if self.packed else rows
            np.copyto(logits.numpy(), -np.inf, where=forbidden.view(np.bool_))
        else:
            assert self._forbidden is not None, "masks are moved before they are applied"
            logits.masked_fill_(self._forbidden[:count], float("-inf"))

    def _unpacked(self, count: int) -> torch.Tensor:
        """Returns what the first `count` masks on the device forbid, bool `[count, vocabulary]`."""
        import torch

        if not self.packed:
            return self._there[:count]
        there = self._there.view(torch.uint8)
        if self._spread is None:
            self._spread = torch.empty((*there.shape, 8), dtype=torch.uint8, device=there.device)
        bits = self._spread[:count]
        torch.bitwise_and(there[:count].unsqueeze(-1), self._bits, out=bits)
        forbidden = torch.eq(bits, 0, out=bits.view(torch.bool))  # each byte in its own place
        return forbidden.flatten(-2)[:, : self.size]


@cache
def stream_of(device: torch.device) -> torch.cuda.Stream:
    """Returns the device's queue for masks. It is the same in every run, because memory belongs to the queue
    in which it was taken: a run in a new one would wait for the device to give it some."""
    import torch

    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def load_kernel(adapter: Adapter, name: str, device: torch.device) -> Callable[..., object]:
    """Returns the adapter's own function that applies packed masks. Raises BadInput if it has no such
    function that works on this device."""
    kernels = adapter.kernels()
    where = f"{type(adapter).__name__} on {device.type}"
    if name not in kernels:
        raise BadInput(f"{where}: no kernel {name!r}; it has {', '.join(kernels) or 'none'}")
    kernel = kernels[name]
    if adapter.mask_format != "bitmask":
        raise BadInput(f"{where}: kernels read packed masks; leave out the kernel or mask=bool")
    if device.type not in kernel.devices or "float32" not in kernel.dtypes:
        raise BadInput(
            f"{where}: kernel {name!r} works on {', '.join(sorted(kernel.devices))} with "
            f"{', '.join(sorted(kernel.dtypes))}"
        )
    try:
        return kernel.load()
    except ImportError as error:
        raise BadInput(f"{where}: kernel {name!r} cannot be had: {error}") from error
