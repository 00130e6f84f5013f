"""Decoding end to end: a real backend in processes of its own, one that dies, and what is asked
for wrongly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from decode_tools import an_arm_in_this_process
from fake_cuda import FakeCuda
from places import SUPPORT

from harness.backend.process.lost import Lost
from harness.cli import main as cli
from harness.errors import BAD_INPUT, OK, BadInput
from harness.serve.decode import engine as engine_module
from harness.serve.decode import session as session_module
from harness.serve.decode.arm import DecodeHandler, load_arm
from harness.serve.decode.engine import DecodeEngine
from harness.serve.decode.figures import Decoded
from harness.serve.decode.model.graphs import Static
from harness.serve.decode.record import (
    LINES,
    DecodedBatch,
    DecodeRecorder,
    Decoding,
    Judged,
    read_decoding,
)
from harness.serve.decode.session import DecodeRequest, decode
from harness.serve.decode.setting import Setting

REAL = ("llguidance",)
DEADLY = "miniatures.dying:DiesInFill"
FORKS, ROUNDS, BATCHES = 2, 1, (1, 3)
COUNT = 8
"""Of settings."""

# A grammar with "boom" kills the miniature in its first fill.
SUITE = [
    {"suite": "deadly", "version": "1", "description": "one grammar kills the miniature"},
    {
        "description": "boom",
        "regex": "boom[0-9]",
        "tests": [{"description": "one", "text": "boom1", "valid": True}],
    },
]


def request(workloads: tuple[str, ...], backends: str, out: Path, **changed: Any) -> DecodeRequest:
    fields: dict[str, Any] = {
        "model": "tiny",
        "vocabulary": "probe",
        "profile": "quick",
        "usual": Setting(""),
        "strategies": ("stepwise", "jump_forward"),
        "batches": BATCHES,
        "texts": 3,
        "prompt_tokens": 4,
        "forks": FORKS,
        "rounds": ROUNDS,
        "device": "cpu",
        "dtype": None,
        "timeout_s": 120.0,
        "memory_gb": 8.0,
        "argv": (),
    }
    return DecodeRequest(workloads=workloads, backends=backends, out=out, **{**fields, **changed})


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decoding]:
    """One decoding for all tests here: a real backend and one that dies."""
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "deadly.jsonl").write_text("".join(json.dumps(line) + "\n" for line in SUITE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
        )
        workloads = ("all_forced", str(folder / "deadly.jsonl"))
        decode(request(workloads, ",".join([*REAL, DEADLY]), folder / "out"), lambda _: None)
    yield read_decoding(folder / "out")


def runs(decoded: Decoding, arm: str, role: str = "constrained") -> list[DecodedBatch]:
    return [each for each in decoded.batches if each.arm == arm and each.role == role]


def requests_of(decoded: Decoding, arms: tuple[str, ...]) -> list[Judged]:
    return [each for arm in arms for batch in runs(decoded, arm) for each in batch.completed]


def test_a_model_that_is_not_accepted_ends_a_decoding_before_its_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "Service", Here)
    asked: list[str] = []

    def refuses(model: Mapping[str, Any]) -> None:
        asked.append(model["name"])
        raise BadInput("not with this one")

    with an_arm_in_this_process(), pytest.raises(BadInput, match="not with this one"):
        decode(request(("all_forced",), REAL[0], tmp_path / "out", accepts=refuses), lambda _: None)
    assert asked == ["tiny"]
    assert not list((tmp_path / "out").iterdir()), "a record of nothing would be in the way of the next try"


def test_every_setting_ran_in_every_fork_and_round_beside_its_unconstrained_run(decoded: Decoding) -> None:
    assert decoded.is_complete and len(decoded.setup.settings) == COUNT == 2 * len(BATCHES) * 2
    for arm in REAL:
        places = {(each.fork, each.round, each.setting) for each in runs(decoded, arm)}
        wanted = {
            (fork, number, place)
            for fork in range(FORKS)
            for number in range(ROUNDS + 1)
            for place in range(COUNT)
        }
        assert places == wanted and len(runs(decoded, arm)) == len(wanted)
        plain = [(each.fork, each.round) for each in runs(decoded, arm, "none")]
        assert sorted(plain) == sorted([(0, 0)] * 4 + [(fork, 1) for fork in range(FORKS)] * 4)


def test_the_arms_take_turns_in_fresh_processes(decoded: Decoding) -> None:
    turns = [
        [each.arm for each in decoded.children if each.fork == fork and each.place == 0]
        for fork in range(FORKS)
    ]
    assert turns[0][0] == REAL[0] and turns[1][0] == DEADLY
    first, second = (
        [each for each in decoded.children if each.arm == "llguidance" and each.fork == fork]
        for fork in range(FORKS)
    )
    assert len(first) == len(second) == 1 and first[0].load_s > 0 and second[0].load_s == 0
    assert decoded.model["name"] == "tiny" and decoded.model["device"] == "cpu"


def test_the_texts_are_those_that_were_to_be_replayed_and_valid(decoded: Decoding) -> None:
    found = requests_of(decoded, REAL)
    assert len(found) == FORKS * (ROUNDS + 1) * COUNT * 3 * len(REAL)
    assert all(each.as_replayed and each.right == "valid" and not each.completed.fallback for each in found)
    assert all(
        each.as_replayed and each.right == "unjudged"
        for batch in runs(decoded, "llguidance", "none")
        for each in batch.completed
    )


def test_the_tokens_add_up_and_a_jump_saves_the_passes_of_its_forced_tokens(decoded: Decoding) -> None:
    saved = 0
    for each in (one.completed for one in requests_of(decoded, REAL)):
        account = each.account
        assert len(each.ids) == account.sampled + account.forced + account.retokenized - account.rolled_back
        assert account.passes == account.sampled
        saved += account.forced
    assert saved > 0
    assert Decoded(decoded).findings() == []


def test_the_steps_are_those_of_the_run(decoded: Decoding) -> None:
    for each in decoded.batches:
        assert len(each.steps) == each.passes > 0
        assert int(each.steps[:, 0].max()) <= decoded.setting(each).batch
        assert int(each.steps[:, -1].sum()) <= each.wall_ns


def test_grammars_are_compiled_in_every_cold_run_and_in_no_other(decoded: Decoding) -> None:
    """In a cold run the first request with a text compiles its grammar, and the others use that."""
    for each in runs(decoded, "llguidance"):
        texts = {text["name"] for text in decoded.workloads[decoded.setting(each).workload]}
        for one in each.completed:
            wanted = {"hit"}
            if each.is_cold:
                wanted = {"miss"} if one.completed.name in texts else {"hit", "shared"}
            assert one.completed.compile_state in wanted, (each.setting, one.completed.name)


def test_a_backend_that_dies_loses_the_settings_in_which_it_does_and_no_others(decoded: Decoding) -> None:
    deadly = [place for place, each in enumerate(decoded.setup.settings) if "deadly" in each.workload]
    quiet = [place for place, each in enumerate(decoded.setup.settings) if "deadly" not in each.workload]
    assert {(each.arm, each.whose) for each in decoded.losses} == {(DEADLY, "backend")}
    assert [each.setting for each in decoded.losses] == deadly and all(
        "SIGSEGV" in each.why for each in decoded.losses
    )
    assert {each.setting for each in runs(decoded, DEADLY)} >= set(quiet)
    fine = [one for each in runs(decoded, DEADLY) if each.setting in quiet for one in each.completed]
    assert len(fine) == FORKS * (ROUNDS + 1) * 4 * 3 and all(each.right == "valid" for each in fine)


class Scripted:
    """A service that answers as the test says."""

    lost: Lost | None = None
    answer: ClassVar[dict[str, Any]] = {}

    def __init__(self, *_: object, **__: object) -> None:
        self.description = {"load_s": 1.0}

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def renew(self) -> None: ...

    def close(self) -> None: ...

    def ask(
        self, message: dict[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        if message["op"] == "open":
            return {"build_s": 1.0, "threads": 1, "model": {}, "workloads": {}}, b""
        if message["role"] == "none" or message["setting"]["strategy"] != "speculative":
            return {
                "wall_ns": 1,
                "passes": 0,
                "peak_bytes": 1,
                "counts": {},
                "completed": [],
                "texts": [],
                "as_replayed": [],
                "captured": 0,
            }, b""
        if self.lost is not None:
            raise self.lost
        return self.answer, b""


@pytest.mark.parametrize(
    ("lost", "answer", "whose"),
    [
        (Lost("killed after 120 s", cause="timeout"), {}, "backend"),
        (Lost("killed by SIGABRT", signal="SIGABRT"), {}, "backend"),
        (Lost("the handler has raised KeyError", "harness", "raised"), {}, "harness_error"),
        (None, {"harness_error": "KeyError in the loop"}, "harness_error"),
        (None, {"not_offered": "no kernel"}, "not_offered"),
    ],
)
def test_whose_fault_a_loss_is(
    decoded: Decoding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lost: Lost | None,
    answer: dict[str, Any],
    whose: str,
) -> None:
    monkeypatch.setattr(Scripted, "lost", lost)
    monkeypatch.setattr(Scripted, "answer", answer)
    monkeypatch.setattr(engine_module, "Service", Scripted)
    setup = replace(
        decoded.setup,
        settings=(Setting("quiet"), Setting("quiet", "speculative")),
        arms=decoded.setup.arms[:1],
    )
    with DecodeRecorder(tmp_path, setup) as recorder:
        DecodeEngine(setup, 1, 1.0, recorder, lambda *_: "valid", lambda _: None).run()
    found = read_decoding(tmp_path)
    assert not found.is_complete
    assert [(each.setting, each.whose) for each in found.losses] == [(1, whose)]
    assert {each.setting for each in runs(found, "llguidance")} == {0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nonsense"], 'unknown workload "nonsense"'),
        (["--strategies", "stepwise,stepwise"], 'the strategy "stepwise" is named twice'),
        (["--strategies", "jump-forward,jump_forward"], 'the strategy "jump_forward" is named twice'),
        (["enums", "sql", "enums"], 'the workload "enums" is named twice; name each once'),
        (["long-arrays", "long_arrays"], 'the workload "long_arrays" is named twice; name each once'),
        (["--strategies", "stepwize"], 'unknown strategy "stepwize"; did you mean "stepwise"?'),
        (["--model", "./nowhere"], 'model "./nowhere": no shape'),
        (["--vocabularies", "nowhere"], 'unknown vocabulary "nowhere"'),
        (["--objectives", "ttft:soon"], '"ttft:soon" is no objective'),
        (["--batch", "1,x"], '--batch "1,x" cannot be read'),
        (["--backends", "nobody"], "nobody"),
        (["--arrivals", "gamma"], "--arrivals says how requests arrive with --rate; give it too"),
    ],
)
def test_what_is_not_to_be_had_is_said_in_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        cli.main(["decode", "--backends", "xgrammar", "--out", str(tmp_path / "out"), *options]) == BAD_INPUT
    )
    printed = capsys.readouterr().err
    assert said in printed and printed.count("\n") == 1
    assert not (tmp_path / "out" / LINES).exists()


def test_two_records_are_compared(
    decoded: Decoding, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(decoded.folder)
    assert cli.main(["compare", folder]) == OK
    assert "nothing to compare" in capsys.readouterr().out
    assert cli.main(["compare", folder, folder, "--gate"]) == OK
    printed = capsys.readouterr().out
    assert "gate: OK" in printed and "overhead" in printed and max(map(len, printed.splitlines())) <= 80
    assert cli.main(["compare", folder, folder, "--json"]) == OK
    assert {each["figure"] for each in json.loads(capsys.readouterr().out)} >= {
        "overhead",
        "solved",
        "tokens_per_pass",
    }
    assert cli.main(["compare", folder, str(tmp_path)]) == BAD_INPUT
    assert cli.main(["compare", folder, "--means"]) == BAD_INPUT


def test_a_folder_is_used_once(decoded: Decoding, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--backends", "xgrammar", "--out", str(decoded.folder)]) == BAD_INPUT
    assert "holds a record already" in capsys.readouterr().err


def test_a_folder_is_looked_at_again_when_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another decoding may have been written there since."""
    looks = iter([False, True])
    monkeypatch.setattr(session_module, "has_decoding", lambda _: next(looks))
    monkeypatch.setattr(session_module, "look_at", lambda *_, **__: pytest.fail("it went on"))
    with pytest.raises(BadInput, match="holds a record already"):
        decode(request(("speed",), "unconstrained", tmp_path), print)


