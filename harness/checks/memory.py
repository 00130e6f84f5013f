"""What a fill does to the object, and where in memory it writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import Adapter, allocate_bitmask
from harness.checks import MASKS
from harness.checks.looking import (
    change,
    few,
    finding,
    look,
    name_of,
    next_token,
    spread,
    standing,
    standing_deep,
)
from harness.checks.subject import NotApplicable, Place, Subject
from harness.errors import OutOfTime, error_text
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = MASKS

THREADS = (1, 3)
"""The numbers of threads on which a batch is filled."""

FENCE = 0x5A
"""The byte that lies around an array that is filled."""


def check_looking_does_not_move(subject: Subject) -> Iterator[Finding]:
    """Filled twice, the object gives the same mask twice, and goes where one goes that was not asked."""
    purpose = "looking_does_not_move"
    for place, grammar_object in standing(subject, purpose, few(subject)):
        first, second = look(subject, grammar_object), look(subject, grammar_object)
        if first != second:
            yield finding(subject, place, f"asked a second time, {change(subject, first, second)}")
            continue
        token = next_token(subject, place, second.allowed(subject))
        unasked = subject.reach(place.tokens)
        if token is None or unasked is None or not grammar_object.accept_token(token):
            continue
        if not unasked.accept_token(token):
            yield finding(subject, place, f"{name_of(subject, token)} is taken only after a fill", (token,))
            continue
        theirs, ours = look(subject, unasked), look(subject, grammar_object)
        if theirs != ours:
            text = (
                f"and {name_of(subject, token)}, an object that was filled on the way differs: "
                f"{change(subject, theirs, ours)}"
            )
            yield finding(subject, place, text, (token,))


def check_a_filler_fills_as_a_fill_does(subject: Subject) -> Iterator[Finding]:
    """One filler, bound at the start, follows its object."""
    purpose = "a_filler_fills_as_a_fill_does"
    if subject.adapter.mask_format != "bitmask":
        raise NotApplicable("the adapter fills another format of masks")
    places = spread(subject, purpose, few(subject))
    for instance in sorted({place.instance for place in places}):
        grammar_object = subject.compiled.start()
        filled, expected = (
            allocate_bitmask(subject.vocabulary.size),
            allocate_bitmask(subject.vocabulary.size),
        )
        fill = grammar_object.filler(filled)
        position = 0
        for place in (place for place in places if place.instance == instance):  # in the order of the path
            if not all(grammar_object.accept_token(token) for token in place.tokens[position:]):
                break
            position = place.position
            filled.fill(-1)
            try:
                fill()
            except OutOfTime:
                raise
            except BaseException as error:  # told here, because here is known where
                yield finding(subject, place, f"the filler raises {error_text(error)}", cause="backend_error")
                return
            grammar_object.fill_bitmask(expected)
            if other := _bits(filled, expected):
                yield finding(
                    subject,
                    place,
                    f"the filler's mask differs in {counted(other, 'bit')} from that of a fill",
                )


def check_a_batch_is_filled_row_by_row(subject: Subject) -> Iterator[Finding]:
    """A batch gives each row the mask that its object gives alone, on one thread and on several; rows around
    it, and rows around a single fill, stay as they were."""
    purpose = "a_batch_is_filled_row_by_row"
    # All rows of one place are equal, and tell nothing of one that was mistaken for another.
    batch = list(standing(subject, purpose, None if subject.effort is None else max(2, subject.effort)))
    for place, grammar_object in batch[:1] + batch[1:][-1:]:
        with suppress(NotImplementedError):
            batch.append((place, grammar_object.copy()))
    words = len(allocate_bitmask(subject.vocabulary.size))
    singles = np.zeros((len(batch), words), dtype=np.int32)
    for (_, grammar_object), single in zip(batch, singles, strict=True):
        grammar_object.fill_bitmask(single)
    place, grammar_object = batch[0]
    for on_threads in _threads(subject.adapter):
        fence = _Fence((len(batch), words), np.int32)
        subject.adapter.fill_bitmasks([grammar_object for _, grammar_object in batch], fence.inside)
        for number, ((where, _), single) in enumerate(zip(batch, singles, strict=True)):
            if other := _bits(fence.inside[number], single):
                text = (
                    f"row {number} of a batch of {len(batch)}{on_threads} differs in "
                    f"{counted(other, 'bit')} from a fill of it alone"
                )
                yield finding(subject, where, text)
        if not fence.stands():
            yield finding(
                subject,
                place,
                f"a batch of {counted(len(batch), 'row')}{on_threads} writes outside of its rows",
            )
    fence = _Fence((3, words), np.int32)
    grammar_object.fill_bitmask(fence.inside[1])
    if other := _bits(fence.inside[1], singles[0]):
        yield finding(
            subject,
            place,
            f"filled into a row of a larger array, the mask differs in {counted(other, 'bit')}",
        )
    if not fence.stands(fence.inside[1]):
        yield finding(
            subject,
            place,
            "filled into the middle one of three rows, the mask changes the rows around it",
        )


def _threads(adapter: Adapter) -> Iterator[str]:
    """Sets each number of THREADS in turn, if the adapter has threads at all, and yields how to name it in
    the middle of a sentence; the first time nothing is set."""
    yield ""
    before = adapter.threads
    try:
        for threads in THREADS if before is not None else ():
            if threads != before:
                adapter.threads = threads
                yield f" on {counted(threads, 'thread')}"
    finally:
        adapter.threads = before


def check_a_fill_never_writes_outside(subject: Subject) -> Iterator[Finding]:
    """A mask that is too short, too long, not contiguous, read-only or of another type is refused, or filled
    rightly as far as it goes."""
    purpose = "a_fill_never_writes_outside"
    bools = subject.adapter.mask_format == "bool"
    dtype: Any = np.bool_ if bools else np.int32
    for place, grammar_object in standing_deep(subject, purpose):
        right: NDArray[Any] = (
            np.ones(subject.vocabulary.size, np.bool_) if bools else allocate_bitmask(subject.vocabulary.size)
        )
        fill: Callable[[Any], None] = grammar_object.fill_bool_mask if bools else grammar_object.fill_bitmask
        fill(right)
        size = len(right)
        for what, fence, mask in _wrong_masks(size, dtype, right.nbytes):
            try:
                fill(mask)
                raised = False
            except Exception:
                raised = True
            wrong = ""
            if not raised and not mask.flags.writeable:
                wrong = "is filled without a word"
            elif (
                not raised and mask.dtype.itemsize >= right.dtype.itemsize
            ):  # a smaller type cannot hold the words
                tail = mask.view(fence.cells.dtype)[size:]
                clear = (tail == bools).all() or (tail == fence.value).all()
                wrong = "" if (mask[:size] == right[: len(mask)]).all() and clear else "gets another mask"
            if not fence.stands(mask):
                wrong = "is overrun: memory around it changes"
            if wrong:
                yield finding(subject, place, f"a mask {what} {wrong}")
        again = right.copy()
        fill(again)
        if (again != right).any():
            yield finding(subject, place, "after fills into wrong masks, the right one is another")
    if subject.adapter.mask_format == "bitmask":
        yield from _unequal_batches(subject)


def _unequal_batches(subject: Subject) -> Iterator[Finding]:
    """Batches with one row too few and one too many."""
    place = Place(0, (), b"")
    words = len(allocate_bitmask(subject.vocabulary.size))
    for rows in (1, 3):
        fence = _Fence((rows, words), np.int32, 2 * 4 * words)
        with suppress(Exception):
            subject.adapter.fill_bitmasks([subject.compiled.start(), subject.compiled.start()], fence.inside)
        if not fence.stands():
            yield finding(
                subject,
                place,
                f"a batch of 2 objects writes outside of the {rows} rows that it is given",
            )


def _wrong_masks(size: int, dtype: Any, written: int) -> Iterator[tuple[str, _Fence, NDArray[Any]]]:
    for what, length in (
        ("of one element", 1),
        ("that is one element too short", size - 1),
        ("that is one element too long", size + 1),
    ):
        fence = _Fence((length,), dtype, written)
        yield what, fence, fence.inside
    fence = _Fence((size * 2,), dtype, written)
    yield "that is every other element of an array", fence, fence.inside[::2]
    for other in (np.int64, np.int8):
        fence = _Fence((size,), other, written)
        yield f"of type {np.dtype(other)}", fence, fence.inside
    fence = _Fence((size,), dtype, written)
    fence.inside.flags.writeable = False
    yield "that is read-only", fence, fence.inside


class _Fence:
    """An array between margins that are all of one byte, each as large as what native code would write that
    does not look."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, written: int = 0) -> None:
        item = np.dtype(dtype).itemsize
        length = math.prod(shape) * item
        margin = -(-max(length, written, 64) // 64) * 64
        self.value = int.from_bytes(bytes([FENCE]) * item, "little")
        self.field = np.full(length + 2 * margin, FENCE, dtype=np.uint8)
        self.cells: NDArray[Any] = self.field[margin : margin + length].view(f"u{item}").reshape(shape)
        self.inside: NDArray[Any] = self.cells.view(dtype)

    def stands(self, filled: NDArray[Any] | None = None) -> bool:
        """Is all memory as it was, but for what was to be filled (whose content is lost)?

        Of a read-only array nothing was.
        """
        cells = self.inside if filled is None else filled
        if cells.flags.writeable:
            cells.view(f"u{cells.itemsize}")[...] = self.value
        return bool((self.field == FENCE).all())


def _bits(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Returns in how many bits two bitmasks differ."""
    return int(np.unpackbits((one ^ other).view(np.uint8)).sum())
