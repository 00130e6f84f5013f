"""A stand-in for torch.cuda, so that what captures passes as graphs is tried without a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.serve.decode.model.graphs import Size, Static


class FakeCuda:
    """What `Static` calls of torch.cuda, on CPU: a replay computes again what was called while it was
    captured."""

    def __init__(self, patch: pytest.MonkeyPatch, static: Static, seconds: float = 0.0) -> None:
        """`seconds`: how long a capture takes more than it would."""
        self.seconds = seconds
        self.called: list[tuple[torch.Tensor, Size]] = []
        self.captured: list[Size] = []
        self.replays = self.waits = 0
        self.step = static.step
        static.step = self.record
        self.order: list[str] = []
        static.clock = lambda: self.order.append("begins")
        event = SimpleNamespace(record=lambda: self.order.append("inputs"), synchronize=self.wait)
        stream = SimpleNamespace(wait_stream=lambda other: None)
        for name, stand_in in {
            "graph_pool_handle": lambda: 1,
            "current_stream": lambda device: stream,
            "Stream": lambda device: stream,
            "stream": nullcontext,
            "Event": lambda: event,
            "CUDAGraph": SimpleNamespace,
            "graph": self.graph,
        }.items():
            patch.setattr(torch.cuda, name, stand_in)

    def record(self, inputs: torch.Tensor, size: Size) -> torch.Tensor:
        self.called.append((inputs, size))
        self.logits = self.step(inputs, size)
        return self.logits

    def wait(self) -> None:
        self.waits += 1

    @contextmanager
    def graph(self, graph: Any, pool: int, capture_error_mode: str) -> Iterator[None]:
        before = len(self.called)
        time.sleep(self.seconds)
        yield
        ((inputs, size),) = self.called[before:]
        kept = self.logits
        self.captured.append(size)

        def replay() -> None:
            self.replays += 1
            self.order.append("replay")
            kept.copy_(self.step(inputs, size))

        graph.replay = replay
