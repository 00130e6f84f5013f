"""benchmarks/gpu.py without a GPU: what is planned fits, cells are stored and not done again, one that fails
or hangs costs itself only, and figures are held against what was asked."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import gpu_decode
import gpu_floor
import gpu_kernels
import gpu_loads
import gpu_paths
import gpu_report
import gpu_store
import pytest
from decode_runs import Played, arm, decoding
from decode_tools import FakeModel
from gpu_figures import CONSTRAINED, FLOOR, JUMPS, LOGITS, LOGITS32, WIDE, Asked, Figures, verdict
from gpu_plan import FORCED, LIMIT, MIXED, PARTS, PROMPT, Cell, Plan, plan_of
from gpu_store import Store
from places import ROOT
from report_folders import write_decoding
from scripts import script_of

from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.errors import BAD_INPUT, GATE_FAILED, INCOMPLETE, OK, BadInput
from harness.serve.decode.figures import Decoded
from harness.serve.decode.model.attention import GROUPED
from harness.serve.decode.model.graphs import Static
from harness.serve.decode.model.model import Model, load_model
from harness.serve.decode.model.shapes import SHAPES
from harness.serve.decode.record import LINES, Decoding, Loss, Whose
from harness.serve.decode.session import DecodeRequest
from harness.serve.decode.setting import Setting
from harness.serve.decode.workloads import find_workload, requests

SCRIPT = ROOT / "benchmarks" / "gpu.py"
ENVIRONMENT: dict[str, Any] = {
    "device": "made up",
    "torch": "2",
    "cuda": None,
    "versions": {"xgrammar": "1"},
    "packages": {},
    "commit": "c",
    "code_sha256": "0" * 64,
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("gpu")


def store(
    part: str, cells: Mapping[str, dict[str, Any]], device: str = "cuda", path: Path = Path("x")
) -> Store:
    return Store(path, part, device, ENVIRONMENT, [], dict(cells))


# ---------------------------------------------------------------------------------------------------- plan


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_cell_has_a_name_of_its_own_and_fits_into_a_part(device: str) -> None:
    cells = [cell for part in PARTS for cell in plan_of(device).cells(part)]
    assert len({cell.name for cell in cells}) == len(cells)
    assert max(cell.seconds for cell in cells) < 480


def test_all_that_is_asked_is_planned() -> None:
    plan = plan_of("cuda")
    decoded = {(cell.shape, cell.batch) for cell in plan.cells("decode") if cell.kind == "decode"}
    assert decoded == {(shape, batch) for shape in ("1b", "8b") for batch in (1, 8, 32, 128, 512)}
    times = {(cell.vocabulary, cell.dtype) for cell in plan.cells("kernels") if cell.kind == "times"}
    assert len(times) == 6 and {1, 512} <= set(plan.kernel_batches)
    for batch in plan.batches:
        settings = gpu_decode.settings_of(batch, plan.texts, plan.own_kernel)
        assert {setting.strategy for setting in settings} == {"stepwise", "jump_forward", "speculative"}
        assert {setting.overlap for setting in settings} == {True, False}
        assert {bool(setting.kernel) for setting in settings} == {True, False}
        assert {setting.batch for setting in settings} == {batch}


def test_the_first_forks_of_all_batches_come_before_second_ones() -> None:
    forks = [cell.fork for cell in plan_of("cuda").cells("decode") if cell.kind == "decode"]
    assert forks == sorted(forks)


def test_the_largest_cell_fits_into_an_h200() -> None:
    """8b in bfloat16 at batch 512: weights, cache, and float32 logits of every drafted token, twice."""
    shape, vocabulary = SHAPES["8b"], 131_072
    dim = shape.hidden_size // shape.num_attention_heads
    layer = shape.hidden_size * (2 * shape.hidden_size + 2 * shape.num_key_value_heads * dim)
    layer += 3 * shape.hidden_size * shape.intermediate_size
    weights = 2 * (shape.num_hidden_layers * layer + 2 * vocabulary * shape.hidden_size)
    capacity = -(-(PROMPT + LIMIT + 4 + 64 + 64) // 64) * 64  # positions with room, and a chunk
    cache = 2 * 2 * shape.num_hidden_layers * shape.num_key_value_heads * dim * capacity * 512
    logits = 4 * 512 * 8 * vocabulary  # five tokens a row, in a graph of eight
    assert 15e9 < weights < 17e9 and 16e9 < cache < 18e9
    assert weights + 2 * cache + 6 * logits < 100e9 < 139 * 2**30


def test_the_page_tells_the_plan() -> None:
    rows = [line.split("|") for line in (ROOT / "docs" / "gpu.md").read_text("utf-8").splitlines()]
    told = {row[1].strip(" `"): (row[3].strip(), row[4].strip()) for row in rows if len(row) == 6}
    for part in PARTS:
        cells = plan_of("cuda").cells(part)
        assert told[part] == (str(len(cells)), f"{sum(cell.seconds for cell in cells) / 60:.0f} min")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["wheels"], "give the folder to fill"),
        (["--out"], "--out needs a folder"),
        (["--wheels", "/nowhere", "share"], "/nowhere holds no wheel"),
    ],
)
def test_the_shell_script_says_what_is_wrong(arguments: list[str], says: str) -> None:
    command = ["bash", str(ROOT / "benchmarks" / "gpu.sh"), *arguments]
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == BAD_INPUT and says in done.stderr and len(done.stderr.splitlines()) == 1


# -------------------------------------------------------------------------------- cells, stored one by one


PLANNED = Plan(shapes=("1b",), batches=(32, 1), forks=1)


def answers(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, result: Callable[[str], dict[str, Any]]
) -> list[str]:
    """Let every cell be answered by that function; returns the names in the order in which they are asked."""
    asked: list[str] = []

    def in_process(cell: Cell, *_: Any) -> dict[str, Any]:
        asked.append(cell.name)
        return result(cell.name)

    monkeypatch.setattr(script, "in_process", in_process)
    return asked


def test_a_cell_that_is_done_is_not_done_again_and_failures_come_last(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held = store("decode", {}, path=tmp_path / "decode.json")
    names = [cell.name for cell in PLANNED.cells("decode")]
    assert names == ["floor-1b", "decode-1b-32-fork-1", "decode-1b-1-fork-1"]

    def interrupted(name: str) -> dict[str, Any]:
        if name == names[2]:
            raise KeyboardInterrupt
        return {"error": "it fell"} if name == names[0] else {"rows": []}

    asked = answers(script, monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        script.run_part("decode", PLANNED, held, tmp_path, 480.0)
    known = gpu_store.read(tmp_path / "decode.json")
    assert list(known.cells) == asked[:2] == names[:2]
    asked = answers(script, monkeypatch, lambda _: {"rows": []})
    script.run_part("decode", PLANNED, known, tmp_path, 480.0)
    assert asked == [names[2], names[0]], "first what was never tried, then what failed"
    known = gpu_store.read(tmp_path / "decode.json")
    assert set(known.results()) == set(names)
    asked = answers(script, monkeypatch, lambda _: {"error": "never asked"})
    script.run_part("decode", PLANNED, known, tmp_path, 480.0)
    assert not asked


def test_a_cell_of_which_a_part_is_known_is_measured_again_behind_the_others(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [cell.name for cell in PLANNED.cells("decode")]
    part = {"rows": [1], "partial": "killed after 305 s", "seconds": 30.0}
    tried = {names[0]: part, names[1]: {"error": "it fell", "seconds": 1.0}}
    held = store("decode", tried, path=tmp_path / "decode.json")
    assert set(held.missing()) >= {names[0], names[1]} and set(held.results()) == {names[0]}
    asked = answers(script, monkeypatch, lambda name: {"rows": [1, 2], "partial": "one setting was lost"})
    script.run_part("decode", PLANNED, held, tmp_path, 480.0)
    assert asked == [names[2], names[1], names[0]], "never tried, came to nothing, is there in part"
    assert held.cells[names[0]]["rows"] == [1, 2], "the larger part is kept"


def test_what_holds_less_does_not_take_the_place_of_what_holds_more(tmp_path: Path) -> None:
    def part(*rows: int) -> dict[str, Any]:
        return {"rows": [*rows], "partial": "x", "seconds": 1.0}

    held = store("decode", {}, path=tmp_path / "decode.json")
    for result, kept in (
        ({"error": "x", "seconds": 1.0}, {"error": "x", "seconds": 1.0}),
        (part(1, 2), part(1, 2)),
        ({"error": "x", "seconds": 400.0}, part(1, 2) | {"seconds": 400.0}),
        (part(1), part(1, 2) | {"seconds": 400.0}),
        (part(3, 4), part(3, 4)),
        ({"rows": []}, {"rows": []}),
        (part(1), {"rows": []}),
        ({"rows": [5]}, {"rows": [5]}),
    ):
        held.add("floor-1b", result)
        assert held.cells["floor-1b"] == kept


def test_named_cells_are_measured_anew_and_alone(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held = store("decode", {"floor-1b": {"rows": [1], "seconds": 9.0}}, path=tmp_path / "decode.json")
    asked = answers(script, monkeypatch, lambda _: {"rows": [2]})
    cells = {cell.name: cell for cell in PLANNED.cells("decode")}
    only = [cells[name] for name in ("decode-1b-1-fork-1", "floor-1b")]
    script.run_part("decode", PLANNED, held, tmp_path, 480.0, only=only)
    assert asked == ["decode-1b-1-fork-1", "floor-1b"]
    assert gpu_store.read(tmp_path / "decode.json").cells["floor-1b"]["rows"] == [2]


def test_named_cells_are_measured_in_the_order_in_which_they_are_named_part_by_part(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[tuple[str, list[str], float]] = []

    def run_part(part: str, *rest: Any) -> None:
        *_, seconds, _, only = rest
        ran.append((part, [cell.name for cell in only], seconds))

    monkeypatch.setattr(script, "run_part", run_part)
    monkeypatch.setattr(script, "write_page", lambda _: None)
    parts = {"kernels": 480.0, "decode": 250.0, "share": 480.0}
    names = ["share-tiny-4-llguidance", "decode-tiny-1-fork-1", "share-tiny-4-xgrammar", "floor-tiny"]
    script.measure(parts, tmp_path, "cpu", names)
    assert ran == [
        ("share", ["share-tiny-4-llguidance", "share-tiny-4-xgrammar"], 480.0),
        ("decode", ["decode-tiny-1-fork-1", "floor-tiny"], 250.0),
    ]
    with pytest.raises(BadInput, match=r"cold-tiny-4-xgrammar.* is of the part cold, which is not named"):
        script.measure(parts, tmp_path, "cpu", [*names, "cold-tiny-4-xgrammar"])
    assert len(ran) == 2, "nothing began"


def test_a_cell_that_there_is_not_is_said(
    script: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert script.main(["--out", str(tmp_path), "--device", "cpu", "--cells", "floor-9b"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert 'no cell "floor-9b"' in said and "floor-tiny" in said


def test_no_cell_begins_that_is_not_thought_to_end(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = answers(script, monkeypatch, lambda _: {"rows": []})
    held = store("decode", {}, path=tmp_path / "decode.json")
    script.run_part("decode", PLANNED, held, tmp_path, 73.0)
    assert asked == ["floor-1b", "decode-1b-1-fork-1"], "one thought to take 72 s fits, one of 74 s does not"
    asked.clear()
    script.run_part("decode", PLANNED, held, tmp_path, 1.0)
    assert asked == ["decode-1b-32-fork-1"], "a first one is tried however little time there is"


def test_a_cell_takes_as_long_as_one_like_it_took(script: ModuleType) -> None:
    cells = plan_of("cuda").cells("decode")
    first, second = (cell for cell in cells if (cell.shape, cell.batch) == ("8b", 32) and cell.fork < 2)
    assert script.expected(second, cells, {}) == second.seconds
    assert script.expected(second, cells, {first.name: {"seconds": 200.0}}) == pytest.approx(220)
    assert script.expected(second, cells, {first.name: {"seconds": 1.0, "error": "x"}}) == second.seconds
    for killed in ({"error": "x"}, {"partial": "x"}):
        tried = {first.name: killed | {"seconds": 305.0}}
        assert script.expected(second, cells, tried) == pytest.approx(335.5), "it takes longer than it had"


def test_no_cell_takes_longer_than_it_is_thought_to() -> None:
    """Each cell of `decode` that an H200 measured with the settings of today."""
    held = gpu_store.read(ROOT / "results" / "published" / "gpu-h200-20261127" / "decode.json")
    thought = {cell.name: cell.seconds for cell in plan_of("cuda").cells("decode")}
    assert all(cell["seconds"] <= thought[name] for name, cell in held.cells.items())


HANGS = """
import sys, time
if "decode-1b-32-fork-1" in sys.argv:
    time.sleep(60)
