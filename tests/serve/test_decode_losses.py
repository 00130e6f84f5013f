"""What becomes of a decoding when settings are lost: how it goes on in a fresh process, and what gates and
conclusions make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from decode_runs import Played, arm, decoding
from report_folders import write_decoding

from harness.backend.process.lost import Lost
from harness.cli import main as cli
from harness.errors import GATE_FAILED, INCOMPLETE, OK
from harness.serve.decode import engine as engine_module
from harness.serve.decode import session
from harness.serve.decode.conclude import Switched, conclusion, switched
from harness.serve.decode.engine import DecodeEngine
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import DecodeRecorder, DecodeSetup, Decoding, Loss, Whose, read_decoding
from harness.serve.decode.setting import Setting
from harness.serve.decode.verdicts import (
    DecodeChange,
    changes_text,
    compare_arms,
    compare_records,
    gate,
)

STEP = Setting("calls", texts=2)
JUMP = replace(STEP, strategy="jump_forward")
DRAFTS = replace(STEP, strategy="speculative")
ALL = {"a": [1, 1, 1, 1, 1, 1], "b": [1, 1, 1, 1]}
HALF = {"a": [1, 3, 2], "b": [2, 2]}

# ------------------------------------------------------------------------------------------- a fresh process


class Mortal:
    """A service whose child dies at the runs that a test names, by strategy and how many runs of it were made
    before, or answers them by an error. It writes down what every child is asked."""

    dies: ClassVar[dict[tuple[str, int], Lost | dict[str, Any]]]
    captures: ClassVar[dict[tuple[str, int], int]]
    children: ClassVar[list[list[tuple[str, str, bool]]]]
    runs: ClassVar[dict[str, int]]
    opening: ClassVar[dict[str, Any]]

    def __init__(self, *_: object, **__: object) -> None:
        self.description = {"load_s": 1.0}
        self.renew()

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def close(self) -> None: ...

    def renew(self) -> None:
        self.children.append([])

    def ask(
        self, message: dict[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        if message["op"] == "open":
            return dict(self.opening), b""
        strategy = message["setting"]["strategy"]
        self.children[-1].append((message["role"], strategy, message["cold"]))
        captured = 0
        if message["role"] == "constrained":
            self.runs[strategy] = self.runs.get(strategy, 0) + 1
            lost = self.dies.get((strategy, self.runs[strategy]))
            if isinstance(lost, Lost):
                raise lost
            if lost is not None:
                return lost, b""
            captured = self.captures.get((strategy, self.runs[strategy]), 0)
        return {
            "wall_ns": len(self.children), "passes": 0, "peak_bytes": 1, "counts": {}, "completed": [],
            "texts": [], "as_replayed": [], "captured": captured,
        }, b""  # fmt: skip


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> type[Mortal]:
    opening = {"build_s": 1.0, "threads": 1, "model": {}, "workloads": {}}
    for name, value in {"dies": {}, "captures": {}, "children": [], "runs": {}, "opening": opening}.items():
        monkeypatch.setattr(Mortal, name, value, raising=False)
    monkeypatch.setattr(engine_module, "Service", Mortal)
    return Mortal


def setup_of(*settings: Setting, **changed: Any) -> DecodeSetup:
    made = decoding({setting: {"x": Played(ALL)} for setting in settings}, forks=1, rounds=2).setup
    return replace(made, **changed)


def run(folder: Path, setup: DecodeSetup, said: list[str] | None = None) -> Decoding:
    with DecodeRecorder(folder, setup) as recorder:
        say = said.append if said is not None else lambda _: None
        DecodeEngine(setup, 1, 1.0, recorder, lambda *_: "valid", say).run()
        recorder.finish("2026-11-27T18:00:00Z")
    return read_decoding(folder)


def asked_of(child: list[tuple[str, str, bool]]) -> list[str]:
    return [
        f"{'cold' if cold else 'warm'} {strategy if role == 'constrained' else 'none'}"
        for role, strategy, cold in child
    ]


def test_a_cold_run_is_asked_for_in_round_0_alone(mortal: type[Mortal], tmp_path: Path) -> None:
    run(tmp_path, setup_of(STEP, JUMP, rounds=1))
    assert asked_of(mortal.children[0]) == [
        "cold stepwise", "cold jump_forward", "cold none", "warm none", "warm stepwise", "warm jump_forward",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "whose"),
    [
        (Lost("it does not load: RuntimeError: no such device", "backend", "load"), "backend"),
        (Lost("the process was killed by SIGKILL while it loaded", "harness", "load"), "harness_error"),
    ],
)
def test_a_load_that_fails_is_whose_it_is(
    lost: Lost, whose: str, mortal: type[Mortal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill from outside, or a vocabulary that cannot be read, counted as the backend's."""

    def does_not_load(_: Mortal) -> None:
        raise lost

    monkeypatch.setattr(mortal, "wait", does_not_load)
    found = run(tmp_path, setup_of(STEP, JUMP))
    assert [(loss.setting, loss.whose, loss.why) for loss in found.losses] == [
        (0, whose, str(lost)), (1, whose, str(lost))
    ]  # fmt: skip


