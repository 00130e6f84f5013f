"""Products of one token, as a kernel in Triton: each program sums a few outputs. Import this only where
Triton is installed; `few` launches it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def product(
    states: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    onto: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    outputs: tl.tensor,
    width: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    added: tl.constexpr,
    early: tl.constexpr,
    block_outputs: tl.constexpr,
    block_width: tl.constexpr,
) -> None:
    """One program a few outputs; if `gated`, of both halves of the weight. Each thread keeps the sums of its
    own inputs, and they are added up once."""
    if early:
        tl.extra.cuda.gdc_launch_dependents()
    output = tl.program_id(0) * block_outputs + tl.arange(0, block_outputs)
    mine = output < outputs
    depth = tl.arange(0, block_width)
    here = weight + output[:, None].to(tl.int64) * width + depth[None]
    half = outputs * width
    there = mine[:, None] & (depth < width)[None]
    part = tl.load(here, mask=there, other=0.0, eviction_policy="evict_first")
    if gated:
        upper = tl.load(here + half, mask=there, other=0.0, eviction_policy="evict_first")
    shift, before = 0.0, 0.0
    if biased:
        shift = tl.load(bias + output, mask=mine, other=0.0)
    if early:
        tl.extra.cuda.gdc_wait()
    if added:
        before = tl.load(onto + output, mask=mine, other=0.0)
    total = tl.zeros((block_outputs, block_width // 8), dtype=tl.float32)
    above = total
    square = tl.zeros((1, block_width // 8), dtype=tl.float32)
    for start in tl.static_range(0, width, block_width):
        within = start + depth < width
        if start + block_width < width:  # the next weights, before these are used
            there = mine[:, None] & (start + block_width + depth < width)[None]
            following = here + start + block_width
            later = tl.load(following, mask=there, other=0.0, eviction_policy="evict_first")
            if gated:
                later_upper = tl.load(following + half, mask=there, other=0.0, eviction_policy="evict_first")
        state = tl.load(states + start + depth, mask=within, other=0.0).to(tl.float32)[None]
        if normed:
            square += _eights(state * state)
        total += _eights(part.to(tl.float32) * state)
        if gated:
            above += _eights(upper.to(tl.float32) * state)
        if start + block_width < width:
            part = later
            if gated:
                upper = later_upper
    root = eps
    if normed:
        root = tl.rsqrt(tl.sum(square, 1) / width + eps)
    total, above, _ = added_up(total, above, total, 1, False, gated)
    finish(total, above, root, shift, before, out + output, mine, normed, gated, biased, added)


@triton.jit  # type: ignore[untyped-decorator]
def _eights(terms: tl.tensor) -> tl.tensor:
    """Returns the sums of each eight neighbours, which one thread holds, of terms [outputs, width]."""
    return tl.sum(tl.reshape(terms, (terms.shape[0], terms.shape[1] // 8, 8)), 2)


@triton.jit  # type: ignore[untyped-decorator]
def added_up(
    total: tl.tensor,
    above: tl.tensor,
    square: tl.tensor,
    axis: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
) -> tl.tuple:
    """Returns the sums over the axis of those of the three that there are, together, because the threads
    wait for one another at each sum: the first; the second if `gated`; the third if `normed`. The others are
    returned as they are, and nobody uses them."""
    if normed and gated:
        total, above, square = tl.reduce((total, above, square), axis, _plus_three)
    elif gated:
        total, above = tl.reduce((total, above), axis, _plus_two)
    elif normed:
        total, square = tl.reduce((total, square), axis, _plus_two)
    else:
        total = tl.sum(total, axis)
    return total, above, square


@triton.jit  # type: ignore[untyped-decorator]
def _plus_two(a: tl.tensor, b: tl.tensor, c: tl.tensor, d: tl.tensor) -> tl.tuple:
    return a + c, b + d


@triton.jit  # type: ignore[untyped-decorator]
def _plus_three(
    a: tl.tensor, b: tl.tensor, c: tl.tensor, d: tl.tensor, e: tl.tensor, f: tl.tensor
) -> tl.tuple:
    return a + d, b + e, c + f


@triton.jit  # type: ignore[untyped-decorator]
def finish(
    total: tl.tensor,
    above: tl.tensor,
    root: tl.tensor,
    shift: tl.tensor,
    before: tl.tensor,
    out: tl.tensor,
    mine: tl.tensor,
    normed: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    added: tl.constexpr,
) -> None:
    """Store sums, with the norm, the gate, the bias `shift` and what was there `before`."""
    if normed:
        total *= root
    if gated:
        if normed:
            above *= root
        total = total * tl.sigmoid(total) * above
    if biased:
        total += shift.to(tl.float32)
    if added:
        total += before.to(tl.float32)
    tl.store(out, total.to(out.dtype.element_ty), mask=mine)


def blocks(width: int, gated: bool) -> tuple[int, int, int]:
    """Returns how many outputs and inputs a program takes at once, and its warps. On an H200 a layer of 1B or
    of 8B takes with each of these at most 1 % longer than with the fastest of those that were tried for that
    product."""
    whole = triton.next_power_of_2(width)
    if gated:
        return 2, min(1024, whole), 4
    if width > 4096:
        return 2, 4096, 8 if width <= 8192 else 4
    return 4, min(2048, whole), 4
