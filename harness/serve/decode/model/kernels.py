"""What a pass of many tokens runs on CUDA beside its products, as kernels in Triton: the norm, the rotation
that writes to the cache, attention that reads each row's part of the cache in place, and the gate.

torch's own operations in the same places are several kernels each, and a pass waits for each of them. Import
this only where Triton is installed; `fused` chooses.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

Tensor = torch.Tensor

MOST_QUERIES = 128
"""The most queries of a row that share one head of keys, in one program."""


@triton.jit  # type: ignore[untyped-decorator]
def _normed(
    states: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    width: tl.tensor,
    eps: tl.tensor,
    block: tl.constexpr,
) -> None:
    """One program a token."""
    token = tl.program_id(0)
    place = tl.arange(0, block)
    real = place < width
    mine = tl.load(states + token * width + place, mask=real, other=0.0).to(tl.float32)
    mine *= tl.rsqrt(tl.sum(mine * mine, 0) / width + eps)
    factor = tl.load(weight + place, mask=real, other=0.0).to(tl.float32)
    tl.store(out + token * width + place, (mine * factor).to(out.dtype.element_ty), mask=real)


@triton.jit  # type: ignore[untyped-decorator]
def _gated(merged: tl.tensor, out: tl.tensor, width: tl.tensor, block: tl.constexpr) -> None:
    """One program a block of a token."""
    token = tl.program_id(0)
    place = tl.program_id(1) * block + tl.arange(0, block)
    real = place < width
    gate = tl.load(merged + token * 2 * width + place, mask=real, other=0.0).to(tl.float32)
    up = tl.load(merged + token * 2 * width + width + place, mask=real, other=0.0).to(tl.float32)
    tl.store(out + token * width + place, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), mask=real)


@triton.jit  # type: ignore[untyped-decorator]
def _turned_and_kept(
    merged: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    rows: tl.tensor,
    at: tl.tensor,
    query: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    count: tl.tensor,
    capacity: tl.tensor,
    heads: tl.constexpr,
    shared: tl.constexpr,
    dim: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """One program a head of a token: of its queries, its keys or its values."""
    token, head = tl.program_id(0), tl.program_id(1)
    half: tl.constexpr = dim // 2
    place = tl.arange(0, block)
    real = place < half
    here = merged + (token * (heads + 2 * shared) + head) * dim + place
    first = tl.load(here, mask=real, other=0.0)
    second = tl.load(here + half, mask=real, other=0.0)
    row, number = token // count, token % count
    if head < heads + shared:
        angle = token * dim + place
        one, two = first.to(tl.float32), second.to(tl.float32)
        turned = one * tl.load(cos + angle, mask=real, other=0.0) + two * tl.load(
            sin + angle, mask=real, other=0.0
        )
        second = (
            two * tl.load(cos + angle + half, mask=real, other=0.0)
            + one * tl.load(sin + angle + half, mask=real, other=0.0)
        ).to(first.dtype)
        first = turned.to(first.dtype)
    kept = tl.load(rows + row) * shared
    position = tl.load(at + token)
    if head < heads:
        there = query + ((row * heads + head) * count + number).to(tl.int64) * dim + place
    elif head < heads + shared:
        there = keys + ((kept + head - heads) * capacity + position) * dim + place
    else:
        there = values + ((kept + head - heads - shared) * capacity + position) * dim + place
    tl.store(there, first, mask=real)
    tl.store(there + half, second, mask=real)


@triton.jit  # type: ignore[untyped-decorator]
def _attended(
    query: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    rows: tl.tensor,
    at: tl.tensor,
    out: tl.tensor,
    scaling: tl.tensor,
    count: tl.tensor,
    capacity: tl.tensor,
    heads: tl.constexpr,
    shared: tl.constexpr,
    dim: tl.constexpr,
    block_dim: tl.constexpr,
    block_queries: tl.constexpr,
    block_span: tl.constexpr,
) -> None:
    """One program a head of keys of a row, for all queries that share it; a softmax over blocks of positions
    whose maximum is mended as it grows."""
    row, head = tl.program_id(0), tl.program_id(1)
    group: tl.constexpr = heads // shared
    number = tl.arange(0, block_queries)
    real = number < group * count
    place = tl.arange(0, block_dim)
    inside = place < dim
    position = tl.load(at + row * count + number % count, mask=real, other=0)
    last = tl.load(at + row * count + count - 1)
    asked = tl.load(
        query + (row * heads + head * group) * count * dim + number[:, None] * dim + place[None],
        mask=real[:, None] & inside[None],
        other=0.0,
    )
    begin = (tl.load(rows + row) * shared + head) * capacity * dim
    most = tl.full((block_queries,), -1e30, dtype=tl.float32)
    weights = tl.zeros((block_queries,), dtype=tl.float32)
    total = tl.zeros((block_queries, block_dim), dtype=tl.float32)
    start = tl.zeros((), dtype=tl.int64)
    while start <= last:  # a range to what is loaded is more than the interpreter can
        slot = start + tl.arange(0, block_span)
        held = begin + slot[:, None] * dim + place[None]
        known = (slot <= last)[:, None] & inside[None]
        key = tl.load(keys + held, mask=known, other=0.0)
        score = tl.dot(asked, tl.trans(key), input_precision="ieee") * scaling
        score = tl.where(slot[None] <= position[:, None], score, -float("inf"))
        higher = tl.maximum(most, tl.max(score, 1))
        share = tl.exp(score - higher[:, None])
        kept = tl.exp(most - higher)
        value = tl.load(values + held, mask=known, other=0.0)
        total = tl.dot(share.to(value.dtype), value, total * kept[:, None], input_precision="ieee")
        weights = weights * kept + tl.sum(share, 1)
        most = higher
        start += block_span
    there = ((row * count + number % count) * heads + head * group + number // count) * dim
    tl.store(
        out + there[:, None] + place[None],
        (total / weights[:, None]).to(out.dtype.element_ty),
        mask=real[:, None] & inside[None],
    )


def normed(states: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Returns states [..., width] by the root of their mean square, times the weight [width]."""
    width = states.shape[-1]
    made = torch.empty_like(states)
    block = triton.next_power_of_2(width)
    _normed[(states.numel() // width,)](states, weight, made, width, eps, block, num_warps=8)
    return made


def gated(merged: Tensor) -> Tensor:
    """Returns the first half of merged [..., 2 width] by SiLU, times the second half."""
    width = merged.shape[-1] // 2
    made = merged.new_empty(*merged.shape[:-1], width)
    block = 1024
    _gated[(merged.numel() // (2 * width), triton.cdiv(width, block))](
        merged, made, width, block, num_warps=4
    )
    return made


def turned_and_kept(
    merged: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor, rows: Tensor, at: Tensor
) -> Tensor:
    """Writes the keys and values of merged [rows, count, heads + 2 key heads, dim] to the memories [memory
    rows, key heads, capacity, dim], keys turned by their positions as queries are; returns the queries [rows,
    heads, count, dim]. `cos` and `sin` are [rows, count, 1, dim], the first half of the sines negated; `rows`
    [rows] and `at` [rows, count] are int64."""
    held, count, every, dim = merged.shape
    shared, capacity = keys.shape[1:3]
    heads = every - 2 * shared
    query = merged.new_empty(held, heads, count, dim)
    _turned_and_kept[(held * count, every)](
        merged,
        cos,
        sin,
        rows,
        at,
        query,
        keys,
        values,
        count,
        capacity,
        heads,
        shared,
        dim,
        triton.next_power_of_2(dim // 2),
        num_warps=1,
    )
    return query


def attended(query: Tensor, keys: Tensor, values: Tensor, rows: Tensor, at: Tensor, scaling: float) -> Tensor:
    """Returns what queries [rows, heads, count, dim] at positions `at` [rows, count] gather from the memories
    [memory rows, key heads, capacity, dim] at and before them, as [rows, count, heads, dim]."""
    held, heads, count, dim = query.shape
    shared, capacity = keys.shape[1:3]
    made = query.new_empty(held, count, heads, dim)
    _attended[(held, shared)](
        query,
        keys,
        values,
        rows,
        at,
        made,
        scaling,
        count,
        capacity,
        heads,
        shared,
        dim,
        max(16, triton.next_power_of_2(dim)),
        max(16, triton.next_power_of_2(heads // shared * count)),
        64,
        num_warps=4,
        num_stages=2,
    )
    return made
