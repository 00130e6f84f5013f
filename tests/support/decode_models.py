"""Small random models of every family that the decode loop drives, and how far a run on the cache is from
what the plain model says."""

from __future__ import annotations

from typing import Any

import torch

from harness.serve.decode.model import attention
from harness.serve.decode.model.model import Model

ROWS, POSITIONS, CHUNK, VOCABULARY = 3, 24, 5, 61

DIMENSIONS: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
BOTH = ["sliding_attention", "full_attention"]
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen2 in part with a window": {"use_sliding_window": True, "sliding_window": 6, "layer_types": BOTH},
    "qwen3": {},
    "mistral": {"sliding_window": 6},
    "gemma": {"num_key_value_heads": 1},
    "gemma2": {
        "sliding_window": 6,
        "layer_types": BOTH,
        "query_pre_attn_scalar": 8,
        "attn_logit_softcapping": 2.0,
    },
    "gemma3_text": {"sliding_window": 6, "layer_types": BOTH, "query_pre_attn_scalar": 8},
    "granite": {"logits_scaling": 4.0},
}


def plain(family: str, **changes: Any) -> Any:
    """A small random model of the family, as transformers makes it."""
    from transformers import AutoConfig, AutoModelForCausalLM

    attention.register()
    config: Any = AutoConfig.for_model(family.split()[0], **DIMENSIONS | FAMILIES.get(family, {}) | changes)
    auto: Any = AutoModelForCausalLM
    torch.manual_seed(3)
    found = auto.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for weight in (
            found.parameters()
        ):  # transformers' own are so small that what a layer does hardly reaches the logits
            weight.normal_(0.0, 0.3)
    return found.eval()


def own_logits(model: Any, text: list[int]) -> torch.Tensor:
    """[tokens, vocabulary], by the model's own attention over the whole text at once."""
    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=torch.tensor([text]), use_cache=False).logits[0]
    return logits


Schedule = list[tuple[dict[int, tuple[int, list[int]]], bool]]
"""For each step: for each row named, in an order of its own, how much of it to keep (in 24ths) and what to
append; and `every`."""


def farthest(model: Model, own: Any, schedule: Schedule) -> float:
    """The largest difference between a logit of the run and the same by the plain model."""
    texts: dict[int, list[int]] = {row: [] for row in range(ROWS)}
    for row in texts:
        model.rollback(row, 0)
    most = 0.0
    for step, every in schedule:
        fed = {}
        for row, (keep, ids) in step.items():
            kept = len(texts[row]) * keep // 24
            if kept + len(ids) > POSITIONS:
                kept = 0
            model.rollback(row, kept)
            texts[row] = texts[row][:kept] + ids
            fed[row] = ids
        logits = model.extend(fed, every=every)
        assert logits.dtype == torch.float32
        for place, (row, ids) in enumerate(fed.items()):
            found = logits[place, : len(ids)] if every else logits[place, None]
            expected = own_logits(own, texts[row])[-len(found) :]
            most = max(most, float((found - expected).abs().max()))
            assert model.length(row) == len(texts[row])
    return most


LONG: Schedule = [
    ({0: (24, [1, 2, 3, 4, 5]), 1: (24, [6, 7])}, False),
    ({1: (24, [8]), 0: (24, [9, 10, 11]), 2: (24, [12])}, True),
    ({0: (12, [13]), 2: (24, [14, 15])}, False),
    ({2: (24, [16]), 0: (24, [17, 18, 19, 20])}, False),
]
