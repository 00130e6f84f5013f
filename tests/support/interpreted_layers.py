"""Run as a program: fused layers on a CPU with their kernels in Triton's interpreter, whole and with one
kernel spoiled; prints as JSON how far their logits are from those of transformers. Triton reads when it is
imported that it is to interpret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from inspect import getmembers
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
from decode_models import CHUNK, LONG, POSITIONS, ROWS, Schedule, farthest, plain
from torch.nn.functional import linear, rms_norm, silu
from triton.language.core import is_builtin
from triton.runtime import interpreter

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


@cache
def builtins_of(place: Any) -> list[tuple[str, Any]]:
    """Returns what of a module or class of triton.language the interpreter replaces, by name."""
    return [(name, member) for name, member in getmembers(place) if is_builtin(member)]


def patch_builtin(place: Any, builder: Any, scope: Any) -> None:
    """Replaces them. The interpreter's own function of this name looks through the place anew at every call
    of every function of a kernel, which is a fifth of all the time."""
    for name, member in builtins_of(place):
        if getattr(place, name) is member:
            interpreter._patch_attr(place, name, member, builder, scope)


def driven(family: str, **changes: Any) -> Model:
    """Returns a model of fused layers."""
    made = plain(family, **changes)
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
        return farthest(model, plain("llama"), FEW[:1])
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
    interpreter._patch_builtin = patch_builtin
    # A model that is made compares itself with its plain pass. That is done here, for more passes and more
    # closely; in the interpreter a pass takes a second.
    Model._apart = lambda self: 0.0  # type: ignore[method-assign]
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
        llama = driven("llama")
        found[f"llama, {most}"] = farthest(llama, plain("llama"), schedule)
        found[said] = spoiled(llama, module, place)
        # qwen2 differs in its biases alone.
        one = {"num_hidden_layers": 1}
        found[f"qwen2, {most}"] = farthest(driven("qwen2", **one), plain("qwen2", **one), schedule[:3])
    print(json.dumps(found))
