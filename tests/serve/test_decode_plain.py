"""The decode loop with the shape `tiny` gives the text of the plainest loop there is: one request at a time,
the whole text fed anew for each token, a fresh grammar object that accepts all of it, and nothing beside
anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from decode_batches import WithKernel
from decode_questions import CASES, PERSON
from decode_tools import (
    BEYOND,
    EOS,
    WORDS,
    AroundAdapter,
    ForcesTokensOnly,
    NeitherBackNorCopy,
    NoRollback,
    as_if_the_cpu_worked_beside,
    regex,
    serve,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference
from harness.serve.decode.model import attention
from harness.serve.decode.model.graphs import Static
from harness.serve.decode.model.model import Model, load_model
from harness.walk.loop.active import ActiveRequest, allowed_by
from harness.walk.loop.intake import Waiting
from harness.walk.loop.masks import Masks
from harness.walk.loop.request import Request
from harness.walk.loop.respelling import realigned
from harness.walk.loop.sampling import Chosen, Sampler
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.interleaved import Interleaved
from harness.walk.loop.strategies.jump_forward import JumpForward
from harness.walk.loop.strategies.speculative import Speculative

NEAR = 1e-3
"""Logits that are no farther apart may change places when they are computed in another batch."""

SCHEMA = (
    '{"type": "object", "properties": {"name": {"enum": ["red", "blue"]}, "re": {"const": 12}, '
    '"ab": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}}, "required": ["name", "re", "ab"], '
    '"additionalProperties": false}'
)
GRAMMARS = [
    None,
    PERSON,
    Grammar("json_schema", SCHEMA),
    regex("(ab|red){3,9}"),
    regex("(name: abc; ){1,4}"),
    regex("a(b|d)cx[ab]{4}"),
    regex("(日本|日語|😀)+"),
    Grammar("choice", '["abc", "abcd", "ab"]'),
    regex("[^a-z]{0,5}(aaaa|b){2,20}"),
]
REFUSED = regex("(")
ADAPTERS: dict[str, Adapter] = {
    "exact": WithKernel(WORDS),
    "bool": Reference(WORDS, mask="bool"),
    "no rollback": AroundAdapter(NoRollback),
    "neither": AroundAdapter(NeitherBackNorCopy),
    "tokens only": AroundAdapter(ForcesTokensOnly),
}


@cache
def tiny(rows: int, chunk: int, static: bool = False, drafts: bool = False) -> Model:
    """The shape, with more logits than the vocabulary has tokens; one more of it where it `drafts`."""
    model = load_model("tiny", WORDS.size + BEYOND, rows=rows, positions=160, chunk=chunk)
    if static:
        model._runner = Static(model.network, model.device, capture=False)
    return model


STRATEGIES: dict[str, Callable[[Vocabulary], Strategy]] = {
    "stepwise": Strategy,
    "jump_forward": JumpForward,
    "interleaved": Interleaved,
    "drafts from the text": lambda vocabulary: Speculative(vocabulary, draft_tokens=3),
    "drafts of a model": lambda vocabulary: Speculative(
        vocabulary, draft_tokens=2, model=tiny(9, 5, drafts=True)
    ),
}


def own_logits(ids: Sequence[int]) -> torch.Tensor:
    """Returns what follows a whole text, by the plain model without a cache."""
    network = tiny(1, 1).network.model
    used = network.config._attn_implementation
    network.set_attn_implementation(attention.EAGER)
    with torch.no_grad():
        logits: torch.Tensor = network(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
    network.set_attn_implementation(used)
    return logits[: WORDS.size].clone()


@dataclass
class Plain:
    """What became of a request."""

    ids: list[int]
    end: str = ""
    is_near: bool = False
    """Whether somewhere two logits were so near that another batch may choose the other one."""


def plainly(wanted: Request, adapter: Adapter, make: Callable[[Vocabulary], Strategy]) -> Plain:
    """Serves one request: writes what the strategy wants written, chooses one token, and so on."""
    strategy = make(WORDS)
    active = ActiveRequest(Waiting(wanted, 0), 0, WORDS, adapter.mask_format, 0)
    found, reference = Plain(active.ids), wanted.reference
    ids = found.ids
    active.compiled = None if wanted.grammar in (None, REFUSED) else adapter.compile(wanted.grammar)
    ask = strategy.begin
    while True:
        active.object, active.reference = object_behind(active.compiled, ids), reference
        move = ask(active)
        # Another spelling that is too long for the limit is not written.
        if move is not None and (move.keep == len(ids) or move.keep + len(move.ids) <= wanted.limit):
            ids[:] = [*ids[: move.keep], *move.ids][: wanted.limit]
        if reference is not None and tuple(reference[: len(ids)]) != tuple(ids):
            whole = realigned(WORDS, wanted.reference or (), ids)
            if whole is None:
                found.end = "refused"
                return found
            reference = tuple(whole)
        if is_at_end(found, wanted, reference):
            return found
        logits = own_logits([*wanted.prompt, *ids])
        if reference is None and wanted.seed is not None:
            Sampler(torch.device("cpu")).disturb(logits, wanted.seed, len(ids))
        if (behind := object_behind(active.compiled, ids)) is not None:
            logits[torch.from_numpy(~allowed_by(behind, WORDS.size, adapter.mask_format))] = -torch.inf
        token = int(logits.argmax()) if reference is None else reference[len(ids)]
        if logits[token] == -torch.inf:
            found.end = "refused"
            return found
        first, second = logits.topk(2).values.tolist()
        found.is_near |= reference is None and first - second < NEAR
        ids.append(token)
        if is_at_end(found, wanted, reference):
            return found
        ask = strategy.advance


def object_behind(compiled: CompiledGrammar | None, ids: Sequence[int]) -> GrammarObject | None:
    """Returns a fresh object that has accepted the ids; None without a grammar."""
    if compiled is None:
        return None
    fresh = compiled.start()
    assert fresh.accept_tokens(ids) == len(ids)
    return fresh


def is_at_end(found: Plain, wanted: Request, reference: Sequence[int] | None) -> bool:
    """Says so in what became of the request."""
    limit = wanted.limit if reference is None else min(wanted.limit, len(reference))
    if found.ids and found.ids[-1] == EOS:
        found.end = "end_of_sequence"
    elif len(found.ids) >= limit:
        found.end = "limit"
    return bool(found.end)


@st.composite
def batches(draw: st.DrawFn) -> list[Request]:
    """Requests of all kinds, more or fewer than a batch has rows, which come when others are served."""
    made = []
    for number in range(draw(st.integers(1, 17))):
        grammar = draw(st.sampled_from([*GRAMMARS, REFUSED]))
        kind = draw(st.sampled_from(["greedy", "seeded", "replayed"]))
        fields: dict[str, Any] = {"seed": draw(st.integers(0, 9))} if kind == "seeded" else {}
        limit = draw(st.integers(1, 24))
        if kind == "replayed":
            grammar, text = draw(st.sampled_from([*CASES, (grammar, b"name: abc; ")]))
            spelled = draw(st.sampled_from([WORDS.encode(text), list(text)]))
            fields["reference"] = (*spelled, EOS)
            limit = draw(st.sampled_from([limit, len(spelled) + 1, 40]))
        said = draw(st.sampled_from([b"ab", b"name: abc; name: ", b"aaaaredaaaa", bytes(range(60, 99))]))
        fields["arrival_ns"] = draw(st.integers(0, 4)) * 3_000_000
        made.append(Request(f"r{number}", tuple(WORDS.encode(said)), limit, grammar, **fields))
    return made


@contextmanager
def as_if_there_were_a_device() -> Iterator[None]:
    """The loop takes the CPU for a device: masks are brought there and unpacked, tokens are favoured and
    chosen there, and the next pass begins before the host knows them. What is copied without waiting must
    stay as it is until tokens are known, because the copy has ended only by then."""
    on_their_way: list[tuple[torch.Tensor, torch.Tensor]] = []
    copy, known, new_masks, new_sampler = torch.Tensor.copy_, Chosen.known, Masks.__init__, Sampler.__init__

    def copies(self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        if non_blocking:
            on_their_way.append((source, source.clone()))
        return copy(self, source)

    def knows(self: Chosen) -> list[int]:
        assert all(torch.equal(*sent) for sent in on_their_way), "memory was written that was being copied"
        on_their_way.clear()
        return known(self)

    def has_masks(self: Masks, *given: Any) -> None:
        new_masks(self, *given)
        self._on_host, self._there = False, torch.zeros_like(self._host)

    def has_sampler(self: Sampler, *given: Any) -> None:
        new_sampler(self, *given)
        self._on_host = False

    with pytest.MonkeyPatch.context() as patch:
        as_if_the_cpu_worked_beside(patch)
        patch.setattr(torch.Tensor, "copy_", copies)
        patch.setattr(Chosen, "known", knows)
        patch.setattr(Masks, "__init__", has_masks)
        patch.setattr(Sampler, "__init__", has_sampler)
        yield


@pytest.mark.parametrize("beside", [False, True], ids=["host", "device"])
@settings(max_examples=6, deadline=None)
@given(
    strategy=st.sampled_from([*STRATEGIES]),
    made=batches(),
    rows=st.sampled_from([1, 2, 3, 5, 9]),
    chunk=st.sampled_from([3, 7, 64]),
    static=st.booleans(),
    adapter=st.sampled_from([*ADAPTERS]),
    options=st.fixed_dictionaries(
        {
            "overlap": st.booleans(),
            "fill_threads": st.integers(1, 2),
            "batch_fill": st.booleans(),
            "workers": st.integers(0, 1),
        }
    ),
)
def test_the_text_is_that_of_the_plainest_loop(
    beside: bool,
    strategy: str,
    made: list[Request],
    rows: int,
    chunk: int,
    static: bool,
    adapter: str,
    options: dict[str, Any],
) -> None:
    how, around = STRATEGIES[strategy], ADAPTERS[adapter]
    options["batch_fill"] &= around.mask_format == "bitmask"
    with as_if_there_were_a_device() if beside else nullcontext():
        completed = serve(made, around, how, tiny(rows, chunk, static), **options)
    plain = Strategy if "draft" in strategy else how  # drafts change no text
    for wanted, done in zip(made, completed, strict=True):
        expected = plainly(wanted, around, plain)
        assert expected.is_near or (done.end, [*done.ids]) == (expected.end, expected.ids), (wanted, done)
        assert bool(done.fallback) == (wanted.grammar == REFUSED)


def test_memory_that_is_written_while_it_is_copied_is_noticed() -> None:
    logits = torch.zeros((1, WORDS.size))
    with as_if_there_were_a_device():
        sampler = Sampler(torch.device("cpu"))
        for token in (97, 98):
            sampler.favour(logits.zero_(), [token])
            assert sampler.choose(logits).known() == [token]
        sampler.favour(logits, [99])
        sampler.favour(logits, [100])
        with pytest.raises(AssertionError, match="being copied"):
            sampler.choose(logits).known()
