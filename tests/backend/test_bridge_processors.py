"""Grammars as logits processors: in transformers' generate, and as vLLM calls them, per request and per
batch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import jsonschema
import miniatures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from miniatures.reference import Reference, ReferenceObject

from harness.backend.bridge.following import BackendFault, Follower
from harness.backend.bridge.processors import (
    BatchLogitsProcessor,
    GrammarLogitsProcessor,
    RequestLogitsProcessor,
)
from harness.backend.bridge.reasoning import with_reasoning
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    allocate_bitmask,
    is_allowed,
)
from harness.backend.vocabulary import Vocabulary, load_vocabulary

torch = pytest.importorskip("torch")

SMALL = miniatures.small_vocabulary()
EOS, TOOL, A1 = 257, 258, 259
PAD = 256
REAL = {"reference": "oracle", "xgrammar": "xgrammar", "llguidance": "llguidance"}
PATTERN = Grammar("regex", "[ab][0-9]{1,3}")
SCHEMA = json.dumps(
    {"enum": [10, True, "abé", "abc"]}
)  # no place for the white space that a random model would go on with


@cache
def probe() -> Vocabulary:
    return load_vocabulary("probe")


@cache
def adapter_named(name: str) -> Adapter:
    if name != "reference":
        pytest.importorskip(name)
    module = import_module(f"harness.adapters.{name}")
    (kind,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Adapter) and each.__module__ == module.__name__
    )
    adapter: Adapter = kind(probe())
    return adapter


@cache
def model() -> Any:
    """A tiny random Llama over `probe`, with logits for a few ids more."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=probe().size + 11,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=probe().eos_token,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(config).eval()


