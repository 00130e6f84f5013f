"""Run as a program: fused layers on a CPU with their kernels in Triton's interpreter, whole and with one
kernel spoiled; prints as JSON how far their logits are from those of transformers. Triton reads when it is
imported that it is to interpret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
from decode_models import CHUNK, LONG, POSITIONS, ROWS, Schedule, farthest, plain
from torch.nn.functional import linear, rms_norm, silu

from harness.serve.decode.model import few, fused, kernels, sums, units
from harness.serve.decode.model.model import Model

KERNELS = ((kernels, ("normed", "gated", "attended")), (few, ("product", "attended")))


FEW: Schedule = [
    ({0: (24, [1, 2, 3, 4, 5]), 1: (24, [6, 7])}, False),
    ({0: (24, [8])}, False),
    ({0: (24, [9, 10])}, True),
    ({1: (24, [11]), 2: (24, [12])}, False),
    ({0: (12, [13])}, False),
    ({0: (24, [14, 15, 16]), 1: (12, [17]), 2: (24, [18, 19])}, True),
]
"""Passes of one, two, three and more than eight tokens."""


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


def spoiled(model: Model, module: Any, place: int) -> float:
    """Returns how far the logits of the model, a llama, are if the module's attention sees one position too
    many; its positions are the argument at that place."""
    inner = module.attended

    def sees_more(*given: Any) -> Any:
        return inner(*given[:place], given[place] + 1, *given[place + 1 :])

    module.attended = sees_more
    try:
        return farthest(model, plain("llama"), FEW[:2])
    finally:
        module.attended = inner


def product_error() -> float:
    """Returns how far products of all kinds are from those of torch at most, over inputs that are shared out
    evenly and that are not."""
    torch.manual_seed(5)
    most = 0.0
    for tokens in (1, 2, 3, 8, 9, 16):
        for width, outputs in ((192, 20), (100, 16)):
            states, onto = torch.randn(1, tokens, width), torch.randn(1, tokens, outputs)
            weight, bias = torch.randn(2 * outputs, width) / width**0.5, torch.randn(outputs)
            wanted = linear(states, weight[:outputs], bias) + onto
            made = few.product(states, weight[:outputs], bias, onto)
            both = linear(rms_norm(states, (width,), eps=1e-5), weight).chunk(2, -1)
            gated = few.product(states, weight, norm=1e-5, gated=True)
            errors = made - wanted, gated - silu(both[0]) * both[1]
            most = max([most, *(float(error.abs().max()) for error in errors)])
    return most


if __name__ == "__main__":
    fused.kernels_for = lambda states: kernels
    sums.blocks = lambda width, gated: (8, 16, 4)  # several programs, and several steps of each
    units.blocks = lambda width, gated, many: (2, 1)
    products = product_error()
    calls: dict[str, int] = {}
    for module, names in KERNELS:
        for name in names:
            setattr(module, name, counted(module, name, calls))
    found: dict[str, Any] = {"calls": calls, "products": products}
    for most, schedule, module, place, said in (
        (units.MOST, FEW, few, 6, "few see one too many"),
        (0, LONG, kernels, 9, "sees one too many"),
    ):
        few.FEW = most
        models = {family: driven(family) for family in ("llama", "qwen2")}
        for family, model in models.items():
            # qwen2 differs in its biases alone; in the interpreter a pass takes seconds.
            passes = schedule if family == "llama" else schedule[:3]
            found[f"{family}, {most}"] = farthest(model, plain(family), passes)
        found[said] = spoiled(models["llama"], module, place)
    print(json.dumps(found))
