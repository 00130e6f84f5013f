"""The kernels of fused layers in Triton's interpreter: what they compute is shown here, and how fast they are
only a GPU can tell."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from decode_tools import WORDS, regex, request
from places import SUPPORT

from harness.oracle.reference import Reference
from harness.serve.decode.model import fused
from harness.serve.decode.model.model import load_model
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.strategies.base import Strategy

pytest.importorskip("triton")
on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_where_a_kernel_cannot_run_torch_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kernel raises here, as it does where Triton finds no C compiler."""
    assert fused.working_kernels.__wrapped__() is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert fused.working_kernels.__wrapped__() is None


@pytest.mark.long
def test_layers_of_our_kernels_say_what_those_of_transformers_say() -> None:
    """It takes a process of its own, because Triton's own functions are interpreted only if that was asked
    for before it was imported."""
    program = [sys.executable, str(SUPPORT / "interpreted_layers.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found.pop("calls")) == {
        "kernels.normed", "kernels.gated", "kernels.attended",
        "few.product", "few.attended",
    }  # fmt: skip
    wrong = [found.pop(name) for name in ("sees one too many", "few see one too many")]
    assert set(found) == {"products", "llama, 16", "qwen2, 16", "llama, 0", "qwen2, 0"}
    assert max(found.values()) < 1e-4 < 1e-2 < min(wrong)


@pytest.mark.gpu
@on_cuda
def test_few_tokens_and_many_agree_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.serve.decode.model import few

    found = []
    for most in (few.FEW, 0):
        monkeypatch.setattr(few, "FEW", most)
        model = load_model("tiny", 300, rows=3, positions=64, device="cuda", dtype="float32")
        passes = [{1: [*range(1, 30)]}, {1: [5]}, {1: [6, 7, 8]}, {0: [1, 2], 2: [3, 4]}, {2: [9], 0: [8]}]
        passes += [{0: [*range(1, 13)]}, {0: [1, 2, 3], 1: [4], 2: [5, 6]}]
        found.append([model.extend(tokens).clone() for tokens in passes])
        found[-1] += [model.extend_unseen([0, 1], torch.tensor([5, 6], device="cuda"))]
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=2e-3), float((one - other).abs().max())


@pytest.mark.gpu
@on_cuda
@pytest.mark.parametrize("tokens", [1, 2, 8, 9, 16])
def test_products_of_few_tokens_are_those_of_torch_on_a_device(tokens: int) -> None:
    from harness.serve.decode.model import few

    torch.manual_seed(5)
    states = torch.randn(1, tokens, 2048, device="cuda").bfloat16()
    weight = (torch.randn(1024, 2048, device="cuda") / 2048**0.5).bfloat16()
    wide = torch.nn.functional.linear(states.float(), weight.float())
    assert torch.allclose(few.product(states, weight, dtype=torch.float32), wide, atol=1e-3)
    normed = torch.nn.functional.rms_norm(states.float(), (2048,), eps=1e-5) @ weight.float().t()
    gate, up = normed.chunk(2, -1)
    gated = few.product(states, weight, norm=1e-5, gated=True, dtype=torch.float32)
    assert torch.allclose(gated, torch.nn.functional.silu(gate) * up, atol=1e-3)


@pytest.mark.gpu
@on_cuda
def test_a_pass_that_begins_ahead_changes_nothing_on_a_device() -> None:
    model = load_model("tiny", WORDS.size, rows=4, positions=96, chunk=8, device="cuda", dtype="float32")
    wanted = [request(f"r{at}", regex("[a-d]{0,30}"), limit=9 + at, seed=at) for at in range(6)]
    wanted += [request("free", limit=12), request("one", regex("(red|blue)"))]
    found = []
    with CompileQueue(Reference(WORDS), workers=0) as queue:
        for ahead in (True, False):
            loop = Loop(model, WORDS, Strategy(WORDS), queue, LoopOptions(ahead=ahead))
            found.append([each.ids for each in loop.serve(wanted).completed])
            assert not any(model.length(row) for row in range(4))
    assert found[0] == found[1]
