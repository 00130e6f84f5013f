"""What the loop asks of a device beside its passes: when a part of a step ends, by the clock of where its
work is done, and ids that are sent without waiting for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def works_beside(device: torch.device) -> bool:
    """Returns whether the device works on what it was given while the host goes on."""
    return device.type != "cpu"


def clock_of(device: torch.device) -> Callable[[], Any]:
    """Returns a function whose result says when the work that was given to the device so far is done: on a
    CPU at once, on CUDA as an event, which is known once the device has come to it."""
    return perf_counter_ns if device.type == "cpu" else _event


def between(first: Any, second: Any) -> int:
    """Nanoseconds between two such results, after the device is done."""
    if isinstance(first, int):
        return int(second - first)
    return int(first.elapsed_time(second) * 1e6)


def sent(values: Sequence[int], device: torch.device) -> torch.Tensor:
    """Returns int64 values on the device, queued behind its work."""
    import torch

    made = torch.tensor(values, dtype=torch.int64)
    return made if device.type == "cpu" else made.pin_memory().to(device, non_blocking=True)


class Sender:
    """Sends int64 values to a device again and again, through memory that is kept: a step has little time for
    pinning its own."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._here: Any = None
        self._there: Any = None

    def send(self, values: Sequence[int]) -> torch.Tensor:
        """Returns the values on the device, queued behind its work, until the next call overwrites them. What
        was sent by the last call must have arrived."""
        import torch

        count = len(values)
        if self._here is None or len(self._here) < count:
            self._here = torch.empty(count, dtype=torch.int64, pin_memory=self._device.type == "cuda")
            self._there = torch.empty_like(self._here, device=self._device)
        self._here.numpy()[:count] = values
        there: torch.Tensor = self._there[:count]
        return there.copy_(self._here[:count], non_blocking=True)


def _event() -> Any:
    import torch

    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