def test_behind_a_loss_the_other_settings_are_cold_first(mortal: type[Mortal], tmp_path: Path) -> None:
    """The fresh process has compiled nothing, and does not know what the unconstrained run repeats."""
    mortal.dies = {("jump_forward", 2): Lost("killed by SIGSEGV")}  # in its first warm run
    found = run(tmp_path, setup_of(STEP, JUMP))
    first, second, *_ = [asked_of(child) for child in mortal.children]
    assert first[-1] == "warm jump_forward"
    assert second == ["cold stepwise", "warm stepwise", "warm none"]
    assert [(loss.setting, loss.whose) for loss in found.losses] == [(1, "backend")]
    cell = next(cell for cell in Decoded(found).cells if cell.role == "constrained" and cell.place == 0)
    assert [batch.wall_ns for batch in cell.cold] == [2], "the cold run of the second child counts, once"
    assert [(batch.round, batch.wall_ns) for batch in cell.warm] == [(1, 1), (2, 2)]


def test_a_loss_in_a_cold_run_makes_those_before_it_cold_again(mortal: type[Mortal], tmp_path: Path) -> None:
    mortal.dies = {("jump_forward", 1): Lost("killed by SIGSEGV")}
    run(tmp_path, setup_of(STEP, JUMP, DRAFTS, rounds=1))
    assert asked_of(mortal.children[1]) == [
        "cold speculative", "cold none", "cold stepwise", "warm none", "warm stepwise", "warm speculative",
    ]  # fmt: skip


def test_a_loss_while_it_is_made_cold_again_begins_anew(mortal: type[Mortal], tmp_path: Path) -> None:
    mortal.dies = {
        ("jump_forward", 2): Lost("killed by SIGSEGV"),
        ("speculative", 3): Lost("killed by SIGABRT"),
    }
    found = run(tmp_path, setup_of(STEP, JUMP, DRAFTS))
    children = [asked_of(child) for child in mortal.children]
    assert [loss.why for loss in found.losses] == ["killed by SIGSEGV", "killed by SIGABRT"]
    for child in children:
        for place, what in enumerate(child):
            if what == "warm stepwise":
                assert "cold stepwise" in child[:place]


def test_a_model_that_does_not_open_loses_the_arm_by_our_fault(mortal: type[Mortal], tmp_path: Path) -> None:
    mortal.opening = {"harness_error": "RuntimeError: all CUDA-capable devices are busy"}
    said: list[str] = []
    found = run(tmp_path, setup_of(STEP, JUMP, forks=2), said)
    why = "RuntimeError: all CUDA-capable devices are busy"
    assert found.losses == tuple(Loss(0, "x", place, "harness_error", why) for place in range(2))
    assert not found.batches and any(why in line for line in said)


FELL = {"harness_error": "RuntimeError: misaligned address 0x7f3a at row 12"}
AS_BEFORE = {"harness_error": "RuntimeError: misaligned address 0x8b01 at row 3"}


