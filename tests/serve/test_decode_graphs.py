"""Passes on static buffers: the same logits, and nothing in them that a capture forbids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from time import perf_counter_ns
from typing import Any

import decode_models
import pytest
import torch
from fake_cuda import FakeCuda

from harness.errors import BadInput
from harness.serve.decode.model import attention
from harness.serve.decode.model.graphs import LEAST_SPAN, Direct, Size, Static, input_length
from harness.serve.decode.model.model import Model, Network, load_model

CUDA = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")]
DIMENSIONS = decode_models.DIMENSIONS | {"max_position_embeddings": 1024}
WINDOWS: dict[str, Any] = {
    "sliding_window": 6,
    "layer_types": ["sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 8,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "gemma": {},
    "gemma2": WINDOWS,
    "gemma3_text": WINDOWS,
}

RUN: list[tuple[dict[int, list[int]], bool]] = [
    ({2: [1, 2, 3, 4, 5, 6, 7, 8]}, False),  # one row of five: a choice of rows
    ({0: [1], 4: [2, 3, 4]}, False),
    ({2: [9], 4: [5], 0: [2], 3: [7, 7, 7]}, False),  # most rows: all, in an order of their own
    ({4: [1], 3: [2], 2: [3], 1: [4], 0: [5]}, False),
    ({1: [6, 7, 8], 3: [9]}, True),
    ({1: [6], 3: [9, 1], 0: [1, 2, 3], 4: [3], 2: [4]}, True),
]


def made(family: str, device: str = "cpu") -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    attention.register()
    config: Any = AutoConfig.for_model(family, **DIMENSIONS | FAMILIES[family])
    auto: Any = AutoModelForCausalLM
    torch.manual_seed(3)
    with torch.device(device):
        return auto.from_config(config, dtype=torch.float32, attn_implementation=attention.GROUPED)


def model_of(family: str) -> Model:
    return Model(made(family), family, rows=5, positions=600, chunk=8, graphs=False)


def logits_of(model: Model) -> list[torch.Tensor]:
    """Of RUN, twice, with a rollback between; what lies beyond a row's own tokens is cut away."""
    found = []
    for kept in (0, 3):
        for row in range(5):
            model.rollback(row, min(kept, model.length(row)))
        for tokens, every in RUN:
            logits = model.extend(tokens, every=every)
            found += [
                logits[place, : len(ids)] if every else logits[place]
                for place, ids in enumerate(tokens.values())
            ]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_static_buffers_say_what_passes_of_any_size_say(family: str) -> None:
    direct, static = model_of(family), model_of(family)
    static._runner = Static(static.network, static.device, capture=False)
    for one, other in zip(logits_of(direct), logits_of(static), strict=True):
        assert one.shape == other.shape and torch.allclose(one, other, atol=1e-5)
    assert {size.whole for size in static._runner.slots} == {False, True}


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("rows", [(2,), (4, 0), (3, 0, 4, 2), (4, 3, 2, 1, 0)])
def test_tokens_that_the_host_does_not_know_are_fed_as_known_ones(
    static: bool, rows: tuple[int, ...]
) -> None:
    knows, knows_not = model_of("llama"), model_of("llama")
    if static:
        knows_not._runner = Static(knows_not.network, knows_not.device, capture=False)
    for step in range(3):
        tokens = [(7 * row + step) % 61 for row in rows]
        expected = knows.extend({row: [token] for row, token in zip(rows, tokens, strict=True)})
        found = knows_not.extend_unseen(rows, torch.tensor(tokens))
        assert torch.allclose(expected, found, atol=1e-5)
        assert [knows_not.length(row) for row in range(5)] == [knows.length(row) for row in range(5)]


def test_a_buffer_that_keeps_an_old_token_is_caught() -> None:
    direct, static = model_of("llama"), model_of("llama")
    runner = static._runner = Static(static.network, static.device, capture=False)
    run = runner.run

    def keeps(size: Size, values: Sequence[int], unseen: torch.Tensor | None = None) -> torch.Tensor:
        return run(size, runner.slots[size].inputs.tolist() if size in runner.slots else values)

    runner.run = keeps  # type: ignore[method-assign]
    pairs = zip(logits_of(direct), logits_of(static), strict=True)
    assert not all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


