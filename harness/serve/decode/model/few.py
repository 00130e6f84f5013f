"""A layer of Llama's kind for few tokens on CUDA, as five kernels in Triton: products that take the norm
before them and the gate or the sum behind them along, and one kernel for rotation, cache and attention.

A pass of so few tokens is bound by reading its weights, and each start and end of a kernel stands beside
that. So each of these begins while the one before it ends (programmatic dependent launch), and reads its
first weights before it waits for what that one writes. Import this only where Triton is installed; `fused`
chooses.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl

from harness.serve.decode.model import sums, units
from harness.serve.decode.model.kernels import turned

Tensor = torch.Tensor

FEW = units.MOST
"""The most tokens of a pass, over all of its rows, that run so."""
BY_SUMS = 1
"""The most tokens whose products are sums: one, or none. All others are by the units for products of
matrices."""


@triton.jit  # type: ignore[untyped-decorator]
def _attended(
    merged: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    rows: tl.tensor,
    at: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    out: tl.tensor,
    scaling: tl.tensor,
    capacity: tl.tensor,
    turns: tl.tensor,
    count: tl.constexpr,
    heads: tl.constexpr,
    shared: tl.constexpr,
    dim: tl.constexpr,
    early: tl.constexpr,
    block_count: tl.constexpr,
    block_half: tl.constexpr,
    block_dim: tl.constexpr,
    block_span: tl.constexpr,
) -> None:
    """One program a head of queries of a token: a softmax over the tokens of the pass up to this one, and
    then over blocks of the positions before it. Sums, not the units for products of matrices, whose results
    come late."""
    if early:
        tl.extra.cuda.gdc_launch_dependents()
    token, head = tl.program_id(0), tl.program_id(1)
    row, number = token // count, token % count
    group: tl.constexpr = heads // shared
    half: tl.constexpr = dim // 2
    every: tl.constexpr = heads + 2 * shared
    kind = merged.dtype.element_ty
    key_head = head // group
    # What earlier passes wrote need not be waited for.
    held = (tl.load(rows + row) * shared + key_head) * capacity * dim
    first = tl.load(at + row * count)
    low, wide, span = tl.arange(0, block_half), tl.arange(0, block_dim), tl.arange(0, block_span)
    inside, across = low < half, wide < dim
    slot = tl.zeros((block_span,), dtype=tl.int64) + span
    known = slot < first
    place = held + slot[:, None] * dim
    old_low = tl.load(keys + place + low[None], mask=known[:, None] & inside[None], other=0.0)
    old_high = tl.load(keys + place + half + low[None], mask=known[:, None] & inside[None], other=0.0)
    old_value = tl.load(values + place + wide[None], mask=known[:, None] & across[None], other=0.0)
    if early:
        tl.extra.cuda.gdc_wait()

    turn = tl.minimum(first + number, turns - 1) * dim + low
    query = merged + (token * every + head) * dim + low
    one = tl.load(query, mask=inside, other=0.0).to(tl.float32)
    two = tl.load(query + half, mask=inside, other=0.0).to(tl.float32)
    ask_low, ask_high = turned(one, two, cos + turn, sin + turn, half, inside, kind)
    ask_low, ask_high = ask_low.to(tl.float32), ask_high.to(tl.float32)
    fresh = tl.arange(0, block_count)
    given, kept = (fresh < count)[:, None], (fresh == number)[:, None] & (head % group == 0)
    turn = tl.minimum(first + fresh, turns - 1)[:, None] * dim + low[None]
    key = merged + ((row * count + fresh) * every + heads + key_head)[:, None] * dim
    part = given & inside[None]
    one = tl.load(key + low[None], mask=part, other=0.0).to(tl.float32)
    two = tl.load(key + half + low[None], mask=part, other=0.0).to(tl.float32)
    new_low, new_high = turned(one, two, cos + turn, sin + turn, half, part, kind)
    value = key + shared * dim + wide[None]
    new_value = tl.load(value, mask=given & across[None], other=0.0)
    there = held + (first + fresh)[:, None] * dim
    tl.store(keys + there + low[None], new_low, mask=kept & inside[None])
    tl.store(keys + there + half + low[None], new_high, mask=kept & inside[None])
    tl.store(values + there + wide[None], new_value, mask=kept & across[None])
    score = new_low.to(tl.float32) * ask_low[None] + new_high.to(tl.float32) * ask_high[None]
    score = tl.where(fresh <= number, tl.sum(score, 1) * scaling, -float("inf"))
    most = tl.max(score, 0)
    share = tl.exp(score - most)
    weights = tl.sum(share, 0)
    total = tl.sum(share[:, None] * new_value.to(tl.float32), 0)
    start = tl.zeros((), dtype=tl.int64)
    while start < first:  # a range to what is loaded is more than the interpreter can
        scores = old_low.to(tl.float32) * ask_low[None] + old_high.to(tl.float32) * ask_high[None]
        scores = tl.where(start + span < first, tl.sum(scores, 1) * scaling, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, 0))
        shares, less = tl.exp(scores - higher), tl.exp(most - higher)
        total = total * less + tl.sum(shares[:, None] * old_value.to(tl.float32), 0)
        weights = weights * less + tl.sum(shares, 0)
        most = higher
        start += block_span
        slot = start + span
        known = slot < first
        place = held + slot[:, None] * dim
        old_low = tl.load(keys + place + low[None], mask=known[:, None] & inside[None], other=0.0)
        old_high = tl.load(keys + place + half + low[None], mask=known[:, None] & inside[None], other=0.0)
        old_value = tl.load(values + place + wide[None], mask=known[:, None] & across[None], other=0.0)
    tl.store(out + (token * heads + head) * dim + wide, (total / weights).to(kind), mask=across)


def product(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    onto: Tensor | None = None,
    norm: float | None = None,
    *,
    gated: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Returns states [rows, count, width] times the weight [outputs, width], as `dtype` or like the states.

    Before it, states are normed with the epsilon `norm`; behind it the bias and `onto` [rows, count, outputs]
    are added. If `gated`, the first half of the outputs by SiLU is multiplied
    with the second half, and [rows, count, outputs / 2] is returned. All are contiguous.
    """
    rows, count, width = states.shape
    tokens, outputs = rows * count, weight.shape[0] // (2 if gated else 1)
    made = torch.empty(rows, count, outputs, dtype=dtype or states.dtype, device=states.device)
    places = (states, weight, made if bias is None else bias, made if onto is None else onto, made)
    numbers = (0.0 if norm is None else norm, outputs)
    how = (norm is not None, gated, bias is not None, onto is not None, early(states.device))
    options = launching(states.device)
    if tokens <= BY_SUMS:
        block_outputs, block_width, warps = sums.blocks(width, gated)
        sums.product[(triton.cdiv(outputs, block_outputs),)](
            *places, *numbers, width, *how, block_outputs, block_width, num_warps=warps, **options
        )
    else:
        many = tokens > units.OUTPUTS
        splits, ahead = units.blocks(width, gated, many)
        depth = 32 * ahead * triton.cdiv(width, 32 * ahead * splits)
        units.product[(triton.cdiv(outputs, units.OUTPUTS),)](
            *places, *numbers, tokens, depth, width, many, *how, splits, ahead, num_warps=splits, **options
        )
    return made


