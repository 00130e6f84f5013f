"""Two clocks for one code path: the host's, and the device's events around replays of a captured graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from harness.measure.kernels.correctness import error_line

Call = Callable[[], object]


class Clock(Protocol):
    """Times calls that it has prepared."""

    def prepare(self, call: Call) -> tuple[Call, str]:
        """Returns the call to time in its stead, and why that is no graph (empty if it is one, or if the
        device has none). May raise what the call raises."""
        ...

    def time_ns(self, call: Call, times: int) -> int:
        """Returns the nanoseconds that `times` calls in a row take until the last one's work is done."""
        ...

    def finish(self) -> None:
        """Waits for the device."""
        ...


class HostClock:
    """`time.perf_counter_ns` around calls that return when their work is done."""

    def prepare(self, call: Call) -> tuple[Call, str]:
        return call, ""

    def time_ns(self, call: Call, times: int) -> int:
        begin = time.perf_counter_ns()
        for _ in range(times):
            call()
        return time.perf_counter_ns() - begin

    def finish(self) -> None:
        pass


@dataclass(frozen=True)
class CudaClock:
    """CUDA events, whose resolution is half a microsecond, around a graph's replay, so that the launch in
    Python is not included."""

    def prepare(self, call: Call) -> tuple[Call, str]:
        cuda = _cuda()
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            for _ in range(3):
                call()
        cuda.current_stream().wait_stream(stream)
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        try:
            with cuda.graph(graph):
                call()
        except RuntimeError as error:  # it waits for the device, say: then its launches are timed with it
            cuda.synchronize()
            return call, error_line(error)
        return graph.replay, ""

    def time_ns(self, call: Call, times: int) -> int:
        cuda = _cuda()
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        return int(begin.elapsed_time(end) * 1e6)

    def finish(self) -> None:
        _cuda().synchronize()


def _cuda() -> Any:
    """Returns torch.cuda as Any, because half of it has no annotations."""
    import torch

    return torch.cuda


def clock_of(device: str) -> Clock:
    """Returns the clock of a kind of device."""
    return CudaClock() if device == "cuda" else HostClock()
