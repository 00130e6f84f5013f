"""The engine with real processes: what it records, what it survives, and that a slowed backend is told from a
right one."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from measured import arm, concluded
from places import SUPPORT

from harness.backend.arm import Arm
from harness.backend.grammar import CompiledGrammar, Grammar
from harness.backend.process.service import Service
from harness.cli.main import main
from harness.errors import BadInput
from harness.measure import arm as arm_module
from harness.measure import show
from harness.measure.arm import MeasureHandler, Prepared, load_arm
from harness.measure.engine import MeasureEngine, MeasuringArm, stolen_seconds
from harness.measure.figures import Figures, shape
from harness.measure.protocol import PROFILES, is_disturbed, order
from harness.measure.record import Trace, read_measurement
from harness.measure.session import measured_arms, plan_traces, workload_key
from harness.rows.store import read_info, read_rows

CASES = [
    {
        "description": "digits",
        "regex": "[0-9]{2,20}",
        "tests": [{"text": "0123456789", "valid": True}, {"text": "x", "valid": False}],
    },
    {"description": "word", "regex": "(yes|no)+", "tests": [{"text": "yesnoyesno", "valid": True}]},
    {"description": "nothing to measure", "regex": "a", "tests": [{"text": "b", "valid": False}]},
]


@pytest.fixture(scope="module", autouse=True)
def importable_miniatures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SUPPORT))
        yield


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "toy.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in CASES))
    return path


@pytest.fixture(scope="module")
def measured(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measurement in two forks, to be looked at only."""
    folder = tmp_path_factory.mktemp("measured") / "m"
    assert measure(suite, folder, "miniatures:Reference,unconstrained", "--forks", "2") in (0, 4)
    return folder


def measure(suite: Path, folder: Path, backends: str, *options: str) -> int:
    command = [
        "measure",
        str(suite),
        "--backends",
        backends,
        "--vocabularies",
        "bytes",
        "--out",
        str(folder),
        "--forks",
        "1",
        *options,
    ]
    return main(command)


def test_what_is_recorded(measured: Path) -> None:
    recorded = read_measurement(measured)
    arms = recorded.measurement.arms
    assert recorded.end is not None and recorded.measurement.forks == 2
    assert [each.role for each in arms] == ["reference", "arm", "a/a"]
    assert [each.case for each in recorded.measurement.traces] == ["digits", "word"]
    # `unconstrained` takes the wrong text too: it is measured on what it solves only, and the record says
    # why.
    assert set(recorded.measurement.unsolved["unconstrained"].values()) == {"under_constrained"}
    figures = Figures(recorded)
    assert len(figures.own_set("miniatures:Reference")) == 2 and len(figures.own_set("unconstrained")) == 1
    for slot in recorded.slots:
        cut = shape(slot, recorded.of(slot.figures))
        assert cut.cold.shape == cut.warm.shape == (slot.tokens, 2) and len(cut.sums) == slot.passes
        assert (cut.warm > 0).all() and cut.compile_ns and (cut.sums >= cut.warm.sum(axis=0)).all()
    forks = [each for each in recorded.others if each["kind"] == "fork"]
    assert len(forks) >= 2 and {slot.fork for slot in recorded.slots} == {each["fork"] for each in forks}
    counts = next(
        each for each in recorded.others if each["kind"] == "counts" and each["arm"] == "miniatures:Reference"
    )
    assert counts["masks"] == 11 and counts["allowed"] > 0 and counts["serialized_bytes"] is None
    batch = [each for each in recorded.others if each["kind"] == "mechanisms"]
    assert batch and all(
        each["figures"][1] == each["rollback"] + each["copy"] + each["jump_forward"] for each in batch
    )
    shown = show.text(figures, concluded(measured), means=True)
    assert "2/2" in shown and "1/2" in shown and "means" in shown and "proven" in shown.lower()


