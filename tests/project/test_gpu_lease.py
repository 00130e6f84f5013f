"""benchmarks/gpu.py on a machine that is lent: what is tried before time is spent, and what is left of a call
that is cut off."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, cast

import gpu_decode
import gpu_machine
import gpu_report
import gpu_running
import gpu_smoke
import gpu_store
import pytest
from decode_runs import Played, decoding
from gpu_plan import MIXED, PARTS, SMOKE_SECONDS, Cell, Kind, Plan, plan_of
from gpu_records import ENVIRONMENT, store
from places import ROOT
from report_folders import write_decoding

from harness.backend import registry
from harness.backend.process.lost import lost_in_time
from harness.backend.process.system import is_running
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.measure.kernels.handler import KernelHandler, load_kernels
from harness.measure.kernels.session import FILE, KernelRun
from harness.rows.folder import locked
from harness.serve.decode.record import Decoding, Loss
from harness.serve.decode.session import Interrupted
from harness.serve.decode.setting import Setting

RUN: dict[str, Any] = {
    "share": 0.0,
    "again": False,
    "repeat": 0,
    "tokens_per_s": 9.0,
    "structured": 0,
    "tpot_ns": 1e6,
}
RUN |= {"tpot_structured_ns": None, "tpot_free_ns": 1e6}
SO_FAR = {"runs": [RUN], "model": {"name": "8b"}}
TINY = Plan(shapes=("tiny",), backends=("llguidance",), kernel_backends=("llguidance",))

# --------------------------------------------------------------------------------------------------- smoke


@pytest.fixture
def tried(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """The cells that are asked, with the seconds that each is given; a smoke works, and a cell fails."""
    asked: list[tuple[str, float]] = []

    def in_process(cell: Cell, device: str, out: Path, seconds: float, *_: object) -> dict[str, Any]:
        asked.append((cell.name, seconds))
        return {"untried": []} if cell.kind == "smoke" else {"error": "made up"}

    monkeypatch.setattr(gpu, "in_process", in_process)
    monkeypatch.setattr(gpu, "check_backend", lambda _: None)
    monkeypatch.setattr(gpu, "device_here", lambda: "cuda")
    monkeypatch.setattr(gpu_store, "environment", lambda _: ENVIRONMENT)
    return asked


@pytest.mark.parametrize(
    ("arguments", "smoke", "others"),
    [
        (["share"], SMOKE_SECONDS, True),
        (["smoke=90", "share"], 90, True),
        (["smoke=0", "share"], None, True),
        (["smoke=0"], None, True),
        (["smoke"], SMOKE_SECONDS, False),
        (["--cells", "share-8b-32-xgrammar"], SMOKE_SECONDS, True),
        (["--device", "cpu", "share"], None, True),
    ],
)
def test_a_smoke_comes_first_on_a_gpu(
    arguments: list[str],
    smoke: float | None,
    others: bool,
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    tmp_path: Path,
) -> None:
    code = gpu.main(["--out", str(tmp_path), *arguments])
    names = [name for name, _ in tried]
    assert ("smoke" in names) is (smoke is not None) and len(names) == len({*names})
    if smoke is not None:
        assert tried[0] == ("smoke", smoke + gpu.SMOKE_GRACE)
    assert (len(names) > (smoke is not None)) is others
    assert code == OK or others
    assert (tmp_path / "share.json").exists() is others and not (tmp_path / "smoke.json").exists()


def test_a_smoke_that_fails_ends_the_call_before_anything_is_spent(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: dict[str, Any] = {"error": "the kernels of llguidance: it fell"}
    monkeypatch.setattr(gpu, "in_process", lambda *_: said)
    assert gpu.main(["--out", str(tmp_path), "share"]) == BAD_INPUT
    told = (
        "gpu: smoke: the kernels of llguidance: it fell; nothing was measured, and smoke=0 leaves this out\n"
    )
    assert capsys.readouterr().err == told
    assert not list(tmp_path.iterdir())


def test_a_smoke_that_fails_is_told_and_the_cells_are_measured_all_the_same(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gpu, "in_process", lambda *_: {"error": "decoding: it fell"})
    assert gpu.main(["--out", str(tmp_path), "--anyway", "share=0"]) == INCOMPLETE
    said = capsys.readouterr().out
    assert "smoke failed: decoding: it fell; the cells are measured all the same\n" in said
    assert "share: 0 of 8 cells are stored" in said and (tmp_path / "share.json").exists()
    assert gpu.main(["--out", str(tmp_path), "--anyway", "smoke"]) == INCOMPLETE, "it is no smoke that worked"


def test_a_smoke_that_comes_to_no_end_does_not_cost_the_lease(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    untried = ["the kernels of xgrammar", "the kernels of llguidance"]
    killed = {"error": "killed after 55 s; give the part more --seconds"}
    began: list[str] = []

    def in_process(cell: Cell, device: str, out: Path, *_: object) -> dict[str, Any]:
        gpu_running.make_way(out, cell)
        if began:
            folder = gpu_running.running(out, cell)
            folder.mkdir(parents=True)
            (folder / gpu_running.OPEN_STEPS).write_text(json.dumps([*began, *untried]))
        return ends if cell.kind == "smoke" else {"error": "made up"}

    monkeypatch.setattr(gpu, "in_process", in_process)
    ends: dict[str, Any] = killed
    assert gpu.main(["--out", str(tmp_path), "smoke"]) == INCOMPLETE
    assert "no step began within 55 s, and nothing was tried\n" in capsys.readouterr().out
    began.append("decoding")
    assert gpu.main(["--out", str(tmp_path), "smoke"]) == INCOMPLETE
    said = capsys.readouterr().out
    assert "not known to work, as it did not end within 55 s in all: decoding\n" in said
    told = "no time was left for the kernels of xgrammar, the kernels of llguidance\n"
    assert told in said and not (tmp_path / "running").exists()
    ends = {"untried": untried}
    assert gpu.main(["--out", str(tmp_path), "smoke"]) == INCOMPLETE
    assert told.replace("no time was left for", "not known to work, for lack of time:") in (
        capsys.readouterr().out
    )
    assert gpu.main(["--out", str(tmp_path), "share=0"]) == INCOMPLETE
    assert "share: 0 of 8 cells are stored" in capsys.readouterr().out, "the others are measured"


def test_a_smoke_is_left_out_where_no_cell_is_to_run(
    gpu: ModuleType, tried: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu, "write_page", lambda _: None)
    monkeypatch.setattr(gpu, "show", lambda *_: OK)
    held = {cell.name: {"runs": [], "seconds": 1.0} for cell in plan_of("cuda").cells("share")}
    store("share", held, path=tmp_path / "share.json").save()
    gpu.main(["--out", str(tmp_path), "share"])
    assert not tried
    gpu.main(["--out", str(tmp_path), "--cells", "share-8b-32-xgrammar"])
    assert [name for name, _ in tried] == ["smoke", "share-8b-32-xgrammar"], "it is measured anew"


def test_a_smoke_for_which_there_is_no_time_is_not_begun(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert gpu.main(["--out", str(tmp_path), "--within", "10", "smoke"]) == INCOMPLETE
    said = capsys.readouterr().out
    assert said == "smoke not begun: no time was left for it, and nothing was tried\n" and not tried


@pytest.mark.parametrize(
    ("arguments", "backends", "kernels"),
    [
        (["smoke"], "xgrammar llguidance", "xgrammar llguidance outlines-core"),
        (["kernels"], "", "xgrammar llguidance outlines-core"),
        (["decode"], "xgrammar llguidance", "xgrammar llguidance"),
        (["share"], "llguidance", ""),
        (["--cells", "probes-outlines-core,floor-1b"], "", "outlines-core"),
        (["--cells", "cold-1b-8-xgrammar"], "xgrammar", ""),
    ],
)
def test_a_smoke_tries_the_backends_of_the_cells_that_will_run(
    arguments: list[str],
    backends: str,
    kernels: str,
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """All cells of xgrammar in `share` are stored whole here, so that they need no smoke unless named."""
    cells = plan_of("cuda").cells("share")
    held = {cell.name: {"runs": [], "seconds": 1.0} for cell in cells if cell.backend == "xgrammar"}
    store("share", held, path=tmp_path / "share.json").save()
    smokes: list[list[str]] = []

    def in_process(cell: Cell, device: str, out: Path, seconds: float, *rest: list[Cell]) -> dict[str, Any]:
        """Has the smoke make its steps as its own process does, given the cells by name."""
        if cell.kind != "smoke":
            return {"error": "made up"}
        named = ",".join(other.name for other in rest[0])
        gpu.main(["--out", str(out), "--device", device, "--cell", "smoke", "--cells", named])
        return {"untried": []}

    def alone(cell: Cell, plan: Plan, *_: object) -> None:
        smokes.append([name for name, _ in gpu_smoke.steps(plan, "cuda", tmp_path, print)])

    monkeypatch.setattr(gpu, "in_process", in_process)
    monkeypatch.setattr(gpu, "alone", alone)
    gpu.main(["--out", str(tmp_path), *arguments])
    libraries = {*backends.split(), *kernels.split()}
    steps = [f"the library {name}" for name in plan_of("cuda").kernel_backends if name in libraries]
    steps += ["decoding with the shape tiny"] if backends else []
    assert smokes == [[*steps, *(f"the kernels of {name}" for name in kernels.split())]]


def test_the_steps_of_a_smoke_end_with_the_first_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[str] = []
    said: list[str] = []

    def fails() -> None:
        raise BadInput("it fell")

    def steps(*_: object) -> Iterator[gpu_smoke.Step]:
        yield "one", lambda: ran.extend(open_steps())
        yield "two", fails
        yield "three", lambda: ran.append("three")

    def open_steps() -> list[str]:
        return gpu_running.open_steps(tmp_path)

    monkeypatch.setattr(gpu_smoke, "steps", steps)
    with pytest.raises(BadInput, match=r"^two: it fell$"):
        gpu_smoke.smoke(TINY, "cpu", tmp_path, 60.0, said.append)
    assert ran == ["one", "two", "three"] and open_steps() == ["two", "three"]
    assert [line.partition(" (")[0] for line in said] == ["one: works"]
    assert gpu_smoke.smoke(TINY, "cpu", tmp_path, 0.0, said.append) == ["one", "two", "three"]


def test_what_is_too_slow_in_a_smoke_stops_nothing_behind_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def slow() -> None:
        raise gpu_smoke.TooSlow("no answer within 30 s by a/b")

    steps = [("one", slow), ("two", lambda: None)]
    monkeypatch.setattr(gpu_smoke, "steps", lambda *_: steps)
    said: list[str] = []
    unknown = gpu_smoke.smoke(TINY, "cpu", tmp_path, 60.0, said.append)
    assert unknown == ["one (no answer within 30 s by a/b)"]
    assert [line.partition(" (")[0] for line in said] == ["two: works"]


def test_only_the_kernel_that_a_decoding_takes_is_tried_for_its_cells() -> None:
    plan = plan_of("cuda")
    decodes, kernels = plan.cells("decode"), plan.cells("kernels")
    own = plan.needed_by(decodes)
    assert own.kernel_backends == own.own_alone == plan.backends
    assert plan.needed_by([*decodes, *kernels]).own_alone == ()
    probes = [cell for cell in kernels if cell.backend == "xgrammar"]
    assert plan.needed_by([*decodes, *probes]).own_alone == ("llguidance",)
    cpu = plan_of("cpu")
    assert cpu.needed_by(cpu.cells("decode")).kernel_backends == (), "they apply none of their own there"
    assert cpu.needed_by(cpu.cells("decode")).backends == cpu.backends


def test_every_strategy_and_kernel_is_among_the_steps(tmp_path: Path) -> None:
    plan = plan_of("cuda")
    names = [name for name, _ in gpu_smoke.steps(plan, "cuda", tmp_path, print)]
    assert names[0] == "the library xgrammar" and names[3].startswith("decoding")
    assert names[4:] == [f"the kernels of {backend}" for backend in plan.kernel_backends]
    made = gpu_smoke.settings()
    assert {(setting.batch, setting.strategy) for setting in made} == {
        (batch, strategy) for batch in (1, 8) for strategy in ("stepwise", "jump_forward", "speculative")
    }
    assert all(setting.overlap for setting in made)


def in_smoke(record: Decoding, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Has the smoke read this record in place of one that it makes."""
    monkeypatch.setattr(gpu_smoke, "decode", lambda *_: None)
    write_decoding(folder, record)
    gpu_smoke._decoded(TINY, "cpu", folder)


