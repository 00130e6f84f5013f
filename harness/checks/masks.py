"""What a mask says, against what the object does; and where a fill writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.checks.subject import NotApplicable, Place, Subject
from harness.grammar import GrammarObject, allocate_bitmask
from harness.oracle.trie import TokenSet
from harness.row import Finding
from harness.vocabulary import Vocabulary

EVERY_ID = 8192
"""Up to this many ids every one is tried; in a larger vocabulary a sample, unless the effort has no limit."""

SILENT, ALLOWED, NEAR, FAR = 64, 24, 200, 200
"""Ids of that sample: without text; allowed; forbidden, with the first byte of an allowed one; forbidden, any first byte."""

SURE = 3
"""So many disagreements of one kind at one place are confirmed with a fresh object each; the others are believed."""

LONGEST = 220
"""Tokens of a path that is walked forth and back."""

REFUSALS = 8
"""Tokens refused in a row."""

FENCE = 0x5A
"""The byte that lies around an array that is filled."""


@dataclass(frozen=True)
class Look:
    """All that can be seen of an object without moving it."""

    mask: bytes
    """One bit a token."""
    accepting: bool
    terminated: bool

    def allowed(self, subject: Subject) -> TokenSet:
        return np.unpackbits(np.frombuffer(self.mask, np.uint8), count=subject.vocabulary.size, bitorder="little").view(np.bool_)


def look(subject: Subject, grammar_object: GrammarObject) -> Look:
    mask = np.packbits(subject.allowed(grammar_object), bitorder="little").tobytes()
    return Look(mask, bool(grammar_object.is_accepting()), bool(grammar_object.is_terminated()))


def change(subject: Subject, before: Look, after: Look) -> str:
    """What is different, as the end of a sentence."""
    told = []
    old, new = before.allowed(subject), after.allowed(subject)
    for word, tokens in (("more", np.flatnonzero(new & ~old)), ("fewer", np.flatnonzero(old & ~new))):
        if len(tokens):
            names = ", ".join(name_of(subject, int(token)) for token in tokens[:3])
            told.append(f"{len(tokens)} {word} token(s) are allowed, e.g. {names}")
    if before.accepting != after.accepting:
        told.append(f"is_accepting() is {after.accepting}")
    if before.terminated != after.terminated:
        told.append(f"is_terminated() is {after.terminated}")
    return " and ".join(told)


def name_of(subject: Subject, token: int) -> str:
    vocabulary = subject.vocabulary
    if token in vocabulary.special_tokens:
        return vocabulary.special_tokens[token]
    return f"padding {token}" if token in vocabulary.padding_tokens else repr(vocabulary.tokens[token][:60])


def finding(check: str, subject: Subject, place: Place, text: str, further: Sequence[int] = (), cause: str = "") -> Finding:
    """A finding at a place; `further` are the tokens in question, which follow those that lead there."""
    return Finding(
        check,
        place.position,
        f"after {place.text[-60:]!r} {text}"[:1000],
        cause=cause,
        documented=cause in subject.adapter.documented,
        instance=place.instance if subject.case.instances else None,
        examples=tuple(subject.vocabulary.tokens[token].hex() for token in further[:6]),
        walk=(*place.tokens, *further),
    )


def few(subject: Subject) -> int | None:
    """Half of the effort, but no less than two: for checks that move several objects at each place, or say less of the place."""
    return None if subject.effort is None else min(subject.effort, max(2, subject.effort // 2))


def walkable(subject: Subject) -> int:
    """So many tokens is an object walked that is walked again and again: up to 64, and less for little effort."""
    return LONGEST if subject.effort is None else min(64, 16 * subject.effort)


def spread(subject: Subject, purpose: str, most: int | None) -> list[Place]:
    """The start and a seeded sample of the places that are not too far to walk there again and again, `most` in all; None: all places."""
    start, *others = subject.places(purpose, sys.maxsize)
    if most is None:
        return [start, *others]
    others = [place for place in others if place.position <= walkable(subject)]
    chosen = subject.random(purpose).sample(range(len(others)), min(len(others), most - 1))
    return [start, *(others[each] for each in sorted(chosen))]


def standing(subject: Subject, purpose: str, most: int | None) -> Iterator[tuple[Place, GrammarObject]]:
    """Such places with a fresh object at each; that it gets there is a check of its own (`objects_of_one_grammar_are_independent`)."""
    for place in spread(subject, purpose, most):
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None:
            yield place, grammar_object


def standing_deep(subject: Subject, purpose: str) -> Iterator[tuple[Place, GrammarObject]]:
    """One of them, not the start where there is another, with a fresh object; nothing if it does not get there."""
    place = spread(subject, purpose, 2)[-1]
    grammar_object = subject.reach(place.tokens)
    if grammar_object is not None:
        yield place, grammar_object


def next_token(subject: Subject, place: Place, mask: TokenSet) -> int | None:
    """The token that comes next along the instance, else one of text that the mask allows."""
    path = subject.paths[place.instance] if subject.paths else []
    if len(path) > place.position and tuple(path[: place.position]) == place.tokens:
        return path[place.position]
    tokens = np.flatnonzero(mask & (first_bytes(subject.vocabulary) >= 0))
    return int(subject.random(f"next {place.text!r}").choice(tokens)) if len(tokens) else None


# The mask and accept_token


def prepare(vocabulary: Vocabulary) -> None:
    """What is made once per vocabulary, before any child is forked."""
    first_bytes(vocabulary)
    by_first_byte(vocabulary)


def check_the_mask_says_what_accept_does(subject: Subject) -> Iterator[Finding]:
    """A token's bit says whether `accept_token` takes it, whatever id it is; that of end-of-sequence whether the output may end."""
    check, eos = "the_mask_says_what_accept_does", subject.vocabulary.eos_token
    for place, grammar_object in standing(subject, check, subject.effort):
        mask = subject.allowed(grammar_object)
        accepting = bool(grammar_object.is_accepting())
        if bool(mask[eos]) != accepting:
            text = f"the mask {_says(mask[eos])} end-of-sequence, but is_accepting() is {accepting}"
            yield finding(check, subject, place, text, (eos,), "end_of_sequence")
        for (cause, allows), tokens in _disagreements(subject, place, grammar_object, mask).items():
            names = ", ".join(name_of(subject, token) for token in tokens[:3])
            history = " of an object that has refused and taken back others" if cause == "history" else ""
            text = f"the mask {_says(allows)} {len(tokens)} token(s) that accept_token{history} {_does(not allows)}, e.g. {names}"
            yield finding(check, subject, place, text, tokens[:1], cause)