def test_a_case_of_two_suites_is_said_to_be_measured_in_the_first_only(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    own = {"description": "own", "regex": "b+", "tests": [{"text": "bb", "valid": True}]}
    other.write_text("".join(json.dumps(each) + "\n" for each in (CASES[1], own)))
    folder = tmp_path / "m"
    command = ["measure", str(suite), str(other), "--backends", "unconstrained", "--vocabularies", "bytes"]
    assert main([*command, "--out", str(folder), "--forks", "1"]) in (0, 4)
    said = capsys.readouterr().err
    assert "\n1 case stands in two suites, and is measured in the first of them only\n" in said
    assert sum(each.suite == "other" for each in read_measurement(folder).measurement.traces) == 1


def test_every_arm_has_its_turn_in_every_place(measured: Path) -> None:
    slots = [each for each in read_measurement(measured).slots if each.fork == 0 and not each.again]
    places: dict[str, list[int]] = {}
    for slot in slots:
        places.setdefault(slot.arm, []).append(slot.place)
    assert all(min(each) == 0 and max(each) == 2 for each in places.values())


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_over_two_rounds_any_two_arms_stand_in_both_orders(count: int) -> None:
    arms = list("abcde"[:count])
    for pair in range(count):
        there, back = order(arms, 2 * pair), order(arms, 2 * pair + 1)
        assert there == back[::-1] and sorted(there) == arms
        assert there[0] == arms[pair]
        for a, b in combinations(arms, 2):
            assert (there.index(a) < there.index(b)) != (back.index(a) < back.index(b))


def test_a_backend_that_is_three_times_as_slow_is_told_from_a_right_one(suite: Path, tmp_path: Path) -> None:
    """Even beside other tests on the same machine: fills take three times as long, which no little noise
    hides."""
    backends = "miniatures.slowed:Slowed,miniatures.slowed:Slowed:percent=200"
    measure(suite, tmp_path / "m", backends, "--forks", "3")
    found = [
        each
        for each in concluded(tmp_path / "m")
        if each.metric == "fill" and each.head.endswith("percent=200")
    ]
    assert [2.5 < each.found.ratio < 3.5 for each in found] == [True]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("HangsWhenMeasured", "killed after", marks=pytest.mark.long),
        ("DiesWhenMeasured", "killed by SIGSEGV"),
        ("RaisesWhenMeasured", "it raised RuntimeError"),
    ],
)
def test_an_arm_that_is_lost_costs_its_case_only(
    suite: Path, tmp_path: Path, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.measure.engine.PATIENCE_SECONDS", 0.5)
    loaded: Counter[str] = Counter()
    start = Service.start

    def noted(service: Service) -> None:
        if service.loader == "harness.measure.arm:load_arm":
            loaded[service.arguments["spec"]] += 1
        start(service)

    monkeypatch.setattr(Service, "start", noted)
    wrong = f"miniatures.measured:{name}"
    measure(suite, tmp_path / "m", f"miniatures:Reference,{wrong}", "--timeout", "0.5", "--forks", "2")
    assert loaded == {"miniatures:Reference": 2 * 2, wrong: 1}, "lost in every case, it is not loaded again"
    recorded = read_measurement(tmp_path / "m")
    lost = [each for each in recorded.others if each["kind"] == "lost"]
    figures = Figures(recorded)
    assert lost and all(said in each["text"] and name in each["arm"] for each in lost)
    assert recorded.end is not None and len(figures.own_set("miniatures:Reference")) == 2
    assert not figures.own_set(f"miniatures.measured:{name}")


def test_a_backend_may_change_its_folder_while_it_loads(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    measure(suite, Path("m"), "miniatures:Reference,miniatures.unruly:ChangesFolder")
    assert len(Figures(read_measurement(Path("m"))).own_set("miniatures.unruly:ChangesFolder")) == 2


def test_a_refusal_where_the_scout_saw_none_is_not_timed(suite: Path, tmp_path: Path) -> None:
    measure(suite, tmp_path / "m", "miniatures:Reference,miniatures.measured:ForgetsWhenMeasured")
    lost = [each for each in read_measurement(tmp_path / "m").others if each["kind"] == "lost"]
    assert lost and all("Diverged" in each["text"] for each in lost)


def test_the_handler_answers_in_process(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))
    handler, said = load_arm("miniatures:Reference", "bytes", str(measured / "cases.jsonl"), None)
    assert 0 < said["clock_ns"] < 100_000
    trace = read_measurement(measured).measurement.traces[0]
    warm, _ = handler({"op": "warm_up", "offset": trace.offset, "instance": trace.instance}, b"")
    assert warm["tokens"] == 11 and 1 <= warm["passes"] <= 10
    answer, figures = handler({"op": "round", "offset": trace.offset, "repeats": 3, "fresh": False}, b"")
    assert len(np.frombuffer(figures, "<i8")) == 1 + 2 * 11 + 2 * 3 and answer["wall_ns"] > 0
    _, alone = handler({"op": "batch", "offset": trace.offset, "size": 4, "threads": 1, "repeats": 3}, b"")
    _, threaded = handler({"op": "batch", "offset": trace.offset, "size": 4, "threads": 2, "repeats": 3}, b"")
    assert len(alone) == 3 * 8 and threaded == b""  # no threads: nothing is made up
    _, cached = handler(
        {"op": "variant", "offset": trace.offset, "option": "cache", "value": "true", "repeats": 2}, b""
    )
    assert cached == b""


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, BaseException])
def test_a_grammar_that_cannot_be_serialized_costs_no_other_count(
    measured: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))
    handler, _ = load_arm("miniatures:Reference", "bytes", str(measured / "cases.jsonl"), None)
    trace = read_measurement(measured).measurement.traces[0]
    handler({"op": "warm_up", "offset": trace.offset, "instance": trace.instance}, b"")

    def broken(_: object) -> bytes:
        raise error("serialize is broken in this release")

    monkeypatch.setattr(CompiledGrammar, "serialize", broken)
    counts, _ = handler({"op": "counts", "offset": trace.offset}, b"")
    assert counts["serialized_bytes"] is None and counts["masks"] == 11 and counts["allowed"] > 0


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, BaseException])
def test_forced_bytes_that_cannot_be_had_cost_no_other_count(error: type[BaseException]) -> None:
    """A panic in Rust, which is no Exception, took the counts of every case away."""

    class Panics:
        def jump_forward(self) -> bytes:
            raise error("called `Option::unwrap()` on a `None` value")

    class Forces:
        def jump_forward(self) -> bytes:
            return b"abc"

    assert arm_module._forced_bytes(Panics()) == 0  # type: ignore[arg-type]
    assert arm_module._forced_bytes(Forces()) == 3  # type: ignore[arg-type]


