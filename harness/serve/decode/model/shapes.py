"""Shapes: models of public dimensions with seeded random weights. They show how fast a model of that size is,
and nothing about its texts."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.serve.decode.model.fused import fuse

if TYPE_CHECKING:
    import torch

SEED = 5


@dataclass(frozen=True)
class Shape:
    """Dimensions as in a configuration of transformers."""

    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    rope_theta: float
    tie_word_embeddings: bool
    like: str
    """The public model of these dimensions; empty if there is none."""


SHAPES = {
    "tiny": Shape("llama", 128, 2, 4, 2, 384, 1e4, False, ""),
    "0.5b": Shape("qwen2", 896, 24, 14, 2, 4864, 1e6, True, "Qwen2.5-0.5B"),  # Llama 3 has none of this size
    "1b": Shape("llama", 2048, 16, 32, 8, 8192, 5e5, True, "Llama-3.2-1B"),
    "8b": Shape("llama", 4096, 32, 32, 8, 14336, 5e5, False, "Llama-3-8B"),
}
"""The shapes by name. The number of tokens is that of the vocabulary in use."""


def build_shape(
    name: str, vocabulary_size: int, device: torch.device, dtype: torch.dtype, attention: str
) -> Any:
    """Returns a causal LM of transformers. Its weights are made on the device in the dtype, so that nothing
    passes through the host."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = SHAPES[name]
    config = AutoConfig.for_model(
        shape.model_type,
        vocab_size=vocabulary_size,
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.num_hidden_layers,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        intermediate_size=shape.intermediate_size,
        rope_theta=shape.rope_theta,
        tie_word_embeddings=shape.tie_word_embeddings,
        max_position_embeddings=131072,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    auto: Any = AutoModelForCausalLM
    with torch.device(device), _without_initialization():
        model = auto.from_config(config, dtype=dtype, attn_implementation=attention)
        fuse(model)
    model.tie_weights()
    _fill(model)
    return model


def _without_initialization() -> AbstractContextManager[None]:
    """Returns a context in which a model is made without initial weights; `_fill` writes each of them."""
    from importlib import import_module

    from transformers import __version__

    home = "initialization" if int(__version__.partition(".")[0]) >= 5 else "modeling_utils"
    context: AbstractContextManager[None] = import_module(f"transformers.{home}").no_init_weights()
    return context


def _fill(model: Any) -> None:
    """Write random weights under which every layer counts and logits spread by about 2, so that the next
    token depends on the whole row."""
    import torch

    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    with torch.no_grad():
        if head.device.type == "meta":  # nothing to fill
            return
        generator = torch.Generator(head.device).manual_seed(SEED)
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
            elif weight is head:
                weight.normal_(0.0, 2 / math.sqrt(weight.shape[1]), generator=generator)
            else:
                weight.normal_(
                    0.0, 0.5 if weight is embedding else 1 / math.sqrt(weight.shape[1]), generator=generator
                )