def _says(allows: bool) -> str:
    return "allows" if allows else "forbids"


def _does(takes: bool) -> str:
    return "takes" if takes else "refuses"


def _disagreements(subject: Subject, place: Place, grammar_object: GrammarObject, mask: TokenSet) -> dict[tuple[str, bool], list[int]]:
    """The tokens of which mask and `accept_token` say different things, by cause and by what the mask says.

    What a fresh object does not confirm is a matter of the object's past; after a few of these the place is left.
    """
    trials = _Trials(subject, place, grammar_object, mask)
    found: dict[tuple[str, bool], list[int]] = {}
    forced: bytes | None = None
    for token in _to_try(subject, place, mask):
        allows = bool(mask[token])
        if trials.takes(token) == allows:
            continue
        cause = _kind(subject.vocabulary, token)
        if not cause and not allows:
            forced = _forced_token(subject, place, mask) if forced is None else forced
            text = subject.vocabulary.tokens[token]
            if forced and (forced.startswith(text) or text.startswith(forced)):
                cause = "canonical_only"  # another spelling of what the backend forces
        if len(found.get((cause, allows), ())) < SURE:
            fresh = subject.reach(place.tokens)
            if fresh is None:
                break
            if bool(fresh.accept_token(token)) == allows:
                cause = "history"
                trials.start_over()
        found.setdefault((cause, allows), []).append(token)
        if len(found.get(("history", allows), ())) >= SURE:
            break
    return found


def _forced_token(subject: Subject, place: Place, mask: TokenSet) -> bytes:
    """The text of the only token that the mask allows, if the backend says that it forces this token; else empty."""
    allowed: list[int] = np.flatnonzero(mask).tolist()
    fresh = subject.reach(place.tokens) if len(allowed) == 1 else None
    if fresh is None or fresh.fast_forward_tokens()[:1] != allowed:
        return b""
    return subject.vocabulary.tokens[allowed[0]]