@pytest.mark.parametrize(
    ("second", "tried"),
    [
        (AS_BEFORE, 2),
        (Lost("RuntimeError: misaligned address 0x1 at row 3", "harness", "raised"), 2),
        ({"harness_error": "RuntimeError: no memory"}, 4),
        (AS_BEFORE | {"sound": True}, 3),
        ({"not_offered": FELL["harness_error"]}, 3),
        (Lost("RuntimeError: misaligned address 0x1 at row 3", "backend", "raised"), 4),
    ],
)
def test_an_arm_that_meets_the_same_fault_twice_running_is_not_built_again(
    second: Lost | dict[str, Any], tried: int, mortal: type[Mortal], tmp_path: Path
) -> None:
    """Each of its settings built the model anew only to meet what all of them meet."""
    ways = (STEP, JUMP, DRAFTS, replace(STEP, overlap=False))
    mortal.dies = {("stepwise", 1): FELL, ("jump_forward", 1): second, ("stepwise", 2): FELL}
    mortal.dies |= {("speculative", 1): FELL}
    found = run(tmp_path, setup_of(*ways, rounds=1))
    assert len(found.losses) == len(ways) and not found.batches
    assert sum(mortal.runs.values()) == tried
    untold = [loss.setting for loss in found.losses if loss.why.startswith("not tried, as two before it")]
    assert untold == [0, 1, 2, 3][tried:]
    assert all(loss.whose == "harness_error" for loss in found.losses if loss.setting in untold)


def test_an_arm_that_has_made_a_run_is_not_given_up(mortal: type[Mortal], tmp_path: Path) -> None:
    mortal.dies = {("jump_forward", 1): FELL, ("speculative", 1): FELL}
    found = run(tmp_path, setup_of(STEP, JUMP, DRAFTS, replace(STEP, overlap=False), rounds=1))
    assert [loss.setting for loss in found.losses] == [1, 2]
    assert {batch.setting for batch in found.batches if batch.role == "constrained"} == {0, 3}


@pytest.mark.parametrize("lost", [Lost("no answer within 300 s", "harness", "timeout"), FELL])
def test_a_warm_run_whose_repeat_is_lost_is_kept(
    lost: Lost | dict[str, Any], mortal: type[Mortal], tmp_path: Path
) -> None:
    mortal.captures, mortal.dies = {("stepwise", 2): 1, ("stepwise", 3): 2}, {("stepwise", 4): lost}
    found = run(tmp_path, setup_of(STEP, rounds=1))
    assert len(found.losses) == 1 and found.losses[0].whose == "harness_error"
    (warm,) = (batch for batch in found.batches if batch.round and batch.role == "constrained")
    assert (warm.captured, warm.repeated) == (2, 1), "the last whole answer, beside the loss"


def test_nothing_measured_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = decoding({STEP: {"x": Played(ALL)}})
    lost = replace(made, batches=(), losses=(Loss(0, "x", 0, "not_offered", "no kernel nope"),))
    for name, record, code in (("lost", lost, INCOMPLETE), ("fine", made, OK)):
        folder = write_decoding(tmp_path / name, record)
        monkeypatch.setattr(session, "decode", lambda *_, folder=folder: folder)
        assert cli.main(["decode", "--backends", "llguidance", "--kernel", "nope"]) == code
    assert "no kernel nope" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------- the gate


def two_settings(*losses: Loss, settings: tuple[Setting, ...] = (STEP, JUMP)) -> Decoding:
    return decoding({setting: {"x": Played(ALL), "y": Played(ALL)} for setting in settings}, losses=losses)


def measured(changes: list[DecodeChange]) -> list[tuple[str, str, str]]:
    return [
        (change.head, change.setting, change.verdict) for change in changes if change.figure == "measured"
    ]


def dead(whose: Whose, setting: int = 1, arm: str = "x") -> Loss:
    return Loss(3, arm, setting, whose, "killed by SIGSEGV")


@pytest.mark.parametrize(
    ("whose", "verdict", "gates"),
    [
        ("backend", "regressed", "failed"),
        ("not_offered", "regressed", "failed"),
        ("harness_error", "unproven", "unproven"),
    ],
)
def test_a_setting_that_the_head_lost_gates(whose: Whose, verdict: str, gates: str) -> None:
    base, head = Decoded(two_settings()), Decoded(two_settings(dead(whose)))
    found = compare_records(base, head)
    assert measured(found) == [("x", JUMP.name, verdict)]
    assert gate(found, time=False) == gates
    said = changes_text(found)
    assert "measured" in said and "SIGSEGV" in said and max(map(len, said.splitlines())) <= 80


