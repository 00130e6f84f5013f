"""What a pass of many tokens runs on CUDA beside its products, as kernels in Triton: attention, with the
rotation, over each row's part of the cache, which it writes and reads in place; the gate; and the norm before
the head. The other norms have no kernel of their own: a product passes their factor on, so that attention and
the gate scale by it, and their weights are in those of the product.

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
def _gated(
    merged: tl.tensor,
    states: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    inner: tl.tensor,
    width: tl.constexpr,
    block_width: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """One program a block of a token."""
    token = tl.program_id(0)
    root = _root(states + token * width, eps, width, block_width)
    place = tl.program_id(1) * block + tl.arange(0, block)
    real = place < inner
    gate = tl.load(merged + token * 2 * inner + place, mask=real, other=0.0).to(tl.float32) * root
    up = tl.load(merged + token * 2 * inner + inner + place, mask=real, other=0.0).to(tl.float32) * root
    tl.store(out + token * inner + place, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), mask=real)


@triton.jit  # type: ignore[untyped-decorator]
def _root(states: tl.tensor, eps: tl.tensor, width: tl.constexpr, block_width: tl.constexpr) -> tl.tensor:
    """Returns the factor by which the norm scales a token's states."""
    depth = tl.arange(0, block_width)
    square = tl.zeros((block_width,), dtype=tl.float32)
    for start in tl.static_range(0, width, block_width):
        state = tl.load(states + start + depth, mask=start + depth < width, other=0.0).to(tl.float32)
        square += state * state
    return tl.rsqrt(tl.sum(square, 0) / width + eps)


@triton.jit  # type: ignore[untyped-decorator]
def turned(
    low: tl.tensor,
    high: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    half: tl.constexpr,
    mask: tl.tensor,
    kind: tl.constexpr,
) -> tl.tuple:
    """Returns both halves of queries or keys, turned by the cosines and signed sines to which the pointers of
    the first half point."""
    first = low * tl.load(cos, mask=mask, other=0.0) + high * tl.load(sin, mask=mask, other=0.0)
    second = high * tl.load(cos + half, mask=mask, other=0.0) + low * tl.load(
        sin + half, mask=mask, other=0.0
    )
    return first.to(kind), second.to(kind)


@triton.jit  # type: ignore[untyped-decorator]
def _attended(
    merged: tl.tensor,
    bias: tl.tensor,
    states: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    rows: tl.tensor,
    at: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    out: tl.tensor,
    scaling: tl.tensor,
    eps: tl.tensor,
    capacity: tl.tensor,
    turns: tl.tensor,
    width: tl.constexpr,
    count: tl.constexpr,
    heads: tl.constexpr,
    shared: tl.constexpr,
    dim: tl.constexpr,
    biased: tl.constexpr,
    block_width: tl.constexpr,
    block_half: tl.constexpr,
    block_dim: tl.constexpr,
    block_count: tl.constexpr,
    block_queries: tl.constexpr,
    block_span: tl.constexpr,
) -> None:
    """One program a head of keys of a row, for all queries that share it: a softmax over the tokens of the
    pass, which are also kept, and then over blocks of the positions before it."""
    row, head = tl.program_id(0), tl.program_id(1)
    group: tl.constexpr = heads // shared
    half: tl.constexpr = dim // 2
    every: tl.constexpr = heads + 2 * shared
    kind = merged.dtype.element_ty
    number = tl.arange(0, block_queries)
    asks = number < group * count
    of_query, of_group = number % count, head * group + number // count
    token = tl.arange(0, block_count)
    fresh = token < count
    low, wide, span = tl.arange(0, block_half), tl.arange(0, block_dim), tl.arange(0, block_span)
    inside, across = low < half, wide < dim
    first = tl.load(at + row * count)
    held = (tl.load(rows + row) * shared + head) * capacity * dim

    # What the norm scales the states by scales their products too.
    root = tl.zeros((block_count,), dtype=tl.float32)
    for each in range(count):
        of_each = _root(states + (row * count + each) * width, eps, width, block_width)
        root = tl.where(token == each, of_each, root)
    root_of_query = tl.sum(tl.where(of_query[:, None] == token[None], root[None], 0.0), 1)

    mine = merged + row * count * every * dim
    query = mine + ((of_query * every + of_group) * dim)[:, None] + low[None]
    asked = asks[:, None] & inside[None]
    one = tl.load(query, mask=asked, other=0.0).to(tl.float32) * root_of_query[:, None]
    two = tl.load(query + half, mask=asked, other=0.0).to(tl.float32) * root_of_query[:, None]
    key = mine + ((token * every + heads + head) * dim)[:, None] + low[None]
    kept = fresh[:, None] & inside[None]
    three = tl.load(key, mask=kept, other=0.0).to(tl.float32) * root[:, None]
    four = tl.load(key + half, mask=kept, other=0.0).to(tl.float32) * root[:, None]
    value = mine + ((token * every + heads + shared + head) * dim)[:, None] + wide[None]
    whole = fresh[:, None] & across[None]
    five = tl.load(value, mask=whole, other=0.0).to(tl.float32) * root[:, None]
    if biased:
        own = bias + (of_group * dim)[:, None] + low[None]
        one += tl.load(own, mask=asked, other=0.0).to(tl.float32)
        two += tl.load(own + half, mask=asked, other=0.0).to(tl.float32)
        own_key = bias + (heads + head) * dim + low
        three += tl.load(own_key, mask=inside, other=0.0).to(tl.float32)[None]
        four += tl.load(own_key + half, mask=inside, other=0.0).to(tl.float32)[None]
        own_value = bias + (heads + shared + head) * dim + wide
        five += tl.load(own_value, mask=across, other=0.0).to(tl.float32)[None]
    angle = tl.minimum(first + of_query, turns - 1)[:, None] * dim + low[None]
    ask_low, ask_high = turned(one, two, cos + angle, sin + angle, half, asked, kind)
    angle = tl.minimum(first + token, turns - 1)[:, None] * dim + low[None]
    new_low, new_high = turned(three, four, cos + angle, sin + angle, half, kept, kind)
    new_value = five.to(kind)
    there = held + (first + token)[:, None] * dim
    tl.store(keys + there + low[None], new_low, mask=kept)
    tl.store(keys + there + half + low[None], new_high, mask=kept)
    tl.store(values + there + wide[None], new_value, mask=whole)

    score = tl.dot(ask_low, tl.trans(new_low), input_precision="ieee")
    score = tl.dot(ask_high, tl.trans(new_high), score, input_precision="ieee") * scaling
    score = tl.where(fresh[None] & (token[None] <= of_query[:, None]), score, -float("inf"))
    most = tl.max(score, 1)
    share = tl.exp(score - most[:, None])
    weights = tl.sum(share, 1)
    total = tl.dot(share.to(kind), new_value, input_precision="ieee")
    start = tl.zeros((), dtype=tl.int64)
    while start < first:  # a range to what is loaded is more than the interpreter can
        slot = start + span
        known = (slot < first)[:, None]
        past = held + slot[:, None] * dim
        old_low = tl.load(keys + past + low[None], mask=known & inside[None], other=0.0)
        old_high = tl.load(keys + past + half + low[None], mask=known & inside[None], other=0.0)
        seen = tl.dot(ask_low, tl.trans(old_low), input_precision="ieee")
        seen = tl.dot(ask_high, tl.trans(old_high), seen, input_precision="ieee") * scaling
        seen = tl.where((slot < first)[None], seen, -float("inf"))
        higher = tl.maximum(most, tl.max(seen, 1))
        shares, less = tl.exp(seen - higher[:, None]), tl.exp(most - higher)
        old_value = tl.load(values + past + wide[None], mask=known & across[None], other=0.0)
        total = tl.dot(shares.to(kind), old_value, total * less[:, None], input_precision="ieee")
        weights = weights * less + tl.sum(shares, 1)
        most = higher
        start += block_span
    there = ((row * count + of_query) * heads + of_group) * dim
    tl.store(
        out + there[:, None] + wide[None],
        (total / weights[:, None]).to(kind),
        mask=asks[:, None] & across[None],
    )


