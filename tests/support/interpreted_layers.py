"""Run as a program: fused layers on a CPU with their kernels in Triton's interpreter, whole and with one
kernel spoiled; prints as JSON how far their logits are from those of transformers. Triton reads when it is
imported that it is to interpret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

from decode_models import CHUNK, LONG, POSITIONS, ROWS, Schedule, farthest, plain

from harness.serve.decode.model import few, fused, kernels
from harness.serve.decode.model.model import Model

KERNELS = ((kernels, ("normed", "gated", "attended")), (few, ("product", "attended")))


ONE_OR_TWO: Schedule = [
    ({0: (24, [1, 2, 3, 4, 5]), 1: (24, [6, 7])}, False),
    ({0: (24, [8])}, False),
    ({0: (24, [9, 10])}, True),
    ({1: (24, [11]), 2: (24, [12])}, False),
    ({0: (12, [13])}, False),
]
"""Passes of one or two tokens, most of them."""


def driven(family: str) -> Model:
    """Returns a model of fused layers, which was checked against its own plain pass."""
    made = plain(family)
    fused.fuse(made)
    return Model(made, family, rows=ROWS, positions=POSITIONS, chunk=CHUNK, graphs=False)


def counted(module: Any, name: str, calls: dict[str, int]) -> Callable[..., Any]:
    """Returns the kernel, which then counts how often it is called."""
    inner, counter = getattr(module, name), f"{module.__name__.rpartition('.')[2]}.{name}"

    def call(*given: Any, **options: Any) -> Any:
        calls[counter] = calls.get(counter, 0) + 1
        return inner(*given, **options)

    return call


def spoiled(module: Any, place: int) -> float:
    """Returns how far the logits are if the module's attention sees one position too many; its positions are
    the argument at that place."""
    model, inner = driven("llama"), module.attended

    def sees_more(*given: Any) -> Any:
        return inner(*given[:place], given[place] + 1, *given[place + 1 :])

    module.attended = sees_more
    try:
        return farthest(model, plain("llama"), ONE_OR_TWO[:3])
    finally:
        module.attended = inner


if __name__ == "__main__":
    fused.kernels_for = lambda states: kernels
    few.blocks = lambda tokens, width, gated: (8, 16, 4)  # several programs, and several steps of each
    calls: dict[str, int] = {}
    for module, names in KERNELS:
        for name in names:
            setattr(module, name, counted(module, name, calls))
    found: dict[str, Any] = {"calls": calls}
    for most, schedule in ((few.FEW, ONE_OR_TWO), (0, LONG)):
        few.FEW = most
        for family in ("llama", "qwen2"):
            found[f"{family}, {most}"] = farthest(driven(family), plain(family), schedule)
    found["sees one too many"] = spoiled(kernels, 9)  # FEW is 0
    few.FEW = 2
    found["few see one too many"] = spoiled(few, 6)
    print(json.dumps(found))
