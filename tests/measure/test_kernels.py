"""Kernels that apply masks: a wrong one is caught by the probe that is for it, the right one by none; times
and bytes are what they say."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from miniatures.injected import Unprintable
from miniatures.wrong_kernels import WRONG, right
from places import SUPPORT

from harness.cli import main as cli
from harness.errors import BadInput
from harness.measure import kernels
from harness.measure.kernels import session, timing
from harness.measure.kernels import subjects as subjects_module
from harness.measure.kernels.clock import HostClock, clock_of
from harness.measure.kernels.correctness import examine
from harness.measure.kernels.masks import bytes_needed, random_masks
from harness.measure.kernels.movement import time_movement
from harness.measure.kernels.plan import KernelPlan
from harness.measure.kernels.rounds import Effort, by_turns
from harness.measure.kernels.situations import PROBES, situation
from harness.measure.kernels.subjects import KernelSubject, find_subjects, plain_subjects
from harness.measure.kernels.timing import COPY, Point, copy_call, time_point

SMALL = KernelPlan(
    (512,), (1, 2), ("float32", "bfloat16"), (0.00001, 0.5), (0.5,), Effort(rounds=3, budget_ns=1_000_000)
)
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")]
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]


def failing(function: Callable[..., object], dtype: str = "float32") -> dict[str, str]:
    """The probes that the kernel does not pass, and what they say."""
    probes = [each for each in PROBES if dtype == "float32" or each.every_dtype]
    seen = {each.name: examine(function, each, dtype, "cpu") for each in probes}
    return {name: f"{each.outcome}: {each.text}" for name, each in seen.items() if each.outcome != "passed"}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_right_kernel_passes_every_probe(dtype: str) -> None:
    assert failing(right, dtype) == {}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_caught_by_its_probe(name: str) -> None:
    function, probe = WRONG[name]
    assert failing(function)[probe].startswith("failed: ")


def test_every_probe_catches_something() -> None:
    assert {probe for function, _ in WRONG.values() for probe in failing(function)} == {
        probe.name for probe in PROBES
    }


def test_what_was_seen_says_where() -> None:
    seen = failing(WRONG["writes_beyond_the_vocabulary"][0])["the_last_word_may_be_partial"]
    assert (
        "written outside the logits, first 1 elements after the last" in seen
        or ("to be left alone and changed") in seen
    )
    assert (
        "it wrote, and then raised ValueError: the mask is too short"
        in failing(WRONG["raises_when_it_has_written"][0])["logits_beyond_the_mask_are_forbidden"]
    )
    assert "it changed the mask" in failing(WRONG["changes_the_mask"][0])["a_batch_is_masked"]


def test_a_kernel_that_raises_at_once_refuses() -> None:
    def refuses(*_: object) -> None:
        raise NotImplementedError("not\nhere")

    seen = examine(refuses, PROBES[0], "float32", "cpu")
    assert (seen.outcome, seen.text) == ("refused", "NotImplementedError: not here")


def test_an_error_without_a_message_is_told_by_its_name() -> None:
    def refuses(*_: object) -> None:
        raise Unprintable

    seen = examine(refuses, PROBES[0], "float32", "cpu")
    assert (seen.outcome, seen.text) == ("refused", "Unprintable: (its message cannot be printed)")


def test_a_nan_may_become_another_nan() -> None:
    """As it does in bfloat16 on its way through float32; nothing reads those bits."""

    def rewrites(logits: torch.Tensor, bitmask: torch.Tensor) -> None:
        right(logits, bitmask)
        logits.view(torch.int32)[logits.isnan()] += 1

    (probe,) = (each for each in PROBES if each.special)
    seen = examine(rewrites, probe, "float32", "cpu")
    assert seen.outcome == "passed" and "NaN became NaN with other bits" in seen.text


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_situations_are_the_same_every_time_and_keep_to_their_buffers(probe: Any) -> None:
    one, other = situation(probe, "float32", "cpu"), situation(probe, "float32", "cpu")
    assert torch.equal(one.buffer.view(torch.int32), other.buffer.view(torch.int32)) and torch.equal(
        one.bitmask, other.bitmask
    )
    outside = one.place < 0
    assert torch.equal(one.buffer[outside].view(torch.int32), one.expected[outside].view(torch.int32))
    assert int((one.place >= 0).sum()) == probe.batch * probe.vocabulary


def test_masks_have_the_share_in_every_row_and_in_every_form() -> None:
    for share, count in ((0.00001, 1), (0.5, 500), (0.999, 999)):
        masks = random_masks(1000, 3, share, "cpu")
        assert masks.allowed.sum(axis=1).tolist() == [count] * 3 and masks.count == 3 * count
        assert masks.packed.shape == (3, 32) and masks.packed.dtype == torch.int32
        bits = np.unpackbits(masks.packed.numpy().view(np.uint8), axis=1, bitorder="little")
        assert (bits[:, :1000] == masks.allowed).all() and not bits[:, 1000:].any()
        assert (masks.bool.numpy() == ~masks.allowed).all()
        flat = masks.allowed.reshape(-1)
        assert flat[masks.allowed_ids].all() and len(masks.allowed_ids) + len(masks.forbidden_ids) == 3000
        assert not flat[masks.forbidden_ids].any()
    assert (random_masks(1000, 3, 0.5, "cpu").allowed == random_masks(1000, 3, 0.5, "cpu").allowed).all()


def test_the_bytes_that_count() -> None:
    """Two rows of 40 tokens, 30 of all 80 allowed, two bytes each."""
    assert bytes_needed("packed", 40, 2, 30, 2) == 50 * 2 + 2 * 2 * 4
    assert bytes_needed("bool", 40, 2, 30, 2) == 50 * 2 + 80
    assert bytes_needed("forbidden_ids", 40, 2, 30, 2) == 50 * 2 + 50 * 8
    assert bytes_needed("allowed_ids", 40, 2, 30, 2) == 80 * 2 + 30 * 2 + 30 * 2 + 30 * 8


def test_a_copy_touches_its_footprint_once() -> None:
    call, moved = copy_call(1 << 20, "cpu")
    target: Any = call()
    assert moved == 1 << 20 and target.nbytes * 2 == 1 << 20 and bool((target == 1).all())


class FakeClock(HostClock):
    """Every call takes what `costs` says; who was timed when is kept."""

    def __init__(self, costs: dict[str, int]) -> None:
        self.costs, self.timed, self.last = costs, list[str](), ""

    def time_ns(self, call: Callable[[], object], times: int) -> int:
        call()
        self.timed.append(self.last)
        return self.costs[self.last] * times

    def calls(self) -> dict[str, Callable[[], object]]:
        return {name: lambda name=name: setattr(self, "last", name) for name in self.costs}  # type: ignore[misc]


def test_rounds_go_forwards_and_backwards_and_the_slow_leave() -> None:
    clock = FakeClock({"a": 50_000, "b": 10**9, "c": 200_000})
    found = by_turns(clock.calls(), clock, Effort(rounds=5, least=2, budget_ns=10**9), rewarm=False)
    assert clock.timed == [*"abc", *"abc", *"cba", *"ac", *"ca", *"ac"]
    assert {name: each.calls for name, each in found.items()} == {"a": 2, "b": 1, "c": 1}
    assert found["a"].totals_ns == [100_000] * 5 and found["b"].totals_ns == [10**9] * 2


def test_the_host_clock_is_right() -> None:
    def spin() -> None:
        end = time.perf_counter_ns() + 2_000_000
        while time.perf_counter_ns() < end:
            pass

    assert 6_000_000 <= HostClock().time_ns(spin, 3) < 60_000_000


def timed(functions: dict[str, Callable[..., object]], device: str = "cpu") -> dict[str, dict[str, Any]]:
    plain = plain_subjects()
    template = plain["plain/masked_fill"].kernel
    subjects = {**{name: KernelSubject(template) for name in functions}, **plain}
    loaded = {**functions, **{name: each.kernel.load() for name, each in plain.items()}}
    rows = time_point(subjects, loaded, Point(1000, 3, "bfloat16", 0.5), SMALL.effort, device)
    return {row["kernel"]: row for row in rows}


@pytest.mark.parametrize("device", DEVICES)
def test_plain_operations_do_what_masked_fill_does(device: str) -> None:
    rows = timed({}, device)
    assert {row["outcome"] for row in rows.values()} == {"ok"} and set(rows) == {*plain_subjects(), COPY}
    for row in rows.values():
        assert (
            row["calls"] >= 1
            and len(row["totals_ns"]) >= 3
            and min(row["totals_ns"]) > 0
            and row["allowed"] == 1500
        )
    if device == "cuda":
        assert rows["plain/masked_fill"]["no_graph"] == ""


def test_a_wrong_kernel_is_timed_and_marked_and_one_that_raises_is_not_timed() -> None:
    def refuses(*_: object) -> None:
        raise ValueError("no")

    rows = timed({"right": right, "wrong": WRONG["takes_ones_for_forbidden"][0], "refuses": refuses})
    assert rows["right"]["outcome"] == "ok"
    assert (
        rows["wrong"]["outcome"] == "wrong"
        and rows["wrong"]["text"].startswith("3000 of 3000")
        and rows["wrong"]["totals_ns"]
    )
    assert rows["refuses"]["outcome"] == "refused" and "totals_ns" not in rows["refuses"]


class Tires:
    """A kernel that is right for so many calls, and then raises."""

    def __init__(self, calls: int, apply: Callable[..., object] = right) -> None:
        self.left, self.apply = calls, apply

    def __call__(self, *given: Any) -> object:
        self.left -= 1
        if self.left < 0:
            raise SystemExit("the workspace is exhausted")
        return self.apply(*given)


@pytest.mark.parametrize("calls", [1, 2, 3, 6])
def test_a_kernel_that_raises_in_a_later_call_refuses_and_the_others_are_timed(calls: int) -> None:
    """It took the whole point with it, as a failure of ours."""
    wrong = Tires(calls, WRONG["takes_ones_for_forbidden"][0])
    rows = timed({"right": right, "tires": Tires(calls), "wrong": wrong})
    assert (rows["tires"]["outcome"], rows["tires"]["text"]) == (
        "refused",
        "SystemExit: the workspace is exhausted",
    )
    assert rows["wrong"]["outcome"] == "wrong"
    assert rows["wrong"]["text"].endswith("; then it raised SystemExit: the workspace is exhausted")
    assert not {"totals_ns", "calls"} & (rows["tires"].keys() | rows["wrong"].keys())
    for name in ("right", COPY, "plain/masked_fill"):
        assert rows[name]["outcome"] == "ok" and len(rows[name]["totals_ns"]) >= SMALL.effort.least


def test_a_copy_that_raises_is_no_kernels_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "copy_call", lambda *_: (Tires(1, lambda: None), 8))
    with pytest.raises(SystemExit):
        timed({"right": right})


def test_a_graph_that_lacks_what_the_kernel_does_is_not_what_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel that launches its work in a queue of its own, past the capture, leaves an empty graph, which
    takes no time."""
    called: list[Any] = []

    class Captures(HostClock):
        def prepare(self, call: Callable[[], object]) -> tuple[Callable[[], object], str]:
            before = len(called)
            call()
            return (lambda: None, "") if len(called) > before else (lambda: call(), "")

    def elsewhere(*given: Any) -> None:
        called.append(given)
        right(*given)

    monkeypatch.setattr(timing, "clock_of", lambda device: Captures())
    rows = timed({"right": right, "elsewhere": elsewhere})
    assert rows["right"]["no_graph"] == rows["plain/masked_fill"]["no_graph"] == ""
    assert rows["elsewhere"]["no_graph"] == "its graph does not do what a call does"
    assert len(called) > 3 * SMALL.effort.least and rows["elsewhere"]["outcome"] == "ok"


