"""benchmarks/gpu.py without a GPU: what is planned fits, cells are stored and not done again, one that fails
or hangs costs itself only, and figures are held against what was asked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import gpu_alone
import gpu_decode
import gpu_floor
import gpu_kernels
import gpu_loads
import gpu_process
import gpu_report
import gpu_running
import gpu_store
import pytest
from decode_tools import FakeModel
from gpu_figures import LOGITS, Figures
from gpu_plan import FORCED, LIMIT, MIXED, PARTS, PROMPT, Cell, Plan, plan_of
from gpu_records import COST, ENVIRONMENT, decoded_cell, record_of, store
from gpu_records import floor_cell as gpu_floor_cell
from places import ROOT
from report_folders import write_decoding
from scripts import script_of

from harness.backend.process.system import descendants, is_running, proc_content, rss_bytes
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.errors import BAD_INPUT, GATE_FAILED, INCOMPLETE, OK, BadInput
from harness.rows.folder import locked
from harness.serve.decode.model.graphs import NotCaptured, Static
from harness.serve.decode.model.model import load_model
from harness.serve.decode.model.shapes import SHAPES
from harness.serve.decode.record import FIGURES, LINES
from harness.serve.decode.session import DecodeRequest
from harness.serve.decode.workloads import find_workload, requests

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
    logits = 4 * 512 * 5 * vocabulary  # a token and four of a draft a row
    assert 15e9 < weights < 17e9 and 16e9 < cache < 18e9
    assert weights + 2 * cache + 6 * logits < 100e9 < 139 * 2**30


def test_the_page_tells_the_plan() -> None:
    rows = [line.split("|") for line in (ROOT / "docs" / "gpu.md").read_text("utf-8").splitlines()]
    told = {row[1].strip(" `"): (row[3].strip(), row[4].strip()) for row in rows if len(row) == 6}
    for part in PARTS:
        cells = plan_of("cuda").cells(part)
        assert told[part] == (str(len(cells)), f"{sum(cell.seconds for cell in cells) / 60:.0f} min")


# -------------------------------------------------------------------------------- cells, stored one by one


PLANNED = Plan(shapes=("1b",), batches=(32, 1), forks=1)


def answers(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, result: Callable[[str], dict[str, Any]]
) -> list[str]:
    """Let every cell be answered by that function; returns the names in the order in which they are asked."""
    asked: list[str] = []

    def in_process(cell: Cell, *_: Any) -> dict[str, Any]:
        asked.append(cell.name)
        return result(cell.name)

    monkeypatch.setattr(gpu, "in_process", in_process)
    return asked


def test_a_cell_that_is_done_is_not_done_again_and_failures_come_last(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held = store("decode", {}, path=tmp_path / "decode.json")
    names = [cell.name for cell in PLANNED.cells("decode")]
    assert names == ["floor-1b", "decode-1b-32-fork-1", "decode-1b-1-fork-1"]

    def interrupted(name: str) -> dict[str, Any]:
        if name == names[2]:
            raise KeyboardInterrupt
        return {"error": "it fell"} if name == names[0] else {"rows": []}

    asked = answers(gpu, monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        gpu.run_part("decode", PLANNED, held, tmp_path, 480.0)
    known = gpu_store.read(tmp_path / "decode.json")
    assert list(known.cells) == asked[:2] == names[:2]
    asked = answers(gpu, monkeypatch, lambda _: {"rows": []})
    gpu.run_part("decode", PLANNED, known, tmp_path, 480.0)
    assert asked == [names[2], names[0]], "first what was never tried, then what failed"
    known = gpu_store.read(tmp_path / "decode.json")
    assert set(known.results()) == set(names)
    asked = answers(gpu, monkeypatch, lambda _: {"error": "never asked"})
    gpu.run_part("decode", PLANNED, known, tmp_path, 480.0)
    assert not asked


def test_a_cell_of_which_a_part_is_known_is_measured_again_behind_the_others(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [cell.name for cell in PLANNED.cells("decode")]
    part = {"rows": [1], "partial": "killed after 305 s", "seconds": 30.0}
    tried = {names[0]: part, names[1]: {"error": "it fell", "seconds": 1.0}}
    held = store("decode", tried, path=tmp_path / "decode.json")
    assert set(held.missing()) >= {names[0], names[1]} and set(held.results()) == {names[0]}
    asked = answers(gpu, monkeypatch, lambda name: {"rows": [1, 2], "partial": "one setting was lost"})
    gpu.run_part("decode", PLANNED, held, tmp_path, 480.0)
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
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = store("decode", {"floor-1b": {"rows": [1], "seconds": 9.0}}, path=tmp_path / "decode.json")
    asked = answers(gpu, monkeypatch, lambda _: {"rows": [2]})
    cells = {cell.name: cell for cell in PLANNED.cells("decode")}
    only = [cells[name] for name in ("decode-1b-1-fork-1", "floor-1b")]
    gpu.run_part("decode", PLANNED, held, tmp_path, 480.0, only=only)
    assert asked == ["decode-1b-1-fork-1", "floor-1b"]
    assert "not begun" not in capsys.readouterr().out
    held.cells["floor-1b"]["seconds"] = 9.0
    gpu.run_part("decode", PLANNED, held, tmp_path, 5.0, only=only)
    assert asked[2:] == ["decode-1b-1-fork-1"], "the first is tried, and the other does not fit"
    assert "  floor-1b not begun: thought to take 10 s, 5 s left\n" in capsys.readouterr().out
    assert gpu_store.read(tmp_path / "decode.json").cells["floor-1b"]["rows"] == [2]


def test_named_cells_are_measured_in_the_order_in_which_they_are_named_part_by_part(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[tuple[str, list[str], float]] = []

    def run_part(part: str, *rest: Any) -> None:
        *_, seconds, _, only, _ = rest
        ran.append((part, [cell.name for cell in only], seconds))

    monkeypatch.setattr(gpu, "run_part", run_part)
    monkeypatch.setattr(gpu, "write_page", lambda _: None)
    parts = {"kernels": 480.0, "decode": 250.0, "share": 480.0}
    names = ["share-tiny-4-llguidance", "decode-tiny-1-fork-1", "share-tiny-4-xgrammar", "floor-tiny"]
    gpu.measure(parts, tmp_path, "cpu", names)
    assert ran == [
        ("share", ["share-tiny-4-llguidance", "share-tiny-4-xgrammar"], 480.0),
        ("decode", ["decode-tiny-1-fork-1", "floor-tiny"], 250.0),
    ]
    with pytest.raises(BadInput, match=r"cold-tiny-4-xgrammar.* is of the part cold, which is not named"):
        gpu.measure(parts, tmp_path, "cpu", [*names, "cold-tiny-4-xgrammar"])
    assert len(ran) == 2, "nothing began"


def test_a_cell_that_there_is_not_is_said(
    gpu: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert gpu.main(["--out", str(tmp_path), "--device", "cpu", "--cells", "floor-9b"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert 'no cell "floor-9b"' in said and "floor-tiny" in said


def test_no_cell_begins_that_is_not_thought_to_end(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = answers(gpu, monkeypatch, lambda _: {"rows": []})
    held = store("decode", {}, path=tmp_path / "decode.json")
    gpu.run_part("decode", PLANNED, held, tmp_path, 63.0)
    assert asked == ["floor-1b", "decode-1b-1-fork-1"], "one of 62 s fits, one of 64 s does not"
    asked.clear()
    gpu.run_part("decode", PLANNED, held, tmp_path, 1.0)
    assert asked == ["decode-1b-32-fork-1"], "a first one is tried however little time there is"


def test_a_cell_takes_as_long_as_one_like_it_took(gpu: ModuleType) -> None:
    cells = plan_of("cuda").cells("decode")
    first, second = (cell for cell in cells if (cell.shape, cell.batch) == ("8b", 32) and cell.fork < 2)
    assert gpu.expected(second, cells, {}) == second.seconds
    assert gpu.expected(second, cells, {first.name: {"seconds": 200.0}}) == pytest.approx(220)
    assert gpu.expected(second, cells, {first.name: {"seconds": 1.0, "error": "x"}}) == second.seconds
    for killed in ({"error": "x"}, {"partial": "x"}):
        tried = {first.name: killed | {"seconds": 305.0}}
        assert gpu.expected(second, cells, tried) == pytest.approx(335.5), "it takes longer than it had"


def test_no_cell_takes_longer_than_it_is_thought_to() -> None:
    """Each cell that an H200 measured with the settings of today."""
    for part in ("decode", "cold", "share"):
        held = gpu_store.read(ROOT / "results" / "published" / "gpu-h200-20261128" / f"{part}.json")
        thought = {cell.name: cell.seconds for cell in plan_of("cuda").cells(part)}
        assert held.cells and all(cell["seconds"] <= thought[name] for name, cell in held.cells.items())


HANGS = """
import sys, time
if "decode-1b-32-fork-1" in sys.argv:
    time.sleep(60)
