"""Run as a program: probes xgrammar's kernel in Triton, and one of ours that is wrong, in Triton's
interpreter, and prints what came of each as JSON. Triton reads when it is imported that it is to
interpret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import byte_vocabulary
from harness.measure.kernels.correctness import examine
from harness.measure.kernels.situations import PROBES, Probe


@triton.jit  # type: ignore[untyped-decorator]
def masks_whole_words(logits: Any, bitmask: Any, row_step: Any, mask_step: Any, words: Any) -> None:
    """One program a word of a row. It forgets that the last word may be partial."""
    row, word = tl.program_id(0), tl.program_id(1)
    bits = tl.arange(0, 32)
    forbidden = ((tl.load(bitmask + row * mask_step + word) >> bits) & 1) == 0
    tl.store(logits + row * row_step + word * 32 + bits, -float("inf"), forbidden)


def beyond_the_vocabulary(logits: torch.Tensor, bitmask: torch.Tensor, rows: Any = None) -> None:
    """Masks every row of a batch, and what lies behind it."""
    if len(logits):
        words = bitmask.shape[1]
        masks_whole_words[len(logits), words](logits, bitmask, logits.stride(0), bitmask.stride(0), words)


def seen(kernel: Callable[..., object], probes: Iterable[Probe]) -> list[tuple[str, str, str, str]]:
    """Returns probe, type of logits, outcome and text of each probe."""
    found: list[tuple[str, str, str, str]] = []
    for probe in probes:
        for dtype in ("float32", "bfloat16", "float16") if probe.every_dtype else ("float32",):
            result = examine(kernel, probe, dtype, "cpu")
            found.append((probe.name, dtype, result.outcome, result.text))
    return found


if __name__ == "__main__":
    made_up = SimpleNamespace(multi_processor_count=4, gcnArchName="")
    torch.cuda.get_device_properties = lambda *_: made_up  # type: ignore[assignment]
    xgrammar = make(parse_specs("xgrammar")[0], byte_vocabulary()).kernels()["triton"].load()
    few = [probe for probe in PROBES if probe.name in ("a_batch_is_masked", "the_last_word_may_be_partial")]
    print(json.dumps({"xgrammar": seen(xgrammar, PROBES), "wrong": seen(beyond_the_vocabulary, few)}))