def test_a_case_is_solved_whatever_becomes_of_what_nobody_judges(measured: Path) -> None:
    """An instance that is contested is held against no arm, whether the arm takes it or not; our own failure
    on it is no walk."""
    rows = list(read_rows(measured))
    arms = read_measurement(measured).measurement.arms
    digits = read_measurement(measured).measurement.traces[0].case_id

    def solving(**changed: Any) -> tuple[tuple[str, ...], dict[str, str]]:
        contested = [
            replace(row, **changed) if (row.case_id, row.instance) == (digits, 1) else row for row in rows
        ]
        traces, unsolved = plan_traces(measured, contested, arms)
        (trace,) = [each for each in traces if each.case_id == digits]
        return trace.solved_by, {arm: why[digits] for arm, why in unsolved.items() if digits in why}

    reference = ("miniatures:Reference", "miniatures:Reference (again)")
    assert solving() == (reference, {"unconstrained": "under_constrained"})
    everybody = (reference[0], "unconstrained", reference[1])
    assert solving(valid=None, contested=False) == (everybody, {})
    assert solving(valid=None) == (everybody, {})
    ours = solving(valid=None, status="harness_error")
    assert ours == ((), dict.fromkeys(everybody[:2], "harness_error"))


class FreesSlowly:
    """A compiled grammar whose memory takes 50 ms to be freed."""

    def __del__(self) -> None:
        time.sleep(0.05)


