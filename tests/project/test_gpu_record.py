"""What the record of benchmarks/gpu.py says: its figures, what is asked of them, and its page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import gpu_alone
import gpu_decode
import gpu_paths
import gpu_report
import gpu_store
import numpy as np
import pytest
from decode_runs import Played, decoding
from gpu_figures import CONSTRAINED, FLOOR, JUMPS, LOGITS, LOGITS32, WIDE, Asked, Estimate, Figures, verdict
from gpu_plan import FORCED, MIXED, PARTS, Plan, plan_of
from gpu_records import COST, decoded_cell, floor_cell, record_of, store
from places import ROOT

from harness.errors import INCOMPLETE, BadInput
from harness.serve.decode.figures import Decoded
from harness.serve.decode.model.attention import GROUPED
from harness.serve.decode.model.model import Model
from harness.serve.decode.record import Loss, Whose
from harness.serve.decode.session import DecodeRequest
from harness.serve.decode.setting import Setting
from harness.walk.loop.outcome import STEP

# ---------------------------------------------------------------------------------------- what was decoded


def test_a_setting_in_which_our_own_code_failed_costs_itself_and_is_measured_again(
    gpu: ModuleType, tmp_path: Path
) -> None:
    faults: list[tuple[Whose, bool]] = [("not_offered", True), ("backend", True), ("harness_error", False)]
    for whose, done in faults:
        cell = decoded_cell(1, COST, whose=whose)
        assert not gpu_store.failed(cell) and gpu_store.whole(cell) is done
        assert ("harness_error in 1, the first: no <such> | call" in cell.get("partial", "")) is not done
        assert cell["lost"] == [
            {
                "arm": "llguidance",
                "setting": "function_calls stepwise batch 1 batch_fill=on",
                "why": "no <such> | call",
            }
        ]
        ways = {row["arm"]: set[str]() for row in cell["rows"]}
        for row in cell["rows"]:
            ways[row["arm"]].add(row["way"])
        assert ("one call" in ways["llguidance"]) is done, "what failed has no figures"
        assert {"one thread", "no overlap"} < ways["llguidance"], "the others stand"
        assert "one call" in ways["xgrammar"], "so do those of the other backend"
        store("decode", {"decode-8b-1-fork-1": cell}, path=tmp_path / "decode.json").save()
        assert gpu.main(["--out", str(tmp_path), "--show", "decode"]) == INCOMPLETE
        assert ("decode-8b-1-fork-1" in gpu_store.stored(tmp_path)["decode"].missing()) is not done
    page = (tmp_path / "gpu.md").read_text()
    assert "- llguidance, function_calls stepwise batch 1 batch_fill=on: no (such) / call" in page
    assert "`decode-8b-1-fork-1` is partial, and is measured again: " in page


def test_an_unconstrained_run_that_failed_takes_its_load_along() -> None:
    record = record_of(1, COST)
    forced = [place for place, one in enumerate(record.setup.settings) if one.workload == FORCED]
    losses = tuple(Loss(0, "xgrammar", place, "harness_error", "it fell") for place in forced)
    cell = gpu_decode.condensed(Decoded(replace(record, losses=losses)))
    loads = {(row["arm"], row["workload"]) for row in cell["rows"]}
    assert ("xgrammar", FORCED) not in loads and {("xgrammar", MIXED), ("llguidance", FORCED)} < loads
    assert {twin["workload"] for twin in cell["again"]} == {MIXED}, "its twin has nothing to stand beside"
    losses = (replace(losses[0], whose="not_offered"), *losses[1:])
    again = gpu_decode.condensed(Decoded(replace(record, losses=losses)))
    assert {(row["arm"], row["workload"]) for row in again["rows"] if row["strategy"] == "none"} == {
        (row["arm"], row["workload"]) for row in cell["rows"] if row["strategy"] == "none"
    }, "a setting of the load that is not offered was lost before"
    every = [(one.name, place) for one in record.setup.arms for place in range(len(record.setup.settings))]
    losses = tuple(Loss(0, name, place, "harness_error", "it fell") for name, place in every)
    nothing = gpu_decode.condensed(Decoded(replace(record, losses=losses)))
    assert nothing == {"error": "0 of 15 settings have figures; harness_error in 15, the first: it fell"}


def test_a_record_of_which_nothing_was_measured_is_an_error() -> None:
    record = record_of(1, COST)
    losses = tuple(Loss(0, arm.name, 0, "backend", "it does not load") for arm in record.setup.arms)
    cell = gpu_decode.condensed(Decoded(replace(record, batches=(), losses=losses)))
    assert cell == {"error": "0 of 15 settings have figures; the first that was lost: it does not load"}


def figures_of(
    first: Mapping[str, float], jump_ms: float = 10.5, apart: float = 0.01, again: float = 10.0
) -> Figures:
    cells = {"floor-8b": floor_cell(1.1, apart)}
    for batch in (1, 32):
        cells[f"decode-8b-{batch}-fork-1"] = decoded_cell(batch, first, jump_ms=jump_ms, again=again)
    figures = Figures({"decode": store("decode", cells)})
    figures.plan = Plan(shapes=("8b",), batches=(1, 32))
    return figures


@pytest.mark.parametrize(
    ("figures", "broken"),
    [
        (figures_of(COST), set()),
        (figures_of(COST | {"one call": 10.6}), {CONSTRAINED.what}),
        (figures_of(COST, jump_ms=12.5), {JUMPS.what}),
        (figures_of(COST, apart=math.inf), {LOGITS.what}),
    ],
)
def test_records_are_held_against_what_was_asked(figures: Figures, broken: set[str]) -> None:
    asked = figures.asked()
    assert {figure.asked.what for figure in asked if figure.verdict == "NOT KEPT"} == broken
    assert all(figure.verdict != "not measured" for figure in asked)


def test_means_stand_beside_medians_and_say_what_a_few_wide_passes_took() -> None:
    record = record_of(32, COST)
    forward, strategy = STEP.index("forward_ns"), STEP.index("strategy_ns")
    batches = []
    for run in record.batches:
        steps = np.tile(run.steps[-1:], (10, 1))
        steps[:, forward] = [5_000_000] * 9 + [25_000_000]
        steps[:, strategy] = 700_000
        batches.append(replace(run, steps=steps, captured=run.round, repeated=2 * run.round))
    rows = gpu_decode.condensed(Decoded(replace(record, batches=tuple(batches))))["rows"]
    assert rows and all(row["step_ns"]["forward"] == 5e6 for row in rows)
    assert all(row["step_mean_ns"]["forward"] == pytest.approx(7e6) for row in rows)
    assert all(row["step_ns"]["strategy"] == 7e5 and row["step_mean_ns"]["wall"] > 0 for row in rows)
    warm = sum(
        run.round
        for run in record.batches
        if (run.arm, run.setting, run.role) == ("xgrammar", 1, "constrained")
    )
    (row,) = (
        row
        for row in rows
        if (row["arm"], row["way"], row["strategy"]) == ("xgrammar", "one call", "stepwise")
    )
    assert (row["captured"], row["repeated"]) == (warm, 2 * warm)


def test_the_figures_of_a_record() -> None:
    figures = figures_of(COST, again=11.0)
    where = ("8b", 32)
    assert figures.bandwidth("8b") == pytest.approx(1.0), "bytes a nanosecond, of the median copy"
    assert figures.least_ns(where) == pytest.approx(8e6)
    floor = figures.over_floor(("8b", 1))
    assert floor is not None and floor.value == pytest.approx(10 / 8) and floor.low is None
    way, best = figures.best_way(where, "xgrammar")
    assert way == "one call" and best is not None and best.value == pytest.approx(1.04)
    gain, share, ceiling = figures.speed_up(("8b", 1), "xgrammar", "jump_forward", FORCED)
    assert gain is not None and gain.value == pytest.approx(2 * 10 / 10.5) and ceiling == 2
    assert share is not None and share.value == pytest.approx(10 / 10.5)
    apart = figures.ways_apart(where, "xgrammar", "one call", "one thread")
    assert apart is not None and apart.value == pytest.approx(10.4 / 10.8)
    constrained = [figure for figure in figures.asked() if figure.asked is CONSTRAINED]
    assert constrained and all(
        figure.noise is not None and figure.noise.value == pytest.approx(1.1) for figure in constrained
    )
    noise = figures.noise(where, ["stepwise"], MIXED)
    assert noise is not None and noise.value == pytest.approx(1.1), "the A/A arm's own difference"
    hidden = figures.noise(where, ["stepwise"], MIXED, overlap=False)
    assert hidden is not None and hidden.value == pytest.approx(1.21), "what is not hidden has its own"
    forced = figures.noise(where, ["stepwise", "jump_forward"], FORCED)
    assert forced is not None and forced.value == pytest.approx(1.0), "so have other texts"
    assert {row["arm"] for row in figures.rows(where)} == {"xgrammar", "llguidance"}


def test_forks_are_put_together_and_give_an_interval() -> None:
    cells = {
        f"decode-8b-32-fork-{fork + 1}": decoded_cell(32, COST | {"one thread": 10 * 1.1**fork})
        for fork in range(3)
    }
    figures = Figures({"decode": store("decode", cells)})
    found = figures.over_none(("8b", 32), "xgrammar", "one thread")
    assert found is not None and found.number == 3 and found.value == pytest.approx(1.1)
    assert found.low is not None and found.high is not None and found.low < found.value < found.high


def test_the_floor_counts_the_cache_of_every_row_that_a_pass_has() -> None:
    """Two rows, one of which ends early: the other's later passes read one row's cache."""
    texts = {"a": [1] * 5, "b": [1] * 3}
    setting = Setting(MIXED, batch=2, texts=2)
    record = decoding({setting: {"xgrammar": Played(texts)}}, plain=Played(texts), forks=1)
    record = replace(
        record, children=(replace(record.children[0], model={"read_bytes": 0, "cache_bytes_per_token": 10}),)
    )
    decoded = Decoded(record)
    cell = next(cell for cell in decoded.cells if cell.role == "none")
    run = cell.warm[0]
    longest = next(judged.completed for judged in run.completed if judged.completed.name == "a")
    # Prompts of 4: its four passes behind the first have 2, 2, 1, 1 rows at lengths 5, 6, 7, 8.
    assert gpu_decode.tokens_read(longest, run, cell) == pytest.approx((2 * 5 + 2 * 6 + 7 + 8) / 4)


def test_each_backend_is_the_one_with_an_arm_of_its_own_in_some_fork(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[DecodeRequest] = []
    monkeypatch.setattr(gpu_decode, "decode", lambda request, say: asked.append(request))
    monkeypatch.setattr(gpu_decode, "read_decoding", lambda folder: folder)
    monkeypatch.setattr(gpu_decode, "condensed", lambda decoded: {})
    for cell in plan_of("cuda").cells("decode"):
        if (cell.shape, cell.batch) == ("8b", 32) and cell.kind == "decode":
            gpu_decode.decode_cell(cell, plan_of("cuda"), "cuda", tmp_path, lambda _: None)
    assert [request.backends for request in asked] == [
        "xgrammar,llguidance",
        "llguidance,xgrammar",
        "xgrammar,llguidance",
    ]
    assert all(request.again and request.forks == 1 and request.settings for request in asked)


@pytest.mark.parametrize(
    ("asked", "value", "on_gpu", "on_cpu"),
    [
        (FLOOR, 1.3, "kept", "not judged on a CPU"),
        (FLOOR, 1.31, "NOT KEPT", "not judged on a CPU"),
        (CONSTRAINED, 1.06, "NOT KEPT", "not judged on a CPU"),
        (JUMPS, 0.85, "kept", "not judged on a CPU"),
        (JUMPS, 0.84, "NOT KEPT", "not judged on a CPU"),
        (LOGITS32, 0.0011, "NOT KEPT", "NOT KEPT"),
        (LOGITS, None, "not measured", "not measured"),
    ],
)
def test_what_is_asked_is_judged_where_it_can_be(
    asked: Asked, value: float | None, on_gpu: str, on_cpu: str
) -> None:
    assert (verdict(asked, value, "cuda"), verdict(asked, value, "cpu")) == (on_gpu, on_cpu)


# ------------------------------------------------------------------------------------------------ the page


def test_the_page_has_a_table_for_everything_that_is_stored(tmp_path: Path) -> None:
    time_row = {"kernel": "xgrammar/cuda", "batch": 1, "share": 0.5, "outcome": "ok", "median_ns": 2_000.0}
    wrong = time_row | {
        "batch": 32,
        "outcome": "wrong",
        "gb_per_s": 900.0,
        "of_copy": 0.5,
        "no_graph": "it waits",
    }
    copy = time_row | {"kernel": "copy", "gb_per_s": 1800.0}
    kernels = {
        "unusable": {"x/y": "no <b> here"},
        "times": [time_row, wrong, copy],
        "moves": [
            {"company": "matmul", "batch": 32, "median_ns": 9_000.0},
            {"form": "packed", "memory": "pinned", "company": "alone", "batch": 32, "median_ns": 5_000.0},
            {"form": "packed", "memory": "pinned", "company": "matmul", "batch": 32, "median_ns": 11_000.0},
            {"form": "bool", "memory": "pinned", "company": "alone", "batch": 32, "text": "none here"},
        ],
        "failed": [],
        "probed": {},
    }
    run = {
        "newcomer": "plain strings",
        "beside": 1,
        "repeat": 0,
        "others_tpot_ns": [2e6],
        "others_gap_ns": 3e6,
        "why": "",
    }
    cold = [
        run | {"mode": "warm", "how": "hit", "ttft_ns": 1e6, "compile_ns": None},
        run | {"mode": "thread", "how": "miss", "ttft_ns": 9e6, "compile_ns": 7e6, "others_tpot_ns": [3e6]},
    ]
    rates = {"repeat": 0, "again": False, "tpot_ns": 1e6, "tpot_structured_ns": None, "tpot_free_ns": 1e6}
    shares = [
        rates | {"share": at, "tokens_per_s": 100 - 10 * at, "structured": at * 32} for at in (0.0, 1.0)
    ]
    stores = {
        "kernels": store("kernels", {"times-float32-131072": kernels}),
        "decode": store(
            "decode",
            {
                "floor-8b": floor_cell(1.1),
                **{f"decode-8b-{batch}-fork-1": decoded_cell(batch, COST) for batch in (1, 32)},
            },
        ),
        "cold": store("cold", {"cold-8b-32-xgrammar": {"runs": cold}}),
        "share": store("share", {"share-1b-512-xgrammar": {"runs": shares}}),
    }
    page = gpu_report.page(stores)
    lines = page.splitlines()
    assert page.startswith("# made up\n") and "`kernels`" in page
    assert (
        "| TPOT constrained over not, batch 1 / 8 / 32 (8b) | xgrammar +4.0 % / not measured / +4.0 %;"
        in page
    )
    assert (
        "| `xgrammar/cuda` | 2.0 us | !~2.0 us 50% |" in lines and "| `copy` | 2.0 us 1800 GB/s |  |" in lines
    )
    assert "| packed | pinned | 5.0 us +2.0 us |" in lines and "| bool | pinned |  |" in lines
    assert "`x/y`: no (b) here" in page
    assert "- llguidance, function_calls stepwise batch 32 batch_fill=on: no (such) / call" in lines
    assert "| 8b | 32 | xgrammar | plain strings | thread | 1.5 | 3.00 ms | 9.00 ms | 7.00 ms |" in lines
    assert "| 1b | 512 | xgrammar | 100% (32 rows) | 90 | 0.9 |  | 1.00 ms |" in lines
    assert "| 8b | 32 | xgrammar | one call | 10.40 ms | 1.04 | 0.0 % | 0.0 us | 0.0 us | 4/4 |" in lines
    assert "| 8b | 1 | all_forced | jump_forward | xgrammar | 1.9 | 0.0 % | 2.00 | 0.952 | 4/4 |" in lines
    widths = {line.count("|") for line in lines if line.startswith("| 8b | 32 | xgrammar | one")}
    assert len(widths) == 1
    assert not gpu_report.is_worse(stores)


FAST = {"name": "8b", "device": "cuda:0", "kernels": True, "attention": GROUPED, "graphs": True}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kernels": False}, "layers by torch's operations, not by our kernels"),
        ({"attention": "eager"}, "attention eager, not grammarbench"),
        ({"graphs": False}, "passes launched one by one, not as captured graphs"),
        ({"kernels": False, "device": "cpu"}, ""),
    ],
)
def test_a_model_that_is_not_on_the_fast_paths_is_not_measured_and_the_page_says_so(
    changed: dict[str, Any], said: str
) -> None:
    gpu_paths.check_fast(FAST)
    assert gpu_paths.slow_paths({"device": "cuda:0"}) == [], "a record from before does not say"
    model = FAST | changed
    held: dict[str, dict[str, Any]] = {
        "share-1b-32-xgrammar": {"runs": [], "model": model},
        "share-8b-32-xgrammar": {"runs": []},
    }
    page = gpu_report.page({"share": store("share", held)})
    assert (f"**8b was not on the fast paths** (`share-1b-32-xgrammar`): {said}" in page) is bool(said)
    if said:
        with pytest.raises(BadInput, match="8b on cuda:0 is not on the fast paths: " + said):
            gpu_paths.check_fast(model)
    else:
        gpu_paths.check_fast(model)
        assert "fast paths" not in page


@pytest.mark.parametrize(
    ("asked", "value", "noise", "said"),
    [
        (CONSTRAINED, 1.12, 1.411, "undecided"),
        (CONSTRAINED, 1.04, 1.012, "undecided"),
        (CONSTRAINED, 1.03, 1.012, "kept"),
        (CONSTRAINED, 1.13, 1.054, "NOT KEPT"),
        (JUMPS, 0.718, 1.227, "undecided"),
        (JUMPS, 0.671, 1.227, "NOT KEPT"),
        (JUMPS, 0.869, 1.025, "undecided"),
    ],
)
def test_what_is_nearer_to_its_target_than_identical_arms_to_each_other_is_undecided(
    asked: Asked, value: float, noise: float, said: str
) -> None:
    assert verdict(asked, value, "cuda", Estimate(noise, None, None, 1)) == said


@pytest.mark.parametrize("kind", ["floor", "share", "decode"])
def test_a_cell_of_a_model_on_a_slow_path_ends_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On this CPU, as if it was a device without our kernels."""
    monkeypatch.setattr(Model, "describe", lambda _: FAST | {"kernels": False, "kind": "shape"})
    monkeypatch.setattr(gpu_alone, "VOCABULARY", "probe")
    monkeypatch.setattr(gpu_decode, "VOCABULARY", "probe")
    plan = replace(plan_of("cpu"), backends=("llguidance",))
    cell = next(cell for part in PARTS for cell in plan.cells(part) if cell.kind == kind)

    def decodes(request: DecodeRequest, _: object) -> None:
        assert request.accepts is not None
        request.accepts(FAST | {"kernels": False})  # as the engine does with the model of an arm's process

    monkeypatch.setattr(gpu_decode, "decode", decodes)
    with pytest.raises(BadInput, match="not on the fast paths: layers by torch's operations"):
        gpu_alone.measured(cell, plan, "cpu", tmp_path)


