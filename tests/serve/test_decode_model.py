"""The model on its cache: rows that grow by different lengths say what the plain model says."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from decode_models import (
    CHUNK,
    FAMILIES,
    LONG,
    POSITIONS,
    ROWS,
    VOCABULARY,
    Schedule,
    farthest,
    own_logits,
    plain,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import BadInput
from harness.serve.decode.model import attention, fused
from harness.serve.decode.model import model as model_module
from harness.serve.decode.model.model import Model, load_model
from harness.serve.decode.model.shapes import SHAPES, Shape


def driven(family: str, **changes: Any) -> Model:
    return Model(plain(family, **changes), family, rows=ROWS, positions=POSITIONS, chunk=CHUNK, graphs=False)


@cache
def pair(family: str) -> tuple[Model, Any]:
    return driven(family), plain(family)


def schedules() -> st.SearchStrategy[Schedule]:
    growth = st.tuples(
        st.sampled_from([24, 24, 24, 0, 12, 20]),
        st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=CHUNK),
    )
    step = st.permutations(range(ROWS)).flatmap(
        lambda order: st.integers(1, ROWS).flatmap(
            lambda count: st.fixed_dictionaries({row: growth for row in order[:count]})
        )
    )
    return st.lists(st.tuples(step, st.booleans()), min_size=1, max_size=6)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(schedule=schedules())
def test_a_ragged_run_with_rollbacks_says_what_the_plain_model_says(family: str, schedule: Schedule) -> None:
    assert farthest(*pair(family), schedule) < 1e-4


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_fused_layers_say_what_those_of_transformers_say(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, made = plain(family), plain(family)
    fused.fuse(made)
    text = [5, 1, 60, 7, 7, 30]
    apart = (own_logits(made, text) - own_logits(own, text)).abs().max()
    assert apart < 1e-4 < own_logits(own, text).std() / 100
    held, before = (sum(weight.numel() for weight in each.parameters()) for each in (made, own))
    norms = 2 * len(own.model.layers) * own.config.hidden_size
    assert held == before - norms, "the norms of the layers are in the weights behind them"
    with monkeypatch.context() as patched:
        patched.setattr(fused, "rotated", lambda states, cos, sin: states * cos + states * sin)
        assert (own_logits(made, text) - own_logits(own, text)).abs().max() > 1e-2
    model = Model(made, family, rows=ROWS, positions=POSITIONS, chunk=CHUNK, graphs=False)
    assert farthest(model, own, LONG) < 1e-4


def test_the_schedule_of_the_mutants_is_sound() -> None:
    assert farthest(*pair("gemma2"), LONG) < 1e-4


@pytest.mark.parametrize("beyond", [1, POSITIONS])
def test_stale_tokens_that_stay_visible_are_caught(monkeypatch: pytest.MonkeyPatch, beyond: int) -> None:
    model, own = driven("llama"), plain("llama")
    kept = attention.masks
    monkeypatch.setattr(attention, "masks", lambda windows, at, *rest: kept(windows, at + beyond, *rest))
    assert farthest(model, own, LONG) > 1e-2


def test_rows_that_share_a_position_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    model, own = driven("llama"), plain("llama")
    inner = model.network.model.forward
    monkeypatch.setattr(
        model.network.model,
        "forward",
        lambda **given: inner(
            **given | {"position_ids": given["position_ids"][:1].expand_as(given["input_ids"])}
        ),
    )
    assert farthest(model, own, LONG) > 1e-2


def test_a_rollback_that_keeps_too_much_is_caught() -> None:
    model, own = driven("llama"), plain("llama")
    model.rollback = lambda row, length: None  # type: ignore[method-assign]
    with pytest.raises(AssertionError):
        farthest(model, own, LONG)


def test_a_window_that_is_forgotten_is_caught() -> None:
    model, own = driven("gemma2"), plain("gemma2")
    model.network.windows = dict.fromkeys(model.network.windows)
    assert farthest(model, own, LONG) > 1e-2


def test_rows_that_are_not_named_stay_as_they_are() -> None:
    model, own = pair("llama")
    for row in range(ROWS):
        model.rollback(row, 0)
    model.extend({1: [1, 2, 3]})
    model.extend({0: [4], 2: [5, 6]})
    assert [model.length(row) for row in range(ROWS)] == [1, 3, 2]
    assert torch.allclose(model.extend({1: [7]})[0], own_logits(own, [1, 2, 3, 7])[-1], atol=1e-4)


def test_logits_may_be_overwritten_and_kept() -> None:
    model = driven("llama")
    first = model.extend({0: [1], 1: [2]})
    first[0] = float("-inf")
    kept = first.clone()
    model.extend({0: [3], 1: [4]})
    assert torch.equal(first, kept)


@pytest.mark.parametrize("tokens", [{}, {0: []}, {0: [1] * (CHUNK + 1)}, {ROWS: [1]}, {-1: [1]}])
def test_what_cannot_be_appended_moves_nothing(tokens: dict[int, list[int]]) -> None:
    model = driven("llama")
    with pytest.raises((ValueError, IndexError)):
        model.extend({1: [5]} | tokens if tokens else tokens)
    assert [model.length(row) for row in range(ROWS)] == [0] * ROWS


def test_a_full_row_and_a_rollback_ahead_are_refused() -> None:
    model = driven("llama")
    for _ in range(POSITIONS // 4):
        model.extend({0: [1, 2, 3, 4]})
    model.extend({1: [1]})
    with pytest.raises(ValueError, match="holds 24 of 24"):
        model.extend({0: [1]})
    with pytest.raises(ValueError, match="rolled back to 3"):
        model.rollback(1, 3)


@pytest.mark.parametrize(
    ("family", "changes", "said"),
    [
        ("mamba", {}, "cannot be driven|keeps|kind"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            "by the length of the batch",
        ),
        ("llama4_text", {}, "chunked_attention"),
        ("bloom", {"n_head": 4}, "cannot be driven"),
    ],
)
def test_a_model_that_the_loop_cannot_drive_is_refused(
    family: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        driven(family, **changes)


def test_a_model_that_says_something_else_over_a_cache_is_refused() -> None:
    found = plain("llama")
    inner = found.model.forward

    def forward(**given: Any) -> Any:
        has_cache = given.get("cache", given.get("past_key_values")) is not None
        return inner(**given | {"position_ids": given["position_ids"] // 2 if has_cache else None})

    found.model.forward = forward
    with pytest.raises(BadInput, match="differ from its own"):
        Model(found, "odd", rows=ROWS, positions=POSITIONS, chunk=CHUNK, graphs=False)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes."), "fit"),
        (MemoryError(), "fit"),
        (torch.OutOfMemoryError("CUDA out of memory."), "fit"),
        (RuntimeError("mat1 and mat2 must have the same dtype"), "cannot be driven"),
    ],
)
@pytest.mark.parametrize("kind", ["shape", "real"])
def test_a_lack_of_memory_is_none_of_the_models_faults(
    kind: str, fault: Exception, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(model: Model) -> float:
        raise fault

    name = "tiny"
    if kind == "real":
        name = str(tmp_path)
        plain("qwen2").save_pretrained(tmp_path)
    monkeypatch.setattr(Model, "_apart", fails)
    with pytest.raises(BadInput, match=said):
        load_model(name, VOCABULARY, rows=2, positions=8)


@pytest.mark.parametrize("build", ["build_shape", "load_pretrained"])
def test_weights_that_do_not_fit_are_said_plainly(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.")

    monkeypatch.setattr(model_module, build, fails)
    with pytest.raises(BadInput, match="with 2 rows of 8 positions does not fit into the memory of cpu"):
        load_model("tiny" if build == "build_shape" else "x/y", 100, rows=2, positions=8)


def test_a_real_models_weights_that_do_not_fit_are_no_broken_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.")

    plain("qwen2").save_pretrained(tmp_path)
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fails)
    with pytest.raises(BadInput, match="does not fit into the memory of cpu"):
        load_model(str(tmp_path), VOCABULARY, rows=2, positions=8)


def test_more_positions_than_the_model_has_are_refused() -> None:
    with pytest.raises(BadInput, match="made for 64 positions"):
        Model(plain("llama"), "llama", rows=1, positions=65, chunk=1, graphs=False)


@pytest.mark.parametrize(
    ("rows", "positions", "chunk"), [(1, 300, 256), (2, 300, 128), (8, 300, 64), (1, 96, 96)]
)
def test_a_wide_pass_is_shared_out_over_the_rows(rows: int, positions: int, chunk: int) -> None:
    model = load_model("tiny", 100, rows=rows, positions=positions)
    assert model.chunk == chunk
    assert model.extend({0: [1] * chunk}).shape == (1, 100)


def test_the_tiny_shape_is_named_a_shape_and_does_not_repeat_itself() -> None:
    model = load_model("tiny", 3000, rows=2, positions=64)
    told = model.describe()
    assert (told["kind"], told["dtype"], told["device"], told["graphs"]) == ("shape", "float32", "cpu", False)
    assert told["parameters"] == sum(each.numel() for each in model.network.model.parameters())
    assert told["weight_bytes"] == 4 * told["parameters"]
    assert told["read_bytes"] == told["weight_bytes"] - 4 * 3000 * 128
    assert (
        told["cache_bytes_per_token"] == 2 * 2 * 2 * 32 * 4
    )  # keys and values, layers, key heads, dimension, bytes
    assert model.peak_bytes() is None
    said, token = [], 1
    for _ in range(40):
        logits = model.extend({0: [token]})[0]
        assert bool(logits.isfinite().all()) and 1.0 < float(logits.std()) < 4.0
        token = int(logits.argmax())
        said.append(token)
    assert len(set(said)) > 20
    again = load_model("tiny", 3000, rows=1, positions=64)
    assert torch.equal(
        again.extend({0: [1]}), load_model("tiny", 3000, rows=1, positions=64).extend({0: [1]})
    )


@pytest.mark.parametrize(("name", "billions"), [("0.5b", 0.494), ("1b", 1.236), ("8b", 8.030)])
def test_the_large_shapes_have_their_public_number_of_parameters(name: str, billions: float) -> None:
    """On the `meta` device, which holds no numbers: nothing is built on the host first."""
    model = load_model(
        name, 151936 if name == "0.5b" else 128256, rows=1, positions=64, device="meta", dtype="bfloat16"
    )
    assert model.describe()["parameters"] / 1e9 == pytest.approx(billions, abs=0.0006)
    assert model.describe()["kind"] == "shape" and isinstance(SHAPES[name], Shape)


def test_a_real_model_comes_from_a_folder(tmp_path: Path) -> None:
    found = plain("qwen2")
    found.save_pretrained(tmp_path)
    model = load_model(str(tmp_path), VOCABULARY, rows=ROWS, positions=POSITIONS, chunk=CHUNK)
    assert model.describe()["kind"] == "real"
    assert farthest(model, found, LONG) < 1e-4
    with pytest.raises(BadInput, match="logits for 61 tokens, the vocabulary has 62"):
        load_model(str(tmp_path), VOCABULARY + 1, rows=1, positions=8)


def test_a_model_that_is_not_there_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match="holds no config"):
        load_model(str(tmp_path), 10, rows=1, positions=8)
    with pytest.raises(BadInput, match="there is no folder"):
        load_model("./nowhere", 10, rows=1, positions=8)
    with pytest.raises(BadInput, match='"tinny" is no shape; did you mean "tiny"'):
        load_model("tinny", 10, rows=1, positions=8)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="cannot be loaded"):
        load_model(str(tmp_path), 10, rows=1, positions=8)


@pytest.mark.parametrize("wrong", [{"device": "tpuu"}, {"dtype": "int32"}, {"dtype": "float99"}, {"rows": 0}])
def test_an_option_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        load_model("tiny", 100, **{"rows": 1, "positions": 8} | wrong)


def test_without_transformers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "harness.serve.decode.model.model.find_spec",
        lambda name: None if name == "transformers" else object(),
    )
    with pytest.raises(BadInput, match="needs transformers"):
        load_model("tiny", 100, rows=1, positions=8)