def normed(states: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Returns states [..., width] by the root of their mean square, times the weight [width]."""
    width = states.shape[-1]
    made = torch.empty_like(states)
    block = triton.next_power_of_2(width)
    _normed[(states.numel() // width,)](states, weight, made, width, eps, block, num_warps=8)
    return made


def gated(merged: Tensor, states: Tensor, eps: float) -> Tensor:
    """Returns the first half of merged [rows, count, 2 width] by SiLU, times the second half, where merged is
    the product of the states [rows, count, ...] and is scaled as the norm scales them."""
    tokens, inner, width = merged.shape[0] * merged.shape[1], merged.shape[2] // 2, states.shape[2]
    made = merged.new_empty(*merged.shape[:2], inner)
    block = 2048
    _gated[(tokens, triton.cdiv(inner, block))](
        merged, states, made, eps, inner, width, min(2048, triton.next_power_of_2(width)), block, num_warps=4
    )
    return made


def attended(
    merged: Tensor,
    bias: Tensor | None,
    states: Tensor,
    eps: float,
    cos: Tensor,
    sin: Tensor,
    keys: Tensor,
    values: Tensor,
    rows: Tensor,
    at: Tensor,
    scaling: float,
) -> Tensor:
    """Scales merged [rows, count, heads + 2 key heads, dim], the product of the states [rows, count, width],
    as the norm scales these, and adds the bias; turns queries and keys by their positions, writes keys and
    values to the memories [memory rows, key heads, capacity, dim], and returns what the queries gather there
    at and before their positions, as [rows, count, heads, dim].

    `cos` and `sin` are [positions, dim], the first half of the sines negated; padding behind the last
    position is turned like it. `rows` [rows] and `at` [rows, count] are int64; a row's positions follow one
    another.
    """
    held, count, every, dim = merged.shape
    shared, capacity = keys.shape[1:3]
    heads, width = every - 2 * shared, states.shape[2]
    made = merged.new_empty(held, count, heads, dim)
    _attended[(held, shared)](
        merged,
        merged if bias is None else bias,
        states,
        cos,
        sin,
        rows,
        at,
        keys,
        values,
        made,
        scaling,
        eps,
        capacity,
        len(cos),
        width,
        count,
        heads,
        shared,
        dim,
        bias is not None,
        min(2048, triton.next_power_of_2(width)),
        max(16, triton.next_power_of_2(dim // 2)),
        max(16, triton.next_power_of_2(dim)),
        max(16, triton.next_power_of_2(count)),
        max(16, triton.next_power_of_2(heads // shared * count)),
        64,
        num_warps=4,
    )
    return made
