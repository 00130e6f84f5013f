"""The loop: what it sees of right objects, and of objects that are wrong in one way."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from harness.backend.grammar import Bitmask, CompiledGrammar, GrammarObject
from harness.backend.vocabulary import Vocabulary, byte_vocabulary
from harness.errors import error_text
from harness.walk.replay import Observation, first_mask, walk
from harness.walk.watched import unwatched

VOCABULARY = byte_vocabulary()
EOS = VOCABULARY.eos_token


class Words(GrammarObject):
    """Allows a few byte strings."""

    def __init__(self, words: list[bytes]) -> None:
        self.words, self.taken, self.ended = words, b"", False

    def next_tokens(self) -> set[int]:
        if self.ended:
            return set()
        longer = {
            word[len(self.taken)] for word in self.words if word.startswith(self.taken) and word != self.taken
        }
        return longer | ({EOS} if self.is_accepting() else set())

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bitmask.fill(0)
        for token in self.next_tokens():
            bitmask[token >> 5] |= np.int32(1 << (token & 31)) if token & 31 < 31 else np.int32(-(1 << 31))

    def accept_token(self, token: int) -> bool:
        if token not in self.next_tokens():
            return False
        self.ended = token == EOS
        self.taken += VOCABULARY.tokens[token]
        return True

    def is_accepting(self) -> bool:
        return self.taken in self.words

    def is_terminated(self) -> bool:
        return self.ended


class Compiled(CompiledGrammar):
    def __init__(self, make: Callable[[], GrammarObject]) -> None:
        self.make = make

    def start(self) -> GrammarObject:
        return self.make()


def seen(make: Callable[[], GrammarObject], text: bytes, mask_format: str = "bitmask") -> Observation:
    return walk(Compiled(make), VOCABULARY, list(text), mask_format, unwatched())


def untimed(observation: Observation) -> Observation:
    return replace(observation, matcher_new_ns=0, first_fill_ns=0, wall_ns=0, samples=b"")


def words() -> Words:
    return Words([b"1", b"10", b"cat"])


@pytest.mark.parametrize(
    ("text", "accepted", "stopped_at", "allowed"),
    [
        (b"1", True, None, None),
        (b"10", True, None, None),
        (b"cat", True, None, None),
        (b"ca", False, 2, 1),
        (b"11", False, 1, 2),
        (b"x", False, 0, 2),
        (b"", False, 0, 2),
    ],
)
def test_the_end_of_the_output_is_part_of_the_verdict(
    text: bytes, accepted: bool, stopped_at: int | None, allowed: int | None
) -> None:
    observation = seen(words, text)
    assert (observation.status, observation.accepted, observation.stopped_at, observation.allowed) == (
        "ok",
        accepted,
        stopped_at,
        allowed,
    )
    assert observation.findings == () and observation.tokens == len(text)


def test_every_call_is_sampled_and_the_end_too() -> None:
    observation = seen(words, b"cat")
    samples = np.frombuffer(observation.samples, dtype="<i8")
    assert len(samples) == 2 * 4 and (samples > 0).all()
    assert observation.first_fill_ns == samples[0]
    assert observation.wall_ns is not None and observation.wall_ns > samples.sum()
    assert len(seen(words, b"cxt").samples) == 8 * 2 * 2, "up to and with the refusal"


def test_a_token_that_the_mask_forbids_and_accept_takes_is_found_and_refused() -> None:
    class Loose(Words):
        def accept_token(self, token: int) -> bool:
            return super().accept_token(token) or token == ord("x")

    observation = seen(lambda: Loose([b"cat"]), b"cxt")
    (finding,) = observation.findings
    assert (finding.check, finding.position) == ("mask_accept_mismatch", 1) and (
        "mask refuses, accept_token allows"
    ) in finding.text
    assert observation.accepted is False and observation.stopped_at == 1


@pytest.mark.parametrize(
    ("name", "value"), [("dtype", np.int8), ("shape", (1, -1)), ("flags.writeable", False)]
)
def test_a_mask_that_a_backend_has_changed_is_not_the_next_walks(name: str, value: object) -> None:
    class Changes(Words):
        def fill_bitmask(self, bitmask: Bitmask) -> None:
            super().fill_bitmask(bitmask)
            *owner, attribute = name.split(".")
            setattr(bitmask.flags if owner else bitmask, attribute, value)

    right = seen(words, b"11")
    seen(lambda: Changes([b"1"]), b"1")
    assert untimed(seen(words, b"11")) == untimed(right)


@pytest.mark.parametrize(("says_so", "cause"), [(True, "canonical_only"), (False, "")])
def test_another_spelling_of_what_is_forced_is_told_apart(says_so: bool, cause: str) -> None:
    small = Vocabulary(
        "small",
        (*(bytes([byte]) for byte in range(256)), b"", b"cat"),
        eos_tokens=(256,),
        special_tokens={256: "</s>"},
    )

    class Canonical(GrammarObject):
        def __init__(self) -> None:
            self.taken = b""

        def fill_bitmask(self, bitmask: Bitmask) -> None:
            bitmask.fill(0)
            bitmask[257 >> 5] = 1 << (257 & 31)

        def accept_token(self, token: int) -> bool:
            self.taken += small.tokens[token]
            return b"cat".startswith(self.taken)

        def is_accepting(self) -> bool:
            return self.taken == b"cat"

        def is_terminated(self) -> bool:
            return False

        def fast_forward_tokens(self) -> list[int]:
            return [257] if says_so else []

    class Compiled(CompiledGrammar):
        def start(self) -> GrammarObject:
            return Canonical()

    observation = walk(Compiled(), small, [ord("c"), ord("a"), ord("t")], "bitmask", array("q", [0] * 8))  # type: ignore[arg-type]
    assert [(each.check, each.position, each.cause) for each in observation.findings] == [
        ("mask_accept_mismatch", 0, cause)
    ]


def test_a_token_that_the_mask_allows_and_accept_refuses_is_found() -> None:
    class Strict(Words):
        def accept_token(self, token: int) -> bool:
            return token != ord("t") and super().accept_token(token)

    observation = seen(lambda: Strict([b"cat"]), b"cat")
    assert [(each.check, each.position) for each in observation.findings] == [("mask_accept_mismatch", 2)]
    assert observation.accepted is False


@pytest.mark.parametrize("method", ["is_accepting", "accept_token", "fill_bitmask"])
def test_disagreement_about_the_end_is_found(method: str) -> None:
    class Disagrees(Words):
        def is_accepting(self) -> bool:
            return super().is_accepting() != (method == "is_accepting" and self.taken == b"cat")

        def next_tokens(self) -> set[int]:
            return super().next_tokens() | ({EOS} if Words.is_accepting(self) else set())

        def accept_token(self, token: int) -> bool:
            return not (method == "accept_token" and token == EOS) and super().accept_token(token)

        def fill_bitmask(self, bitmask: Bitmask) -> None:
            super().fill_bitmask(bitmask)
            if method == "fill_bitmask" and self.taken == b"cat":
                bitmask[EOS >> 5] = 0

    observation = seen(lambda: Disagrees([b"cat"]), b"cat")
    assert [
        (each.check, each.position)
        for each in observation.findings
        if each.check == "end_of_sequence_mismatch"
    ] == [("end_of_sequence_mismatch", 3)]


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize("text", [b"cat", b"ca"])
def test_an_object_that_has_moved_is_not_asked_about_the_place_before(text: bytes, is_strict: bool) -> None:
    """The mask of an object is empty behind `text`, and it takes what comes there: the end, or one more
    letter. Behind the end it refuses each question, or answers for where it stands then."""

    class ForbidsAll(Words):
        def fill_bitmask(self, bitmask: Bitmask) -> None:
            super().fill_bitmask(bitmask)
            if self.taken == text:
                bitmask.fill(0)

        def is_accepting(self) -> bool:
            if self.ended and is_strict:
                raise RuntimeError("called after termination")
            return not self.ended and super().is_accepting()

    observation = seen(lambda: ForbidsAll([b"cat"]), b"cat")
    found = "end_of_sequence_mismatch" if text == b"cat" else "mask_accept_mismatch"
    assert (observation.status, observation.accepted) == ("ok", False)
    assert (observation.stopped_at, observation.allowed) == (len(text), 0)
    assert [each.check for each in observation.findings] == [found]


def test_a_dead_end_is_found() -> None:
    class DeadEnd(Words):
        def next_tokens(self) -> set[int]:
            return set() if self.taken == b"ca" else super().next_tokens()

    observation = seen(lambda: DeadEnd([b"cat"]), b"cat")
    assert ("cannot_terminate", 2) in [
        (each.check, each.position) for each in observation.findings
    ] and observation.allowed == 0


@pytest.mark.parametrize(("byte", "found"), [(ord("~"), []), (0xFF, ["cannot_terminate"])])
def test_a_dead_end_is_no_fault_where_the_vocabulary_may_lack_the_byte(byte: int, found: list[str]) -> None:
    class WithoutTokens(Words):
        def next_tokens(self) -> set[int]:
            return super().next_tokens() - {ord("~")}

    tokens = (*VOCABULARY.tokens[:byte], b"", *VOCABULARY.tokens[byte + 1 :])
    vocabulary = replace(VOCABULARY, tokens=tokens, padding_tokens=frozenset({byte}))
    grammar = Compiled(lambda: WithoutTokens([b"c~"]))
    observation = walk(grammar, vocabulary, list(b"ca"), "bitmask", unwatched())
    assert (observation.accepted, observation.stopped_at, observation.allowed) == (False, 1, 0)
    assert [each.check for each in observation.findings] == found, "no text has the byte 0xFF"


def test_the_bool_mask_is_walked_too() -> None:
    class Bool(Words):
        def fill_bool_mask(self, mask: Any) -> None:
            mask.fill(True)
            mask[list(self.next_tokens())] = False

    assert seen(lambda: Bool([b"cat"]), b"cat", "bool").accepted is True
    refused = seen(lambda: Bool([b"cat", b"cap", b"cab"]), b"car", "bool")
    assert (refused.stopped_at, refused.allowed) == (2, 3)


def test_any_byte_but_zero_is_true_in_a_bool_mask() -> None:
    class AnyByte(Words):
        def fill_bool_mask(self, mask: Any) -> None:
            mask.view(np.uint8).fill(255)
            mask[list(self.next_tokens())] = False

    refused = seen(lambda: AnyByte([b"cat", b"cap"]), b"car", "bool")
    assert (refused.stopped_at, refused.allowed) == (2, 2)


def test_a_backends_error_is_the_backends_and_ours_is_ours() -> None:
    class Raises(Words):
        def fill_bitmask(self, bitmask: Bitmask) -> None:
            if self.taken == b"c":
                raise RuntimeError("boom")
            super().fill_bitmask(bitmask)

    observation = seen(lambda: Raises([b"cat"]), b"cat")
    assert (observation.status, observation.phase, observation.accepted) == ("backend_error", "fill", None)
    assert observation.text == "RuntimeError: boom"

    # A native method handed out by an adapter leaves no frame of its own.
    class Native(Words):
        def filler(self, bitmask: Bitmask) -> Callable[[], object]:
            return partial(struct.unpack, "<i", b"")

    native = seen(lambda: Native([b"cat"]), b"cat")
    assert (native.status, native.phase) == ("backend_error", "fill") and native.text.startswith(
        "error: unpack"
    )
    # A token id beyond the vocabulary is an error in a line of ours: the mask has no such bit.
    ours = walk(Compiled(words), VOCABULARY, [10**6], "bitmask", unwatched())
    assert ours.status == "harness_error"


def test_memory_error_and_sys_exit_are_seen() -> None:
    def raises(error: BaseException) -> Observation:
        def make() -> GrammarObject:
            raise error

        return seen(make, b"cat")

    assert (raises(MemoryError()).status, raises(MemoryError()).phase) == ("oom", "start")
    assert raises(SystemExit(1)).status == "backend_error"


def test_a_grammar_without_instance_is_started_and_filled() -> None:
    observation = first_mask(Compiled(words), VOCABULARY, "bitmask", unwatched())
    assert (
        observation.status == "ok" and observation.accepted is None and observation.first_fill_ns is not None
    )


def test_any_message_becomes_a_text() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_text(Unprintable()) == "Unprintable: (its message cannot be printed)"
    assert len(error_text(ValueError("x" * 10_000))) == 2000