def test_freeing_a_grammar_is_no_part_of_a_compile() -> None:
    adapter: Any = SimpleNamespace(
        compile=lambda _: FreesSlowly(),
        mask_format="packed",
        threads=None,
        vocabulary=SimpleNamespace(size=32),
    )
    handler = MeasureHandler(adapter, None, "", None)  # type: ignore[arg-type]
    handler.prepared[0] = Prepared(Grammar("regex", "a"), [0], adapter.compile(None))
    handler.variants["threads"] = adapter
    _, figures = handler.variant(0, "threads", "2", 3)
    assert np.frombuffer(figures, "<i8").max() < 40_000_000


def test_very_slow_compiles_are_made_in_every_fork_while_their_time_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The quickest cases first, each with all its arms or none; 2.5 + 2 * 3.5 s fit into 10 s."""
    fresh: dict[str, list[tuple[int, int]]] = {}

    def append(kind: str, line: dict[str, Any], figures: bytes = b"") -> None:
        if line["fresh"]:
            fresh.setdefault(f"{line['arm']} {line['case_id']}", []).append((line["fork"], line["round"]))

    seconds = {"old": {"a": 0.5, "b": 3.5, "c": 4.0}, "new": {"a": 2.5, "b": 3.5, "c": 4.0}}
    traces = tuple(Trace(0, "s", "s", case, case, 0, tuple(seconds), "") for case in "abc")
    engine = MeasureEngine(
        SimpleNamespace(cpu=None, traces=traces),  # type: ignore[arg-type]
        PROFILES["quick"],
        0,
        Path(),
        SimpleNamespace(append=append),  # type: ignore[arg-type]
        print,
        {(name, case): int(1e9 * each) for name, of in seconds.items() for case, each in of.items()},
        {("toy", case): 1 for case in "abc"},
    )
    answer = {"tokens": 4, "wall_ns": 1, "cpu_ns": 1, "switches": 0}
    monkeypatch.setattr(engine, "_ask", lambda *_: (answer, b""))
    for fork in range(4):
        for number in range(2):
            for name in seconds:
                for trace in traces:
                    running = MeasuringArm(arm(name, backend="toy"), None, set("abc"))  # type: ignore[arg-type]
                    engine._turn(fork, number, 0, 0, trace, running)
    once_a_fork = [(fork, 0) for fork in range(4)]
    assert fresh == {
        **{f"{name} {case}": once_a_fork for case in "ab" for name in seconds},
        **{f"{name} c": [(0, 0)] for name in seconds},
    }


def test_disturbance_is_decided_by_numbers_fixed_beforehand() -> None:
    assert not is_disturbed(100_000_000, 3, 0.0)
    assert is_disturbed(100_000_000, 50, 0.0)
    assert is_disturbed(100_000_000, 0, 0.5)


def test_only_what_is_stolen_from_the_arms_processor_counts(tmp_path: Path) -> None:
    """The other processors of the machine lose time too, which takes nothing from the arm."""
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  9 0 9 9 0 0 0 6000 0 0\ncpu1 9 0 9 9 0 0 0 100 0 0\ncpu10 9 0 9 9 0 0 0 700 0 0\nintr 1\n"
    )
    tick = os.sysconf("SC_CLK_TCK")
    assert stolen_seconds(1, stat) == 100 / tick and stolen_seconds(10, stat) == 700 / tick
    assert stolen_seconds(None, stat) == 6000 / tick, "arms that are bound to none"
    assert stolen_seconds(2, stat) == stolen_seconds(1, tmp_path / "none") == 0


def test_a_turn_asks_what_was_stolen_from_the_processor_it_ran_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    lines: list[dict[str, Any]] = []

    def stolen(cpu: int | None) -> float:
        asked.append(cpu)
        return 0.25 * len(asked)

    monkeypatch.setattr("harness.measure.engine.stolen_seconds", stolen)
    trace = Trace(0, "s", "s", "a", "a", 0, ("old",), "")
    engine = MeasureEngine(
        SimpleNamespace(cpu=3, traces=(trace,)),  # type: ignore[arg-type]
        PROFILES["quick"],
        0,
        Path(),
        SimpleNamespace(append=lambda kind, line, figures: lines.append(line)),  # type: ignore[arg-type]
        print,
        {},
        {("toy", "a"): 1},
    )
    answer = {"tokens": 4, "wall_ns": 1, "cpu_ns": 1, "switches": 0}
    monkeypatch.setattr(engine, "_ask", lambda *_: (answer, b""))
    running = MeasuringArm(arm("old", backend="toy"), None, {"a"})  # type: ignore[arg-type]
    assert engine._turn(0, 0, 0, 0, trace, running), "a quarter of a second was stolen"
    assert asked == [3, 3] and [line["stolen_s"] for line in lines] == [0.25]


def test_the_workload_key_names_what_a_figure_means(measured: Path) -> None:
    info, traces = read_info(measured), read_measurement(measured).measurement.traces
    quick = PROFILES["quick"]
    assert workload_key(info, traces, quick) == read_measurement(measured).measurement.workload
    assert workload_key(info, traces[:1], quick) != workload_key(info, traces, quick)
    assert workload_key(info, traces, replace(quick, rounds=6)) != workload_key(info, traces, quick)
    assert workload_key(info, traces, replace(quick, forks=9)) == workload_key(info, traces, quick)


def test_a_reference_is_chosen_by_name(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(suite, tmp_path / "m", "miniatures:Reference,unconstrained", "--base", "unconstrained")
    arms = read_measurement(tmp_path / "m").measurement.arms
    assert [(each.name, each.role) for each in arms][1:] == [
        ("unconstrained", "reference"),
        ("unconstrained (again)", "a/a"),
    ]
    assert measured_arms(read_info(tmp_path / "m").arms, None)[0].role == "reference"
    assert measure(suite, tmp_path / "n", "unconstrained", "--base", "nobody") == 2
    assert '--base "nobody" is none of the arms (unconstrained)' in capsys.readouterr().err
    assert not (tmp_path / "n").exists(), "it is told before the cases are walked"


def walked_arm(version: str, options: str = "") -> Arm:
    return Arm("toy", version, options, "toy", (), "packed")


def test_a_base_that_fits_several_arms_is_refused() -> None:
    """The first of them was taken."""
    versions = [walked_arm("1"), walked_arm("2")]
    for text in ("toy==1", "toy==2"):
        (reference,) = [each for each in measured_arms(versions, text) if each.role == "reference"]
        assert reference.name == text
    with pytest.raises(BadInput, match=r'--base "toy" fits several arms \(toy==1, toy==2\); name one'):
        measured_arms(versions, "toy")
    settings = [walked_arm("1", "cache=true"), walked_arm("1")]
    (reference,) = [each for each in measured_arms(settings, "toy") if each.role == "reference"]
    assert reference.name == "toy", "the arm of just this name is no guess"


def test_bad_input_is_one_line(
    suite: Path, measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps(CASES[2]) + "\n")
    assert measure(wrong, tmp_path / "my m", "miniatures:Reference") == 2
    said = capsys.readouterr().err
    assert "no backend solves any of these cases" in said
    assert f"see `grammarbench table '{tmp_path / 'my m'}'`" in said
    assert measure(suite, measured, "miniatures:Reference") == 2
    assert "holds a measurement already" in capsys.readouterr().err
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(measured / "rows.jsonl", run)
    assert measure(suite, run, "miniatures:Reference") == 2
    assert capsys.readouterr().err.strip().endswith(f"{run} holds a run already; give another --out"), (
        "there is no --resume to be advised"
    )
