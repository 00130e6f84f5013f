"""What the tests of the decode loop share: a model without a network, adapters that fail when told, and loops
around them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
)
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference
from harness.walk.loop import loop as loop_module
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.forward import Forward
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.outcome import Completed
from harness.walk.loop.request import Request
from harness.walk.loop.sampling import Chosen, Sampler
from harness.walk.loop.strategies.base import Strategy


@contextmanager
def an_arm_in_this_process() -> Iterator[None]:
    """Takes back what an arm does to its process: it sets the threads of a model. What it has frozen stays
    so: with all that was imported, each of the collections of the next test would take half a second."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


BEYOND = 5
"""Logits of the model behind the vocabulary."""


def words_vocabulary() -> Vocabulary:
    """Bytes, and tokens that merge, cross a character's border, end inside one; longest match; specials and
    padding."""
    texts = [
        "ab",
        "abc",
        "cd",
        "name",
        '": "',
        '"}',
        '{"',
        '", "',
        "red",
        "re",
        "blue",
        "日本",
        "12",
        "123",
        'e"',
        '"re',
        "aaaa",
    ]
    pieces = ["日本".encode()[:4], "😀".encode()[:3], "語".encode()[1:]]
    tokens = (
        *(bytes([byte]) for byte in range(256)),
        *(text.encode() for text in texts),
        *pieces,
        b"",
        b"",
        b"",
    )
    size = len(tokens)
    return Vocabulary(
        "words", tokens, (size - 3,), {size - 3: "</s>", size - 2: "<think>"}, frozenset({size - 1})
    )


WORDS = words_vocabulary()
EOS = WORDS.eos_token


def as_if_the_cpu_worked_beside(patch: pytest.MonkeyPatch) -> None:
    """Makes the loop take a CPU for a device that works while the host goes on: fills begin behind the pass,
    tokens are chosen there, and the next pass begins before the host knows them."""
    patch.setattr(loop_module, "works_beside", lambda device: True)
    chooses = Sampler.choose

    def chooses_there(self: Sampler, logits: torch.Tensor) -> Chosen:
        self._on_host = False
        return chooses(self, logits)

    patch.setattr(Sampler, "choose", chooses_there)