class _Trials:
    """Asks an object about one token after the other, and takes back what it took."""

    def __init__(self, subject: Subject, place: Place, grammar_object: GrammarObject, mask: TokenSet) -> None:
        self.subject, self.place, self.mask = subject, place, mask
        self.grammar_object = grammar_object
        self.rolls: bool | None = None  # does rollback lead back here? unknown yet

    def takes(self, token: int) -> bool:
        taken = bool(self.grammar_object.accept_token(token))
        if taken and not self._rolled_back():
            self.start_over()
        return taken

    def start_over(self) -> None:
        fresh = self.subject.reach(self.place.tokens)
        self.grammar_object = self.grammar_object if fresh is None else fresh

    def _rolled_back(self) -> bool:
        if self.rolls is not False:
            try:
                self.grammar_object.rollback(1)
            except Exception:  # not implemented, or a fault that the checks of rollback report
                self.rolls = False
        if self.rolls is None:
            self.rolls = bool((self.subject.allowed(self.grammar_object) == self.mask).all())
        return self.rolls


def _to_try(subject: Subject, place: Place, mask: TokenSet) -> list[int]:
    """Every id, or a sample of each kind; end-of-sequence is the last."""
    vocabulary, eos = subject.vocabulary, subject.vocabulary.eos_token
    if subject.effort is None or vocabulary.size <= EVERY_ID:
        return [token for token in range(vocabulary.size) if token != eos] + [eos]
    firsts = first_bytes(vocabulary)
    text = firsts >= 0
    near = np.zeros(257, dtype=np.bool_)
    near[firsts[mask & text]] = True
    choose = subject.random(f"tokens {place.text!r}")
    chosen = {int(token) for token in (next_token(subject, place, mask),) if token is not None}
    for tokens, most in ((~text, SILENT), (mask & text, ALLOWED), (~mask & text & near[firsts], NEAR)):
        ids = np.flatnonzero(tokens).tolist()
        chosen.update(choose.sample(ids, min(len(ids), most)))
    for first in choose.sample(range(256), FAR):
        ids = by_first_byte(vocabulary)[first]
        chosen.update(token for token in ([choose.choice(ids)] if ids else []) if not mask[token])
    return [*sorted(chosen - {eos}), eos]


@lru_cache(maxsize=4)
def first_bytes(vocabulary: Vocabulary) -> NDArray[np.int16]:
    """The first byte of each plain-text token; -1 for specials, padding and empty tokens."""
    never = {*vocabulary.special_tokens, *vocabulary.padding_tokens}
    texts = enumerate(vocabulary.tokens)
    return np.array([text[0] if text and token not in never else -1 for token, text in texts], dtype=np.int16)


@lru_cache(maxsize=4)
def by_first_byte(vocabulary: Vocabulary) -> list[list[int]]:
    """The plain-text tokens that begin with each byte."""
    firsts = first_bytes(vocabulary)
    order = np.argsort(firsts, kind="stable")
    bounds = np.searchsorted(firsts[order], np.arange(257))
    return [order[start:end].tolist() for start, end in pairwise(bounds)]


def _kind(vocabulary: Vocabulary, token: int) -> str:
    """The class of causes that a token without text speaks for; empty for text."""
    if token == vocabulary.eos_token:
        return "end_of_sequence"
    if token in vocabulary.special_tokens:
        return "special"
    if token in vocabulary.padding_tokens:
        return "padding"
    return "" if vocabulary.tokens[token] else "empty_token"


def check_a_token_without_text_is_never_allowed(subject: Subject) -> Iterator[Finding]:
    """Neither specials other than end-of-sequence nor padding nor empty tokens: none of them is text of the grammar."""
    check, vocabulary = "a_token_without_text_is_never_allowed", subject.vocabulary
    silent = first_bytes(vocabulary) < 0
    silent[vocabulary.eos_token] = False
    if not silent.any():
        raise NotApplicable("every token of the vocabulary but end-of-sequence is text")
    for place, grammar_object in standing(subject, check, few(subject)):
        mask = subject.allowed(grammar_object)
        wrong = np.flatnonzero(mask & silent).tolist()
        kinds: dict[str, list[int]] = {}
        for token in wrong:
            kinds.setdefault(_kind(vocabulary, token), []).append(token)
        for cause, tokens in kinds.items():
            names = ", ".join(name_of(subject, token) for token in tokens[:3])
            yield finding(check, subject, place, f"the mask allows {len(tokens)} token(s) without text: {names}", tokens[:1], cause)


