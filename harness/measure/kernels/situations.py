"""The probes' inputs: logits in a buffer with margins, a mask, and the expected result, as data.

A probe's name is the fact that it tests. Its result is compared with torch's `masked_fill` on the same
values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Allowed = Literal["half", "none", "all", "one"]

MARGIN = 4096
"""Elements before and after the logits in their buffer, so that a stray write is seen and harms nothing."""

ODD_BITS = {"float32": "int32", "float16": "int16", "bfloat16": "int16"}
"""The integer type in which values are compared bit for bit: -0 is not 0 there."""

DTYPES = tuple(ODD_BITS)


@dataclass(frozen=True)
class Probe:
    """Logits `[batch, vocabulary]` and a mask of `words` words a row, half of whose bits are set, unless it
    says otherwise."""

    name: str
    batch: int = 4
    vocabulary: int = 992
    words: int | None = None
    """Words of a row of the mask; None: as many as the vocabulary needs."""
    mask_rows: int | None = None
    """Rows of the mask; None: as many as the batch has."""
    row_gap: int = 0
    """Elements between one row of the logits and the next."""
    column_step: int = 1
    transposed: bool = False
    """Whether the batch lies along the fastest axis."""
    mask_gap: int = 0
    """Words between one row of the mask and the next."""
    mask_transposed: bool = False
    rows: tuple[int, ...] | None = None
    """The only rows to touch, for kernels that take indices."""
    flat: bool = False
    """Whether logits are `[vocabulary]` and the mask is `[words]`, for a batch of one."""
    allowed: Allowed = "half"
    special: bool = False
    """Whether the logits contain infinities, NaN, both zeros, and the smallest and the greatest numbers."""
    refuse: bool = False
    """Whether the input makes no sense, so that raising is the right answer."""
    every_dtype: bool = False
    """Whether the probe is made in every element type, not in float32 alone."""


PROBES = (
    Probe("a_batch_is_masked", every_dtype=True),
    Probe("a_batch_of_one_is_masked", batch=1),
    Probe("one_row_without_a_batch_is_masked", batch=1, flat=True),
    Probe("an_empty_batch_is_left_alone", batch=0),
    Probe("everything_may_be_allowed", allowed="all"),
    Probe("everything_may_be_forbidden", allowed="none"),
    Probe("each_bit_has_its_place", batch=96, vocabulary=1024, allowed="one"),
    Probe("the_last_word_may_be_partial", vocabulary=1003, every_dtype=True),
    Probe("a_large_vocabulary_is_masked_to_its_end", batch=2, vocabulary=131_075),
    Probe("a_tiny_vocabulary_is_masked", vocabulary=5),
    Probe("mask_words_beyond_the_logits_do_nothing", words=35),
    Probe("logits_beyond_the_mask_are_forbidden", words=28),
    Probe("rows_may_lie_apart", row_gap=37, every_dtype=True),
    Probe("columns_may_lie_apart", column_step=2),
    Probe("logits_may_be_transposed", transposed=True),
    Probe("mask_rows_may_lie_apart", mask_gap=3),
    Probe("a_mask_may_be_transposed", mask_transposed=True),
    Probe("other_values_stay_bit_for_bit", vocabulary=1003, special=True, every_dtype=True),
    Probe("only_the_given_rows_are_touched", batch=6, rows=(4, 1), every_dtype=True),
    Probe("the_given_rows_may_lie_apart", batch=6, vocabulary=1003, row_gap=37, rows=(0, 5)),
    Probe("no_given_row_touches_none", rows=()),
    Probe("a_given_row_outside_the_batch_is_refused", rows=(1, 4), refuse=True),
    Probe("a_mask_of_fewer_rows_is_refused", mask_rows=2, refuse=True),
)


@dataclass(frozen=True, eq=False)
class Situation:
    """A probe in tensors on the device: `logits` and `bitmask` are views of `buffer` and of `mask_buffer`."""

    buffer: torch.Tensor
    logits: torch.Tensor
    mask_buffer: torch.Tensor
    bitmask: torch.Tensor
    expected: torch.Tensor
    """The buffer as it must be afterwards."""
    place: torch.Tensor
    """Int64 in the buffer's shape: the index of the logit that an element is (row * vocabulary + token), or
    -1."""


def situation(probe: Probe, dtype: str, device: str) -> Situation:
    """Returns the tensors of a probe, with the same values every time."""
    import torch

    random = np.random.default_rng(0)
    words = -(-probe.vocabulary // 32) if probe.words is None else probe.words
    mask_rows = probe.batch if probe.mask_rows is None else probe.mask_rows
    bits = _bits(probe.allowed, mask_rows, words * 32, probe.vocabulary, random)

    column, row = (
        (probe.batch, 1)
        if probe.transposed
        else (probe.column_step, probe.vocabulary * probe.column_step + probe.row_gap)
    )
    shape = (probe.batch, probe.vocabulary)
    span = max(0, 1 + (probe.batch - 1) * row + (probe.vocabulary - 1) * column) if probe.batch else 0
    buffer = torch.from_numpy(random.standard_normal(span + 2 * MARGIN).astype(np.float32)).to(
        getattr(torch, dtype)
    )
    if probe.special:
        _put_special(buffer)
    place = torch.full(buffer.shape, -1)
    place.as_strided(shape, (row, column), MARGIN).copy_(
        torch.arange(probe.batch * probe.vocabulary).reshape(shape)
    )

    expected = buffer.clone()
    touched = list(
        range(min(probe.batch, mask_rows))
        if probe.rows is None
        else [row for row in probe.rows if row < probe.batch]
    )
    forbidden = np.zeros(shape, dtype=np.bool_)
    for number in touched:
        known = min(probe.vocabulary, words * 32)
        forbidden[number, :known] = ~bits[number, :known]
        forbidden[number, known:] = True
    view = expected.as_strided(shape, (row, column), MARGIN)
    view.masked_fill_(torch.from_numpy(forbidden), float("-inf"))

    mask_shape = (mask_rows, words)
    mask_strides = (1, max(mask_rows, 1)) if probe.mask_transposed else (words + probe.mask_gap, 1)
    # Around the mask every other bit is set: what a kernel reads there shows in what it allows.
    mask_buffer = torch.full(
        ((words + probe.mask_gap) * mask_rows + 2 * MARGIN,), 0x55555555, dtype=torch.int32
    )
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
    mask_buffer.as_strided(mask_shape, mask_strides, MARGIN).copy_(torch.from_numpy(packed))

    buffer, mask_buffer = buffer.to(device), mask_buffer.to(device)
    logits = buffer.as_strided(shape, (row, column), MARGIN)
    bitmask = mask_buffer.as_strided(mask_shape, mask_strides, MARGIN)
    if probe.flat:
        logits, bitmask = logits[0], bitmask[0]
    return Situation(buffer, logits, mask_buffer, bitmask, expected, place)


def _bits(
    allowed: Allowed, rows: int, width: int, vocabulary: int, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Returns bool `[rows, width]`, True = allowed; beyond the vocabulary, where bits mean nothing, half of
    them are set."""
    bits = random.random((rows, width)) < 0.5
    if allowed != "half":
        bits[:, :vocabulary] = allowed == "all"
    if allowed == "one":
        bits[np.arange(rows), np.arange(rows) * 37 % vocabulary] = True
    return bits


def _put_special(buffer: torch.Tensor) -> None:
    """Writes values that arithmetic would change to every seventh to thirteenth element."""
    import torch

    info = torch.finfo(buffer.dtype)
    values = (
        float("-inf"),
        float("inf"),
        float("nan"),
        -0.0,
        info.max,
        info.min,
        info.tiny,
        info.smallest_normal / 2,
    )
    for number, value in enumerate(values):
        buffer[number :: 7 + number] = value
