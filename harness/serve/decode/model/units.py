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

from harness.serve.decode.model.sums import added_up, finish

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
def _read_both(
    first: tl.tensor,
    second: tl.tensor,
    both: tl.constexpr,
    place: tl.tensor,
    start: tl.tensor,
    ahead: tl.constexpr,
    width: tl.constexpr,
    splits: tl.constexpr,
    whole: tl.constexpr,
    policy: tl.constexpr,
) -> tl.tuple:
    """Returns what `_read` finds at the first pointers and, if `both`, at the second; else the first again,
    which nobody uses."""
    one = _read(first, place, start, ahead, width, splits, whole, policy)
    two = one
    if both:
        two = _read(second, place, start, ahead, width, splits, whole, policy)
    return one, two


@triton.jit  # type: ignore[untyped-decorator]
def _times(
    total: tl.tensor, states: tl.tuple, others: tl.tuple, many: tl.constexpr, ahead: tl.constexpr
) -> tl.tensor:
    """Returns total [splits, 16, 8] and the products of the tokens' states, those of the first eight and of
    the others, with others [splits, 8, 32]. Unless `many`, the last eight tokens are zeros."""
    splits: tl.constexpr = total.shape[0]
    lows, highs = states
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
    states: tl.tuple,
    weights: tl.tuple,
    many: tl.constexpr,
    normed: tl.constexpr,
    gated: tl.constexpr,
    ahead: tl.constexpr,
) -> tl.tuple:
    """Returns the sums with these states times these weights: of the first half, of the second half, and of
    the states with those of the first eight tokens and of the others, whose diagonals are their squares."""
    total, above, square, square_high = made
    total = _times(total, states, weights[0], many, ahead)
    if gated:
        above = _times(above, states, weights[1], many, ahead)
    if normed:
        square = _times(square, states, states[0], many, ahead)
        if many:
            square_high = _times(square_high, states, states[1], many, ahead)
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
    depth: tl.tensor,
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
    """One program eight outputs of all tokens, each warp of it `depth` of their inputs; if `gated`, of both
    halves of the weight. Twice `ahead` times 32 inputs are on their way; `many` are more than eight tokens.

    The compiler must not know `depth`. It would unroll the loop, and then it moves each load to the product
    that needs it, so that every product waits for the memory: a layer of four tokens took an H200 half as
    long again.
    """
    if early:
        tl.extra.cuda.gdc_launch_dependents()
    step: tl.constexpr = 32 * ahead
    whole: tl.constexpr = width % (step * splits) == 0
    line = tl.arange(0, 8 * splits)
    place = (line // 8 * depth)[:, None] + tl.arange(0, 32)[None]
    # What lies behind the last output or token is read as that one, and is not kept.
    of_line = tl.minimum(tl.program_id(0) * 8 + line % 8, outputs - 1)[:, None].to(tl.int64)
    here = weight + of_line * width + place
    there = here + outputs.to(tl.int64) * width
    weights = _read_both(here, there, gated, place, 0, ahead, width, splits, whole, "evict_first")
    token, eight = tl.arange(0, 16)[:, None], tl.arange(0, 8)[None]
    of_output = token * 0 + tl.program_id(0) * 8 + eight
    of_both = token * outputs + of_output
    mine = (of_output < outputs) & (token < tokens)
    shift, before = 0.0, 0.0
    if biased:
        shift = tl.load(bias + of_output, mask=mine, other=0.0)
    if early:
        tl.extra.cuda.gdc_wait()
    low = states + tl.minimum(line % 8, tokens - 1)[:, None] * width + place
    high = states + tl.minimum(8 + line % 8, tokens - 1)[:, None] * width + place
    known = _read_both(low, high, many, place, 0, ahead, width, splits, whole, "")
    if added:
        before = tl.load(onto + of_both, mask=mine, other=0.0)
    nothing = tl.zeros((splits, 16, 8), dtype=tl.float32)
    made = (nothing, nothing, nothing, nothing)
    for start in tl.range(step, depth, step, num_stages=1):
        # What comes next, before that at hand is used.
        later = _read_both(here, there, gated, place, start, ahead, width, splits, whole, "evict_first")
        later_known = _read_both(low, high, many, place, start, ahead, width, splits, whole, "")
        made = _more(made, known, weights, many, normed, gated, ahead)
        weights, known = later, later_known
    made = _more(made, known, weights, many, normed, gated, ahead)
    total, above, square, square_high = made
    if normed:
        square = tl.where((token == eight)[None], square, 0.0)
        if many:
            square += tl.where((token == eight + 8)[None], square_high, 0.0)
    total, above, square = added_up(total, above, square, 0, normed, gated)
    root = eps
    if normed:
        root = tl.rsqrt(tl.sum(square, 1) / width + eps)[:, None]
    finish(total, above, root, shift, before, out + of_both, mine, normed, gated, biased, added)


def blocks(width: int, gated: bool, many: bool) -> tuple[int, int]:
    """Returns by how many warps a program shares out the inputs, and how many times 32 of them each reads at
    once. On an H200 a layer of 1B or of 8B takes with each of these at most 2 % longer than with the fastest
    of those that were tried for that product."""
    if gated:
        return 2, 2 if many and width <= 2048 else 4
    if width > 4096:
        return 8, 4
    if many:
        return 4, 4
    return 4 if width <= 2048 else 2, 8
