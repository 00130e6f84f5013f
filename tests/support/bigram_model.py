"""A model in a folder whose probabilities are known exactly: each depends on the token before, and on nothing
else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import made_tokenizers

Chances = Mapping[str, Mapping[str, float]]
"""For the text of a token the probabilities of some tokens behind it, by their text. What is missing to 1 is
shared equally by all other tokens; behind a token that is not named all are equal. `""` is the end."""

CHANCES: Chances = {
    "ab": {"x": 0.2, "y": 0.1, "": 0.3, "z": 0.32},
    "x": {"ab": 0.2, "a": 0.6},
    "y": {"ab": 0.9},
    "a": {"b": 0.5},
    "b": {"": 0.4},
}
"""The chances for the grammar `[xy]ab`, whose last token is also that of a prompt that ends in
the grammar."""


def write(folder: Path, chances: Chances = CHANCES) -> Path:
    """Writes a tokenizer and a causal LM of transformers into the folder, and returns it.

    No layer adds anything: what attention and the feed-forward part give is multiplied by 0, and the
    embedding of a token is one-hot. So its logits are a row of the table of log-probabilities.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from harness.backend.vocabulary import load_vocabulary

    made_tokenizers.byte_level(folder)
    vocabulary = load_vocabulary(f"hf:{folder}")
    ids = {text.decode("latin-1"): token for token, text in reversed([*enumerate(vocabulary.tokens)])}
    ids[""] = vocabulary.eos_token
    table = torch.full((vocabulary.size, vocabulary.size), -math.log(vocabulary.size), dtype=torch.float64)
    for before, behind in chances.items():
        rest = (1 - sum(behind.values())) / (vocabulary.size - len(behind))
        table[ids[before]] = math.log(rest)
        for text, chance in behind.items():
            table[ids[before], ids[text]] = math.log(chance)
    config: Any = LlamaConfig(
        vocab_size=vocabulary.size, hidden_size=vocabulary.size, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=256,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    model: Any = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
        # So long that the norm's epsilon is nothing beside it; the norm makes it sqrt(size) long.
        model.get_input_embeddings().weight.copy_(100 * torch.eye(vocabulary.size))
        model.get_output_embeddings().weight.copy_((table / math.sqrt(vocabulary.size)).T)
    model.save_pretrained(folder)
    return folder