def check_a_refused_token_does_not_move(subject: Subject) -> Iterator[Finding]:
    """After several refusals in a row the object looks as before, and takes the right token."""
    check, eos = "a_refused_token_does_not_move", subject.vocabulary.eos_token
    refused_somewhere = False
    for place, grammar_object in standing(subject, check, subject.effort):
        before = look(subject, grammar_object)
        mask = before.allowed(subject)
        forbidden = [token for token in _to_try(subject, place, mask) if not mask[token] and token != eos]
        tokens = subject.random(f"refusals {place.text!r}").sample(forbidden, min(len(forbidden), REFUSALS))
        tokens += [] if before.accepting else [eos]
        if not tokens or any(grammar_object.accept_token(token) for token in tokens):
            continue  # what is taken though it is forbidden is the mask's matter
        refused_somewhere = True
        after = look(subject, grammar_object)
        if after != before:
            text = f"refusing {len(tokens)} tokens changes what is seen: {change(subject, before, after)}"
            yield finding(check, subject, place, text, tokens)
            continue
        right = next_token(subject, place, mask)
        if right is not None and not grammar_object.accept_token(right):
            fresh = subject.reach(place.tokens)
            if fresh is not None and fresh.accept_token(right):
                text = f"{name_of(subject, right)} is refused too, once {len(tokens)} other tokens have been refused"
                yield finding(check, subject, place, text, (*tokens, right))
    if not refused_somewhere:
        raise NotApplicable("nothing is refused at any of the places")


# What a fill does to the object and to memory


def check_looking_does_not_move(subject: Subject) -> Iterator[Finding]:
    """Filled twice, the object gives the same mask twice, and goes where one goes that was not asked."""
    check = "looking_does_not_move"
    for place, grammar_object in standing(subject, check, few(subject)):
        first, second = look(subject, grammar_object), look(subject, grammar_object)
        if first != second:
            yield finding(check, subject, place, f"asked a second time, {change(subject, first, second)}")
            continue
        token = next_token(subject, place, second.allowed(subject))
        unasked = subject.reach(place.tokens)
        if token is None or unasked is None or not grammar_object.accept_token(token):
            continue
        if not unasked.accept_token(token):
            yield finding(check, subject, place, f"{name_of(subject, token)} is taken only after a fill", (token,))
            continue
        theirs, ours = look(subject, unasked), look(subject, grammar_object)
        if theirs != ours:
            text = f"and {name_of(subject, token)}, an object that was filled on the way differs: {change(subject, theirs, ours)}"
            yield finding(check, subject, place, text, (token,))


def check_a_filler_fills_as_a_fill_does(subject: Subject) -> Iterator[Finding]:
    """One filler, bound at the start, follows its object."""
    check = "a_filler_fills_as_a_fill_does"
    if subject.adapter.mask_format != "bitmask":
        raise NotApplicable("the adapter fills another format of masks")
    places = spread(subject, check, few(subject))
    for instance in sorted({place.instance for place in places}):
        grammar_object = subject.compiled.start()
        filled, expected = allocate_bitmask(subject.vocabulary.size), allocate_bitmask(subject.vocabulary.size)
        fill = grammar_object.filler(filled)
        position = 0
        for place in (each for each in places if each.instance == instance):  # in the order of the path
            if not all(grammar_object.accept_token(token) for token in place.tokens[position:]):
                break
            position = place.position
            filled.fill(-1)
            try:
                fill()
            except BaseException as error:  # a native filler has no frame of its own: it would look like an error of ours
                yield finding(check, subject, place, f"the filler raises {type(error).__name__}: {error}", cause="backend_error")
                return
            grammar_object.fill_bitmask(expected)
            if other := _bits(filled, expected):
                yield finding(check, subject, place, f"the filler's mask differs in {other} bits from that of a fill")