def test_logits_of_wide_and_narrow_passes_are_held_against_each_other() -> None:
    for apart, said in ((0.01, "kept"), (0.2, "NOT KEPT"), (math.inf, "NOT KEPT"), (None, None)):
        cell = floor_cell(1.1)
        cell["steps"]["1"]["wide_apart"] = apart
        figures = Figures({"decode": store("decode", {"floor-8b": cell})})
        figures.plan = Plan(shapes=("8b",), batches=(1, 32))
        verdicts = {figure.asked.what: figure.verdict for figure in figures.asked()}
        assert verdicts.get(WIDE.what) == said, "nothing is asked of a record from before"


def test_what_was_not_measured_is_said_so() -> None:
    page = gpu_report.page({"cold": store("cold", {}, device="cpu")})
    assert "No GPU: this shows that the script works" in page and "`share`" in page
    assert "Nothing yet." in page and "Not measured yet: " in page


@pytest.mark.parametrize(
    "folder", sorted((ROOT / "results" / "published").glob("gpu-*")), ids=lambda path: path.name
)
def test_the_published_page_is_made_of_the_published_files(folder: Path) -> None:
    assert gpu_report.page(gpu_store.stored(folder)) == (folder / "gpu.md").read_text("utf-8"), (
        f"run python benchmarks/gpu.py --out {folder} --show"
    )
