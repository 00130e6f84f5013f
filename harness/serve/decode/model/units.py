"""Products of 2 to 16 tokens by a GPU's units for products of matrices, as a kernel in Triton. Import this
only where Triton is installed; `few` launches it.

The units take a matrix spread over the threads in an order of their own, and loads are fast where each thread
reads neighbours. Usually shared memory lies between the two, and all threads of a program wait for one
another at each block. But the order of the inputs does not matter to a product, as long as weights and states
have the same. So a thread reads eight neighbours, and these are handed over as those inputs for which the
units would have asked this thread: nothing is moved, and nobody waits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from harness.serve.decode.model.sums import finish

MOST = 16
"""The most tokens: so many the units take at once."""
OUTPUTS = 8
"""The outputs of a program: so few the units take at least, and so many rows a warp reads at once."""


@triton.jit  # type: ignore[untyped-decorator]
def _read(
    pointers: tl.tensor,
    place: tl.tensor,
    start: tl.tensor,
    ahead: tl.constexpr,
    width: tl.constexpr,
    splits: tl.constexpr,
    whole: tl.constexpr,
    policy: tl.constexpr,
) -> tl.tuple:
    """Returns, `ahead` times, the next 32 inputs of each split from `start` on, to whose first ones the
    pointers [8 splits, 32] point, as [splits, 8, 32] in the units' order: of each thread's eight neighbours
    they take four, and the other four as the inputs 16 behind these. Unless `whole`, there are zeros behind
    `width`."""
    made: tl.tuple = ()
    for number in tl.static_range(ahead):
        here = pointers + start + 32 * number
        if whole:
            read = tl.load(here, eviction_policy=policy)
        else:
            there = place + start + 32 * number < width
            read = tl.load(here, mask=there, other=0.0, eviction_policy=policy)
        read = tl.permute(tl.reshape(read, (splits, 8, 4, 2, 4)), (0, 1, 3, 2, 4))
        made = made + (tl.reshape(read, (splits, 8, 32)),)  # noqa: RUF005  Triton knows no star
    return made


@triton.jit  # type: ignore[untyped-decorator]
def _states(
    low: tl.tensor,
    high: tl.tensor,
    place: tl.tensor,
    start: tl.tensor,
    ahead: tl.constexpr,
    width: tl.constexpr,
    splits: tl.constexpr,
    whole: tl.constexpr,
    many: tl.constexpr,
) -> tl.tuple:
    """Returns the states of the first eight tokens and of the others, as `_read` does; unless `many` there
    are no others, and the first ones stand in their place."""
    lows = _read(low, place, start, ahead, width, splits, whole, "")
    highs = lows
    if many:
        highs = _read(high, place, start, ahead, width, splits, whole, "")
    return lows, highs


@triton.jit  # type: ignore[untyped-decorator]
def _times(
    total: tl.tensor,
    lows: tl.tuple,
    highs: tl.tuple,
    others: tl.tuple,
    many: tl.constexpr,
    ahead: tl.constexpr,
) -> tl.tensor:
    """Returns total [splits, 16, 8] and the products of the tokens' states with others [splits, 8, 32].
    Unless `many`, the last eight tokens are zeros."""
    splits: tl.constexpr = total.shape[0]
    for number in tl.static_range(ahead):
        if many:
            both = tl.join(lows[number], highs[number])
        else:
            both = tl.join(lows[number], tl.zeros_like(lows[number]))
        both = tl.reshape(tl.permute(both, (0, 3, 1, 2)), (splits, 16, 32))
        total = tl.dot(both, tl.permute(others[number], (0, 2, 1)), total, input_precision="ieee")
    return total


@triton.jit  # type: ignore[untyped-decorator]
def _more(
    made: tl.tuple,
    lows: tl.tuple,
    highs: tl.tuple,
    parts: tl.tuple,
    uppers: tl.tuple,
    many: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
    ahead: tl.constexpr,
) -> tl.tuple:
    """Returns the sums with these states times these weights: of the first half, of the second half, and of
    the states with those of the first eight tokens and of the others, whose diagonals are their squares."""
    total, above, square, square_high = made
    total = _times(total, lows, highs, parts, many, ahead)
    if gated:
        above = _times(above, lows, highs, uppers, many, ahead)
    if normed:
        square = _times(square, lows, highs, lows, many, ahead)
        if many:
            square_high = _times(square_high, lows, highs, highs, many, ahead)
    return total, above, square, square_high


@triton.jit(do_not_specialize=["tokens"])  # type: ignore[untyped-decorator]
def product(
    states: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    onto: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    outputs: tl.tensor,
    tokens: tl.tensor,
    width: tl.constexpr,
    many: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    added: tl.constexpr,
    early: tl.constexpr,
    splits: tl.constexpr,
    ahead: tl.constexpr,
) -> None:
    """One program eight outputs of all tokens, each warp of it a part of their inputs; if `gated`, of both
    halves of the weight. Twice `ahead` times 32 inputs are on their way; `many` are more than eight
    tokens."""
    if early:
        tl.extra.cuda.gdc_launch_dependents()
    step: tl.constexpr = 32 * ahead
    rounds: tl.constexpr = (width + step * splits - 1) // (step * splits)
    whole: tl.constexpr = width % (step * splits) == 0
    line = tl.arange(0, 8 * splits)
    place = (line // 8 * (step * rounds))[:, None] + tl.arange(0, 32)[None]
    # What lies behind the last output or token is read as that one, and is not kept.
    output = tl.minimum(tl.program_id(0) * 8 + line % 8, outputs - 1)[:, None].to(tl.int64)
    here = weight + output * width + place
    there = here + outputs.to(tl.int64) * width
    parts = _read(here, place, 0, ahead, width, splits, whole, "evict_first")
    uppers = parts
    if gated:
        uppers = _read(there, place, 0, ahead, width, splits, whole, "evict_first")
    if early:
        tl.extra.cuda.gdc_wait()
    low = states + tl.minimum(line % 8, tokens - 1)[:, None] * width + place
    high = states + tl.minimum(8 + line % 8, tokens - 1)[:, None] * width + place
    nothing = tl.zeros((splits, 16, 8), dtype=tl.float32)
    made = (nothing, nothing, nothing, nothing)
    for start in tl.range(step, step * rounds, step, num_stages=1):
        # The next weights, before those at hand are used.
        later = _read(here, place, start, ahead, width, splits, whole, "evict_first")
        later_uppers = later
        if gated:
            later_uppers = _read(there, place, start, ahead, width, splits, whole, "evict_first")
        lows, highs = _states(low, high, place, start - step, ahead, width, splits, whole, many)
        made = _more(made, lows, highs, parts, uppers, many, normed, gated, ahead)
        parts = later
        uppers = later_uppers
    lows, highs = _states(low, high, place, step * (rounds - 1), ahead, width, splits, whole, many)
    made = _more(made, lows, highs, parts, uppers, many, normed, gated, ahead)
    token, eight = tl.arange(0, 16)[:, None], tl.arange(0, 8)[None]
    total, root = tl.sum(made[0], 0), eps
    above = total
    if gated:
        above = tl.sum(made[1], 0)
    if normed:
        squares = tl.where(token == eight, tl.sum(made[2], 0), 0.0)
        if many:
            squares += tl.where(token == eight + 8, tl.sum(made[3], 0), 0.0)
        root = tl.rsqrt(tl.sum(squares, 1) / width + eps)[:, None]
    of_output = token * 0 + tl.program_id(0) * 8 + eight
    mine = (of_output < outputs) & (token < tokens)
    of_both = token * outputs + of_output
    finish(
        total, above, root, bias + of_output, onto + of_both, out + of_both, mine,
        normed, gated, biased, added,
    )  # fmt: skip


def blocks(gated: bool) -> tuple[int, int]:
    """Returns by how many warps a program shares out the inputs, and how many times 32 of them each reads at
    once. No device has tried these, nor others."""
    return 8, 4 if gated else 8