def test_a_smoke_sees_what_went_wrong_in_a_decoding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Setting(MIXED, texts=2)
    fine = decoding({one: {"x": Played({"a": [1, 1], "b": [2, 1]})}}, rounds=1, forks=1)
    in_smoke(fine, monkeypatch, tmp_path / "fine")
    broken = decoding({one: {"x": Played({"a": [1, 1], "b": [2, 1]}, broken=("b",))}}, rounds=1, forks=1)
    with pytest.raises(BadInput, match=r"^x, function_calls stepwise batch 1: b ended as refused: exp"):
        in_smoke(broken, monkeypatch, tmp_path / "broken")
    other: list[tuple[str, dict[str, Any]]] = [
        ("invalid", {"right": "invalid"}),
        ("other", {"as_replayed": False}),
    ]
    for name, changed in other:
        batches = [
            replace(batch, completed=(*batch.completed[:-1], replace(batch.completed[-1], **changed)))
            for batch in fine.batches
        ]
        with pytest.raises(BadInput, match=r"^x, function_calls stepwise batch 1: b wrote another text"):
            in_smoke(replace(fine, batches=tuple(batches)), monkeypatch, tmp_path / name)
    lost = decoding(
        {one: {"x": Played({"a": [1, 1]})}},
        rounds=1,
        forks=1,
        losses=(Loss(0, "x", 0, "harness_error", "RuntimeError: misaligned"),),
    )
    with pytest.raises(BadInput, match=r"^x, function_calls stepwise batch 1: RuntimeError: misaligned$"):
        in_smoke(lost, monkeypatch, tmp_path / "lost")
    slow = (Loss(0, "x", 0, "backend", str(lost_in_time(gpu_smoke.ANSWER_SECONDS))),)
    for name, late in (
        ("slow", replace(lost, losses=slow)),
        ("none", replace(fine, losses=slow, batches=())),
    ):
        with pytest.raises(gpu_smoke.TooSlow, match=r"^x, .* batch 1: killed after 30 s$"):
            in_smoke(late, monkeypatch, tmp_path / name)
    with pytest.raises(BadInput, match="misaligned"):
        in_smoke(replace(lost, losses=(*slow, *lost.losses)), monkeypatch, tmp_path / "both")