def test_movement_on_a_cpu_says_what_it_is() -> None:
    rows = time_movement(1000, 4, SMALL.effort, "cpu")
    measured = {(row["form"], row["memory"], row["company"]): row["bytes"] for row in rows if not row["text"]}
    assert measured == {("packed", "pageable", "alone"): 4 * 32 * 4, ("bool", "pageable", "alone"): 4 * 1000}
    others = [row for row in rows if row["memory"] == "pinned" or row["company"] == "matmul"]
    assert len(others) == 6 and all(row["text"].startswith("not available: ") for row in others)


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=GPU)])
def test_movement_to_a_device(device: str) -> None:
    rows = time_movement(4096, 4, SMALL.effort, device)
    assert len(rows) == 9 and all(row["totals_ns"] and not row["text"] for row in rows)


def test_a_graph_is_replayed() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    counter = torch.zeros(1, device="cuda")
    replay, why = clock_of("cuda").prepare(lambda: counter.add_(1))
    counter.zero_()
    assert why == "" and clock_of("cuda").time_ns(replay, 5) > 0 and int(counter) == 5


def stored(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "kernels.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the real backends on small sizes, through the command line; without a compiler, because that
    takes a minute."""
    folder = tmp_path_factory.mktemp("kernels") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHDYNAMO_DISABLE", "1")
        patch.setattr(kernels, "QUICK", SMALL)
        assert cli.main(["measure", "kernels", "--profile", "quick", "--out", str(folder)]) == 0
    return folder


def test_a_run_of_the_real_backends(real: Path) -> None:
    rows = stored(real)
    assert (rows[0]["kind"], rows[-1]["kind"]) == ("run", "end") and rows[0]["machine"]["packages"]["torch"]
    probes = [row for row in rows if row["kind"] == "probe"]
    assert rows[-1]["counts"] == {
        outcome: sum(row["outcome"] == outcome for row in probes) for outcome in rows[-1]["counts"]
    }
    outcomes = {(row["kernel"], row["probe"], row["dtype"]): row["outcome"] for row in probes}
    plain = {key: outcome for key, outcome in outcomes.items() if key[1] == "a_batch_is_masked"}
    assert len({kernel for kernel, _, _ in plain}) >= 5 and set(plain.values()) == {"passed"}
    assert "harness_error" not in outcomes.values()
    times = [row for row in rows if row["kind"] == "time"]
    assert {row["outcome"] for row in times} == {"ok"}
    one_thread = [row for row in times if row["threads"] == 1 and row["dtype"] == "float32"]
    points = {(row["batch"], row["share"]) for row in one_thread}
    assert len(points) == 4 and {
        len({r["kernel"] for r in one_thread if (r["batch"], r["share"]) == point}) for point in points
    } == {10}
    assert any(
        row["kernel"].endswith("/triton") and "cuda only" in row["problem"]
        for row in rows
        if row["kind"] == "kernel"
    )


PLUGIN = """
import os
from harness import Adapter

class Right(Adapter):
    distribution = ""
    dialects = frozenset()

    def compile(self, grammar):
        raise NotImplementedError

class Raises(Right):
    def kernels(self):
        raise {raised}

class Dies(Right):
    def kernels(self):
        os.abort()
"""


@pytest.mark.parametrize(
    "raised", ["RuntimeError('none today')", "SystemExit(3)", "BaseException('a panic')"]
)
def test_a_backend_whose_kernels_cannot_be_had_is_named(
    raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of those that are installed leaves the others theirs."""
    (tmp_path / "kernels_plugin.py").write_text(PLUGIN.replace("{raised}", raised))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kernels_plugin", raising=False)
    named = "kernels_plugin:Right,kernels_plugin:Raises"
    with pytest.raises(BadInput, match=r'^backend "kernels_plugin:Raises": '):
        find_subjects(named)
    monkeypatch.setattr(subjects_module, "names", lambda: named.split(","))
    right, wrong = find_subjects(None).backends
    assert right["problem"] == "" and wrong["problem"].startswith('backend "kernels_plugin:Raises": ')
    assert all(not one["problem"] for one in find_subjects("kernels_plugin:Right").backends)


def test_a_backend_that_dies_over_its_kernels_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernels_plugin.py").write_text(PLUGIN.replace("{raised}", "ValueError"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    named = "kernels_plugin:Right,kernels_plugin:Dies"
    command = ["measure", "kernels", "--backends", named, "--profile", "quick", "--out", str(tmp_path / "k")]
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert 'backend "kernels_plugin:Dies" cannot be loaded for its kernels: ' in said and "SIGABRT" in said


def test_faults_of_today(real: Path) -> None:
    """docs/kernels.md tells of these; when a release mends one, tell it there."""
    failed = {
        (row["kernel"], row["probe"]): row
        for row in stored(real)
        if row["kind"] == "probe" and row["outcome"] == "failed"
    }
    assert {probe for kernel, probe in failed if kernel == "xgrammar/cpu"} == {
        "columns_may_lie_apart",
        "logits_may_be_transposed",
        "a_mask_may_be_transposed",
        "logits_beyond_the_mask_are_forbidden",
    }
    assert failed["xgrammar/cpu", "logits_beyond_the_mask_are_forbidden"]["documented"]
    assert (
        "it warned: The bitmask covers only"
        in failed["xgrammar/cpu", "logits_beyond_the_mask_are_forbidden"]["text"]
    )


def test_a_stored_run_is_shown(real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["measure", "kernels", "--show", str(real)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    assert (
        "0.001% allowed" in shown
        and shown.index("FAILED") < shown.index("PROBES") < shown.index("Time: ")
        and "batch 2" in shown
        and "GB/s" in shown
    )
    assert "xgrammar/cpu: columns may lie apart (float32):" in shown and "Documented: " in " ".join(
        shown.split()
    )
    assert cli.main(["measure", "kernels", "--show", str(real), "--format", "markdown"]) == 0
    assert "| plain/masked_fill |" in capsys.readouterr().out
    assert cli.main(["measure", "kernels", "--show", str(real), "--format", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    rows = [row for row in stored(real) if row["kind"] == "time"]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert float(line["min_ns"]) == min(row["totals_ns"]) / row["calls"] <= float(line["median_ns"])
        assert float(line["gb_per_s"]) == pytest.approx(row["bytes"] / float(line["min_ns"]))
    # Where something else had the machine during the copies themselves, there is no share.
    of_copies = {line["of_copy"] for line in lines if line["kernel"] == COPY}
    assert of_copies and of_copies <= {"1.0", "1", ""}
    assert cli.main(["measure", "kernels", "--show", str(real), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["times"]) == len(rows)


def test_an_interrupted_run_is_shown_and_says_so(
    real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (real / "kernels.jsonl").read_text("utf-8")
    (tmp_path / "kernels.jsonl").write_text(text[: text.rindex('{"kind":"end"') - 5], "utf-8")
    assert cli.main(["measure", "kernels", "--show", str(tmp_path)]) == 3
    assert "INCOMPLETE" in capsys.readouterr().out


def run_miniatures(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, plan: KernelPlan = SMALL
) -> list[dict[str, Any]]:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    kernels.measure(f"miniatures.wrong_kernels:{name}", "cpu", plan, folder, [], lambda said: None)
    return stored(folder)


def test_a_wrong_kernel_stands_first_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run_miniatures("WrongKernels", tmp_path, monkeypatch)
    shown = kernels.kernels_text(kernels.read(tmp_path), None)
    assert "takes_ones_for_forbidden: a batch is masked (bfloat16, float16, float32): " in " ".join(
        shown.split()
    )
    assert (
        "512 of 512 values are not masked_fill's" in " ".join(shown.split())
        and "exists on cuda only" in shown
        and "not_here" in shown
    )
    name = "miniatures.wrong_kernels:WrongKernels/right"
    assert {
        row["outcome"] for row in rows if row.get("kernel") == name and row["kind"] in ("probe", "time")
    } == {"passed", "ok"}


def test_a_crash_costs_one_probe_and_a_hang_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PROBE_SECONDS", 2.0)
    plan = KernelPlan((512,), (2,), ("float32",), (0.5,), (), SMALL.effort)
    rows = run_miniatures("HarmfulKernels", tmp_path, monkeypatch, plan)
    named: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] in ("probe", "time"):
            named.setdefault(f"{row['kind']} {row['kernel'].rpartition('/')[2]}", []).append(row)
    crashed = [row for row in named["probe segfaults_without_a_batch"] if row["outcome"] == "crashed"]
    assert [(row["probe"], row["text"]) for row in crashed] == [
        ("one_row_without_a_batch_is_masked", "killed by SIGSEGV")
    ]
    assert len(named["probe segfaults_without_a_batch"]) == len(named["probe right"])
    assert (
        named["probe hangs_without_a_batch"][-1]["text"].startswith("killed after 2 s")
        and "time hangs_without_a_batch" not in named
    )
    assert [row["outcome"] for row in named["time segfaults_at_512_tokens"]] == ["crashed"]
    assert [(row["outcome"], row["alone"]) for row in named["time right"]] == [("ok", True)]
    assert {row["outcome"] for row in named["probe right"]} == {"passed"}
    assert "CRASHED" in kernels.kernels_text(kernels.read(tmp_path), None)


def test_bad_input_is_one_line(real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels.jsonl").write_text("[]\n", "utf-8")
    for arguments, said in (
        (["--profile", "quick", "--out", str(real)], "is there already"),
        (
            ["--profile", "quick", "--out", str(tmp_path / "new"), "--backends", "xgramar"],
            'did you mean "xgrammar"',
        ),
        (["--out", str(tmp_path / "kernels.jsonl"), "--device", "cuda"], "cannot be written"),
        (["--show", str(tmp_path / "nowhere")], "cannot be read"),
        (["--show", str(tmp_path)], "kernels.jsonl:1: not a line"),
    ):
        assert cli.main(["measure", "kernels", *arguments]) == 2
        complaint = capsys.readouterr().err
        assert said in complaint and complaint.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_device_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no CUDA device"):
        kernels.measure("unconstrained", "cuda", SMALL, tmp_path, [], lambda said: None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_run_on_a_device(tmp_path: Path) -> None:
    kernels.measure(None, "cuda", SMALL, tmp_path, [], lambda said: None)
    rows = stored(tmp_path)
    assert rows[-1]["kind"] == "end" and {row["outcome"] for row in rows if row["kind"] == "time"} == {"ok"}


def test_a_copy_that_was_disturbed_gives_no_share(tmp_path: Path) -> None:
    """One is a hundred times slower than one of twice as many bytes; one half as fast, because it
    is small.
    """
    run = {"kind": "run", "format": 1, "started": "2026-11-22T01:00:00Z", "device": "cpu", "backends": []}
    run |= {"on": {"name": "", "torch": "2.13"}, "machine": {"cpus_usable": 2}}
    point = {
        "kind": "time",
        "threads": 1,
        "dtype": "float32",
        "vocabulary": 1,
        "share": 0.5,
        "calls": 1,
        "outcome": "ok",
        "text": "",
    }
    rows = [run]
    for batch, size, nanoseconds in ((1, 1000, 20), (2, 50_000, 100_000), (4, 100_000, 1000)):
        rows.append(point | {"batch": batch, "kernel": COPY, "bytes": size, "totals_ns": [nanoseconds]})
        rows.append(
            point
            | {
                "batch": batch,
                "kernel": "a/b",
                "bytes": size // 2,
                "totals_ns": [nanoseconds, 3 * nanoseconds],
            }
        )
    (tmp_path / "kernels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = {
        row["batch"]: row.get("of_copy") for row in kernels.read(tmp_path).times if row["kernel"] == "a/b"
    }
    assert found == {1: 0.5, 2: None, 4: 0.5}
    # Sixteen threads with ten times the bandwidth say nothing of a copy on one.
    many = [row | {"threads": 16, "batch": 4, "totals_ns": [100]} for row in rows[1:] if row["batch"] == 4]
    (tmp_path / "kernels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows + many), "utf-8")
    with_many = {
        (row["threads"], row["batch"]): row.get("of_copy")
        for row in kernels.read(tmp_path).times
        if row["kernel"] == "a/b"
    }
    assert with_many == {(1, 1): 0.5, (1, 2): None, (1, 4): 0.5, (16, 4): 0.5}
