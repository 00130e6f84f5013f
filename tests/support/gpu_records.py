"""Stand-ins for what benchmarks/gpu.py measures and stores: its files, a floor, and records of decoding."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_decode
from decode_runs import Played, arm, decoding
from gpu_plan import FORCED, MIXED, NO_OVERLAP
from gpu_store import Store

from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import Decoding, Loss, Whose
from harness.serve.decode.setting import Setting

ENVIRONMENT: dict[str, Any] = {
    "device": "made up",
    "torch": "2",
    "cuda": None,
    "versions": {"xgrammar": "1"},
    "packages": {},
    "commit": "c",
    "code_sha256": "0" * 64,
}


def store(
    part: str, cells: Mapping[str, dict[str, Any]], device: str = "cuda", path: Path = Path("x")
) -> Store:
    return Store(path, part, device, ENVIRONMENT, [], dict(cells))


def floor_cell(ratio: float, apart: float = 0.01) -> dict[str, Any]:
    """A device of 1 GB/s whose bare steps take so many times their floor, which is 8 ms."""
    step = {
        "model": {"read_bytes": 8_000_000, "cache_bytes_per_token": 0, "dtype": "bfloat16"},
        "length": 40.0,
        "step_ns": {"graph": [ratio * 8e6] * 8, "eager": [2 * ratio * 8e6] * 8},
        "logits_apart": apart,
    }
    return {"copy_bytes": 1_000_000, "copy_ns": [1e6, 1e6, 9e6], "steps": {"1": step, "32": step}}


def decoded_cell(batch: int, cost: Mapping[str, float], **others: Any) -> dict[str, Any]:
    """What is kept of such a record, as a file has it."""
    kept = gpu_decode.condensed(Decoded(record_of(batch, cost, **others)))
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


def record_of(
    batch: int,
    cost: Mapping[str, float],
    jump_ms: float = 10.5,
    again: float = 10.0,
    whose: Whose = "not_offered",
) -> Decoding:
    """8b where a pass takes 10 ms without a grammar; `cost` has the milliseconds with one, by way to fill.
    Half of the forced text needs no pass; `whose` fault it is that one setting was lost. Where `again` is not
    10, the A/A arm is so much slower, and twice as much without overlap."""
    texts = {"a": [1] * 40, "b": [1] * 40}
    arms = [arm("xgrammar", "reference"), arm("llguidance"), arm("xgrammar (again)", "a/a")]
    arms[2] = replace(arms[2], backend="xgrammar")
    base = Setting(MIXED, batch=batch, texts=2)
    ways = {
        "one thread": base,
        "one call": replace(base, batch_fill=True),
        NO_OVERLAP: replace(base, overlap=False),
    }
    settings = {
        setting: {
            "xgrammar": Played(texts, cost[way]),
            "llguidance": Played(texts, 10.0),
            "xgrammar (again)": Played(texts, cost[way] * (again / 10) ** (1 if setting.overlap else 2)),
        }
        for way, setting in ways.items()
    }
    forced = Setting(FORCED, batch=batch, texts=2)
    settings[forced] = {name.name: Played(texts) for name in arms}
    jumps = Played({name: [2] * 20 for name in texts}, jump_ms)
    settings[replace(forced, strategy="jump_forward")] = {name.name: jumps for name in arms}
    losses = [Loss(0, "llguidance", 1, whose, "no <such> | call")]
    record = decoding(settings, plain=Played(texts), arms=arms, forks=1, losses=losses)
    model = {"read_bytes": 8_000_000, "cache_bytes_per_token": 0}
    return replace(record, children=(replace(record.children[0], model=model),))


COST = {"one thread": 10.8, "one call": 10.4, NO_OVERLAP: 9.0}
"""The milliseconds of a pass with a grammar, by way to fill, where all that is asked holds."""
