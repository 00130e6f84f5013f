"""A layer of Llama's kind for one or two tokens on CUDA, as five kernels in Triton: products that take the
norm before them and the gate or the sum behind them along, and one kernel for rotation, cache and attention.

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

from harness.serve.decode.model.kernels import turned

Tensor = torch.Tensor

FEW = 2
"""The most tokens of a pass, over all of its rows, that run so. With more of them the sums of the products
take longer than the weights: a layer with 8B's dimensions took an H200 106 us with one token, 133 with two,
and 176 with four, where cuBLAS and five kernels beside it took 137."""


@triton.jit  # type: ignore[untyped-decorator]
def _both(one: tl.tensor, two: tl.tensor, three: tl.tensor, four: tl.tensor) -> tl.tuple:
    return one + three, two + four


@triton.jit  # type: ignore[untyped-decorator]
def _sums(one: tl.tensor, two: tl.tensor, axis: tl.constexpr, tokens: tl.constexpr) -> tl.tuple:
    """Returns the sums of both for two tokens, in one go, because all threads wait for one another each time;
    for one token that of the first, twice."""
    if tokens == 2:
        return tl.reduce((one, two), axis, _both)
    else:
        made = tl.sum(one, axis)
        return made, made


@triton.jit  # type: ignore[untyped-decorator]
def _product(
    states: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    onto: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    outputs: tl.tensor,
    width: tl.constexpr,
    tokens: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    added: tl.constexpr,
    early: tl.constexpr,
    block_outputs: tl.constexpr,
    block_width: tl.constexpr,
) -> None:
    """One program a few outputs of all tokens; if `gated`, of both halves of the weight."""
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
    total_2 = tl.zeros((block_outputs,), dtype=tl.float32)
    above = tl.zeros((block_outputs,), dtype=tl.float32)
    above_2 = tl.zeros((block_outputs,), dtype=tl.float32)
    square = tl.zeros((), dtype=tl.float32)
    square_2 = tl.zeros((), dtype=tl.float32)
    for start in tl.static_range(0, width, block_width):
        within = start + depth < width
        if start + block_width < width:  # the next weights, before these are used
            there = mine[:, None] & (start + block_width + depth < width)[None]
            following = here + start + block_width
            later = tl.load(following, mask=there, other=0.0, eviction_policy="evict_first")
            if gated:
                later_upper = tl.load(following + half, mask=there, other=0.0, eviction_policy="evict_first")
        state = tl.load(states + start + depth, mask=within, other=0.0).to(tl.float32)
        state_2 = state
        if tokens == 2:
            state_2 = tl.load(states + width + start + depth, mask=within, other=0.0).to(tl.float32)
        if normed:
            more, more_2 = _sums(state * state, state_2 * state_2, 0, tokens)
            square += more
            square_2 += more_2
        weights = part.to(tl.float32)
        more, more_2 = _sums(weights * state[None], weights * state_2[None], 1, tokens)
        total += more
        total_2 += more_2
        if gated:
            weights = upper.to(tl.float32)
            more, more_2 = _sums(weights * state[None], weights * state_2[None], 1, tokens)
            above += more
            above_2 += more_2
        if start + block_width < width:
            part = later
            if gated:
                upper = later_upper
    _finished(
        total, above, square, bias, onto, out, eps, outputs, output, width, normed, gated, biased, added
    )
    if tokens == 2:
        _finished(
            total_2, above_2, square_2, bias, onto + outputs, out + outputs, eps, outputs, output, width,
            normed, gated, biased, added,
        )  # fmt: skip


@triton.jit  # type: ignore[untyped-decorator]
def _finished(
    total: tl.tensor,
    above: tl.tensor,
    square: tl.tensor,
    bias: tl.tensor,
    onto: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    outputs: tl.tensor,
    output: tl.tensor,
    width: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    added: tl.constexpr,
) -> None:
    """Stores the sums of one token, with the norm, the gate, the bias and what is added."""
    mine = output < outputs
    if normed:
        root = tl.rsqrt(square / width + eps)
        total *= root
        above *= root
    if gated:
        total = total * tl.sigmoid(total) * above
    if biased:
        total += tl.load(bias + output, mask=mine, other=0.0).to(tl.float32)
    if added:
        total += tl.load(onto + output, mask=mine, other=0.0).to(tl.float32)
    tl.store(out + output, total.to(out.dtype.element_ty), mask=mine)


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
    most = tl.full((), -float("inf"), dtype=tl.float32)
    weights = tl.zeros((), dtype=tl.float32)
    total = tl.zeros((block_dim,), dtype=tl.float32)
    for other in tl.static_range(count):
        turn = tl.minimum(first + other, turns - 1) * dim + low
        key = merged + ((row * count + other) * every + heads + key_head) * dim + low
        one = tl.load(key, mask=inside, other=0.0).to(tl.float32)
        two = tl.load(key + half, mask=inside, other=0.0).to(tl.float32)
        new_low, new_high = turned(one, two, cos + turn, sin + turn, half, inside, kind)
        value = merged + ((row * count + other) * every + heads + shared + key_head) * dim + wide
        new_value = tl.load(value, mask=across, other=0.0)
        if (number == other) & (head % group == 0):
            there = held + (first + other) * dim
            tl.store(keys + there + low, new_low, mask=inside)
            tl.store(keys + there + half + low, new_high, mask=inside)
            tl.store(values + there + wide, new_value, mask=across)
        score = ask_low * new_low.to(tl.float32) + ask_high * new_high.to(tl.float32)
        score = tl.where(other <= number, tl.sum(score, 0) * scaling, -float("inf"))
        higher = tl.maximum(most, score)
        share, less = tl.exp(score - higher), tl.exp(most - higher)
        total = total * less + share * new_value.to(tl.float32)
        weights = weights * less + share
        most = higher
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
    outputs = weight.shape[0] // (2 if gated else 1)
    made = torch.empty(rows, count, outputs, dtype=dtype or states.dtype, device=states.device)
    block_outputs, block_width, warps = blocks(rows * count, width, gated)
    _product[(triton.cdiv(outputs, block_outputs),)](
        states,
        weight,
        made if bias is None else bias,
        made if onto is None else onto,
        made,
        0.0 if norm is None else norm,
        outputs,
        width,
        rows * count,
        norm is not None,
        gated,
        bias is not None,
        onto is not None,
        early(states.device),
        block_outputs,
        block_width,
        num_warps=warps,
        **launching(states.device),
    )
    return made


def blocks(tokens: int, width: int, gated: bool) -> tuple[int, int, int]:
    """Returns how many outputs and inputs a program takes at once, and its warps: the fastest of those that
    were tried in a layer of 1B and of 8B on an H200 (benchmarks/layers.py)."""
    held, most, warps = 8192, 2048, 4
    if tokens == 1 and gated:
        most = 4096
    elif tokens == 1 and width > 8192:
        held, most, warps = 16384, 8192, 8
    block_width = min(most, triton.next_power_of_2(width))
    return max(1, held // block_width // (2 if gated else 1)), block_width, warps


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
