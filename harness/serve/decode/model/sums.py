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
    """One program a few outputs; if `gated`, of both halves of the weight."""
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
    if early:
        tl.extra.cuda.gdc_wait()
    total = tl.zeros((block_outputs,), dtype=tl.float32)
    above = tl.zeros((block_outputs,), dtype=tl.float32)
    square = tl.zeros((), dtype=tl.float32)
    for start in tl.static_range(0, width, block_width):
        within = start + depth < width
        if start + block_width < width:  # the next weights, before these are used
            there = mine[:, None] & (start + block_width + depth < width)[None]
            following = here + start + block_width
            later = tl.load(following, mask=there, other=0.0, eviction_policy="evict_first")
            if gated:
                later_upper = tl.load(following + half, mask=there, other=0.0, eviction_policy="evict_first")
        state = tl.load(states + start + depth, mask=within, other=0.0).to(tl.float32)
        if normed:
            square += tl.sum(state * state, 0)
        total += tl.sum(part.to(tl.float32) * state[None], 1)
        if gated:
            above += tl.sum(upper.to(tl.float32) * state[None], 1)
        if start + block_width < width:
            part = later
            if gated:
                upper = later_upper
    root = square
    if normed:
        root = tl.rsqrt(square / width + eps)
    finish(total, above, root, bias + output, onto + output, out + output, mine, normed, gated, biased, added)


@triton.jit  # type: ignore[untyped-decorator]
def finish(
    total: tl.tensor,
    above: tl.tensor,
    root: tl.tensor,
    bias: tl.tensor,
    onto: tl.tensor,
    out: tl.tensor,
    mine: tl.tensor,
    normed: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    added: tl.constexpr,
) -> None:
    """Store sums, with the norm, the gate, the bias and what is added; the pointers are those of each sum."""
    if normed:
        total *= root
        above *= root
    if gated:
        total = total * tl.sigmoid(total) * above
    if biased:
        total += tl.load(bias, mask=mine, other=0.0).to(tl.float32)
    if added:
        total += tl.load(onto, mask=mine, other=0.0).to(tl.float32)
    tl.store(out, total.to(out.dtype.element_ty), mask=mine)


def blocks(width: int, gated: bool) -> tuple[int, int, int]:
    """Returns how many outputs and inputs a program takes at once, and its warps: the fastest of those that
    were tried in a layer of 1B and of 8B on an H200 (benchmarks/layers.py)."""
    held, most, warps = 8192, 2048, 4
    if gated:
        most = 4096
    elif width > 8192:
        held, most, warps = 16384, 8192, 8
    block_width = min(most, triton.next_power_of_2(width))
    return max(1, held // block_width // (2 if gated else 1)), block_width, warps