def attended(
    merged: Tensor,
    cos: Tensor,
    sin: Tensor,
    keys: Tensor,
    values: Tensor,
    rows: Tensor,
    at: Tensor,
    scaling: float,
) -> Tensor:
    """Turns queries and keys of merged [rows, count, heads + 2 key heads, dim] by their positions, writes
    keys and values to the memories [memory rows, key heads, capacity, dim], and returns what the queries
    gather there at and before their positions, as [rows, count, heads, dim].

    `cos` and `sin` are [positions, dim], the first half of the sines negated; padding behind the last
    position is turned like it. `rows` [rows] and `at` [rows, count] are int64; a row's positions follow one
    another.
    """
    held, count, every, dim = merged.shape
    shared, capacity = keys.shape[1:3]
    heads = every - 2 * shared
    made = merged.new_empty(held, count, heads, dim)
    _attended[(held * count, heads)](
        merged,
        cos,
        sin,
        rows,
        at,
        keys,
        values,
        made,
        scaling,
        capacity,
        len(cos),
        count,
        heads,
        shared,
        dim,
        early(merged.device),
        triton.next_power_of_2(count),
        triton.next_power_of_2(dim // 2),
        triton.next_power_of_2(dim),
        128 if dim <= 64 else 64,
        num_warps=4,
        **launching(merged.device),
    )
    return made


@cache
def early(device: torch.device) -> bool:
    """Returns whether kernels of the device may begin while the one before them ends."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def launching(device: torch.device) -> dict[str, bool]:
    """Returns the options with which such kernels are launched."""
    return {"launch_pdl": True} if early(device) else {}