def far_behind(hidden: float | None) -> tuple[Model, torch.Tensor]:
    """One row is so long that, in a pass of the others, its window lies outside of what the pass sees."""
    model = model_of("gemma2")
    if hidden is not None:
        model.network.hidden.fill_(hidden)
    model._runner = Static(model.network, model.device, capture=False)
    for begin in range(0, LEAST_SPAN + 144, 8):
        model.extend({0: [each % 61 for each in range(begin, begin + 8)]})
    for token in range(3):
        model.extend({row: [token, token] for row in range(1, 5)})
    return model, model.extend({0: [5]})[0]


def test_a_row_that_a_pass_does_not_name_stays_sound() -> None:
    model, found = far_behind(None)
    layers = model.network.cache.layers
    assert all(bool(memory.isfinite().all()) for layer in layers for memory in (layer.keys, layer.values))
    plain = made("gemma2")
    text = [each % 61 for each in range(LEAST_SPAN + 144)] + [5]
    with torch.no_grad():
        plain.set_attn_implementation(attention.EAGER)
        expected = plain(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1]
    assert torch.allclose(found, expected, atol=1e-4)


def test_an_infinite_mask_would_spoil_it() -> None:
    assert bool(far_behind(float("-inf"))[1].isnan().any())


@pytest.mark.parametrize("static", [False, True])
def test_a_pass_begins_when_its_inputs_are_there(static: bool) -> None:
    model = model_of("llama")
    if static:
        model._runner = Static(model.network, model.device, capture=False)
    inputs = model._inputs
    there: list[int] = []

    def slow(*arguments: Any) -> list[int]:
        made = inputs(*arguments)
        there.append(perf_counter_ns())
        return made

    model._inputs = slow  # type: ignore[method-assign,assignment]
    model.extend({0: [1]})
    assert there[0] <= model.began <= perf_counter_ns()


def test_the_same_size_is_the_same_buffer() -> None:
    model = model_of("llama")
    runner = model._runner = Static(model.network, model.device, capture=False)
    model.extend({0: [1], 1: [2], 2: [3]})
    (slot,) = runner.slots.values()
    first = model.extend({0: [1], 1: [2], 2: [3], 3: [4]})
    kept = first.clone()
    model.extend({row: [9] for row in range(5)})
    assert [*runner.slots.values()] == [slot]
    assert torch.equal(first, kept)


def test_a_buffer_that_a_run_made_is_written_to_by_a_scoring() -> None:
    """The loop runs in inference mode, and its tensors cannot be written to outside of it."""
    model = model_of("llama")
    runner = model._runner = Static(model.network, model.device, capture=False)
    with torch.inference_mode():
        model.extend({0: [1, 2]}, every=True)
        model.extend({0: [3]})
    assert not any(slot.inputs.is_inference() for slot in runner.slots.values())
    model.extend_unseen([0], torch.tensor([4]))
    assert model.length(0) == 4


@pytest.mark.parametrize(
    ("rows", "prompt", "widths"), [(1, 32, {1, 32}), (8, 32, {1, 32}), (8, 64, {1, 64}), (8, 80, {1, 16, 64})]
)
def test_each_pass_of_a_prompt_is_prepared_once(rows: int, prompt: int, widths: set[int]) -> None:
    model = load_model("tiny", 50, rows=rows, positions=164, device="cpu")
    runner = model._runner = Static(model.network, model.device, capture=False)
    asked: list[Size] = []
    run = runner.run

    def seen(size: Size, values: Sequence[int], unseen: torch.Tensor | None = None) -> torch.Tensor:
        asked.append(size)
        return run(size, values, unseen)

    runner.run = seen  # type: ignore[method-assign]
    model.prepare(prompt)
    assert len(asked) == len({*asked}), "a pass was prepared twice"
    assert {size.width for size in asked} == widths
    prepared = {*asked}
    every_row = {row: [1] * prompt for row in range(rows)}
    for start in range(0, prompt, model.chunk):
        model.extend({row: ids[start : start + model.chunk] for row, ids in every_row.items()})
    assert {*asked} == prepared, "a prompt's pass was not prepared"


