"""Batches of requests of all kinds for the decode loop, its options, and an exact adapter with a kernel."""

from __future__ import annotations

import torch
from decode_tools import regex, request
from hypothesis import strategies as st

from harness.backend.grammar import Grammar, Kernel
from harness.oracle.reference import Reference
from harness.walk.loop.request import Request

GRAMMARS = [
    None,
    regex(r'\{"name": "(red|blue)"\}'),
    regex(r"[a-d]{0,30}"),
    regex("(日本|日語|😀)+"),
    Grammar("choice", '["abc", "abcd", "ab"]'),
]


@st.composite
def batches(draw: st.DrawFn) -> list[Request]:
    """Requests of all kinds, which arrive at their own times."""
    count = draw(st.integers(1, 9))
    return [
        request(
            f"r{number}",
            draw(st.sampled_from(GRAMMARS)),
            prompt=draw(st.lists(st.integers(0, 255), min_size=1, max_size=20)),
            limit=draw(st.integers(1, 30)),
            seed=draw(st.none() | st.integers(0, 99)),
            arrival_ns=draw(st.integers(0, 3)) * 300_000,
        )
        for number in range(count)
    ]


OPTIONS = st.fixed_dictionaries(
    {
        "overlap": st.booleans(),
        "batch_fill": st.booleans(),
        "fill_threads": st.integers(1, 2),
        "workers": st.integers(0, 1),
        "kernel": st.sampled_from(["", "theirs"]),
    }
)


class WithKernel(Reference):
    """The exact adapter, with a kernel."""

    def kernels(self) -> dict[str, Kernel]:
        return {"theirs": Kernel(lambda: apply, frozenset({"cpu"}), frozenset({"float32"}))}


def apply(logits: torch.Tensor, bitmask: torch.Tensor) -> None:
    bits = bitmask.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32) & 1
    logits.masked_fill_(bits.flatten(-2)[..., : logits.shape[-1]] == 0, float("-inf"))