class FakeModel:
    """Logits are a row of a seeded table, chosen by all tokens that the row holds.

    Asserts that it is used as it must be.
    """

    device = torch.device("cpu")
    began: Any = None

    def __init__(
        self,
        vocabulary: Vocabulary = WORDS,
        *,
        rows: int = 4,
        positions: int = 256,
        chunk: int = 8,
        seed: int = 0,
        end: float = 1.5,
    ) -> None:
        """`end`: added to end-of-sequence, so that outputs end."""
        self.rows, self.positions, self.chunk = rows, positions, chunk
        self.vocabulary_size = vocabulary.size + BEYOND
        self.held: list[list[int]] = [[] for _ in range(rows)]
        self.table = torch.randn((97, self.vocabulary_size), generator=torch.Generator().manual_seed(seed))
        self.table[:, vocabulary.eos_token] += end
        self.table[:, vocabulary.size :] += 50  # nobody may ever choose these
        self.during: Callable[[], object] = lambda: None
        """Called in the middle of a pass."""

    def extend(self, tokens: Mapping[int, Sequence[int]], *, every: bool = False) -> torch.Tensor:
        assert tokens, "a pass without a row"
        longest = max(map(len, tokens.values()))
        logits = torch.full((len(tokens), longest, self.vocabulary_size), float("nan"))
        self.during()
        for at, (row, added) in enumerate(tokens.items()):
            assert 0 <= row < self.rows and 1 <= len(added) <= self.chunk, (row, added)
            held = self.held[row]
            assert len(held) + len(added) <= self.positions
            for place, token in enumerate(added):
                assert 0 <= token < self.vocabulary_size
                held.append(token)
                logits[at, place] = self.table[hash(tuple(held)) % len(self.table)]
        last = torch.tensor([len(added) - 1 for added in tokens.values()])
        return logits if every else logits[torch.arange(len(tokens)), last]

    def extend_unseen(self, rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        return self.extend({row: [token] for row, token in zip(rows, tokens.tolist(), strict=True)})

    def length(self, row: int) -> int:
        return len(self.held[row])

    def rollback(self, row: int, length: int) -> None:
        assert 0 <= length <= len(self.held[row]), "a rollback forwards"
        del self.held[row][length:]

    def finish(self) -> None:
        pass

    def assert_is_empty(self) -> None:
        assert not any(self.held), "a row was not given back"


class Around(GrammarObject):
    """An object around another; the tests' own override what they spoil."""

    def __init__(self, compiled: AroundGrammar, inner: GrammarObject) -> None:
        self.compiled = compiled
        self.inner = inner

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.inner.fill_bitmask(bitmask)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        self.inner.fill_bool_mask(mask)

    def accept_token(self, token: int) -> bool:
        return self.inner.accept_token(token)

    def is_accepting(self) -> bool:
        return self.inner.is_accepting()

    def is_terminated(self) -> bool:
        return self.inner.is_terminated()

    def rollback(self, count: int) -> None:
        self.inner.rollback(count)

    def copy(self) -> GrammarObject:
        return type(self)(self.compiled, self.inner.copy())

    def jump_forward(self) -> bytes:
        return self.inner.jump_forward()

    def fast_forward_tokens(self) -> list[int]:
        return self.inner.fast_forward_tokens()


class AroundGrammar(CompiledGrammar):
    def __init__(self, grammar: Grammar, inner: CompiledGrammar, make: type[Around]) -> None:
        self.grammar = grammar
        self.inner = inner
        self.make = make

    def start(self) -> GrammarObject:
        return self.make(self, self.inner.start())


class AroundAdapter(Adapter):
    """The exact adapter with objects of another class."""

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = Reference.dialects

    def __init__(self, make: type[Around], vocabulary: Vocabulary = WORDS) -> None:
        super().__init__(vocabulary)
        self.make = make
        self.inner = Reference(vocabulary)

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return AroundGrammar(grammar, self.inner.compile(grammar), self.make)


class NoRollback(Around):
    """Can only be copied."""

    rollback = GrammarObject.rollback


class NeitherBackNorCopy(Around):
    """Can only go on."""

    rollback = GrammarObject.rollback
    copy = GrammarObject.copy


class ForcesTokensOnly(Around):
    """Says what is forced in tokens, not in bytes."""

    jump_forward = GrammarObject.jump_forward


class Locked(Around):
    """For several threads: the automaton is shared by all objects."""

    lock = threading.Lock()

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        with self.lock:
            self.inner.fill_bitmask(bitmask)

    def accept_token(self, token: int) -> bool:
        with self.lock:
            return self.inner.accept_token(token)


def regex(pattern: str) -> Grammar:
    return Grammar("regex", pattern)


def request(
    name: str,
    grammar: Grammar | None = None,
    *,
    prompt: Sequence[int] = (97, 98),
    limit: int = 40,
    **fields: Any,
) -> Request:
    return Request(name, tuple(prompt), limit, grammar, **fields)


def replayed(
    name: str, grammar: Grammar | None, text: bytes, vocabulary: Vocabulary = WORDS, **fields: Any
) -> Request:
    """Returns the canonical ids of a text, then end-of-sequence."""
    reference = (*vocabulary.encode(text), vocabulary.eos_token)
    return request(name, grammar, reference=reference, **({"limit": len(reference) + 20} | fields))


def serve(
    requests: Sequence[Request],
    adapter: Adapter | None = None,
    strategy: Callable[[Vocabulary], Strategy] = Strategy,
    model: Forward | None = None,
    workers: int = 0,
    **options: Any,
) -> list[Completed]:
    """Serves them with a queue of their own, and sees that the books balance."""
    adapter = adapter or Reference(WORDS)
    model = model or FakeModel(adapter.vocabulary)
    with CompileQueue(adapter, workers=workers) as queue:
        served = Loop(
            model, adapter.vocabulary, strategy(adapter.vocabulary), queue, LoopOptions(**options)
        ).serve(requests)
    if isinstance(model, FakeModel):
        model.assert_is_empty()
    assert [request.name for request in served.completed] == [request.name for request in requests]
    for request in served.completed:
        assert_books_balance(request)
    assert served.passes == len(served.steps)
    return served.completed


def assert_books_balance(completed: Completed) -> None:
    account = completed.account
    assert (
        len(completed.ids) == account.sampled + account.forced + account.retokenized - account.rolled_back
    ), completed
    assert len(completed.token_ns) == len(completed.ids) and list(completed.token_ns) == sorted(
        completed.token_ns
    )
    assert account.accepted_drafts <= account.drafted


def alone(
    wanted: Request, adapter: Adapter | None = None, begin: Sequence[int] = (), model: FakeModel | None = None
) -> tuple[int, ...]:
    """Returns the loop as one would write it for one request, with nothing that the real one does: the output
    it must have after `begin`."""
    adapter = adapter or Reference(WORDS)
    vocabulary = adapter.vocabulary
    model = model or FakeModel(vocabulary)
    grammar_object = None if wanted.grammar is None else adapter.compile(wanted.grammar).start()
    ids = list(begin)
    assert grammar_object is None or grammar_object.accept_tokens(ids) == len(ids)
    while len(ids) < wanted.limit and vocabulary.eos_token not in ids:
        state = [*wanted.prompt, *ids]
        logits = model.table[hash(tuple(state)) % len(model.table)][: vocabulary.size].clone()
        if wanted.seed is not None:
            Sampler(torch.device("cpu")).disturb(logits, wanted.seed, len(ids))
        if grammar_object is not None:
            bitmask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
            grammar_object.fill_bitmask(bitmask)
            allowed = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
            logits[torch.from_numpy(~allowed)] = float("-inf")
            if not allowed.any():
                break
        token = int(logits.argmax())
        if grammar_object is not None:
            assert grammar_object.accept_token(token)
        ids.append(token)
    return tuple(ids)
