"""How a pass is run: at once or, on CUDA, as a graph that is captured once for each size of pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import BadInput
from harness.text import one_line
from harness.walk.loop.device import clock_of

if TYPE_CHECKING:
    import torch

LEAST_SPAN = 256
"""The smallest span of a graph, in positions. Spans double from there, so that short texts do not pay for the
whole memory."""


class NotCaptured(BadInput):
    """A pass cannot be captured. Where a model is made, that is for the user to change; within a run it costs
    the run."""


class Size(NamedTuple):
    """All that decides which kernels a pass runs."""

    rows: int
    width: int
    """Tokens by which each row grows, padding included."""
    span: int
    """The pass sees the positions below this one."""
    whole: bool
    """Whether the pass has all rows of the cache, in order."""
    every: bool
    """Whether there are logits at each token, not only at the last of each row."""


def input_length(size: Size) -> int:
    """Returns the number of int64s that a pass takes.

    They are the token ids [rows, width]; then, [rows] each: the first positions; for each row asked for, its
    slot in the pass (or, if the pass has a choice of rows, the row of the cache); and the index of its last
    token.
    """
    return size.rows * (size.width + 3)


def place_unseen(inputs: torch.Tensor, size: Size, unseen: torch.Tensor | None) -> None:
    """Writes the tokens [rows asked for] of a pass that is one token wide to their places in its inputs, both
    on the device; do nothing for None."""
    if unseen is None:
        return
    if size.whole:
        order = inputs[2 * size.rows : 2 * size.rows + len(unseen)]
        inputs[: size.rows].scatter_(0, order, unseen)
    else:
        inputs[: len(unseen)] = unseen


Step = Callable[["torch.Tensor", Size], "torch.Tensor"]
"""Computes float32 logits from such inputs on the device. It reads no value, so that it can be captured."""


class Direct:
    """Runs each pass at once, as small as the rows allow."""

    static = False
    captured = 0

    def __init__(self, step: Step, device: torch.device) -> None:
        self.step, self.device = step, device
        self.clock = clock_of(device)
        self.began: Any = None
        """When the last pass began, as `Forward.began` defines it."""

    def size(
        self, model_rows: int, rows: int, count: int, span: int, every: bool, capacity: int, chunk: int
    ) -> Size:
        """Returns the size of a pass over so many rows, tokens and positions; the span is a multiple of 32,
        so that kernels keep their shapes."""
        return Size(rows, count, min(-(-span // 32) * 32, capacity), rows == model_rows, every)

    def run(self, size: Size, values: Sequence[int], unseen: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the logits, which the caller may keep. `unseen` is as in `place_unseen`."""
        import torch

        inputs = torch.tensor(values, dtype=torch.int64, device=self.device)
        place_unseen(inputs, size, unseen)
        self.began = self.clock()
        return self.step(inputs, size)


@dataclass
class _Slot:
    host: Any
    """A numpy view of the pinned buffer."""
    pinned: torch.Tensor
    inputs: torch.Tensor
    copied: Any = None
    """The CUDA event after which the host buffer may be written again."""
    graph: Any = None
    logits: torch.Tensor | None = None


@dataclass
class Static:
    """Runs passes of few sizes on buffers that stay where they are: as captured graphs on CUDA, or as calls
    of the same code on a CPU."""

    step: Step
    device: torch.device
    capture: bool
    slots: dict[Size, _Slot] = field(default_factory=dict)
    pool: Any = None
    began: Any = None
    """When the last pass began, as `Forward.began` defines it: the inputs are at hand by then."""
    drafted: int = 0
    """The tokens of a row that has a whole draft. They are a width of their own, because nearly all passes
    with drafts have it; 0: there are no drafts."""
    static = True

    def __post_init__(self) -> None:
        self.clock = clock_of(self.device)

    @property
    def captured(self) -> int:
        """Returns how many sizes were captured so far."""
        return sum(slot.graph is not None for slot in self.slots.values())

    def size(
        self, model_rows: int, rows: int, count: int, span: int, every: bool, capacity: int, chunk: int
    ) -> Size:
        """Returns the smallest size that is kept for such a pass. A pass of more than half of the rows takes
        all of them, which saves copying the cache."""
        whole = 2 * rows > model_rows
        least = min(LEAST_SPAN, capacity)
        width = _doubled(count, 1, chunk)
        if every and count <= self.drafted:
            width = min(width, self.drafted)
        return Size(
            model_rows if whole else _doubled(rows, 1, model_rows),
            width,
            _doubled(span, least, capacity),
            whole,
            every,
        )

    def run(self, size: Size, values: Sequence[int], unseen: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the logits, which the next pass of this size overwrites. `unseen` is as in
        `place_unseen`."""
        slot = self.slots.get(size)
        if slot is None:
            slot = self.slots[size] = self._slot(size)
        if slot.copied is not None:
            slot.copied.synchronize()
        slot.host[:] = values
        if slot.inputs is not slot.pinned:
            slot.inputs.copy_(slot.pinned, non_blocking=True)
        place_unseen(slot.inputs, size, unseen)
        if not self.capture:
            self.began = self.clock()
            return self.step(slot.inputs, size)
        if slot.copied is None:
            import torch

            slot.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        slot.copied.record()
        if slot.graph is None:
            self._capture(slot, size)
        self.began = self.clock()
        slot.graph.replay()
        assert slot.logits is not None
        return slot.logits

    def _slot(self, size: Size) -> _Slot:
        import torch

        cuda = self.device.type == "cuda"
        with torch.inference_mode(False):  # a scoring writes to them outside of the loop's inference mode
            pinned = torch.zeros(input_length(size), dtype=torch.int64, pin_memory=cuda)
            inputs = torch.zeros_like(pinned, device=self.device) if cuda else pinned
        return _Slot(pinned.numpy(), pinned, inputs)

    def _capture(self, slot: _Slot, size: Size) -> None:
        """Capture the pass. Passes before it let libraries allocate what they need on first use; they write
        what the replay writes, to the same places."""
        import torch

        self.pool = self.pool or torch.cuda.graph_pool_handle()
        aside = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream(self.device))
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.stream(aside):
                for _ in range(2):
                    self.step(slot.inputs, size)
            torch.cuda.current_stream(self.device).wait_stream(aside)
            # Other threads fill masks and compile meanwhile; what they do is none of the capture's business.
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                slot.logits = self.step(slot.inputs, size)
        except torch.OutOfMemoryError as error:
            raise NotCaptured(
                f"the device has no memory for a pass of {size.rows} rows by {size.width} "
                "tokens; ask for less"
            ) from error
        except RuntimeError as error:
            reason = one_line(str(error))[:200]
            raise NotCaptured(
                f"this model's passes cannot be captured as CUDA graphs ({reason}); run without graphs"
            ) from error
        slot.graph = graph


def _doubled(wanted: int, least: int, most: int) -> int:
    """Returns the first of least, 2 x least, ... that is at least `wanted`, but at most `most`."""
    while least < wanted:
        least *= 2
    return min(least, most)
