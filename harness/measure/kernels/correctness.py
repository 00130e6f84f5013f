"""One probe of one kernel: whether it does what torch's `masked_fill` does, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.errors import error_text
from harness.measure.kernels.situations import ODD_BITS, Probe, Situation, situation
from harness.text import one_line

if TYPE_CHECKING:
    import torch

Outcome = Literal["passed", "failed", "refused", "crashed"]
LONGEST_TEXT = 400


@dataclass(frozen=True)
class ProbeResult:
    """The outcome of a probe, and what was observed if it did not pass."""

    outcome: Outcome
    text: str


def examine(apply: Callable[..., object], probe: Probe, dtype: str, device: str) -> ProbeResult:
    """Applies the kernel once, compares the whole buffer, margins included, and returns the outcome;
    `crashed` means that the device must not be used again."""
    import torch

    made = situation(probe, dtype, device)
    before, mask_before = made.buffer.clone(), made.mask_buffer.clone()
    raised = ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            apply(made.logits, made.bitmask, *([] if probe.rows is None else [list(probe.rows)]))
            _finish(device)
        except BaseException as error:  # a panic in Rust is no Exception
            raised = error_line(error)
    try:
        _finish(device)
        differing = _differing(made.buffer, before, dtype)
        mask_differs = not torch.equal(made.mask_buffer, mask_before)
    except RuntimeError as error:
        return ProbeResult("crashed", raised or error_line(error))
    if raised:
        if bool(differing.any()) or mask_differs:
            return ProbeResult("failed", f"it wrote, and then raised {raised}")
        return ProbeResult("passed" if probe.refuse else "refused", raised)
    faults, nans = _compared(made, probe, dtype)
    if mask_differs:
        faults.append("it changed the mask")
    if probe.refuse:
        faults.insert(0, "it did not refuse")
    if faults and warned:
        faults.append(f"it warned: {one_line(str(warned[-1].message))}")
    if nans:
        faults.append(f"{nans} NaN became NaN with other bits")
        return ProbeResult("failed" if len(faults) > 1 else "passed", "; ".join(faults)[:LONGEST_TEXT])
    return ProbeResult("failed" if faults else "passed", "; ".join(faults)[:LONGEST_TEXT])


def error_line(error: BaseException) -> str:
    """Returns the error in one line."""
    return one_line(error_text(error), folded=True)[:LONGEST_TEXT]


def differences(actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> int:
    """Returns how many values differ in a bit."""
    return int(_differing(actual, expected, dtype).sum())


def _finish(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def _differing(actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> torch.Tensor:
    import torch

    bits = getattr(torch, ODD_BITS[dtype])
    return actual.view(bits) != expected.view(bits)


def _compared(made: Situation, probe: Probe, dtype: str) -> tuple[list[str], int]:
    """Returns the kinds of differences, each with its number and first example; and the number of NaNs with
    other bits, which is no fault."""
    actual = made.buffer.cpu()
    wrong = _differing(actual, made.expected, dtype)
    other_nans = wrong & actual.isnan() & made.expected.isnan()
    wrong &= ~other_nans
    stray = wrong & (made.place < 0)
    inside = wrong & (made.place >= 0)
    should_be_forbidden = inside & made.expected.isneginf()
    faults = []
    for where, what in (
        (stray, "written outside the logits"),
        (should_be_forbidden, "forbidden and not -inf"),
    ):
        if count := int(where.sum()):
            faults.append(f"{count} {what}, first {_at(made, probe, where)}")
    rest = inside & ~should_be_forbidden
    if count := int(rest.sum()):
        first = int(rest.nonzero()[0])
        changed = f"{float(made.expected[first]):g} became {float(actual[first]):g}"
        faults.append(f"{count} to be left alone and changed, first {_at(made, probe, rest)}: {changed}")
    return faults, int(other_nans.sum())


def _at(made: Situation, probe: Probe, where: torch.Tensor) -> str:
    """Returns the first difference: row and token, or how far it is from the logits."""
    first = int(where.nonzero()[0])
    place = int(made.place[first])
    if place >= 0:
        return f"[{place // probe.vocabulary}, {place % probe.vocabulary}]"
    inside = (made.place >= 0).nonzero()
    if not len(inside):
        return f"at element {first} of the buffer"
    start, end = int(inside[0]), int(inside[-1])
    if first < start:
        return f"{start - first} elements before the first"
    return (
        f"{first - end} elements after the last"
        if first > end
        else (f"between the rows, {first - start} elements after the first")
    )
