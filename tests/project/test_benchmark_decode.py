"""benchmarks/decode.py and its figures: the floor, what is judged where, and that a part is stored and not
done again."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import decode_figures
import pytest
import torch
from decode_figures import Figure, Plan, figures_of, of_ceiling, table, verdict
from decode_runs import Played, decoding
from places import ROOT

from harness.backend.vocabulary import byte_vocabulary
from harness.errors import BadInput
from harness.measure.statistics import interval
from harness.serve.decode.model.graphs import Static
from harness.serve.decode.overhead import Paired, SpeedUp
from harness.serve.decode.record import Decoding
from harness.serve.decode.setting import Setting

SCRIPT = ROOT / "benchmarks" / "decode.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_decode", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmark_decode"] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def test_the_floor_is_every_byte_once_over_the_bandwidth() -> None:
    assert decode_figures.floor_ns(16_000_000_000, 0, [100.0], 4e12) == pytest.approx(
        4e6
    )  # 16 GB at 4 TB/s: 4 ms
    assert decode_figures.floor_ns(1_000, 10, [50.0, 150.0], 1e9) == pytest.approx(
        3_000
    )  # 1 kB of weights, 2 kB of cache
    assert decode_figures.bandwidth(
        {"copy_bytes": 2_000, "copy_ns": [900.0, 1_000.0, 9_000.0]}
    ) == pytest.approx(2e9)


@pytest.mark.parametrize(
    ("promise", "value", "on_gpu", "on_cpu"),
    [
        ("tpot_over_floor", 1.3, "kept", "not judged on a CPU"),
        ("tpot_over_floor", 1.31, "NOT KEPT", "not judged on a CPU"),
        ("constrained_over_unconstrained", 1.05, "kept", "not judged on a CPU"),
        ("constrained_over_unconstrained", 1.06, "NOT KEPT", "not judged on a CPU"),
        ("jump_forward_of_ceiling", 0.85, "kept", "kept"),
        ("jump_forward_of_ceiling", 1.2, "kept", "kept"),
        ("jump_forward_of_ceiling", 0.84, "NOT KEPT", "NOT KEPT"),
        ("logits_apart_float32", 0.0011, "NOT KEPT", "NOT KEPT"),
        ("logits_apart", math.inf, "NOT KEPT", "NOT KEPT"),
        ("logits_apart", None, "not measured here", "not measured here"),
        ("", 7.0, "", ""),
    ],
)
def test_promises_are_judged_where_they_are_made(
    promise: str, value: float | None, on_gpu: str, on_cpu: str
) -> None:
    figure = Figure("step", "x", value, promise=promise)
    assert (verdict(figure, "cuda"), verdict(figure, "cpu")) == (on_gpu, on_cpu)


def test_of_two_ways_to_fill_the_better_is_judged() -> None:
    figures = [
        Figure("step", name, value)
        for name, value in (("one by one", 1.2), ("lost", None), ("together", 1.01))
    ]
    judged = decode_figures.best_is_judged(figures, "constrained_over_unconstrained")
    assert [each.promise for each in judged] == ["", "", "constrained_over_unconstrained"]
    lost = decode_figures.best_is_judged(figures[1:2], "constrained_over_unconstrained")
    assert verdict(lost[0], "cuda") == "not measured here"


def test_logits_that_differ_or_are_no_numbers_are_apart(script: ModuleType) -> None:
    ours = torch.tensor([[3.0, 4.0]])
    assert script.apart(ours, ours.clone()) == 0
    assert script.apart(ours * 1.5, ours) == pytest.approx(0.5)
    assert script.apart(ours * math.nan, ours) == math.inf


def gain(ratio: float, ceiling: float, saved: int) -> SpeedUp:
    x = (math.log(ratio) - 0.01, math.log(ratio), math.log(ratio) + 0.01)
    return SpeedUp(Paired(interval(x), x, 3, 0), ceiling, saved)


def test_jump_forward_is_held_against_its_ceiling() -> None:
    figure = of_ceiling(gain(1.8, 2.0, 50), "x", "jump_forward_of_ceiling")
    assert figure.value == pytest.approx(0.9)
    assert figure.low is not None and figure.high is not None and figure.low < 0.9 < figure.high
    assert verdict(figure, "cuda") == "kept"
    assert verdict(of_ceiling(gain(1.6, 2.0, 50), "x", "jump_forward_of_ceiling"), "cuda") == "NOT KEPT"
    assert of_ceiling(gain(1.0, 1.0, 0), "x", "jump_forward_of_ceiling").promise == "", (
        "nothing was forced, so nothing is judged"
    )
    assert verdict(of_ceiling(None, "x", "jump_forward_of_ceiling"), "cuda") == "not measured here"


def step_part(ratio: float) -> dict[str, Any]:
    """A device of 1 GB/s that takes so many times the floor, which is 1 ms."""
    return {
        "model": {"read_bytes": 1_000_000, "cache_bytes_per_token": 0, "dtype": "bfloat16"},
        "length": 40.0,
        "copy_bytes": 1_000_000,
        "copy_ns": [1e6] * 3,
        "step_ns": {"graph": [ratio * 1e6] * 8, "eager": [2 * ratio * 1e6] * 8},
        "logits_apart": 0.01,
        "same_choice": 1.0,
    }


def test_a_bare_step_is_held_against_the_floor_and_its_graph_against_eager() -> None:
    found = {(each.what, each.of): each for each in decode_figures.of_steps(step_part(1.25), "8b batch 1", 1)}
    assert found["step_over_floor", "8b batch 1"].value == pytest.approx(1.25)
    assert found["eager_over_graph", "8b batch 1"].value == pytest.approx(2)
    assert found["step", "8b batch 1 eager"].value == pytest.approx(2500)
    assert found["bandwidth", "8b batch 1"].value == pytest.approx(1)
    assert verdict(found["logits", "8b batch 1"], "cuda") == "kept"


def test_a_shape_that_does_not_fit_is_named_and_breaks_no_promise(tmp_path: Path) -> None:
    plan = Plan(("8b",), (1, 32), 32, 4, 3, 2)
    parts = {each.name: {"not_measured": "it does not fit"} for each in plan.parts()}
    found = figures_of(parts, plan, tmp_path)
    assert {each.promise for each in found} == {
        "tpot_over_floor",
        "constrained_over_unconstrained",
        "jump_forward_of_ceiling",
        "logits_apart",
    }
    assert {verdict(each, "cuda") for each in found} == {"not measured here"}
    assert max(map(len, table(found, "cuda").splitlines())) <= 80 and "it does not fit" in table(
        found, "cuda"
    )


def recorded(jump_ms: float, one_by_one_ms: float, together_ms: float) -> dict[str, Decoding]:
    """8b where a pass takes 10 ms without a grammar; half of the forced text needs no pass."""
    model = {"read_bytes": 8_000_000, "cache_bytes_per_token": 0}
    texts = {"a": [1] * 40, "b": [1] * 40}
    plain, forced = Played(texts), Setting("all_forced", texts=2)
    one = {
        forced: {"xgrammar": plain},
        replace(forced, strategy="jump_forward"): {
            "xgrammar": Played({name: [2] * 20 for name in texts}, jump_ms)
        },
    }
    wide = Setting("function_calls", batch=32, texts=2)
    many = {wide: {name: Played(texts, one_by_one_ms) for name in ("xgrammar", "lm-format-enforcer")}}
    together = {replace(wide, batch_fill=True): {"xgrammar": Played(texts, together_ms)}}
    found = zip(("", "", "-batch_fill"), (1, 32, 32), (one, many, together), strict=True)
    records = {
        f"serve-8b-batch-{batch}{way}": decoding(settings, plain=plain, forks=3)
        for way, batch, settings in found
    }
    return {
        name: replace(each, children=(replace(each.children[0], model=model),))
        for name, each in records.items()
    }


@pytest.mark.parametrize(
    ("played", "broken"),
    [
        ((10.5, 10.8, 10.4), set()),
        ((12.5, 10.8, 10.4), {"jump_forward_of_ceiling"}),
        ((10.5, 10.8, 10.6), {"constrained_over_unconstrained"}),
        ((10.5, 10.3, 11.0), set()),
    ],
)
def test_records_are_held_against_the_promises(
    monkeypatch: pytest.MonkeyPatch, played: tuple[float, float, float], broken: set[str]
) -> None:
    records = recorded(*played)
    monkeypatch.setattr(decode_figures, "read_decoding", lambda folder: records[folder.name])
    plan = Plan(("8b",), (1, 32), 32, 4, 3, 2)
    parts = {
        each.name: {"record": each.name} if each.kind == "serve" else step_part(1.2) | {"rows": []}
        for each in plan.parts()
    }
    found = figures_of(parts, plan, Path())
    assert {each.what for each in found if verdict(each, "cuda") == "NOT KEPT"} == broken
    values = {(each.what, each.of): each for each in found}
    assert values["tpot_over_floor", "8b batch 1"].value == pytest.approx(1.25)
    assert values["jump_forward_of_ceiling", "8b batch 1 all_forced xgrammar"].value == pytest.approx(
        10 / played[0]
    )
    over = {each.of: each for each in found if each.what == "constrained_over_unconstrained"}
    assert over["8b batch 32 function_calls xgrammar"].value == pytest.approx(played[1] / 10)
    assert over["8b batch 32 function_calls xgrammar *"].value == pytest.approx(played[2] / 10)
    assert [each.promise for each in over.values()].count("constrained_over_unconstrained") == 1
    assert not over["8b batch 32 function_calls lm-format-enforcer"].promise, (
        "it is reported, and nothing is promised of it"
    )
    assert max(map(len, table(found, "cuda").splitlines())) <= 80


def test_a_part_that_is_done_is_stored_and_not_done_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    most = [2]

    def interrupted(part: Any, *_: Any) -> dict[str, Any]:
        if len(done) == most[0]:
            raise KeyboardInterrupt
        done.append(part.name)
        return (
            step_part(1.0)
            if part.kind == "step"
            else {"not_measured": "not here"}
            if part.kind == "serve"
            else {"rows": []}
        )

    plan = Plan(("1b",), (32,), 32, 4, 3, 2)
    monkeypatch.setattr(script, "in_process", interrupted)
    monkeypatch.setattr(script, "served", interrupted)
    monkeypatch.setattr(script, "describe_machine", dict)
    monkeypatch.setattr(script, "BACKENDS", ())
    with pytest.raises(KeyboardInterrupt):
        script.whole(tmp_path, plan, "cuda", False)
    first = json.loads((tmp_path / script.FILE).read_text())
    assert list(first["parts"]) == done == ["masks", "step-1b-batch-32"] and "finished" not in first
    most[0] = 4
    found = script.whole(tmp_path, plan, "cuda", False)
    assert done[2:] == ["serve-1b-batch-32", "serve-1b-batch-32-batch_fill"]
    last = json.loads((tmp_path / script.FILE).read_text())
    assert last["finished"] and [each["of"] for each in last["figures"]] == [each.of for each in found]
    with pytest.raises(BadInput, match="another device"):
        script.whole(tmp_path, plan, "cpu", False)


def test_on_a_device_moves_and_kernels_are_timed_by_its_clock(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU: the CUDA branch with masks that stay on the host and events that a counter stands in
    for."""
    moved: list[int] = []
    prepared: list[Any] = []

    def prepare(call: Any) -> tuple[Any, str]:
        prepared.append(call)
        return call, ""

    def time_ns(call: Any, times: int) -> int:
        for _ in range(times):
            call()
        return 50_000 * times

    clock = SimpleNamespace(prepare=prepare, time_ns=time_ns, finish=lambda: None)
    monkeypatch.setattr(script, "clock_of", lambda _: clock)
    monkeypatch.setattr(script, "load_vocabulary", lambda _: byte_vocabulary())
    monkeypatch.setattr(script, "PROMISED_OF", ())
    monkeypatch.setattr(torch, "device", lambda _, real=torch.device: real("cpu"))
    monkeypatch.setattr(script.Masks, "move", lambda _, count: moved.append(count))
    rows = script.masks_part("cuda", (2,), True)["rows"]
    assert [(row["name"], row["ns"][0]) for row in rows] == [
        ("move", 50_000),
        ("apply, the loop's own", 50_000),
    ]
    assert set(moved) == {2} and len(prepared) == 1, "the copy is timed as it is, what applies as a graph"


@pytest.mark.long
def test_bare_steps_of_a_model_and_logits_that_do_not_agree(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU the graph's place is taken by the same static buffers."""
    monkeypatch.setattr(script, "load_vocabulary", lambda _: byte_vocabulary())
    monkeypatch.setattr(script, "COPIED", {"cpu": 1 << 20})

    def judged() -> tuple[dict[str, Any], str]:
        part = script.step_part("tiny", 2, "cpu", True)
        (figure,) = (
            each for each in decode_figures.of_steps(part, "tiny batch 2", 2) if each.what == "logits"
        )
        return part, verdict(figure, "cpu")

    part, said = judged()
    assert said == "kept" and part["same_choice"] == 1
    assert min(part["copy_ns"] + part["step_ns"]["graph"] + part["step_ns"]["eager"]) > 0
    run = Static.run
    monkeypatch.setattr(
        Static, "run", lambda self, size, values: run(self, size, [0, *values[1:]])
    )  # another token goes in
    assert judged()[1] == "NOT KEPT"