def check_a_batch_is_filled_row_by_row(subject: Subject) -> Iterator[Finding]:
    """A batch gives each row the mask that its object gives alone; rows around it, and rows around a single fill, stay as they were."""
    check = "a_batch_is_filled_row_by_row"
    batch = list(standing(subject, check, subject.effort))
    for place, grammar_object in batch[:1] + batch[1:][-1:]:
        with suppress(NotImplementedError):
            batch.append((place, grammar_object.copy()))
    words = len(allocate_bitmask(subject.vocabulary.size))
    singles = np.zeros((len(batch), words), dtype=np.int32)
    for (_, grammar_object), single in zip(batch, singles, strict=True):
        grammar_object.fill_bitmask(single)
    fence = _Fence((len(batch), words), np.int32)
    subject.adapter.fill_bitmasks([grammar_object for _, grammar_object in batch], fence.inside)
    for number, ((place, _), single) in enumerate(zip(batch, singles, strict=True)):
        if other := _bits(fence.inside[number], single):
            yield finding(check, subject, place, f"row {number} of a batch of {len(batch)} differs in {other} bits from a fill of it alone")
    place, grammar_object = batch[0]
    if not fence.stands():
        yield finding(check, subject, place, f"a batch of {len(batch)} rows writes outside of its rows")
    fence = _Fence((3, words), np.int32)
    grammar_object.fill_bitmask(fence.inside[1])
    if other := _bits(fence.inside[1], singles[0]):
        yield finding(check, subject, place, f"filled into a row of a larger array, the mask differs in {other} bits")
    if not fence.stands(fence.inside[1]):
        yield finding(check, subject, place, "filled into the middle one of three rows, the mask changes the rows around it")


def check_a_fill_never_writes_outside(subject: Subject) -> Iterator[Finding]:
    """A mask that is too short, too long, not contiguous, read-only or of another type is refused, or filled rightly as far as it goes."""
    check = "a_fill_never_writes_outside"
    bools = subject.adapter.mask_format == "bool"
    dtype: Any = np.bool_ if bools else np.int32
    for place, grammar_object in standing_deep(subject, check):
        right: NDArray[Any] = np.ones(subject.vocabulary.size, np.bool_) if bools else allocate_bitmask(subject.vocabulary.size)
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
            elif not raised and mask.dtype.itemsize >= right.dtype.itemsize:  # a smaller type cannot hold the words
                tail = mask.view(fence.cells.dtype)[size:]
                clear = (tail == bools).all() or (tail == fence.value).all()
                wrong = "" if (mask[:size] == right[: len(mask)]).all() and clear else "gets another mask"
            if not fence.stands(mask):
                wrong = "is overrun: memory around it changes"
            if wrong:
                yield finding(check, subject, place, f"a mask {what} {wrong}")
        again = right.copy()
        fill(again)
        if (again != right).any():
            yield finding(check, subject, place, "after fills into wrong masks, the right one is another")
    if subject.adapter.mask_format == "bitmask":
        yield from _unequal_batches(subject, check)


def _unequal_batches(subject: Subject, check: str) -> Iterator[Finding]:
    """Batches with one row too few and one too many."""
    place = Place(0, (), b"")
    words = len(allocate_bitmask(subject.vocabulary.size))
    for rows in (1, 3):
        fence = _Fence((rows, words), np.int32, 2 * 4 * words)
        with suppress(Exception):
            subject.adapter.fill_bitmasks([subject.compiled.start(), subject.compiled.start()], fence.inside)
        if not fence.stands():
            yield finding(check, subject, place, f"a batch of 2 objects writes outside of the {rows} rows that it is given")


def _wrong_masks(size: int, dtype: Any, written: int) -> Iterator[tuple[str, _Fence, NDArray[Any]]]:
    for what, length in (("of one element", 1), ("that is one element too short", size - 1), ("that is one element too long", size + 1)):
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
    """An array between margins that are all of one byte, each as large as what native code would write that does not look."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, written: int = 0) -> None:
        item = np.dtype(dtype).itemsize
        length = math.prod(shape) * item
        margin = -(-max(length, written, 64) // 64) * 64
        self.value = int.from_bytes(bytes([FENCE]) * item, "little")
        self.field = np.full(length + 2 * margin, FENCE, dtype=np.uint8)
        self.cells: NDArray[Any] = self.field[margin : margin + length].view(f"u{item}").reshape(shape)
        self.inside: NDArray[Any] = self.cells.view(dtype)

    def stands(self, filled: NDArray[Any] | None = None) -> bool:
        """Is all memory as it was, but for what was to be filled (whose content is lost)? Of a read-only array nothing was."""
        cells = self.inside if filled is None else filled
        if cells.flags.writeable:
            cells.view(f"u{cells.itemsize}")[...] = self.value
        return bool((self.field == FENCE).all())


def _bits(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """How many bits of two bitmasks differ."""
    return int(np.unpackbits((one ^ other).view(np.uint8)).sum())