def generate(processor: Any, ids: Any, **options: Any) -> list[list[int]]:
    """The rows' outputs, greedy unless told otherwise."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        chosen = {"max_new_tokens": 12, "do_sample": False, **options}
        out = model().generate(ids, logits_processor=[processor], attention_mask=(ids != 1).long(), **chosen)
    rows: list[list[int]] = out[:, ids.shape[1] :].tolist()
    return rows


def until_the_end(row: list[int]) -> list[int]:
    assert probe().eos_token in row, (
        f"{probe().decode([each for each in row if each < probe().size])!r} has no end"
    )
    end = row.index(probe().eos_token)
    assert set(row[end + 1 :]) <= {1}, "something other than padding behind the end"
    return row[:end]


def stepwise(prompt: list[int], grammar: CompiledGrammar | None, limit: int) -> list[int]:
    """Greedy decoding by a plain loop, which asks each bit of the mask by itself."""
    grammar_object = grammar.start() if grammar else None
    ids, out = list(prompt), list[int]()
    bitmask = allocate_bitmask(probe().size)
    while len(out) < limit and (not out or out[-1] != probe().eos_token):
        with torch.no_grad():
            logits = model()(torch.tensor([ids])).logits[0, -1]
        order = torch.argsort(logits, descending=True, stable=True).tolist()
        if grammar_object:
            grammar_object.fill_bitmask(bitmask)
            order = [token for token in order if token < probe().size and is_allowed(bitmask, token)]
        out.append(order[0])
        ids.append(order[0])
        assert grammar_object is None or grammar_object.accept_token(order[0])
    return out


# In transformers


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("do_sample", [False, True], ids=["greedy", "sampled"])
def test_generate_gives_valid_outputs_each_row_under_its_own_grammar(name: str, do_sample: bool) -> None:
    adapter = adapter_named(name)
    regex = adapter.compile(PATTERN)
    # The reference allows white space without end, and a model of random weights writes it.
    if "json_schema" in adapter.dialects and name != "reference":
        json_grammar, judge = adapter.compile(Grammar("json_schema", SCHEMA)), json.loads(SCHEMA)
    else:
        json_grammar, judge = adapter.compile(Grammar("choice", '["true", "[1]"]')), {}
    prompts = torch.tensor(
        [[1, 1, 40, 41], [50, 51, 52, 53], [1, 70, 71, 72], [60, 61, 62, 63]]
    )  # padded on the left
    rows = generate(
        GrammarLogitsProcessor(adapter, [regex, json_grammar, None, regex]),
        prompts,
        max_new_tokens=40,
        do_sample=do_sample,
    )
    for row in (0, 3):
        text = probe().decode(until_the_end(rows[row]))
        assert text[:1] in (b"a", b"b") and text[1:].isdigit() and 2 <= len(text) <= 4
    jsonschema.validate(json.loads(probe().decode(until_the_end(rows[1]))), judge)
    assert len(rows[2]) == 40 and (do_sample or rows[2] == stepwise([70, 71, 72], None, 40))


@pytest.mark.parametrize("name", REAL)
def test_generate_chooses_what_a_plain_stepwise_loop_chooses(name: str) -> None:
    adapter = adapter_named(name)
    compiled = adapter.compile(Grammar("regex", "[a-z ]{3,9}|[0-9]+"))
    prompts = [[40, 41, 42], [50, 51, 52], [80, 90, 100]]
    rows = generate(GrammarLogitsProcessor(adapter, compiled), torch.tensor(prompts))
    for prompt, row in zip(prompts, rows, strict=True):
        expected = stepwise(prompt, compiled, 12)
        assert row == expected + [1] * (len(row) - len(expected))


def test_a_processor_that_lags_a_token_behind_is_caught() -> None:
    class Lags(GrammarLogitsProcessor):
        """Wrong: shows its grammars all ids but the last."""

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            return super().__call__(input_ids[:, : input_ids.shape[1] - (self._ids is not None)], scores)

    adapter = adapter_named("reference")
    compiled = adapter.compile(PATTERN)
    expected = stepwise([40, 41], compiled, 12)
    prompt = torch.tensor([[40, 41]])
    assert generate(GrammarLogitsProcessor(adapter, compiled), prompt)[0] == expected
    try:
        caught = generate(Lags(adapter, compiled), prompt)[0] != expected
    except ValueError as error:
        caught = "is not allowed" in str(error)
    assert caught


def test_a_reasoning_part_comes_first_and_the_answer_is_valid() -> None:
    vocabulary = probe()
    end = vocabulary.ids_by_bytes[b"\n"]
    adapter = with_reasoning(adapter_named("reference"), (end,))

    def prefers_to_stop_thinking(input_ids: Any, scores: Any) -> Any:
        scores = scores.clone()
        scores[:, end] += 3.0 * (input_ids.shape[1] > 5)
        return scores

    processor = GrammarLogitsProcessor(adapter, adapter.compile(PATTERN))

    def both(input_ids: Any, scores: Any) -> Any:
        return processor(input_ids, prefers_to_stop_thinking(input_ids, scores))

    (row,) = generate(both, torch.tensor([[40, 41, 42]]), max_new_tokens=40)
    tokens = until_the_end(row)
    thought, answer = tokens[: tokens.index(end)], probe().decode(tokens[tokens.index(end) + 1 :])
    assert len(thought) >= 3 and answer[:1] in (b"a", b"b") and answer[1:].isdigit()


def test_beams_are_refused_with_a_reason() -> None:
    adapter = adapter_named("reference")
    compiled = adapter.compile(Grammar("regex", "[a-z0-9]{20}"))
    with pytest.raises(
        ValueError, match="1 grammars do not fit 4 rows; give one for each prompt, and use no beams"
    ):
        generate(GrammarLogitsProcessor(adapter, [compiled]), torch.tensor([[40, 41]]), num_beams=4)
    with pytest.raises(ValueError, match="beam"):
        generate(GrammarLogitsProcessor(adapter, compiled), torch.tensor([[40, 41]]), num_beams=4)


def test_a_row_that_a_stop_string_has_ended_is_left_alone_where_its_padding_is_named() -> None:
    adapter = adapter_named("reference")
    compiled = adapter.compile(Grammar("regex", "[a-z]{30}"))

    class Stops:
        def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
            return torch.tensor([input_ids.shape[1] >= 4, False])

    prompts = torch.tensor([[40, 41], [50, 51]])
    with pytest.raises(ValueError, match=r"row 0: token 1 \('<pad>'\) is not allowed"):
        generate(GrammarLogitsProcessor(adapter, compiled), prompts, stopping_criteria=[Stops()])
    rows = generate(
        GrammarLogitsProcessor(adapter, compiled, pad_token=1), prompts, stopping_criteria=[Stops()]
    )
    assert rows[0][2:] == [1] * (len(rows[0]) - 2)
    assert rows[1] == stepwise([50, 51], compiled, len(rows[1]))


def compiled_small(
    pattern: str = "[ab][0-9]+", kind: type[Reference] = Reference
) -> tuple[Adapter, CompiledGrammar]:
    adapter = kind(SMALL)
    return adapter, adapter.compile(Grammar("regex", pattern))


def open_columns(scores: Any) -> list[int]:
    ids: list[int] = torch.nonzero(scores.flatten() == 0).flatten().tolist()
    return ids


DIGITS = [*b"0123456789", SMALL.tokens.index(b"12")]


@pytest.mark.parametrize("width", [SMALL.size, SMALL.size + 40])
@pytest.mark.parametrize("mask", ["bitmask", "bool"])
def test_a_processor_returns_new_scores_and_leaves_the_old(width: int, mask: Any) -> None:
    adapter = Reference(SMALL, mask=mask)
    compiled = adapter.compile(Grammar("regex", "[ab][0-9]+"))
    processor = GrammarLogitsProcessor(adapter, [compiled, None])
    scores = torch.zeros(2, width)
    masked = processor(torch.tensor([[1], [1]]), scores)
    assert not scores.any() and not masked[1].any()
    assert open_columns(masked[0]) == [
        *b"ab",
        *(each for each in range(SMALL.size) if SMALL.tokens[each] in (b"a1", b"b1")),
    ]
    free = GrammarLogitsProcessor(adapter, [None, None])
    assert free(torch.tensor([[1], [1]]), scores) is scores


def test_once_ended_a_row_has_end_of_sequence_only_whatever_pads_it() -> None:
    adapter, compiled = compiled_small("a")
    processor = GrammarLogitsProcessor(adapter, compiled)
    ids = [[1], [1, ord("a")], [1, ord("a"), EOS], [1, ord("a"), EOS, PAD], [1, ord("a"), EOS, PAD, PAD]]
    seen = [open_columns(processor(torch.tensor([each]), torch.zeros(1, SMALL.size))) for each in ids]
    assert seen == [[ord("a")], [EOS], [EOS], [EOS], [EOS]]


def test_a_processor_says_which_row_got_a_wrong_token() -> None:
    adapter, compiled = compiled_small()
    processor = GrammarLogitsProcessor(adapter, compiled)
    processor(torch.tensor([[1], [1]]), torch.zeros(2, SMALL.size))
    with pytest.raises(ValueError, match=r"row 1: token 122 \(b'z'\) is not allowed after 0"):
        processor(torch.tensor([[1, 97], [1, 122]]), torch.zeros(2, SMALL.size))


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ([[1, 2], [3, 4]], "other prompts"),
        ([[1]], "other prompts"),
        ([[1, 3, 97]], "other prompts"),
        ([[1, 2, 98, 49, 49]], "beam search is not supported"),
    ],
)
def test_other_prompts_and_beams_are_refused(later: list[list[int]], message: str) -> None:
    adapter, compiled = compiled_small()
    processor = GrammarLogitsProcessor(adapter, compiled)
    for ids in ([[1, 2]], [[1, 2, 97]], [[1, 2, 97, 49]]):
        processor(torch.tensor(ids), torch.zeros(1, SMALL.size))
    with pytest.raises(ValueError, match=message):
        processor(torch.tensor(later), torch.zeros(len(later), SMALL.size))


def test_a_dropped_candidate_takes_the_grammar_back() -> None:
    adapter, compiled = compiled_small("a[0-9]|b[xy]")
    processor = GrammarLogitsProcessor(adapter, compiled)
    expected: dict[tuple[int, ...], list[int]] = {
        (): [*b"ab", A1, SMALL.tokens.index(b"ab")],
        (98,): [*b"xy"],
        (98, 120): [EOS],
        (98, 121): [EOS],
    }
    expected[()] = [*b"ab", *(each for each in range(SMALL.size) if SMALL.tokens[each] == b"a1")]
    for output in ((), (98,), (98, 120), (98,), (98, 121), (98, 120), ()):
        scores = processor(torch.tensor([[1, 2, *output]]), torch.zeros(1, SMALL.size))
        assert open_columns(scores) == expected[output], output


def test_too_few_logits_are_an_error_of_the_caller() -> None:
    adapter, compiled = compiled_small()
    with pytest.raises(ValueError, match=f"100 logits for a vocabulary of {SMALL.size} tokens"):
        GrammarLogitsProcessor(adapter, compiled)(torch.tensor([[1]]), torch.zeros(1, 100))


# A backend that raises


class Panic(BaseException):
    """As Rust's panics, no Exception."""