if "floor-1b" in sys.argv:
    open(sys.argv[sys.argv.index("--answer") + 1], "w").write('{"steps": {}}')
else:
    sys.exit(5)
"""


def measure_by(text: str, gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Has the script measure each cell by a program with this text, in place of itself."""
    (folder / "cell.py").write_text(text)
    monkeypatch.setattr(gpu, "__file__", str(folder / "cell.py"))


def test_a_cell_that_hangs_or_dies_costs_itself_only(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure_by(HANGS, gpu, monkeypatch, tmp_path)
    begin = time.monotonic()
    floor, hangs, dies = PLANNED.cells("decode")
    assert gpu.in_process(floor, "cuda", tmp_path, 30.0) == {"steps": {}}
    assert gpu.in_process(hangs, "cuda", tmp_path, 0.3)["error"].startswith("killed after 0 s")
    assert gpu.in_process(dies, "cuda", tmp_path, 30.0) == {"error": "its process ended with 5"}
    assert time.monotonic() - begin < 20


ANSWERS = """
import os, sys, time
out = open(sys.argv[sys.argv.index("--answer") + 1], "w")
if "decode-1b-1-fork-1" in sys.argv:
    out.write('{"runs": [1,')
    out.flush()
    os._exit(1)
with out:
    out.write('{"steps": {}}')
time.sleep(60)
"""


@pytest.mark.parametrize("seconds", [30.0, 1.2])
def test_an_answer_counts_whatever_becomes_of_its_process(
    seconds: float, gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that does not end costs some seconds, and one that is killed behind its answer costs nothing
    of that; half of an answer is an error of that cell alone."""
    monkeypatch.setattr(gpu_process, "LINGER", 0.5)
    measure_by(ANSWERS, gpu, monkeypatch, tmp_path)
    begin = time.monotonic()
    floor, _, torn = PLANNED.cells("decode")
    assert gpu.in_process(floor, "cuda", tmp_path, seconds) == {"steps": {}}
    assert time.monotonic() - begin < 15
    said = {"error": "its answer is torn; its process ended with 1"}
    assert gpu.in_process(torn, "cuda", tmp_path, 30.0) == said


def test_half_of_an_answer_never_stands_in_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The write of the file fails in its midst, as it does where the disk is full."""

    def fails(path: Path, content: bytes) -> int:
        with open(path, "wb") as file:
            file.write(content[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gpu_alone, "measured", lambda *_: {"runs": [1, 2]})
    monkeypatch.setattr(Path, "write_bytes", fails)
    monkeypatch.setattr(Path, "write_text", lambda path, text, *_: fails(path, text.encode()))
    cell = Cell("decode", "floor", 1.0, "tiny")
    with pytest.raises(OSError, match="No space"):
        gpu_alone.alone(cell, plan_of("cpu"), "cpu", tmp_path / "out", tmp_path / "answer.json")
    assert not (tmp_path / "answer.json").exists()


@pytest.mark.parametrize(("program", "name"), [(sys.executable, "gpu.py"), ("bash", "gpu.sh")])
def test_a_script_that_is_told_to_end_ends_its_cell(program: str, name: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [program, str(ROOT / "benchmarks" / name), "--out", str(tmp_path / "out")]
    script = subprocess.Popen(
        [*command, "--device", "cpu", "--cells", "floor-tiny", "decode"],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHON": sys.executable},
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    cell = 0
    # Until the cell is a program of its own that has loaded some of its libraries, and the script knows it.
    while rss_bytes(cell) < 50e6 and time.monotonic() < deadline:
        time.sleep(0.05)
        below = descendants(script.pid) if any(temporary.iterdir()) else ()
        cell = next((pid for pid in below if b"--cell\0" in proc_content(f"/proc/{pid}/cmdline")), 0)
    script.terminate()
    assert script.wait(60) == 128 + signal.SIGTERM
    assert cell and not is_running(cell), "its cell has ended too"
    assert not any(temporary.iterdir())


ENDS_SLOWLY = """
import signal, sys, time
from pathlib import Path

def end(*_):
    time.sleep(1)
    Path(sys.argv[0]).with_name("ended").touch()
    sys.exit(143)

if "-P" not in sys.argv:
    signal.signal(signal.SIGTERM, end)
    print("ready")
    time.sleep(60)
"""


def test_a_script_that_is_told_to_end_twice_waits_for_what_it_began(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\n{ENDS_SLOWLY}")
    python.chmod(0o755)
    command = ["bash", str(ROOT / "benchmarks" / "gpu.sh"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHON": str(python)}, stdout=subprocess.PIPE, text=True
    ) as script:
        assert script.stdout is not None and script.stdout.readline() == "ready\n"
        script.terminate()
        time.sleep(0.3)
        script.terminate()
        assert script.wait(60) == 143 and (tmp_path / "ended").exists()


WORKS = """
import json, shutil, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
name = sys.argv[sys.argv.index("--cell") + 1]
folder = out / "running" / name
assert not folder.exists(), "the record of another try"
assert not (out.with_name(f"{out.name}-records") / name).exists(), "the record of another try"
shutil.copytree(out / "record", folder)
time.sleep(60)
"""


def test_what_a_killed_cell_had_measured_is_kept(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure_by(WORKS, gpu, monkeypatch, tmp_path)
    monkeypatch.setattr(gpu, "GRACE", 3.0)
    out = tmp_path / "out"
    write_decoding(out / "record", record_of(32, COST))
    lines = (out / "record" / LINES).read_text().splitlines(keepends=True)
    (out / "record" / LINES).write_text("".join(lines[: len(lines) // 2]))
    held = store("decode", {}, path=out / "decode.json")
    (killed,) = (cell for cell in PLANNED.cells("decode") if cell.batch == 32)
    (out.with_name("out-records") / killed.name).mkdir(parents=True)
    gpu.run_part("decode", PLANNED, held, out, 0.0, only=[killed])
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


def test_a_record_that_came_to_its_end_is_whole_though_its_cell_was_killed(
    gpu: ModuleType, tmp_path: Path
) -> None:
    """A cell is killed behind its last run, while it reads its record."""
    folder = write_decoding(tmp_path / "whole", record_of(32, COST))
    assert gpu_decode.salvaged(folder, "killed") == decoded_cell(32, COST)
    lost = write_decoding(tmp_path / "lost", record_of(32, COST, whose="harness_error"))
    assert gpu_decode.salvaged(lost, "killed")["partial"].startswith("killed; ")
    cut = write_decoding(tmp_path / "cut", record_of(32, COST), finish=False)
    assert gpu_decode.salvaged(cut, "killed")["partial"].startswith("killed; ")
    cells = plan_of("cuda").cells("decode")
    cell = next(cell for cell in cells if cell.batch == 32)
    assert gpu.expected(cell, cells, {cell.name: decoded_cell(32, COST)}) == cell.seconds


def test_what_is_kept_of_a_large_record_is_there_without_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each arm behind the first keeps what was measured of the arms before it, because a lent machine gives
    back no file as large as the record."""
    folder, record, rows = tmp_path / "record", record_of(32, COST), list[int]()
    first = record.setup.arms[0].name
    before = replace(record, batches=tuple(run for run in record.batches if run.arm == first), losses=())

    def decodes(request: DecodeRequest, _: object) -> None:
        assert request.accepts is not None
        request.accepts({})
        assert not (folder / gpu_running.SO_FAR).exists()
        write_decoding(folder, before, finish=False)
        for large in (1 << 40, 1):
            monkeypatch.setattr(gpu_decode, "LARGE", large)
            request.accepts({})
            assert (folder / gpu_running.SO_FAR).exists() is (large == 1)
        rows.append(len(gpu_decode.salvaged(folder, "killed")["rows"]))
        (folder / FIGURES).unlink()
        (folder / LINES).unlink()
        raise BadInput("the call was killed")

    monkeypatch.setattr(gpu_decode, "decode", decodes)
    cell = next(cell for cell in plan_of("cuda").cells("decode") if cell.batch == 32)
    with pytest.raises(BadInput, match="was killed"):
        gpu_decode.decode_cell(cell, plan_of("cuda"), "cuda", folder, print)
    kept = gpu_running.rest_of(cell, folder, "the call was killed")
    assert len(kept["rows"]) == rows[0] > 3 and {row["arm"] for row in kept["rows"]} == {first}
    assert kept["partial"] == "the call was killed; 5 of 15 settings have figures"
    write_decoding(tmp_path / "more", replace(record, losses=()), finish=False)
    shutil.copy(folder / gpu_running.SO_FAR, tmp_path / "more")
    more = gpu_running.rest_of(cell, tmp_path / "more", "killed")
    assert len(more["rows"]) > rows[0], "the record holds more than what was kept beside it"
    (tmp_path / "more" / LINES).write_text("torn\n")
    gpu_decode.keep_condensed(tmp_path / "more")
    assert len(gpu_decode.salvaged(tmp_path / "more", "killed")["rows"]) == rows[0]


KEEPS = """
import json, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
name = sys.argv[sys.argv.index("--cell") + 1]
folder = out / "running" / name
assert not folder.exists(), "the record of another try"
assert not (out.with_name(f"{out.name}-records") / name).exists(), "the record of another try"
folder.mkdir(parents=True)
(folder / "so_far.json").write_text((out / "kept.json").read_text())
time.sleep(60)
"""


@pytest.mark.parametrize("part", ["cold", "share", "decode"])
def test_what_a_killed_cell_of_another_kind_had_measured_is_kept(
    part: str, gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure_by(KEEPS, gpu, monkeypatch, tmp_path)
    monkeypatch.setattr(gpu, "GRACE", 3.0)
    out = tmp_path / "out"
    out.mkdir()
    run: dict[str, Any] = {"share": 0.0, "again": False, "repeat": 0, "tokens_per_s": 9.0, "structured": 0}
    run |= {"tpot_ns": 1e6, "tpot_structured_ns": None, "tpot_free_ns": 1e6}
    if part == "cold":
        run |= {"newcomer": "plain strings", "mode": "warm", "beside": 1, "others_tpot_ns": [2e6], "why": ""}
        run |= {"others_gap_ns": 3e6, "ttft_ns": 1e6, "compile_ns": None, "how": "hit"}
    so_far: dict[str, Any] = {"runs": [run, run | {"repeat": 1}], "model": {"name": "1b"}}
    if part == "decode":
        so_far = gpu_floor_cell(1.1) | {"model": {}}
    (out / "kept.json").write_text(json.dumps(so_far))
    held = store(part, {}, path=out / f"{part}.json")
    killed = next(
        cell for cell in held.plan.cells(part) if cell.shape == "1b" and cell.kind in (part, "floor")
    )
    assert (killed.kind == "floor") is (part == "decode")
    gpu.run_part(part, held.plan, held, out, 0.0, only=[killed])
    kept = gpu_store.read(out / f"{part}.json").cells[killed.name]
    what = "batches" if part == "decode" else "runs"
    why = f"killed after 3 s; give the part more --seconds; 2 {what} are stored"
    assert kept["partial"] == why and so_far.items() <= kept.items()
    assert killed.name in held.missing() and gpu_store.held(kept) == 2
    page = gpu_report.page({part: held})
    assert f"  - `{killed.name}` is partial, and is measured again: {why}" in page
    assert f"| 1b | {killed.batch or 1} | " in page, "its figures are on the page"


def test_a_cell_keeps_what_it_has_measured_so_far(tmp_path: Path) -> None:
    keep = gpu_running.keeper(tmp_path / "records" / "cell", {"model": 1})
    for runs in ([1], [1, 2]):
        keep({"runs": runs})
        kept = gpu_running.rest_of(Cell("share", "share", 1.0), tmp_path / "records" / "cell", "it fell")
        assert kept == {"runs": runs, "model": 1, "partial": f"it fell; {len(runs)} runs are stored"}
    assert gpu_running.rest_of(Cell("share", "share", 1.0), tmp_path, "it fell") == {"error": "it fell"}
    keep({"runs": [1, 2], gpu_running.PLANNED: 3})
    kept = gpu_running.rest_of(Cell("share", "share", 1.0), tmp_path / "records" / "cell", "it fell")
    assert kept == {"runs": [1, 2], "model": 1, "partial": "it fell; 2 runs are stored"}
    keep({"runs": [1, 2, 3], gpu_running.PLANNED: 3})
    kept = gpu_running.rest_of(Cell("share", "share", 1.0), tmp_path / "records" / "cell", "it fell")
    assert kept == {"runs": [1, 2, 3], "model": 1}, "all is there, though the cell was killed behind that"


def test_an_error_of_a_cell_is_its_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, told in (
        (BadInput("it does not fit"), "it does not fit"),
        (KeyError("rows"), "KeyError('rows')"),
    ):

        def fails(*_: object, error: Exception = error) -> dict[str, Any]:
            raise error

        monkeypatch.setattr(gpu_alone, "measured", fails)
        gpu_alone.alone(
            Cell("decode", "floor", 1.0, "tiny"),
            plan_of("cpu"),
            "cpu",
            tmp_path / "out",
            tmp_path / "answer.json",
        )
        assert json.loads((tmp_path / "answer.json").read_text()) == {"error": told}
    assert "KeyError" in capsys.readouterr().err, "a fault of ours has its traceback in the log"


def test_a_file_is_filled_further_and_none_that_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_store, "environment", lambda _: ENVIRONMENT)
    held = gpu_store.opened(tmp_path / "share.json", "share", "cuda", ["gpu.py"])
    held.add("share-8b-32-xgrammar", {"runs": []})
    again = gpu_store.opened(tmp_path / "share.json", "share", "cuda", ["gpu.py", "share"])
    assert [command["argv"] for command in again.commands] == [["gpu.py"], ["gpu.py", "share"]]
    again.add("share-8b-32-xgrammar", {"error": "a second try"})
    assert again.cells["share-8b-32-xgrammar"] == {"runs": []}, "a failure replaces no result"
    (tmp_path / "share.json").write_text("[]")
    with pytest.raises(BadInput, match=r"no file of benchmarks/gpu\.py"):
        gpu_store.stored(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"device": "NVIDIA H200"}, "is of another device (made up, here NVIDIA H200)"),
        ({"torch": "3"}, "is of another torch (2, here 3)"),
        ({"versions": {}}, "is of other versions ({'xgrammar': '1'}, here {})"),
    ],
)
def test_a_folder_of_another_device_or_version_is_refused_before_anything_is_measured(
    changed: dict[str, Any],
    said: str,
    gpu: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store("share", {"share-tiny-4-xgrammar": {"runs": []}}, "cpu", tmp_path / "share.json").save()
    monkeypatch.setattr(gpu_store, "environment", lambda _: ENVIRONMENT | changed)
    asked = answers(gpu, monkeypatch, lambda _: {"rows": []})
    assert gpu.main(["--out", str(tmp_path), "--device", "cpu", "decode"]) == BAD_INPUT
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1
    assert not asked and not (tmp_path / "decode.json").exists()


def test_two_processes_do_not_measure_into_one_folder(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answers(gpu, monkeypatch, lambda _: {"rows": []})
    with locked(tmp_path):
        assert gpu.main(["--out", str(tmp_path), "--device", "cpu", "decode"]) == BAD_INPUT
    error = capsys.readouterr().err
    assert error == f"gpu: {tmp_path} is being written by another process; wait for it, or end it\n"
    assert not asked and not list(tmp_path.iterdir())


def test_a_folder_of_two_devices_has_no_page(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store("kernels", {}, "cuda", tmp_path / "kernels.json").save()
    monkeypatch.setitem(ENVIRONMENT, "device", "cpu: another")
    store("share", {}, "cpu", tmp_path / "share.json").save()
    assert gpu.main(["--out", str(tmp_path), "--show"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert "share.json is of another device (cpu: another, in kernels.json made up)" in said


def test_the_exit_code_says_whether_it_is_complete_and_good(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu.main(["--out", str(tmp_path), "--show"]) == BAD_INPUT
    assert gpu.main(["--out", str(tmp_path), "decoding"]) == BAD_INPUT
    assert 'there is no part "decoding"; name kernels' in capsys.readouterr().err
    assert gpu.main(["--out", str(tmp_path), "decode=soon"]) == BAD_INPUT
    assert "stands a number of seconds, as in decode=300" in capsys.readouterr().err
    assert gpu.budgets(["cold", "decode=250"], 480.0) == {"cold": 480.0, "decode": 250.0}
    plan = plan_of("cuda")
    cells: dict[str, dict[str, Any]] = {cell.name: {"runs": []} for cell in plan.cells("share")}
    store("share", cells, path=tmp_path / "share.json").save()
    assert gpu.main(["--out", str(tmp_path), "--show", "share"]) == OK
    assert gpu.main(["--out", str(tmp_path), "--show"]) == INCOMPLETE
    assert "decode: not complete; missing all" in capsys.readouterr().out
    del cells["share-8b-32-xgrammar"]
    store("share", cells, path=tmp_path / "share.json").save()
    assert gpu.main(["--out", str(tmp_path), "--show", "share"]) == INCOMPLETE
    assert "missing share-8b-32-xgrammar\n" in capsys.readouterr().out
    cells["share-8b-32-xgrammar"] = {"error": "| `x` |"}
    store("share", cells, path=tmp_path / "share.json").save()
    assert gpu.main(["--out", str(tmp_path), "--show", "share"]) == INCOMPLETE
    assert "`share-8b-32-xgrammar` failed: / 'x' /" in (tmp_path / "gpu.md").read_text()
    monkeypatch.setattr(gpu, "is_worse", lambda _: True)
    store(
        "share", {cell.name: {"runs": []} for cell in plan.cells("share")}, path=tmp_path / "share.json"
    ).save()
    assert gpu.main(["--out", str(tmp_path), "--show", "share"]) == GATE_FAILED


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
    kept: list[int] = []
    for _ in range(5):
        cell = gpu_loads.cold_cell(slow, 3, 1, lambda so_far: kept.append(len(so_far["runs"])))
        runs = {run["mode"]: run for run in cell["runs"]}
        if {run["beside"] for run in runs.values()} == {2}:
            break  # on a busy machine the newcomer may come when the others are done, and is measured again
    assert list(sorted(runs)) == sorted(gpu_loads.MODES)
    assert {*kept} == {len(gpu_loads.MODES)}, "a repeat is kept whole"
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
    slower = statistics.geometric_mean(
        ours / warm
        for ours, warm in zip(
            runs["foreground"]["others_tpot_ns"], runs["warm"]["others_tpot_ns"], strict=True
        )
    )
    assert known["others"].value == pytest.approx(slower) and known["compile_ns"] > 1e8
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
    held: list[tuple[int, int]] = []
    cell = gpu_loads.share_cell(
        bench, 3, 2, lambda so_far: held.append((len(so_far["runs"]), so_far[gpu_running.PLANNED]))
    )
    assert held == [(len(gpu_loads.SHARES) + 1, 12), (12, 12)], "the last one is known to be whole"
    del cell["runs"][6:]
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


# ------------------------------------------------------------------------------------------ the real thing


@pytest.mark.long
def test_bare_steps_of_a_model_and_logits_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU the graph's place is taken by the same static buffers."""
    vocabulary = byte_vocabulary()
    monkeypatch.setattr(gpu_floor, "STEPS", 4)
    monkeypatch.setattr(gpu_floor, "ROUNDS", 2)

    def judged() -> tuple[dict[str, Any], str]:
        kept: list[int] = []
        cell = gpu_floor.floor_cell(
            "tiny", vocabulary, (2,), 1 << 20, "cpu", lambda so_far: kept.append(so_far[gpu_running.PLANNED])
        )
        assert kept == [len(cell["steps"])] == [1]
        figures = Figures({"decode": store("decode", {"floor-tiny": cell}, device="cpu")})
        figures.plan = Plan(shapes=("tiny",), batches=(2,))
        (figure,) = (figure for figure in figures.asked() if figure.asked.what == LOGITS.what)
        return cell, figure.verdict

    cell, said = judged()
    steps = cell["steps"]["2"]
    assert said == "kept" and steps["same_choice"] == 1 and 0 <= steps["wide_apart"] < 1e-4
    assert min(cell["copy_ns"] + steps["step_ns"]["graph"] + steps["step_ns"]["eager"]) > 0
    with monkeypatch.context() as without_memory:

        def wide_apart(_: Any) -> float:
            raise NotCaptured("the device has no memory for a pass")

        without_memory.setattr(gpu_floor, "wide_apart", wide_apart)
        cell, said = judged()
        steps = cell["steps"]["2"]
        assert said == "kept" and steps["wide_apart"] is None and min(steps["step_ns"]["graph"]) > 0
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
    monkeypatch.setattr(gpu_decode, "LARGE", 1)
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
    so_far = json.loads((tmp_path / "record" / gpu_running.SO_FAR).read_text())["rows"]
    arms = {row["arm"] for row in cell["rows"]}
    assert {row["arm"] for row in so_far} == arms - {"llguidance (again)"} != arms, (
        "before the last arm began"
    )
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
    assert figures.best_way(where, "llguidance")[1] is not None
    assert figures.noise(where, ["stepwise"], MIXED) is not None
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
    """The shell gpu, in this environment, with a model of the shape tiny; the second call has nothing to
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