class InThisProcess(KernelRun):
    """A run of kernels whose handler answers in this process; one kernel forbids a token too many."""

    wrong = ""

    def open(self, threads: int) -> None:
        handler, description = load_kernels(self.specs, self.device, threads)
        service = SimpleNamespace(description=description, close=lambda: None)
        service.ask = lambda message, seconds: handler(message, b"")
        self._service = cast(Any, service)
        assert isinstance(handler, KernelHandler)
        loaded = handler.loaded

        def too_many(name: str) -> Callable[..., object]:
            def apply(logits: Any, bitmask: Any) -> None:
                loaded(name)(logits, bitmask)
                logits[0] = -math.inf

            return apply if name == self.wrong else loaded(name)

        handler.loaded = too_many


@pytest.mark.parametrize("wrong", ["", "llguidance/torch", "llguidance/numpy"])
def test_a_smoke_applies_each_kernel_of_a_backend(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # no compiler, which takes a minute
    monkeypatch.setattr(gpu_smoke, "KernelRun", InThisProcess)
    monkeypatch.setattr(InThisProcess, "wrong", wrong)
    said: list[str] = []
    if wrong:
        with pytest.raises(BadInput, match=f"^{wrong}: a mask that it applied failed: .* to be left alone"):
            gpu_smoke._masked("llguidance", "cpu", said.append)
    else:
        gpu_smoke._masked("llguidance", "cpu", said.append)


class Asked(KernelRun):
    """A run of kernels whose service notes what it is asked, and does not answer for some of them in time."""

    asked: ClassVar[list[str]] = []
    slow: tuple[str, str] = ("", "")
    """The operation and the kernel."""

    def open(self, threads: int) -> None:
        kernel: dict[str, Any] = {"devices": ["cpu", "cuda"], "dtypes": ["float32"]}
        other = {"devices": ["cpu"], "dtypes": ["float32"]}
        kernels = [
            {"kernel": "masked_fill"} | kernel,
            {"kernel": "x/cpu"} | other,
            {"kernel": "x/half"} | kernel | {"dtypes": ["bfloat16"]},
            *({"kernel": f"x/{name}"} | kernel for name in ("one", "two", "three")),
        ]
        service = SimpleNamespace(description={"kernels": kernels}, close=lambda: None, ask=self.answers)
        self._service = cast(Any, service)

    def answers(self, message: dict[str, Any], seconds: float) -> tuple[dict[str, Any], bytes]:
        self.asked.append(f"{message['op']} {message['kernel']}")
        if (message["op"], message["kernel"]) == self.slow:
            raise lost_in_time(seconds)
        return {"problem": "", "outcome": "passed", "text": ""}, b""


def test_a_kernel_that_takes_long_is_no_failure_and_only_the_own_one_is_tried_where_one_decodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_smoke, "KernelRun", Asked)
    every = [f"{op} x/{name}" for name in ("one", "two", "three") for op in ("load", "probe")]
    for own, asked in ((False, every), (True, every[:2])):
        monkeypatch.setattr(Asked, "asked", [])
        gpu_smoke._masked("x", "cuda", print, own)
        assert Asked.asked == asked
    for op in ("load", "probe"):
        monkeypatch.setattr(Asked, "asked", [])
        monkeypatch.setattr(Asked, "slow", (op, "x/two"))
        with pytest.raises(gpu_smoke.TooSlow, match=r"^no answer within 30 s by x/two$"):
            gpu_smoke._masked("x", "cuda", print)
        assert Asked.asked[-1] == "probe x/three", "those behind it are tried"


