"""What a setting asks of an arm: on how many threads masks are filled, and whose these are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch
from decode_tools import an_arm_in_this_process, as_if_the_cpu_worked_beside

from harness.backend.grammar import Adapter, Bitmask, GrammarObject
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.errors import BadInput
from harness.serve.decode import arm as arm_module
from harness.serve.decode.arm import DecodeHandler
from harness.serve.decode.model import model as model_module
from harness.serve.decode.model.graphs import NotCaptured
from harness.serve.decode.setting import Setting

USUAL = {"batch": 2, "texts": 2, "prompt_tokens": 4, "limit": 4}


def opened(spec: str) -> DecodeHandler:
    (parsed,) = parse_specs(spec)
    arm = DecodeHandler(make(parsed, load_vocabulary("probe")), "tiny", "cpu", None)
    said, _ = arm(
        {"op": "open", "rows": 2, "loads": {"function_calls": 2}, "prompt_tokens": 4, "limit": 4}
        | {"draft_tokens": 0},
        b"",
    )
    assert "workloads" in said, said
    return arm


@pytest.fixture
def torch_as_before() -> Iterator[None]:
    with an_arm_in_this_process():
        yield


@pytest.mark.parametrize(
    ("spec", "asked", "seen"),
    [
        ("llguidance", {"batch_fill": True}, {1}),
        ("llguidance", {"batch_fill": True, "fill_threads": 3}, {3}),
        ("llguidance:threads=2", {"batch_fill": True}, {2}),
        ("llguidance", {"fill_threads": 3}, set()),
    ],
)
def test_one_call_works_on_the_threads_that_the_setting_asks_for(
    spec: str,
    asked: dict[str, int],
    seen: set[int],
    torch_as_before: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm, found = opened(spec), set()
    kind = type(arm.adapter)
    fill = kind.fill_bitmasks

    def watched(self: Adapter, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        found.add(self.threads)
        fill(self, objects, bitmasks)

    monkeypatch.setattr(kind, "fill_bitmasks", watched)
    before = arm.adapter.threads
    setting = Setting("function_calls", **USUAL, **asked)  # type: ignore[arg-type]
    said, _ = arm({"op": "run", "role": "constrained", "setting": setting.to_json()}, b"")
    assert len(said["completed"]) == 2 and found == seen
    assert arm.adapter.threads == before, "the next setting has the backend's own number again"


def test_an_arm_on_a_device_begins_passes_ahead(
    torch_as_before: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_if_the_cpu_worked_beside(monkeypatch)
    arm = opened("llguidance")
    assert arm.model is not None
    ahead, extend = [], arm.model.extend_unseen

    def seen(rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        ahead.append(len(rows))
        return extend(rows, tokens)

    monkeypatch.setattr(arm.model, "extend_unseen", seen)
    setting = Setting("function_calls", **USUAL)  # type: ignore[arg-type]
    for role in ("constrained", "none"):
        said, _ = arm({"op": "run", "role": role, "setting": setting.to_json()}, b"")
        assert [len(done["ids"]) for done in said["completed"]] == [4, 4], said
        assert ahead == [2, 2, 2]
        ahead.clear()


@pytest.mark.parametrize(
    ("fault", "ends"), [(NotCaptured("no memory for a pass"), False), (BadInput("it does not fit"), True)]
)
def test_a_pass_that_a_run_cannot_capture_costs_this_run_alone(
    fault: BadInput, ends: bool, torch_as_before: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = opened("llguidance")
    assert arm.model is not None
    setting = Setting("function_calls", **USUAL)  # type: ignore[arg-type]
    message = {"op": "run", "role": "constrained", "setting": setting.to_json()}
    with monkeypatch.context() as patch:

        def fails(*_: object) -> torch.Tensor:
            raise fault

        patch.setattr(arm.model._runner, "run", fails)
        if ends:
            with pytest.raises(BadInput, match="it does not fit"):
                arm(message, b"")
        else:
            said, _ = arm(message, b"")
            assert "no memory for a pass" in said["harness_error"] and said["sound"]

            def lost() -> None:
                raise RuntimeError("an illegal memory access was encountered")

            with monkeypatch.context() as device:
                device.setattr(arm.model, "finish", lost)
                assert "sound" not in arm(message, b"")[0], "nothing works on that device any more"
    said, _ = arm(message, b"")
    assert len(said["completed"]) == 2, "the next one runs"


def test_threads_that_a_backend_does_not_have_are_not_offered(torch_as_before: None) -> None:
    arm = opened("outlines-core")
    asked = Setting("function_calls", **USUAL, batch_fill=True, fill_threads=3)  # type: ignore[arg-type]
    said, _ = arm({"op": "run", "role": "constrained", "setting": asked.to_json()}, b"")
    assert said == {"not_offered": "the backend has no threads of its own"}


def test_a_kernel_that_a_backend_does_not_have_is_named_beside_those_that_it_has(
    torch_as_before: None,
) -> None:
    arm = opened("outlines-core")
    asked = Setting("function_calls", **USUAL, kernel="cuda")  # type: ignore[arg-type]
    said, _ = arm({"op": "run", "role": "constrained", "setting": asked.to_json()}, b"")
    names = ", ".join(arm.adapter.kernels())
    assert said == {
        "not_offered": f"the backend has no kernel cuda for float32 logits on cpu; it has {names}"
    }


def test_a_cold_run_compiles_again_and_what_it_compiles_stays(torch_as_before: None) -> None:
    arm = opened("llguidance")
    usual = Setting("function_calls", **USUAL | {"texts": 1})  # type: ignore[arg-type]
    other = replace(usual, compile_workers=0)

    def states(setting: Setting, *, cold: bool) -> set[str]:
        message = {"op": "run", "role": "constrained", "setting": setting.to_json(), "cold": cold}
        said, _ = arm(message, b"")
        return {done["compile_state"] for done in said["completed"]}

    assert states(usual, cold=True) == {"miss"} and states(usual, cold=False) == {"hit"}
    assert states(other, cold=True) == {"miss"}
    jump = replace(usual, strategy="jump_forward")
    assert states(jump, cold=True) == {"miss"}, "the settings before it had the same grammars"
    assert states(usual, cold=False) == states(jump, cold=False) == {"hit"}
    assert states(other, cold=False) == {"hit"}, "another queue is left as it is"
    assert len(arm.queues) == 2


def test_a_shape_that_cannot_be_built_is_no_fault_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ModuleNotFoundError("Could not import module 'LlamaConfig'")

    monkeypatch.setattr(arm_module, "build_shape", fails)
    handler, _ = arm_module.load_arm("llguidance", "probe", "tiny", "cpu", None)
    assert isinstance(handler, DecodeHandler), "its child says so when it is asked to build the model"


def test_a_model_that_cannot_be_built_is_a_fault_of_ours(
    torch_as_before: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("all CUDA-capable devices are busy")

    monkeypatch.setattr(model_module, "load_model", fails)
    (parsed,) = parse_specs("llguidance")
    arm = DecodeHandler(make(parsed, load_vocabulary("probe")), "tiny", "cpu", None)
    message = {"op": "open", "rows": 1, "loads": {"function_calls": 1}, "prompt_tokens": 4, "limit": 4}
    said, _ = arm(message | {"draft_tokens": 0}, b"")
    assert said == {"harness_error": "RuntimeError: all CUDA-capable devices are busy"}