@pytest.mark.parametrize(
    ("rows", "positions"), [(1, 1025), (2, 1027), (5, 513), (6, 1100), (7, 300), (12, 2052), (16, 1024)]
)
def test_every_pass_of_a_run_is_of_a_size_that_was_prepared(rows: int, positions: int) -> None:
    model = load_model("tiny", 50, rows=rows, positions=positions, device="cpu")
    runner = model._runner = Static(model.network, model.device, capture=False)
    prepared: set[Size] = set()

    def keep(size: Size, values: Sequence[int], unseen: torch.Tensor | None = None) -> torch.Tensor:
        assert len(values) == input_length(size)
        prepared.add(size)
        return torch.zeros(())

    runner.run = keep  # type: ignore[method-assign]
    prompt = model.chunk + 5
    model.prepare(prompt)
    needed = {
        runner.size(rows, named, count, span, False, model.network.capacity, model.chunk)
        for named in range(1, rows + 1)
        for count in (1, 5, model.chunk)
        for span in range(count, positions + 1)
    }
    assert prepared == needed


def test_sizes_double_and_are_few() -> None:
    static = Static(lambda inputs, size: inputs, torch.device("cpu"), capture=False)

    def size(rows: int, count: int, span: int) -> Size:
        return static.size(32, rows, count, span, False, 1984, 64)

    assert size(1, 1, 1) == Size(1, 1, LEAST_SPAN, False, False)
    assert size(3, 33, 257) == Size(4, 64, 512, False, False)
    assert size(16, 1, 1) == Size(16, 1, 256, False, False)
    assert size(17, 1, 1984) == Size(32, 1, 1984, True, False)
    assert (
        len(
            {
                size(rows, count, span)
                for rows in range(1, 33)
                for count in range(1, 65)
                for span in range(1, 1985, 31)
            }
        )
        == 6 * 7 * 4
    )


@pytest.mark.parametrize("drafts", [0, 2, 4, 7, 11])
def test_a_whole_draft_is_a_width_of_its_own(drafts: int) -> None:
    """Five tokens a row are not fed as eight; passes without drafts, and wider ones, double as before."""
    model = load_model("tiny", 50, rows=8, positions=164, device="cpu")
    runner = model._runner = Static(model.network, model.device, capture=False)
    plain = Static(model.network, model.device, capture=False)
    model.prepare(1, drafts)
    for rows, count, span, every in product((3, 8), range(1, 33), (40, 164), (False, True)):
        asked = (8, rows, count, span, every, model.network.capacity, model.chunk)
        usual, found = plain.size(*asked), runner.size(*asked)
        own = every and drafts and count <= drafts + 1 < usual.width
        assert found == (usual._replace(width=drafts + 1) if own else usual)
    if drafts:
        model.extend({row: [1] * (drafts + 1) for row in range(8)}, every=True)
        assert max(size.width for size in runner.slots if size.every) == drafts + 1


