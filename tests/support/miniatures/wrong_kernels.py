"""A right kernel, others that are each wrong in one named way, and adapters which offer them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch

from harness.backend.grammar import Kernel

from .reference import Reference

Rows = Sequence[int] | None
Function = Callable[..., None]

FORBIDDEN = float("-inf")

WRONG: dict[str, tuple[Function, str]] = {}
"""By name: the kernel, and the probe that must catch it."""


def unpacked(bitmask: torch.Tensor) -> torch.Tensor:
    """`[batch, words * 32]`, True = allowed."""
    return ((bitmask.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32)) & 1).bool().flatten(-2)


def right(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    """What every kernel should do."""
    if logits.dim() == 1:
        logits, bitmask = logits.unsqueeze(0), bitmask.unsqueeze(0)
    if rows is None and len(logits) != len(bitmask):
        raise ValueError(f"{len(bitmask)} rows of a mask for {len(logits)} rows of logits")
    chosen = range(len(logits)) if rows is None else rows
    if any(not 0 <= row < len(logits) for row in chosen):
        raise IndexError(f"rows {chosen} of {len(logits)}")
    allowed = unpacked(bitmask)
    for row in chosen:
        width = min(logits.shape[1], allowed.shape[1])
        logits[row, :width].masked_fill_(~allowed[row, :width], FORBIDDEN)
        logits[row, width:] = FORBIDDEN


def caught_by(probe: str) -> Callable[[Function], Function]:
    """Registers a wrong kernel."""

    def register(function: Function) -> Function:
        WRONG[function.__name__] = (function, probe)
        return function

    return register


def repacked(bits: torch.Tensor) -> torch.Tensor:
    """Returns the words of `[batch, words * 32]` bits, True = allowed."""
    weights = torch.tensor([1 << bit for bit in range(32)], dtype=torch.int64)
    return (bits.reshape(*bits.shape[:-1], -1, 32) * weights).sum(-1).to(torch.int32)


@caught_by("a_batch_is_masked")
def takes_ones_for_forbidden(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, ~bitmask, rows)


@caught_by("each_bit_has_its_place")
def reads_the_words_backwards(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask.flip(-1), rows)


@caught_by("each_bit_has_its_place")
def reads_the_highest_bit_first(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    bits = unpacked(bitmask)
    right(logits, repacked(bits.reshape(*bits.shape[:-1], -1, 32).flip(-1).flatten(-2)), rows)


@caught_by("a_batch_is_masked")
def applies_the_first_row_to_all(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask[:1].expand_as(bitmask) if bitmask.dim() == 2 else bitmask, rows)


@caught_by("rows_may_lie_apart")
def ignores_the_row_stride(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    dense = (logits.shape[-1], 1)[-logits.dim() :]
    right(logits.as_strided(logits.shape, dense) if logits.stride(-1) == 1 else logits, bitmask, rows)


@caught_by("columns_may_lie_apart")
def ignores_the_column_stride(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits.as_strided(logits.shape, (*logits.stride()[:-1], 1)), bitmask, rows)


@caught_by("logits_may_be_transposed")
def takes_the_batch_for_the_slower_axis(
    logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None
) -> None:
    transposed = logits.dim() == 2 and logits.stride(0) < logits.stride(1)
    right(logits.as_strided(logits.shape, (logits.shape[1], 1)) if transposed else logits, bitmask, rows)


@caught_by("mask_rows_may_lie_apart")
def ignores_the_row_stride_of_the_mask(
    logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None
) -> None:
    dense = (bitmask.shape[-1], 1)[-bitmask.dim() :]
    right(logits, bitmask.as_strided(bitmask.shape, dense) if bitmask.stride(-1) == 1 else bitmask, rows)


@caught_by("a_mask_may_be_transposed")
def ignores_the_word_stride_of_the_mask(
    logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None
) -> None:
    right(logits, bitmask.as_strided(bitmask.shape, (*bitmask.stride()[:-1], 1)), rows)


@caught_by("the_last_word_may_be_partial")
def writes_beyond_the_vocabulary(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    shape = (*logits.shape[:-1], bitmask.shape[-1] * 32)
    right(
        logits.as_strided(shape, logits.stride()) if logits.stride(-1) == 1 and len(logits) else logits,
        bitmask,
        rows,
    )


@caught_by("the_last_word_may_be_partial")
def forgets_a_partial_word(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    whole = logits.shape[-1] // 32 * 32
    right(logits[..., :whole], bitmask[..., : whole // 32], rows)


@caught_by("the_last_word_may_be_partial")
def forgets_the_last_token(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits[..., :-1] if logits.shape[-1] % 32 else logits, bitmask, rows)


@caught_by("a_large_vocabulary_is_masked_to_its_end")
def counts_tokens_in_sixteen_bits(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits[..., : 1 << 16], bitmask, rows)


@caught_by("logits_beyond_the_mask_are_forbidden")
def leaves_what_the_mask_does_not_cover(
    logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None
) -> None:
    right(logits[..., : bitmask.shape[-1] * 32], bitmask, rows)


@caught_by("logits_beyond_the_mask_are_forbidden")
def raises_when_it_has_written(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask, rows)
    if logits.shape[-1] > bitmask.shape[-1] * 32:
        raise ValueError("the mask is too short")


@caught_by("other_values_stay_bit_for_bit")
def adds_what_forbids(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    added = torch.zeros_like(logits)
    right(added, bitmask, rows)
    logits += added


@caught_by("only_the_given_rows_are_touched")
def touches_other_rows(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask, None if rows and max(rows) < len(logits) else rows)


@caught_by("only_the_given_rows_are_touched")
def counts_the_mask_by_the_given_rows(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    if rows and max(rows) < len(logits):
        bitmask = bitmask.clone()
        bitmask[list(rows)] = bitmask[: len(rows)].clone()
    right(logits, bitmask, rows)


@caught_by("no_given_row_touches_none")
def takes_no_rows_for_all(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask, rows or None)


@caught_by("a_given_row_outside_the_batch_is_refused")
def skips_rows_outside(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask, None if rows is None else [row for row in rows if row < len(logits)])


@caught_by("a_mask_of_fewer_rows_is_refused")
def masks_as_many_rows_as_there_are(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask, range(len(bitmask)) if rows is None and logits.dim() == 2 else rows)


@caught_by("an_empty_batch_is_left_alone")
def takes_an_empty_batch_for_one_row(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    if len(logits) == 0:
        logits, bitmask = (
            logits.as_strided((1, logits.shape[1]), (1, 1)),
            bitmask.as_strided((1, bitmask.shape[1]), (1, 1)),
        )
    right(logits, bitmask, rows)


@caught_by("a_batch_is_masked")
def changes_the_mask(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    right(logits, bitmask, rows)
    bitmask.zero_()


@caught_by("one_row_without_a_batch_is_masked")
def masks_nothing_without_a_batch(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    if logits.dim() == 2:
        right(logits, bitmask, rows)


def segfaults_without_a_batch(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    """Right but for that."""
    if logits.dim() == 1:
        ctypes.string_at(0)
    right(logits, bitmask, rows)


def hangs_without_a_batch(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    """Right but for that."""
    while logits.dim() == 1:
        time.sleep(1)
    right(logits, bitmask, rows)


def segfaults_at_512_tokens(logits: torch.Tensor, bitmask: torch.Tensor, rows: Rows = None) -> None:
    """Right where probes look; the size is one that is timed."""
    if logits.shape[-1] == 512:
        ctypes.string_at(0)
    right(logits, bitmask, rows)


def needs_what_is_not_here() -> Function:
    """Returns a loader."""
    raise ImportError("No module named 'not_here'")


def kernel(function: Function) -> Kernel:
    """Returns a kernel of that function on the CPU, for every element type."""
    return Kernel(
        lambda: function, frozenset({"cpu"}), frozenset({"float32", "float16", "bfloat16"}), indices=True
    )


class Kernels(Reference):
    """Right ones."""

    functions: tuple[Function, ...] = (right,)

    def kernels(self) -> Mapping[str, Kernel]:
        return {function.__name__: kernel(function) for function in self.functions}


class WrongKernels(Kernels):
    """One that is wrong, one that is elsewhere, and one that is not to be had, beside the right one."""

    functions = (right, takes_ones_for_forbidden)

    def kernels(self) -> Mapping[str, Kernel]:
        there = Kernel(partial(lambda: right), frozenset({"cuda"}), frozenset({"float32"}))
        missing = Kernel(needs_what_is_not_here, frozenset({"cpu"}), frozenset({"float32"}))
        return {**super().kernels(), "there": there, "missing": missing}


class HarmfulKernels(Kernels):
    """Ones that take their process along, or never return."""

    functions = (segfaults_without_a_batch, hangs_without_a_batch, segfaults_at_512_tokens, right)