def raising(method: str) -> type[Reference]:
    def fail(self: ReferenceObject, *_: Any) -> NoReturn:
        raise Panic("broken")

    class Raises(Reference):
        object_class = type("Raising", (ReferenceObject,), {method: fail})

    return Raises


@pytest.mark.parametrize(
    ("method", "phase", "after"),
    [("accept_token", "accept", 0), ("fill_bitmask", "fill", 1), ("rollback", "rollback", 1)],
)
def test_a_fault_of_the_backend_is_told_as_such(method: str, phase: str, after: int) -> None:
    adapter, compiled = compiled_small(kind=raising(method))
    processor = RequestLogitsProcessor(adapter, compiled)
    with pytest.raises(
        BackendFault, match=f"the request: the backend raised in {phase} after {after} tokens: Panic: broken"
    ) as caught:
        for output in ([ord("a")], [ord("b")]):
            processor([1], output, torch.zeros(SMALL.size))
    assert caught.value.phase == phase


def test_a_backend_that_cannot_start_is_a_fault() -> None:
    class CannotStart(CompiledGrammar):
        def start(self) -> NoReturn:
            raise MemoryError("no room")

    with pytest.raises(BackendFault, match="raised in start after 0 tokens: MemoryError: no room"):
        RequestLogitsProcessor(Reference(SMALL), CannotStart())


