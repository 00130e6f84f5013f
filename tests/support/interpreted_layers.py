"""Run as a program: fused layers on a CPU with their kernels in Triton's interpreter, whole and with one
kernel spoiled; prints as JSON how far their logits are from those of transformers. Triton reads when it is
imported that it is to interpret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

from decode_models import CHUNK, LONG, POSITIONS, ROWS, farthest, plain

from harness.serve.decode.model import fused, kernels
from harness.serve.decode.model.model import Model

KERNELS = ("normed", "product", "gated", "turned_and_kept", "attended")


def driven(family: str) -> Model:
    """Returns a model of fused layers, which was checked against its own plain pass."""
    made = plain(family)
    fused.fuse(made)
    return Model(made, family, rows=ROWS, positions=POSITIONS, chunk=CHUNK, graphs=False)


def counted(name: str, calls: dict[str, int]) -> Callable[..., Any]:
    """Returns the kernel, which then counts how often it is called."""
    inner = getattr(kernels, name)

    def call(*given: Any) -> Any:
        calls[name] = calls.get(name, 0) + 1
        return inner(*given)

    return call


if __name__ == "__main__":
    fused.kernels_for = lambda states: kernels
    calls: dict[str, int] = {}
    for name in KERNELS:
        setattr(kernels, name, counted(name, calls))
    llama = driven("llama")
    found: dict[str, Any] = {
        "llama": farthest(llama, plain("llama"), LONG),
        "qwen2": farthest(driven("qwen2"), plain("qwen2"), LONG),
        "calls": calls,
    }
    attended = kernels.attended
    kernels.attended = lambda query, keys, values, rows, at, scaling: attended(
        query, keys, values, rows, at + 1, scaling
    )
    print(json.dumps(found | {"sees one too many": farthest(llama, plain("llama"), LONG)}))
