"""The kernels of fused layers in Triton's interpreter: what they compute is shown here, and how fast they are
only a GPU can tell."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from places import SUPPORT

from harness.serve.decode.model import fused

pytest.importorskip("triton")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_where_a_kernel_cannot_run_torch_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kernel raises here, as it does where Triton finds no C compiler."""
    assert fused.working_kernels.__wrapped__() is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert fused.working_kernels.__wrapped__() is None


def test_layers_of_our_kernels_say_what_those_of_transformers_say() -> None:
    """It takes a process of its own, because Triton's own functions are interpreted only if that was asked
    for before it was imported."""
    program = [sys.executable, str(SUPPORT / "interpreted_layers.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found["calls"]) == {"normed", "product", "gated", "turned_and_kept", "attended"}
    assert max(found["llama"], found["qwen2"]) < 1e-4 < 1e-2 < found["sees one too many"]