# In vLLM


class NoRollback(Reference):
    """A backend without rollback: all is accepted anew."""

    object_class = type("Bare", (ReferenceObject,), {"rollback": GrammarObject.rollback})


HISTORIES = st.lists(
    st.sampled_from([b"", b"a", b"a1", b"a12", b"a1</s>", b"b", b"b2", b"b23", b"b23</s>x", b"b23</s>y"]),
    min_size=1,
    max_size=12,
)


def ids_of(text: bytes) -> list[int]:
    before, end, after = text.partition(b"</s>")
    return [*before, *([EOS] if end else []), *after]


def follow(processor: Callable[..., Any], histories: Sequence[bytes]) -> None:
    compiled = Reference(SMALL).compile(Grammar("regex", "[ab][0-9]+"))
    for text in histories:
        ids = ids_of(text)
        logits = processor([1, 2], ids, torch.zeros(SMALL.size))
        fresh = compiled.start()
        fresh.accept_tokens(ids[: ids.index(EOS) + 1] if EOS in ids else ids)
        bitmask = allocate_bitmask(SMALL.size)
        if not fresh.is_terminated():
            fresh.fill_bitmask(bitmask)
        expected = (
            [EOS]
            if fresh.is_terminated()
            else [each for each in range(SMALL.size) if is_allowed(bitmask, each)]
        )
        assert open_columns(logits) == expected, text


