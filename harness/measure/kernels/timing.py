"""One timed point: every subject on the same logits and the same masks, beside a copy of as many bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.measure.kernels.clock import Call, Clock, clock_of
from harness.measure.kernels.correctness import differences, error_line
from harness.measure.kernels.masks import bytes_needed, random_masks
from harness.measure.kernels.rounds import Effort, by_turns
from harness.measure.kernels.subjects import KernelSubject

if TYPE_CHECKING:
    import torch

COPY = "copy"
"""The subject with which bandwidth is compared."""

CACHE_BYTES = 64 << 20
"""Bytes of logits beyond which nothing is in a cache when the next call begins, so that no call is made to
warm one."""

DEVICE_LOST = 70
"""The exit code of a process whose device is lost."""


@dataclass(frozen=True)
class Point:
    """The sizes of one point; `share` of the vocabulary is allowed."""

    vocabulary: int
    batch: int
    dtype: str
    share: float


def copy_call(footprint: int, device: str) -> tuple[Call, int]:
    """Returns a copy that touches `footprint` bytes in all, half of them read and half written; and the
    number of bytes that it moves.

    So it meets the same caches as a kernel whose logits and mask have that footprint: the bandwidth is that
    of the level in which the data are, which is main memory only if they are larger than the caches.
    """
    import torch

    source = torch.ones(footprint // 8, dtype=torch.float32, device=device)
    target = torch.zeros_like(source)
    return lambda: target.copy_(source), 2 * source.numel() * 4


def time_point(
    subjects: Mapping[str, KernelSubject],
    loaded: Mapping[str, Callable[..., object]],
    point: Point,
    effort: Effort,
    device: str,
) -> list[Any]:
    """Returns a row for each subject. `outcome` is `ok`, `wrong` (its result is not masked_fill's, and it is
    timed all the same) or `refused`: it raised, in its first call or in a later one, and has no times.

    The logits are one buffer for all subjects. The work of a kernel does not depend on them, so it is applied
    to its own result again.
    """
    clock = clock_of(device)
    masks = random_masks(point.vocabulary, point.batch, point.share, device)
    fresh = _logits(point, device)
    expected = fresh.masked_fill(masks.bool, float("-inf"))
    logits = fresh.clone()
    rows: dict[str, dict[str, Any]] = {}
    calls: dict[str, Call] = {}
    for name, subject in subjects.items():
        logits.copy_(fresh)
        call = _bound(loaded[name], logits, masks.of(subject.form))
        needed = bytes_needed(subject.form, point.vocabulary, point.batch, masks.count, fresh.element_size())
        rows[name] = {"kernel": name, "form": subject.form, "outcome": "ok", "text": "", "bytes": needed}
        try:
            rows[name]["first_ns"] = _first(call, clock)
            if wrong := differences(logits, expected, point.dtype):
                rows[name] |= {
                    "outcome": "wrong",
                    "text": f"{wrong} of {logits.numel()} values are not masked_fill's",
                }
            made, why_none = clock.prepare(call)
            if made is not call and not wrong:
                logits.copy_(fresh)
                _first(made, clock)
                if differences(logits, expected, point.dtype):  # it launches work that is not captured
                    made, why_none = call, "its graph does not do what a call does"
            calls[name], rows[name]["no_graph"] = made, why_none
        except BaseException as error:  # a panic in Rust is no Exception
            rows[name] |= {"outcome": "refused", "text": error_line(error)}
            _end_if_lost(clock)
    footprint = logits.nbytes + masks.packed.nbytes
    copy, moved = copy_call(footprint, device)
    rows[COPY] = {
        "kernel": COPY,
        "form": "",
        "outcome": "ok",
        "text": "",
        "bytes": moved,
        "first_ns": _first(copy, clock),
    }
    calls[COPY], rows[COPY]["no_graph"] = clock.prepare(copy)
    del fresh, expected

    def raised(name: str, error: BaseException) -> None:
        if name == COPY:  # it is ours, and without it there is nothing to hold a kernel against
            raise error
        text = error_line(error)
        if rows[name]["outcome"] == "wrong":
            rows[name]["text"] += f"; then it raised {text}"
        else:
            rows[name] |= {"outcome": "refused", "text": text}
        _end_if_lost(clock)

    rewarm = footprint <= CACHE_BYTES
    for name, samples in by_turns(calls, clock, effort, rewarm=rewarm, raised=raised).items():
        rows[name] |= asdict(samples)
    return [row | asdict(point) | {"allowed": masks.count} for row in rows.values()]


def _logits(point: Point, device: str) -> torch.Tensor:
    import torch

    generator = torch.Generator().manual_seed(0)
    shape = (point.batch, point.vocabulary)
    return torch.randn(shape, generator=generator).to(getattr(torch, point.dtype)).to(device)


def _bound(apply: Callable[..., object], logits: torch.Tensor, mask: torch.Tensor) -> Call:
    return lambda: apply(logits, mask)


def _end_if_lost(clock: Clock) -> None:
    """Ends this process if its device is lost: such a device reports the error for ever, and the process is
    of no more use."""
    try:
        clock.finish()
    except RuntimeError:
        os._exit(DEVICE_LOST)


def _first(call: Call, clock: Clock) -> int:
    """Returns the nanoseconds of the first call by the host's clock; they include what is compiled on first
    use."""
    begin = time.perf_counter_ns()
    call()
    clock.finish()
    return time.perf_counter_ns() - begin