@pytest.mark.long
def test_settings_of_ones_own_and_an_arm_once_more(tmp_path: Path) -> None:
    """The A/A arm runs the reference's code in a process of its own, on the settings that were given."""
    asked = (
        Setting("all_forced", texts=1, prompt_tokens=4),
        Setting("all_forced", texts=1, prompt_tokens=4, overlap=False),
    )
    decode(request((), REAL[0], tmp_path / "out", settings=asked, again=True, forks=1), lambda _: None)
    record = read_decoding(tmp_path / "out")
    first, second = record.setup.arms
    assert record.setup.settings == asked and not record.losses
    assert (first.role, second.role) == ("reference", "a/a")
    assert second == replace(first, name=f"{first.name} (again)", role="a/a")
    assert {(run.arm, run.role, run.setting) for run in record.batches if not run.is_cold} == {
        (arm.name, role, place)
        for arm in (first, second)
        for role, place in (("none", 0), ("constrained", 0), ("constrained", 1))
    }


class Here(Scripted):
    """A service whose arm is in this process, which has imported what the arm needs."""

    def __init__(self, _: str, arguments: dict[str, Any], *_rest: object, **__: object) -> None:
        super().__init__()
        self.handler, self.description = load_arm(**arguments)

    def ask(
        self, message: dict[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        return self.handler(message, blob)


class InThisProcess(Here):
    """Such a one with a model that captures its passes by a stand-in for torch.cuda. In the warm constrained
    runs of these numbers, from 1, all passes are captured anew."""

    patch: ClassVar[pytest.MonkeyPatch]
    anew: ClassVar[Container[int]]
    runner: Static
    asked = 0

    def ask(
        self, message: dict[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        warm = message["op"] == "run" and not message["cold"] and message["role"] == "constrained"
        if warm:
            self.asked += 1
            if self.asked in self.anew:
                self.runner.slots.clear()
        answer = super().ask(message, blob, seconds=seconds)
        if message["op"] == "open":
            assert isinstance(self.handler, DecodeHandler)
            model = self.handler.model
            assert model is not None
            self.runner = model._runner = Static(model.network, model.device, capture=True)
            FakeCuda(self.patch, self.runner, seconds=0.5)
        return answer


@pytest.mark.parametrize(
    ("anew", "repeated", "clean"),
    [
        ({1}, [1, 0], True),
        ({2, 3}, [0, 2], True),
        (range(99), [engine_module.AGAIN, engine_module.AGAIN], False),
    ],
)
def test_a_warm_run_in_which_passes_were_captured_is_made_again(
    anew: Container[int],
    repeated: list[int],
    clean: bool,
    decoded: Decoding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(InThisProcess, "patch", monkeypatch, raising=False)
    monkeypatch.setattr(InThisProcess, "anew", anew, raising=False)
    monkeypatch.setattr(engine_module, "Service", InThisProcess)
    setting = Setting("function_calls", "jump_forward", texts=1, prompt_tokens=4, limit=8)
    setup = replace(decoded.setup, settings=(setting,), arms=decoded.setup.arms[:1], forks=1, rounds=2)
    with an_arm_in_this_process(), DecodeRecorder(tmp_path, setup) as recorder:
        DecodeEngine(setup, 1, 60.0, recorder, lambda *_: "valid", lambda _: None).run()
    found = read_decoding(tmp_path)
    assert not found.losses
    cold, *warm = runs(found, "llguidance")
    assert cold.is_cold and cold.captured and not cold.repeated and cold.wall_ns > 5e8
    assert [run.repeated for run in warm] == repeated
    assert all((run.captured == 0) is (run.wall_ns < 5e8) is clean for run in warm)
    (free,) = (run for run in runs(found, "llguidance", "none") if run.round == 1)
    assert not free.captured


@pytest.mark.parametrize(
    ("answer", "renewed"),
    [
        ({"harness_error": "it fell"}, 1),
        ({"harness_error": "it fell", "sound": True}, 0),
        ({"not_offered": "no"}, 0),
    ],
)
def test_a_child_in_which_our_code_failed_is_renewed_unless_it_is_sound(
    answer: dict[str, Any],
    renewed: int,
    decoded: Decoding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh: list[str] = []
    monkeypatch.setattr(Scripted, "lost", None)
    monkeypatch.setattr(Scripted, "answer", answer)
    monkeypatch.setattr(Scripted, "renew", lambda _: fresh.append("renewed"))
    monkeypatch.setattr(engine_module, "Service", Scripted)
    settings = (Setting("quiet", "speculative"), Setting("quiet"))
    setup = replace(decoded.setup, settings=settings, arms=decoded.setup.arms[:1], forks=1)
    with DecodeRecorder(tmp_path, setup) as recorder:
        DecodeEngine(setup, 1, 1.0, recorder, lambda *_: "valid", lambda _: None).run()
    assert len(fresh) == renewed + 1, "once at the end of the fork"


def test_an_error_of_the_device_in_one_setting_leaves_the_others_their_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After such an error every call of that process fails; the others are made in a fresh one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(engine_module, "LOADER", "poisoned_arm:load_arm")
    strategies = ("stepwise", "jump_forward", "speculative")
    asked = request(
        ("enums",), REAL[0], tmp_path / "out", strategies=strategies, batches=(1,), texts=1, forks=1
    )
    decode(asked, lambda _: None)
    record = read_decoding(tmp_path / "out")
    (loss,) = record.losses
    assert record.setup.settings[loss.setting].strategy == "jump_forward"
    assert loss.whose == "harness_error" and "illegal memory access" in loss.why
    measured = {
        record.setting(run).strategy for run in record.batches if run.role == "constrained" and run.round
    }
    assert measured == {"stepwise", "speculative"} and record.is_complete