@pytest.mark.parametrize("kind", [Reference, NoRollback])
@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_whatever_history_comes_the_grammar_goes_there(kind: type[Reference], histories: list[bytes]) -> None:
    adapter, compiled = compiled_small(kind=kind)
    follow(RequestLogitsProcessor(adapter, compiled), histories)


class Appends(Follower):
    """Wrong: takes every history for a longer one."""

    def go_to(self, ids: Sequence[int]) -> None:
        self.extend(ids[len(self._ids) :])


class Lags(Follower):
    """Wrong: one token behind."""

    def go_to(self, ids: Sequence[int]) -> None:
        super().go_to(ids[:-1])


@pytest.mark.parametrize("wrong", [Appends, Lags])
def test_a_processor_that_follows_wrongly_is_caught(wrong: type[Follower]) -> None:
    histories = [b"", b"a", b"a1", b"b", b"b2"]
    adapter, compiled = compiled_small()
    follow(RequestLogitsProcessor(adapter, compiled), histories)
    mutant = RequestLogitsProcessor(adapter, compiled)
    mutant._follower = wrong(adapter, compiled)
    with pytest.raises((AssertionError, ValueError)):
        follow(mutant, histories)


def test_a_request_is_masked_in_place_and_a_clone_is_fresh() -> None:
    adapter, compiled = compiled_small()
    processor = RequestLogitsProcessor(adapter, compiled)
    logits = torch.zeros(SMALL.size)
    assert processor((1, 2), (ord("a"),), logits) is logits and open_columns(logits) == DIGITS
    follow(processor.clone(), [b"", b"b"])


class Move(Enum):
    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass
class Update:
    removed: list[int] = field(default_factory=list)
    added: list[tuple[int, Any, list[int] | None, list[int]]] = field(default_factory=list)
    moved: list[tuple[int, int, Move]] = field(default_factory=list)


def test_a_batch_follows_its_requests_as_they_come_move_and_go() -> None:
    adapter, compiled = compiled_small()
    processor = BatchLogitsProcessor(adapter, lambda params: compiled if params else None)
    assert not processor.is_argmax_invariant()
    first = [*b"ab", *(each for each in range(SMALL.size) if SMALL.tokens[each] == b"a1")]
    everything = list(range(SMALL.size))

    def apply(rows: int) -> list[list[int]]:
        logits = torch.zeros(rows, SMALL.size)
        assert processor.apply(logits) is logits
        return [open_columns(row) for row in logits]

    assert apply(1) == [everything]
    one, free, other = [ord("a")], [5], list[int]()
    processor.update_state(Update(added=[(0, True, [1], one), (1, False, [1], free), (2, True, None, other)]))
    assert apply(3) == [DIGITS, everything, first]
    one.append(ord("1"))
    other.append(A1)
    processor.update_state(None)
    assert apply(3) == [sorted([*DIGITS, EOS]), everything, sorted([*DIGITS, EOS])]
    other += [EOS]
    processor.update_state(Update(moved=[(0, 1, Move.SWAP)]))
    assert apply(3) == [everything, sorted([*DIGITS, EOS]), [EOS]]
    processor.update_state(Update(removed=[1], moved=[(2, 1, Move.UNIDIRECTIONAL)]))
    assert apply(2) == [everything, [EOS]]
    processor.update_state(Update(added=[(0, True, None, [ord("b")]), (1, False, None, [])]))
    assert apply(5) == [DIGITS, *[everything] * 4]


def test_importing_the_processors_does_not_import_torch() -> None:
    code = (
        "import sys, harness.backend.bridge.processors, harness.backend.bridge.reasoning; assert not "
        "{'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


DEVICES = [
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")],
    )
]


@pytest.mark.parametrize("device", DEVICES)
def test_logits_on_the_device_are_masked_there(device: str) -> None:
    adapter, compiled = compiled_small()
    logits = torch.zeros(SMALL.size, device=device)
    assert open_columns(RequestLogitsProcessor(adapter, compiled)([1], [ord("a")], logits).cpu()) == DIGITS