def test_a_pass_as_wide_as_a_whole_draft_says_what_one_of_any_size_says() -> None:
    direct, static = model_of("llama"), model_of("llama")
    runner = static._runner = Static(static.network, static.device, capture=False)
    static.prepare(1, 2)
    for one, other in zip(logits_of(direct), logits_of(static), strict=True):
        assert one.shape == other.shape and torch.allclose(one, other, atol=1e-5)
    assert {size.width for size in runner.slots if size.every} == {3}


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
def test_rows_that_fill_up_a_pass_are_rows_that_it_does_not_name(rows: int) -> None:
    """Two places of a pass that wrote to one row would race."""
    model = load_model("tiny", 50, rows=rows, positions=16, chunk=4)
    model._runner = Static(model.network, model.device, capture=False)
    for named in range(1, rows + 1):
        tokens = {row: [1] for row in range(rows - named, rows)}
        size = model._runner.size(rows, named, 1, 1, False, model.network.capacity, 4)
        values = model._inputs(tokens, size)
        assert len(values) == input_length(size)
        order = values[2 * size.rows : 3 * size.rows]
        assert order[:named] == [*tokens] and len({*order}) == size.rows


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_reads_no_value(family: str) -> None:
    """On the `meta` device there are none: whatever reads one, or copies to the host, raises.

    So must a capture.
    """
    network = Network(made(family, "meta"), rows=4, positions=64, chunk=8)
    for rows, whole, every in ((4, True, False), (2, False, False), (4, True, True), (2, False, True)):
        size = Size(rows, 8, 64, whole, every)
        logits = network(torch.zeros(input_length(size), dtype=torch.int64, device="meta"), size)
        assert logits.shape == ((rows, 8, 61) if every else (rows, 61)) and logits.dtype == torch.float32


def test_a_pass_that_reads_a_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(made("llama", "meta"), rows=4, positions=64, chunk=8)
    kept = attention.masks
    monkeypatch.setattr(
        attention, "masks", lambda windows, at, *rest: kept(windows, at + int(at.max()), *rest)
    )
    size = Size(4, 1, 64, True, False)
    with pytest.raises((RuntimeError, NotImplementedError)):
        network(torch.zeros(input_length(size), dtype=torch.int64, device="meta"), size)


def test_each_size_is_captured_once_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for torch.cuda; the real one is asked in `test_graphs_and_eager_agree`."""
    direct, static = model_of("gemma2"), model_of("gemma2")
    runner = static._runner = Static(static.network, static.device, capture=True)
    fake = FakeCuda(monkeypatch, runner)
    for one, other in zip(logits_of(direct), logits_of(static), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    passes = 2 * len(RUN)
    assert len(fake.captured) == len({*fake.captured}) == len(runner.slots) == static.captured < passes
    assert direct.captured == 0
    assert fake.replays == passes and fake.waits == passes - len(runner.slots)
    assert len(fake.called) == 3 * len(runner.slots)
    assert fake.order == ["inputs", "begins", "replay"] * passes, "the inputs are none of the pass"
    static.prepare(1)
    before = len(fake.captured)
    for named in range(1, 6):
        static.extend({row: [1] for row in range(named)})
    assert len(fake.captured) == before, "a pass of a prepared size was captured in the run"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (RuntimeError("operation not permitted\nwhen capturing"), "cannot be captured"),
        (torch.OutOfMemoryError(), "no memory"),
    ],
)
def test_a_pass_that_cannot_be_captured_is_said_plainly(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, said: str
) -> None:
    model = model_of("llama")
    runner = model._runner = Static(model.network, model.device, capture=True)
    fake = FakeCuda(monkeypatch, runner)

    def broken(inputs: torch.Tensor, size: Size) -> torch.Tensor:
        raise fault

    fake.step = broken
    with pytest.raises(BadInput, match=said):
        model.extend({0: [1]})
    assert model.length(0) == 0


@pytest.mark.parametrize("family", [pytest.param(each, marks=CUDA) for each in FAMILIES])
def test_graphs_and_eager_agree(family: str) -> None:
    models = [
        Model(made(family, "cuda"), family, rows=5, positions=600, chunk=8, graphs=graphs)
        for graphs in (False, True)
    ]
    models[1].network.model.load_state_dict(models[0].network.model.state_dict())
    models[1].prepare(8)
    assert isinstance(models[0]._runner, Direct) and isinstance(models[1]._runner, Static)
    for one, other in zip(*map(logits_of, models), strict=True):
        assert torch.allclose(one, other, atol=1e-3)
    assert all(slot.graph is not None for slot in models[1]._runner.slots.values())