def test_a_setting_that_the_base_lost_is_no_regression() -> None:
    def back(base: Decoding, head: Decoding) -> list[DecodeChange]:
        return compare_records(Decoded(base), Decoded(head))

    found = back(two_settings(dead("backend")), two_settings())
    assert measured(found) == [("x", JUMP.name, "improved")] and gate(found, time=False) == "ok"
    assert not measured(back(two_settings(dead("harness_error")), two_settings())), "no merit of the backend"
    assert not measured(back(two_settings(dead("backend")), two_settings(dead("harness_error"))))


def test_only_what_the_head_was_asked_for_is_lost() -> None:
    """Settings are compared by what they are, not by their place in the record."""
    base, head = two_settings(), two_settings(dead("backend", 0), settings=(DRAFTS, STEP))
    assert not measured(compare_records(Decoded(base), Decoded(head)))
    head = two_settings(dead("backend", 0), settings=(JUMP, STEP))
    assert measured(compare_records(Decoded(base), Decoded(head))) == [("x", JUMP.name, "regressed")]


def test_two_versions_in_one_record() -> None:
    found = compare_arms(Decoded(two_settings(dead("backend", arm="y"))), "x", "y")
    assert measured(found) == [("y", JUMP.name, "regressed")] and gate(found, time=False) == "failed"


def test_the_command_fails_its_gate(tmp_path: Path) -> None:
    base = write_decoding(tmp_path / "base", two_settings())
    head = write_decoding(tmp_path / "head", two_settings(dead("backend")))
    assert cli.main(["compare", str(base), str(head), "--gate"]) == GATE_FAILED
    assert cli.main(["compare", str(head), str(base), "--gate"]) == OK


# -------------------------------------------------------------------------------------------- the conclusions


def one(*losses: Loss, on: Played | None = None, forks: int = 5) -> Switched:
    record = decoding(
        {STEP: {"x": Played(ALL)}, JUMP: {"x": on or Played(HALF)}},
        mechanisms=[("it", STEP, JUMP)],
        arms=[arm("x")],
        losses=losses,
    )
    kept = [
        batch
        for batch in record.batches
        if batch.fork < forks
        and not any(loss.setting == batch.setting and loss.fork <= batch.fork for loss in losses)
    ]
    return switched(Decoded(replace(record, batches=tuple(kept))))[0]


def test_a_mechanism_under_which_the_process_dies_loses() -> None:
    assert one().effect == "wins"
    found = one(Loss(4, "x", 1, "backend", "killed by SIGSEGV"))
    assert (found.effect, found.why) == ("loses", "lost in fork 5: killed by SIGSEGV")
    assert found.e2e.interval is not None and found.e2e.interval.high < 0.98, "in the forks before it won"
    assert "it: x OFF" in "\n".join(conclusion([found]))
    at_once = one(Loss(0, "x", 1, "backend", "killed by SIGSEGV"), forks=0)
    assert at_once.effect == "loses"


@pytest.mark.parametrize(
    ("losses", "why"),
    [
        ([Loss(4, "x", 1, "harness_error", "no memory")], "on was lost in fork 5: no memory"),
        ([Loss(4, "x", 0, "backend", "killed")], "off was lost in fork 5: killed"),
        (
            [Loss(4, "x", 0, "backend", "killed"), Loss(4, "x", 1, "backend", "too")],
            "on was lost in fork 5: too",
        ),
    ],
)
def test_another_loss_decides_nothing(losses: list[Loss], why: str) -> None:
    found = one(*losses)
    assert (found.effect, found.why) == ("undecided", why)
    assert "it: x undecided" in "\n".join(conclusion([found]))


def test_what_comes_out_wrong_loses_whatever_was_lost_besides() -> None:
    found = one(Loss(4, "x", 0, "backend", "killed"), on=Played(HALF, broken=("b",)))
    assert found.effect == "loses" and "came out right" in found.why
