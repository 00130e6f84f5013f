"""The cost of bringing a mask from the host to the device: packed and bool, pinned and pageable, alone and
beside a matmul."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from harness.measure.kernels.clock import Call, clock_of
from harness.measure.kernels.rounds import Effort, by_turns

if TYPE_CHECKING:
    import torch

HIDDEN = 4096
"""The hidden size of the model whose last matmul, `[batch, HIDDEN] x [HIDDEN, vocabulary]` in bfloat16, makes
the logits that the mask waits for."""

NO_PINNED = "not available: host memory is pinned for a device, and here there is none"
NO_OVERLAP = "not available: a copy from host to host has no stream of its own"


def time_movement(vocabulary: int, batch: int, effort: Effort, device: str) -> list[dict[str, Any]]:
    """Returns a row for each form, memory and company; and one for the matmul alone, which tells how much of
    a copy it hides.

    `company` is `alone`, or `matmul`: then the time is that of both, begun together on two streams. On a CPU
    the copies are from host to host. No graphs: a copy from pageable memory cannot be captured.
    """
    import torch

    clock = clock_of(device)
    sizes = {"packed": (batch, -(-vocabulary // 32)), "bool": (batch, vocabulary)}
    dtypes = {"packed": torch.int32, "bool": torch.bool}
    rows: dict[str, dict[str, Any]] = {}
    calls: dict[str, Call] = {}
    matmul = _matmul(vocabulary, batch) if device == "cuda" else None
    if matmul is not None:
        rows["matmul"] = {"form": "", "memory": "", "company": "matmul", "bytes": 0, "text": ""}
        calls["matmul"] = matmul
    for form, memory, company in _kinds():
        name = f"{form} {memory} {company}"
        missing = (
            ""
            if device == "cuda"
            else NO_PINNED
            if memory == "pinned"
            else NO_OVERLAP
            if company == "matmul"
            else ""
        )
        rows[name] = {"form": form, "memory": memory, "company": company, "text": missing}
        if missing:
            continue
        source = torch.ones(sizes[form], dtype=dtypes[form], pin_memory=memory == "pinned")
        target = torch.zeros(sizes[form], dtype=dtypes[form], device=device)
        rows[name]["bytes"] = source.nbytes
        calls[name] = _copy(source, target)
        if company == "matmul":
            assert matmul is not None
            calls[name] = _together(calls[name], matmul)
    for call in calls.values():
        call()
    for name, samples in by_turns(calls, clock, effort, rewarm=True).items():
        rows[name] |= asdict(samples)
    return [row | {"vocabulary": vocabulary, "batch": batch} for row in rows.values()]


def _kinds() -> Iterator[tuple[str, str, str]]:
    for form in ("packed", "bool"):
        for memory in ("pageable", "pinned"):
            for company in ("alone", "matmul"):
                yield form, memory, company


def _copy(source: torch.Tensor, target: torch.Tensor) -> Call:
    return lambda: target.copy_(source, non_blocking=True)


def _matmul(vocabulary: int, batch: int) -> Call:
    import torch

    hidden = torch.randn((batch, HIDDEN), dtype=torch.bfloat16, device="cuda")
    head = torch.randn((HIDDEN, vocabulary), dtype=torch.bfloat16, device="cuda")
    logits = torch.empty((batch, vocabulary), dtype=torch.bfloat16, device="cuda")
    return lambda: torch.matmul(hidden, head, out=logits)


def _together(copy: Call, matmul: Call) -> Call:
    """Returns a call that makes both, the copy on a stream of its own; the timed stream waits for it."""
    import torch

    cuda: Any = torch.cuda
    stream = cuda.Stream()

    def call() -> None:
        here = cuda.current_stream()
        stream.wait_stream(here)
        matmul()
        with cuda.stream(stream):
            copy()
        here.wait_stream(stream)

    return call