@pytest.mark.long
def test_a_smoke_runs_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every step, by a real backend, with a model of the shape tiny."""
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # no compiler, which takes a minute
    monkeypatch.setattr(gpu_decode, "VOCABULARY", "probe")
    said: list[str] = []
    assert gpu_smoke.smoke(TINY, "cpu", tmp_path, 1000.0, said.append) == []
    assert [line.rpartition(":")[0] for line in said if ": works (" in line] == [
        "the library llguidance",
        "decoding with the shape tiny",
        "the kernels of llguidance",
    ]


@pytest.mark.long
def test_the_script_smokes_here(tmp_path: Path) -> None:
    """In a process of its own, for so short a time that one step alone is made."""
    out = tmp_path / "out"
    done = script("--out", out, "--device", "cpu", "smoke=1")
    assert done.returncode == INCOMPLETE, done.stdout + done.stderr
    assert "the library xgrammar: works" in done.stdout
    # Where the machine is fast the decoding is begun, and ended behind the second.
    assert re.search(r"(no time was left for|for lack of time:) .*the kernels of outlines-core", done.stdout)
    assert not list(out.iterdir())


# ------------------------------------------------------------------------------------- a call that is cut off


def script(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_no_cell_begins_or_runs_beyond_the_end_of_the_call(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = Plan(shapes=("1b",), batches=(32, 1), forks=1)
    floor, first, second = plan.cells("decode")
    held = store("decode", {}, path=tmp_path / "decode.json")
    ends = time.monotonic() + 70
    gpu.run_part("decode", plan, held, tmp_path, 480.0, ends=ends)
    assert [name for name, _ in tried] == [floor.name, first.name, second.name]
    assert all(60 < seconds <= 70 for _, seconds in tried), "told to end by the end of the call"
    del tried[:]
    held.cells.clear()
    gpu.run_part("decode", plan, held, tmp_path, 10.0, ends=time.monotonic() + 30)
    assert not tried, "a first cell is tried beyond its part's time, but not beyond the call's"
    said = capsys.readouterr().out
    assert "floor-1b not begun: thought to take 36 s, 10 s left\n" in said
    gpu.run_part("decode", plan, held, tmp_path, 10.0, ends=time.monotonic() + 50)
    assert [name for name, _ in tried] == ["floor-1b"] and tried[0][1] <= 50


def test_a_call_ends_within_its_seconds(
    gpu: ModuleType, tried: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    began = time.monotonic()
    monkeypatch.setattr(gpu, "BEGAN", began)
    ends: list[float] = []
    monkeypatch.setattr(gpu, "run_part", lambda *given: ends.append(given[-1]))
    monkeypatch.setattr(gpu, "write_page", lambda _: None)
    gpu.main(["--out", str(tmp_path), "--within", "500", "smoke=0", "share", "cold"])
    assert ends == [began + 500 - gpu.POLITE - gpu.PAGE] * 2, "it is the same for all parts"


def test_a_call_without_time_for_any_cell_is_not_complete(
    gpu: ModuleType, tried: list[tuple[str, float]], tmp_path: Path
) -> None:
    assert gpu.main(["--out", str(tmp_path), "--within", "50", "smoke=0", "share"]) == INCOMPLETE
    assert not tried


def test_the_first_kernels_of_a_call_are_given_time_for_a_compiler(
    gpu: ModuleType, tried: list[tuple[str, float]], tmp_path: Path
) -> None:
    plan = Plan(vocabularies=(32_768,), kernel_backends=())
    held = store("kernels", {}, path=tmp_path / "kernels.json")
    gpu.run_part("kernels", plan, held, tmp_path, 480.0, ends=time.monotonic() + 75)
    assert not [name for name in tried if name[0] == "times-float32-32768"]
    gpu.run_part("kernels", plan, held, tmp_path, 480.0, ends=time.monotonic() + 85)
    assert [name for name, _ in tried] == ["times-float32-32768", "times-bfloat16-32768"]


WAITS = """
import json, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
folder = out / "running" / sys.argv[sys.argv.index("--cell") + 1]
folder.mkdir(parents=True)
(folder / "so_far.json").write_text(out.with_name("kept.json").read_text())
time.sleep(600)
"""

KILLED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from gpu_records import store
from scripts import script_of
gpu = script_of("gpu")
out = Path(sys.argv[1])
gpu.__file__ = str(out.with_name("cell.py"))
held = store("share", {}, path=out / "share.json")
cell = next(cell for cell in held.plan.cells("share"))
gpu.run_part("share", held.plan, held, out, 480.0, only=[cell])
"""