if "floor-1b" in sys.argv:
    open(sys.argv[sys.argv.index("--answer") + 1], "w").write('{"steps": {}}')
else:
    sys.exit(5)
"""


def measure_by(text: str, script: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Has the script measure each cell by a program with this text, in place of itself."""
    (folder / "cell.py").write_text(text)
    monkeypatch.setattr(script, "__file__", str(folder / "cell.py"))


def test_a_cell_that_hangs_or_dies_costs_itself_only(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure_by(HANGS, script, monkeypatch, tmp_path)
    begin = time.monotonic()
    floor, hangs, dies = PLANNED.cells("decode")
    assert script.in_process(floor, "cuda", tmp_path, 30.0) == {"steps": {}}
    assert script.in_process(hangs, "cuda", tmp_path, 0.3)["error"].startswith("killed after 0 s")
    assert script.in_process(dies, "cuda", tmp_path, 30.0) == {"error": "its process ended with 5"}
    assert time.monotonic() - begin < 20


WORKS = """
import json, shutil, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
folder = out.with_name(f"{out.name}-records") / sys.argv[sys.argv.index("--cell") + 1]
assert not folder.exists(), "the record of another try"
shutil.copytree(out / "record", folder)
time.sleep(60)
"""


def test_what_a_killed_cell_had_measured_is_kept(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure_by(WORKS, script, monkeypatch, tmp_path)
    monkeypatch.setattr(script, "GRACE", 3.0)
    out = tmp_path / "out"
    write_decoding(out / "record", record_of(32, COST))
    lines = (out / "record" / LINES).read_text().splitlines(keepends=True)
    (out / "record" / LINES).write_text("".join(lines[: len(lines) // 2]))
    held = store("decode", {}, path=out / "decode.json")
    (killed,) = (cell for cell in PLANNED.cells("decode") if cell.batch == 32)
    (out.with_name("out-records") / killed.name).mkdir(parents=True)
    script.run_part("decode", PLANNED, held, out, 0.0, only=[killed])
    kept = gpu_store.read(out / "decode.json").cells[killed.name]
    assert kept["partial"].startswith("killed after 3 s; give the part more --seconds; ")
    assert "of 15 settings have figures" in kept["partial"] and kept["seconds"] > 2
    whole = decoded_cell(32, COST)
    assert 0 < len(kept["rows"]) < len(whole["rows"])
    assert all(row["tpot_ns"] for row in kept["rows"])
    assert held.missing() and killed.name in held.missing()
    page = gpu_report.page({"decode": held})
    assert f"  - `{killed.name}` is partial, and is measured again: killed after 3 s" in page
    assert "| 1b | 32 | xgrammar | one thread |" in page, "its figures are on the page"
    (out / "record" / LINES).write_text(lines[0])
    assert gpu_decode.salvaged(out / "record", "killed") == {"error": "killed"}
    assert gpu_decode.salvaged(out / "nowhere", "killed") == {"error": "killed"}


def test_an_error_of_a_cell_is_its_answer(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, told in (
        (BadInput("it does not fit"), "it does not fit"),
        (KeyError("rows"), "KeyError('rows')"),
    ):

        def fails(*_: object, error: Exception = error) -> dict[str, Any]:
            raise error

        monkeypatch.setattr(script, "measured", fails)
        script.alone("floor-tiny", plan_of("cpu"), "cpu", tmp_path / "out", tmp_path / "answer.json")
        assert json.loads((tmp_path / "answer.json").read_text()) == {"error": told}
    assert "KeyError" in capsys.readouterr().err, "a fault of ours has its traceback in the log"


def test_a_folder_of_another_device_or_version_is_not_filled_further(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_store, "environment", lambda _: ENVIRONMENT)
    held = gpu_store.opened(tmp_path / "share.json", "share", "cuda", ["gpu.py"])
    held.add("share-8b-32-xgrammar", {"runs": []})
    again = gpu_store.opened(tmp_path / "share.json", "share", "cuda", ["gpu.py", "share"])
    assert [command["argv"] for command in again.commands] == [["gpu.py"], ["gpu.py", "share"]]
    again.add("share-8b-32-xgrammar", {"error": "a second try"})
    assert again.cells["share-8b-32-xgrammar"] == {"runs": []}, "a failure replaces no result"
    monkeypatch.setattr(gpu_store, "environment", lambda _: ENVIRONMENT | {"versions": {"xgrammar": "2"}})
    with pytest.raises(BadInput, match="another versions"):
        gpu_store.opened(tmp_path / "share.json", "share", "cuda", [])
    (tmp_path / "share.json").write_text("[]")
    with pytest.raises(BadInput, match=r"no file of benchmarks/gpu\.py"):
        gpu_store.stored(tmp_path)


def test_the_exit_code_says_whether_it_is_complete_and_good(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--out", str(tmp_path), "--show"]) == BAD_INPUT
    assert script.main(["--out", str(tmp_path), "decoding"]) == BAD_INPUT
    assert 'there is no part "decoding"; name kernels' in capsys.readouterr().err
    assert script.main(["--out", str(tmp_path), "decode=soon"]) == BAD_INPUT
    assert "stands a number of seconds, as in decode=300" in capsys.readouterr().err
    assert script.budgets(["cold", "decode=250"], 480.0) == {"cold": 480.0, "decode": 250.0}
    plan = plan_of("cuda")
    cells: dict[str, dict[str, Any]] = {cell.name: {"runs": []} for cell in plan.cells("share")}
    store("share", cells, path=tmp_path / "share.json").save()
    assert script.main(["--out", str(tmp_path), "--show", "share"]) == OK
    assert script.main(["--out", str(tmp_path), "--show"]) == INCOMPLETE
    assert "decode: not complete; missing all" in capsys.readouterr().out
    del cells["share-8b-32-xgrammar"]
    store("share", cells, path=tmp_path / "share.json").save()
    assert script.main(["--out", str(tmp_path), "--show", "share"]) == INCOMPLETE
    assert "missing share-8b-32-xgrammar\n" in capsys.readouterr().out
    cells["share-8b-32-xgrammar"] = {"error": "| `x` |"}
    store("share", cells, path=tmp_path / "share.json").save()
    assert script.main(["--out", str(tmp_path), "--show", "share"]) == INCOMPLETE
    assert "`share-8b-32-xgrammar` failed: / 'x' /" in (tmp_path / "gpu.md").read_text()
    monkeypatch.setattr(script, "is_worse", lambda _: True)
    store(
        "share", {cell.name: {"runs": []} for cell in plan.cells("share")}, path=tmp_path / "share.json"
    ).save()
    assert script.main(["--out", str(tmp_path), "--show", "share"]) == GATE_FAILED


# ---------------------------------------------------------------------------------------- what was decoded


def floor_cell(ratio: float, apart: float = 0.01) -> dict[str, Any]:
    """A device of 1 GB/s whose bare steps take so many times their floor, which is 8 ms."""
    step = {
        "model": {"read_bytes": 8_000_000, "cache_bytes_per_token": 0, "dtype": "bfloat16"},
        "length": 40.0,
        "step_ns": {"graph": [ratio * 8e6] * 8, "eager": [2 * ratio * 8e6] * 8},
        "logits_apart": apart,
    }
    return {"copy_bytes": 1_000_000, "copy_ns": [1e6, 1e6, 9e6], "steps": {"1": step, "32": step}}


def decoded_cell(batch: int, cost: Mapping[str, float], **others: Any) -> dict[str, Any]:
    """What is kept of such a record, as a file has it."""
    kept = gpu_decode.condensed(Decoded(record_of(batch, cost, **others)))
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


def record_of(
    batch: int,
    cost: Mapping[str, float],
    jump_ms: float = 10.5,
    again: float = 10.0,
    whose: Whose = "not_offered",
) -> Decoding:
    """8b where a pass takes 10 ms without a grammar; `cost` has the milliseconds with one, by way to fill.
    Half of the forced text needs no pass; `whose` fault it is that one setting was lost."""
    texts = {"a": [1] * 40, "b": [1] * 40}
    arms = [arm("xgrammar", "reference"), arm("llguidance"), arm("xgrammar (again)", "a/a")]
    arms[2] = replace(arms[2], backend="xgrammar")
    base = Setting(MIXED, batch=batch, texts=2)
    ways = {
        "one thread": base,
        "one call": replace(base, batch_fill=True),
        "no overlap": replace(base, overlap=False),
    }
    settings = {
        setting: {
            "xgrammar": Played(texts, cost[way]),
            "llguidance": Played(texts, 10.0),
            "xgrammar (again)": Played(texts, cost[way] * again / 10),
        }
        for way, setting in ways.items()
    }
    forced = Setting(FORCED, batch=batch, texts=2)
    settings[forced] = {name.name: Played(texts) for name in arms}
    jumps = Played({name: [2] * 20 for name in texts}, jump_ms)
    settings[replace(forced, strategy="jump_forward")] = {name.name: jumps for name in arms}
    losses = [Loss(0, "llguidance", 1, whose, "no <such> | call")]
    record = decoding(settings, plain=Played(texts), arms=arms, forks=1, losses=losses)
    model = {"read_bytes": 8_000_000, "cache_bytes_per_token": 0}
    return replace(record, children=(replace(record.children[0], model=model),))


def test_a_setting_in_which_our_own_code_failed_costs_itself_and_is_measured_again(
    script: ModuleType, tmp_path: Path
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
        assert script.main(["--out", str(tmp_path), "--show", "decode"]) == INCOMPLETE
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


def figures_of(
    first: Mapping[str, float], jump_ms: float = 10.5, apart: float = 0.01, again: float = 10.0
) -> Figures:
    cells = {"floor-8b": floor_cell(1.1, apart)}
    for batch in (1, 32):
        cells[f"decode-8b-{batch}-fork-1"] = decoded_cell(batch, first, jump_ms=jump_ms, again=again)
    figures = Figures({"decode": store("decode", cells)})
    figures.plan = Plan(shapes=("8b",), batches=(1, 32))
    return figures


COST = {"one thread": 10.8, "one call": 10.4, "no overlap": 9.0}


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
    assert all(
        figure.noise is not None and figure.noise.value == pytest.approx(1.1) for figure in constrained
    )
    noise = figures.noise(where)
    assert noise is not None and noise.value == pytest.approx(1.1), "the A/A arm's own difference"
    assert all(row["arm"] != "xgrammar (again)" for row in figures.rows(where))


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


# ------------------------------------------------------------------------------- cold grammars, and shares


class Slow:
    """An adapter whose compiles of the newcomer's grammar take so many seconds more."""

    def __init__(self, inner: Any, seconds: float) -> None:
        self.inner, self.seconds = inner, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def compile(self, grammar: Any) -> Any:
        time.sleep(self.seconds if "field_" in grammar.text else 0)
        return self.inner.compile(grammar)


@pytest.fixture(scope="module")
def bench() -> gpu_loads.Bench:
    """A model without a network, and the backend whose compiles take a millisecond."""
    vocabulary = load_vocabulary("probe")
    model = FakeModel(vocabulary, rows=3, positions=512, chunk=64)
    model.during = lambda: time.sleep(0.002)
    return gpu_loads.Bench(model, vocabulary, make(parse_specs("llguidance")[0], vocabulary))


def test_a_cold_grammar_holds_up_the_batch_in_the_foreground_alone(
    bench: gpu_loads.Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_loads, "LENGTHS", {"plain strings": None})
    monkeypatch.setattr(gpu_loads, "LONG_LIMIT", 30)
    monkeypatch.setattr(gpu_loads, "LIMIT", 8)
    slow = replace(bench, adapter=Slow(bench.adapter, 0.1))  # type: ignore[arg-type]
    cell = gpu_loads.cold_cell(slow, 3, 1)
    runs = {run["mode"]: run for run in cell["runs"]}
    assert list(sorted(runs)) == sorted(gpu_loads.MODES)
    assert {mode: run["how"] for mode, run in runs.items()} == {
        "warm": "hit",
        "warm again": "hit",
        "foreground": "miss",
        "thread": "miss",
    }
    assert all(run["others_ends"] == ["limit"] and len(run["others_tpot_ns"]) == 2 for run in runs.values())
    assert runs["foreground"]["others_gap_ns"] > 1e8
    assert runs["thread"]["others_gap_ns"] < runs["foreground"]["others_gap_ns"], "a thread compiles beside"
    assert min(runs["foreground"]["ttft_ns"], runs["thread"]["ttft_ns"]) > 1e8
    assert {run["beside"] for run in runs.values()} == {2}
    figures = Figures({"cold": store("cold", {})})
    known = figures.cold(cell, "plain strings", "foreground")
    assert known["others"].value > 1 and known["compile_ns"] > 1e8
    assert figures.cold(cell, "plain strings", "warm")["others"].value == 1
    runs["foreground"]["beside"] = 1
    assert figures.cold(cell, "plain strings", "foreground")["others"] is None, "it came too late"


@pytest.mark.long
def test_a_share_of_the_requests_keeps_its_grammar(
    bench: gpu_loads.Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_loads, "LIMIT", 16)
    made = requests(find_workload(MIXED), bench.vocabulary, count=10, prompt_tokens=4)
    for share in gpu_loads.SHARES:
        kept = gpu_loads.with_share(made, share)
        assert sum(request.grammar is not None for request in kept) == round(10 * share)
    cell = gpu_loads.share_cell(bench, 3, 1)
    counts = [(run["share"], run["again"], run["structured"], run["answered"]) for run in cell["runs"]]
    assert sorted(counts) == [
        (0.0, False, 0, 3),
        (0.2, False, 0, 3),
        (0.5, False, 1, 3),
        (0.8, False, 2, 3),
        (1.0, False, 3, 3),
        (1.0, True, 3, 3),
    ]
    figures = Figures({"share": store("share", {})})
    assert figures.share(cell, 0.0)["throughput"].value == 1
    assert figures.share(cell, 1.0)["tokens_per_s"] > 0


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
    assert "| 8b | 1 | all_forced | jump_forward | xgrammar | 1.9 | 2.00 | 0.952 | 4/4 |" in lines
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


@pytest.mark.parametrize("kind", ["floor", "share", "decode"])
def test_a_cell_of_a_model_on_a_slow_path_ends_at_once(
    script: ModuleType, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On this CPU, as if it was a device without our kernels."""
    monkeypatch.setattr(Model, "describe", lambda _: FAST | {"kernels": False, "kind": "shape"})
    monkeypatch.setattr(script, "VOCABULARY", "probe")
    monkeypatch.setattr(gpu_decode, "VOCABULARY", "probe")
    plan = replace(plan_of("cpu"), backends=("llguidance",))
    cell = next(cell for part in PARTS for cell in plan.cells(part) if cell.kind == kind)

    def decodes(request: DecodeRequest, _: object) -> None:
        assert request.accepts is not None
        request.accepts(FAST | {"kernels": False})  # as the engine does with the model of an arm's process

    monkeypatch.setattr(gpu_decode, "decode", decodes)
    with pytest.raises(BadInput, match="not on the fast paths: layers by torch's operations"):
        script.measured(cell, plan, "cpu", tmp_path)


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


# ------------------------------------------------------------------------------------------ the real thing


@pytest.mark.long
def test_bare_steps_of_a_model_and_logits_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU the graph's place is taken by the same static buffers."""
    vocabulary = byte_vocabulary()
    monkeypatch.setattr(gpu_floor, "STEPS", 4)
    monkeypatch.setattr(gpu_floor, "ROUNDS", 2)

    def judged() -> tuple[dict[str, Any], str]:
        cell = gpu_floor.floor_cell("tiny", vocabulary, (2,), 1 << 20, "cpu")
        figures = Figures({"decode": store("decode", {"floor-tiny": cell}, device="cpu")})
        figures.plan = Plan(shapes=("tiny",), batches=(2,))
        (figure,) = (figure for figure in figures.asked() if figure.asked.what == LOGITS.what)
        return cell, figure.verdict

    cell, said = judged()
    steps = cell["steps"]["2"]
    assert said == "kept" and steps["same_choice"] == 1 and 0 <= steps["wide_apart"] < 1e-4
    assert min(cell["copy_ns"] + steps["step_ns"]["graph"] + steps["step_ns"]["eager"]) > 0
    run = Static.run
    monkeypatch.setattr(
        Static, "run", lambda self, size, values, unseen=None: run(self, size, [0, *values[1:]])
    )  # another token goes in
    assert judged()[1] == "NOT KEPT"


def test_a_layer_is_timed_over_passes_that_are_queued_together(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = script_of("layers")
    model = load_model("tiny", 64, rows=1, positions=layers.BEHIND + 4)
    fed: list[int] = []
    extend = model.extend

    def seen(tokens: Mapping[int, Any], **options: Any) -> Any:
        fed.append(len(tokens[0]))
        return extend(tokens, **options)

    monkeypatch.setattr(model, "extend", seen)

    class Counts:
        def time_ns(self, call: Callable[[], object], times: int) -> int:
            before = len(fed)
            for _ in range(times):
                call()
            return (len(fed) - before) * 7_000

        def finish(self) -> None: ...

    assert layers.passes(model, 4, Counts()) == {"as it is": 7.0, "many": 7.0}
    assert fed[:1] == [layers.BEHIND] and fed[1 : 1 + layers.QUEUED] == [4] * layers.QUEUED
    assert layers.QUEUED > 1 and model.length(0) == layers.BEHIND + 4


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, 2])
def test_a_cell_is_decoded_here(batch: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every setting, by a real backend and its A/A arm, with a model of the shape tiny."""
    monkeypatch.setattr(gpu_decode, "VOCABULARY", "probe")
    plan = Plan(
        shapes=("tiny",),
        batches=(batch,),
        forks=1,
        rounds=1,
        texts=4,
        backends=("llguidance",),
        own_kernel=False,
    )
    (asked,) = (cell for cell in plan.cells("decode") if cell.kind == "decode")
    cell = gpu_decode.decode_cell(asked, plan, "cpu", tmp_path / "record", lambda _: None)
    settings = gpu_decode.settings_of(batch, plan.texts, plan.own_kernel)
    loads, texts = {setting.plain for setting in settings}, settings[0].texts
    assert not cell["lost"] and len(cell["rows"]) == 2 * (len(settings) + len(loads))
    # Where all of a text is forced its ids are known at once, and then there is no time between them.
    assert all(twin["x"] is not None for twin in cell["again"] if twin["workload"] == MIXED)
    for row in cell["rows"]:
        assert row["answered"] == row["requests"] == texts
        at_once = (row["workload"], row["strategy"]) == (FORCED, "jump_forward")
        assert row["tpot_ns"] > 0 or at_once
        none = row["strategy"] == "none"
        assert none or row["right"].get("valid", 0) == row["ends"].get("end_of_sequence", 0)
        assert (row["per_byte"] is not None) == none
        assert at_once or (row["over_none"] is None) == none
        assert (row["speed_up"] is None) == (row["strategy"] in ("none", "stepwise"))
    figures = Figures({"decode": store("decode", {asked.name: cell}, device="cpu")})
    figures.plan = plan
    where = ("tiny", batch)
    assert figures.best_way(where, "llguidance")[1] is not None and figures.noise(where) is not None
    if batch == 1:
        _, share, ceiling = figures.speed_up(where, "llguidance", "jump_forward", FORCED)
        assert share is not None and ceiling is not None and ceiling > 1.5


@pytest.mark.long
def test_kernels_are_timed_and_probed_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # no compiler, which takes a minute
    sizes = gpu_kernels.times_plan(512, "bfloat16", (1, 2), 2)
    times = gpu_kernels.kernel_cell(sizes, "llguidance", "cpu", tmp_path / "times", lambda _: None)
    assert {(row["kernel"], row["batch"]) for row in times["times"]} >= {("copy", 1), ("llguidance/torch", 2)}
    assert all(row["outcome"] == "ok" and row["median_ns"] > 0 for row in times["times"])
    assert not times["probed"] and times["moves"]
    probes = gpu_kernels.kernel_cell(
        gpu_kernels.PROBES_PLAN, "llguidance", "cpu", tmp_path / "probes", lambda _: None
    )
    assert probes["probed"]["llguidance/torch"]["passed"] > 20 and not probes["times"] and not probes["moves"]


@pytest.mark.long
def test_the_script_runs_here(tmp_path: Path) -> None:
    """The shell script, in this environment, with a model of the shape tiny; the second call has nothing to
    do."""
    command = [
        "bash",
        str(ROOT / "benchmarks" / "gpu.sh"),
        "--out",
        str(tmp_path / "out"),
        "--device",
        "cpu",
        "share",
    ]
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    first = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert first.returncode == OK, first.stdout + first.stderr
    held = gpu_store.read(tmp_path / "out" / "share.json")
    assert not held.missing() and held.environment["versions"]["xgrammar"] and held.environment["code_sha256"]
    assert {run["answered"] for cell in held.cells.values() for run in cell["runs"]} == {4}
    second = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert second.returncode == OK and "share: 2 of 2 cells are stored" in second.stdout
    assert gpu_store.read(tmp_path / "out" / "share.json").cells == held.cells