def test_what_a_cell_had_when_its_script_was_killed_lies_in_the_folder_and_is_stored_by_the_next_call(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "cell.py").write_text(WAITS)
    (tmp_path / "kept.json").write_text(json.dumps(SO_FAR))
    (tmp_path / "killed.py").write_text(KILLED)
    own = [str(ROOT / "tests" / "support"), str(ROOT / "benchmarks" / "parts")]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "killed.py"), str(out), *own], start_new_session=True
    )
    name = "share-8b-32-xgrammar"
    deadline = time.monotonic() + 60
    while not (out / "running" / name / "so_far.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    brought = tmp_path / "brought"
    shutil.copytree(out, brought)  # the records beside the folder do not come along
    assert gpu_store.read(brought / "share.json").cells == {}
    assert gpu.main(["--out", str(brought), "--show", "share"]) == INCOMPLETE
    kept = gpu_store.read(brought / "share.json").cells
    assert kept[name]["partial"] == "the call was killed; 1 runs are stored" and kept[name]["runs"]
    assert f"missing {name}" in capsys.readouterr().out
    assert not (brought / "running").exists()
    gpu.main(["--out", str(out), "smoke=0", "decode=0"])
    assert f"{name}: a part of it is stored, which an earlier call had left\n" in capsys.readouterr().out
    assert gpu_store.read(out / "share.json").cells[name]["runs"] == kept[name]["runs"]
    assert not (out / "running").exists() and (tmp_path / "out-records" / name / "so_far.json").exists()


def test_a_salvaged_cell_keeps_the_time_that_is_known_of_it(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = plan_of("cuda").cells("share")
    cell = cells[0]
    assert cell.name == "share-8b-32-xgrammar"

    def salvaged(known: dict[str, Any], runs: int) -> dict[str, Any]:
        """Returns what is stored of a cell that was killed when it had so many runs."""
        store("share", {cell.name: known} if known else {}, path=tmp_path / "share.json").save()
        gpu_running.keeper(tmp_path / "running" / cell.name, {})({"runs": [RUN] * runs})
        gpu.main(["--out", str(tmp_path), "--device", "cuda", "smoke=0", "share=0", "--within", "0"])
        return gpu_store.read(tmp_path / "share.json").cells[cell.name]

    line = f"{cell.name}: a part of it is stored, which an earlier call had left\n"
    kept = salvaged({}, 2)
    assert "seconds" not in kept and gpu.expected(cell, cells, {cell.name: kept}) == cell.seconds
    assert line in capsys.readouterr().out
    for runs in (1, 3):
        kept = salvaged({"runs": [RUN] * 2, "partial": "killed", "seconds": 300.0}, runs)
        assert len(kept["runs"]) == max(2, runs) and kept["seconds"] == 300.0
        assert gpu.expected(cell, cells, {cell.name: kept}) == pytest.approx(330)
        assert (line in capsys.readouterr().out) is (runs == 3), "what is not stored is not told as stored"
    known = {"runs": [RUN] * 2, "seconds": 30.0}
    assert salvaged(known, 3) == known and line not in capsys.readouterr().out


ENDLESS = """
import os, sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from scripts import script_of
gpu = script_of("gpu")
folder = Path(__file__).parent
if "--cell" not in sys.argv:
    gpu.__file__ = __file__
    gpu.in_process(gpu.plan_of("cpu").cells("decode")[0], "cpu", folder / "out", 600.0)
def alone(*_):
    (folder / "new").write_text(str(os.getpid()))
    (folder / "new").rename(folder / "pid")
    time.sleep(600)
gpu.alone = alone
gpu.main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_cell_does_not_outlive_a_script_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS.format(path=sys.path))
    process = subprocess.Popen([sys.executable, str(tmp_path / "endless.py")])
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    cell = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while is_running(cell) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(cell)


def test_the_folder_may_be_the_one_that_one_is_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    cell = plan_of("cpu").cells("share")[0]
    gpu_running.keeper(gpu_running.running(Path(), cell), {})(SO_FAR)
    gpu_running.put_away(Path(), cell)
    assert (tmp_path / "out-records" / cell.name / gpu_running.SO_FAR).exists()
    gpu_running.make_way(Path(), cell)
    assert not (tmp_path / "out-records" / cell.name).exists()


def test_records_that_cannot_be_moved_stop_no_cell(tmp_path: Path) -> None:
    out, cell = tmp_path / "out", plan_of("cpu").cells("share")[0]
    gpu_running.keeper(gpu_running.running(out, cell), {})(SO_FAR)
    (tmp_path / "out-records").touch()
    gpu_running.put_away(out, cell)
    assert not (out / "running").exists()


def test_parts_are_named_before_and_behind_cells(
    gpu: ModuleType, tried: list[tuple[str, float]], tmp_path: Path
) -> None:
    gpu.main(["--out", str(tmp_path), "smoke=0", "--cells", "share-8b-32-xgrammar", "share=60"])
    assert [name for name, _ in tried] == ["share-8b-32-xgrammar"]


def test_a_cell_that_another_process_runs_is_left_alone(
    gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store("share", {}, path=tmp_path / "share.json").save()
    gpu_running.keeper(tmp_path / "running" / "share-8b-32-xgrammar", {})(SO_FAR)
    gpu_running.keeper(tmp_path / "running" / "mine", {})(SO_FAR)
    with locked(tmp_path):
        gpu.main(["--out", str(tmp_path), "--show", "share"])
    assert gpu_store.read(tmp_path / "share.json").cells == {}
    gpu.main(["--out", str(tmp_path), "--show", "share"])
    assert set(gpu_store.read(tmp_path / "share.json").cells) == {"share-8b-32-xgrammar"}
    assert [path.name for path in (tmp_path / "running").iterdir()] == ["mine"], "it is no cell's"


def test_kernels_that_are_cut_off_are_kept_line_by_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = {"kind": "run", "format": 1, "started": "", "device": "cpu", "on": {"name": "", "torch": "2"}}
    run |= {"machine": {"cpus_usable": 1}, "backends": []}
    probe = {"kind": "probe", "kernel": "a/b", "probe": "p", "dtype": "float32", "outcome": "passed"}
    probe |= {"text": "", "documented": ""}
    point = {"kind": "time", "kernel": "copy", "dtype": "float32", "vocabulary": 9, "batch": 1, "share": 0.5}
    point |= {"threads": 1, "outcome": "ok", "text": "", "bytes": 9, "calls": 1, "totals_ns": [3, 4]}
    kinds: dict[Kind, dict[str, Any]] = {"times": point, "probes": probe}
    for kind, line in kinds.items():
        folder = tmp_path / kind
        folder.mkdir()
        cell = Cell("kernels", kind, 1.0)
        assert gpu_running.rest_of(cell, folder, "killed") == {"error": "killed"}
        lines = [json.dumps(one) + "\n" for one in (run, line, line)]
        (folder / FILE).write_text("".join(lines) + lines[1][:9])
        kept = gpu_running.rest_of(cell, folder, "killed")
        assert kept["partial"] == f"killed; 2 {kind} are stored" and gpu_store.held(kept) == 2
        assert len(kept["times"]) == (2 if kind == "times" else 0)
        assert kept["probed"] == ({} if kind == "times" else {"a/b": {"passed": 2}})
        held = store("kernels", {}, path=tmp_path / "kernels.json")
        held.add("times-float32-131072", kept)
        held.add("times-float32-131072", {"error": "killed"})
        assert held.cells["times-float32-131072"] == kept | {"seconds": 0.0} or kept.items() <= (
            held.cells["times-float32-131072"].items()
        )
        assert "is partial, and is measured again: killed; 2" in gpu_report.page({"kernels": held})
        (folder / FILE).write_text(lines[0])
        assert gpu_running.rest_of(cell, folder, "killed") == {"error": "killed"}, "nothing was measured"


def test_a_lock_of_a_compile_that_was_killed_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(gpu_running.COMPILED, raising=False)
    folder = Path(gpu_running.compiles_into(tmp_path / "out")[gpu_running.COMPILED])
    assert folder == tmp_path / "out-records" / "compiled"
    (folder / "xgrammar").mkdir(parents=True)
    for name in ("lock", "kernel.so"):
        (folder / "xgrammar" / name).touch()
    assert gpu_running.compiles_into(tmp_path / "out")[gpu_running.COMPILED] == str(folder)
    assert [path.name for path in (folder / "xgrammar").iterdir()] == ["kernel.so"]
    (folder / "xgrammar" / "lock").touch()
    monkeypatch.setenv(gpu_running.COMPILED, str(folder))
    assert gpu_running.compiles_into(tmp_path / "out")[gpu_running.COMPILED] == str(folder)
    assert (folder / "xgrammar" / "lock").exists(), "a folder that the user named may be another's"


# ------------------------------------------------------------------------------------ told to end, and broken


def test_being_told_to_end_while_a_backend_is_imported_ends_the_script(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry takes a SystemExit for one of the library that it imports."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def told(name: str) -> Any:
        gpu.ended()

    monkeypatch.setattr(registry, "import_module", told)
    monkeypatch.setattr(registry, "names", registry.names)
    with pytest.raises(gpu.Ended):
        gpu_machine.version_of("llguidance")


def test_a_cell_that_is_told_to_end_prints_no_traceback(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A decoding makes an interruption of its own of it."""
    handler: list[object] = [signal.SIG_DFL]
    monkeypatch.setattr(signal, "signal", lambda _, new: handler.append(new))
    monkeypatch.setattr(signal, "getsignal", lambda _: handler[-1])

    def told() -> int:
        try:
            gpu.ended()
        except KeyboardInterrupt as stopped:
            raise Interrupted(tmp_path) from stopped
        return OK

    assert gpu.until_ended(told) == 128 + signal.SIGTERM
    handler.append(signal.SIG_DFL)

    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpu.until_ended(interrupted)
    assert gpu.until_ended(lambda: INCOMPLETE) == INCOMPLETE


def test_a_page_that_cannot_be_made_costs_no_part(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def page(_: object) -> str:
        raise KeyError("a row that nobody foresaw")

    monkeypatch.setattr(gpu, "page", page)
    monkeypatch.setattr(gpu, "show", lambda *_: INCOMPLETE)
    assert gpu.main(["--out", str(tmp_path), "smoke=0", "share=0", "cold=0"]) == INCOMPLETE
    assert {path.name for path in tmp_path.glob("*.json")} == {"share.json", "cold.json"}
    assert "a row that nobody foresaw" in capsys.readouterr().err


def test_a_backend_that_is_not_to_be_had_is_refused_before_anything_is_measured(
    gpu: ModuleType,
    tried: list[tuple[str, float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    def check_backend(name: str) -> None:
        asked.append(name)
        if name == "outlines-core":
            raise BadInput('backend "outlines-core" cannot be imported: no')

    monkeypatch.setattr(gpu, "check_backend", check_backend)
    gpu.main(["--out", str(tmp_path), "share"])
    assert asked == ["xgrammar", "llguidance"], "the other is not needed"
    del tried[:]
    assert gpu.main(["--out", str(tmp_path), "kernels"]) == BAD_INPUT
    assert 'gpu: backend "outlines-core" cannot be imported: no\n' in capsys.readouterr().err and not tried
    monkeypatch.setattr(gpu_machine, "installed_version", lambda _: None)
    with pytest.raises(BadInput, match='"llguidance" has no version here'):
        gpu_machine.check_backend("llguidance")


# ----------------------------------------------------------------------------------------- what the page says


def test_the_calls_for_one_lease_fit_into_it() -> None:
    """But for the last cell of each call, which is begun if there is time. What the page says is those cells
    that are thought to fit; the others are short spare ones of the same files, and no two calls fill one."""
    page = (ROOT / "docs" / "gpu.md").read_text("utf-8")
    lease = page.partition("### One lease of 900 seconds")[2]
    calls = re.findall(r"--within (\d+) --cells (\S+) (.+)", lease)
    columns = re.findall(r"^\| [^|]*[a-z][^|]* \| ([\d +]+) \| ([\d +]+) \|$", lease, re.MULTILINE)
    assert len(calls) == 2 and len(columns) == 5
    plan, whole, filled = plan_of("cuda"), 0.0, list[str]()
    known = {cell.name: cell for part in PARTS for cell in plan.cells(part)}
    for (within, names, parts), told in zip(calls, zip(*columns, strict=True), strict=True):
        cells = [known[name] for name in names.split(",")]
        asked = dict(part.split("=") for part in parts.split())
        start, shell, smoke, listed, end = ([int(number) for number in one.split("+")] for one in told)
        assert {cell.part for cell in cells} == asked.keys() - {"smoke"}
        assert [cell.seconds for cell in cells[: len(listed)]] == listed
        assert smoke == [float(asked["smoke"])] and shell == [25] and end == [20]
        assert 25 + smoke[0] + sum(listed) + 20 <= float(within) < 600
        for part in asked.keys() - {"smoke"}:
            mine = [cell for cell in cells if cell.part == part]
            assert mine[0] in cells[: len(listed)] and mine[0].seconds <= float(asked[part])
        for spare in cells[len(listed) :]:
            assert spare.seconds <= 36 and spare.part == cells[len(listed) - 1].part
        whole += start[0] + float(within)
        filled += asked.keys() - {"smoke"}
    assert whole <= 900 and len(filled) == len({*filled})
    sums = re.findall(r"These are (\d+) of the 900 seconds, and (\d+) if", " ".join(lease.split()))
    every = sum(int(number) for row in columns for column in row for number in column.split("+"))
    assert sums == [(str(every), f"{whole:.0f}")]
