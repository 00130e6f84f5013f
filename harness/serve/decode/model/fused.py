"""Layers of Llama's kind in fewer kernels, as engines have them: one projection for queries, keys and values,
one for both halves of the perceptron, torch's own norm, and a rotation in three operations.

At batch 1 a pass is bound by reading its weights, and each small kernel stands beside that: an H200 took 2.07
times the floor with transformers' own layers, which run about 50 operations each.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    Tensor = torch.Tensor


def fuse(model: Any) -> None:
    """Put such layers into a causal LM of transformers that is built like Llama (`llama` or `qwen2`). It
    computes the same as before, up to rounding."""
    attention, perceptron, rotation = _classes()
    for layer in model.model.layers:
        layer.self_attn = attention(layer.self_attn)
        layer.mlp = perceptron(layer.mlp)
        layer.input_layernorm = _norm(layer.input_layernorm)
        layer.post_attention_layernorm = _norm(layer.post_attention_layernorm)
    model.model.norm = _norm(model.model.norm)
    model.model.rotary_emb = rotation(model.model.rotary_emb)


def _norm(own: Any) -> Any:
    """Returns torch's module, which is one kernel, with the same weight."""
    from torch import nn

    made = nn.RMSNorm(own.weight.shape, eps=own.variance_epsilon, device="meta")
    made.weight = own.weight
    return made


def _merged(*own: Any) -> Any:
    """Returns one linear module whose output is that of all of them, one after the other."""
    import torch
    from torch import nn

    width, biased = own[0].in_features, own[0].bias is not None
    made = nn.Linear(width, sum(one.out_features for one in own), bias=biased, device="meta")
    made.weight = nn.Parameter(torch.cat([one.weight.detach() for one in own]))
    if biased:
        made.bias = nn.Parameter(torch.cat([one.bias.detach() for one in own]))
    return made


def rotated(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Returns states [rows, count, heads, dim] turned by their positions, given cosines and signed sines
    [rows, count, 1, dim]."""
    import torch

    first, second = states.chunk(2, -1)
    return torch.addcmul(states * cos, torch.cat((second, first), -1), sin)


@cache
def _classes() -> tuple[type, type, type]:
    """Returns the modules: attention, perceptron and rotation. They are made here so that torch and
    transformers are imported only with a model."""
    import torch
    from torch import nn
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama.modeling_llama import eager_attention_forward

    class Attention(nn.Module):
        """Takes the place of LlamaAttention and Qwen2Attention."""

        def __init__(self, own: Any) -> None:
            super().__init__()
            self.config, self.layer_idx, self.scaling = own.config, own.layer_idx, own.scaling
            self.num_key_value_groups = own.num_key_value_groups  # transformers' plain attention reads it
            self.dim = own.head_dim
            self.heads = own.q_proj.out_features // self.dim
            self.turning = self.heads + own.k_proj.out_features // self.dim
            self.merged = _merged(own.q_proj, own.k_proj, own.v_proj)
            self.o_proj = own.o_proj

        def forward(
            self,
            hidden_states: Tensor,
            position_embeddings: tuple[Tensor, Tensor],
            attention_mask: Tensor | None = None,
            past_key_values: Any = None,
            **others: Any,
        ) -> tuple[Tensor, Any]:
            rows, count, _ = hidden_states.shape
            merged = self.merged(hidden_states).view(rows, count, -1, self.dim)
            turned = rotated(merged[:, :, : self.turning], *position_embeddings).transpose(1, 2)
            query, key = turned[:, : self.heads], turned[:, self.heads :]
            value = merged[:, :, self.turning :].transpose(1, 2)
            if past_key_values is not None:
                key, value = past_key_values.update(key, value, self.layer_idx)
            attend: Any = ALL_ATTENTION_FUNCTIONS.get_interface(
                self.config._attn_implementation, eager_attention_forward
            )
            attended, weights = attend(
                self, query, key, value, attention_mask, dropout=0.0, scaling=self.scaling, **others
            )
            return self.o_proj(attended.reshape(rows, count, -1)), weights

    class Perceptron(nn.Module):
        """Takes the place of LlamaMLP and Qwen2MLP."""

        def __init__(self, own: Any) -> None:
            super().__init__()
            self.merged = _merged(own.gate_proj, own.up_proj)
            self.act_fn, self.down_proj = own.act_fn, own.down_proj

        def forward(self, states: Tensor) -> Tensor:
            gate, up = self.merged(states).chunk(2, -1)
            return self.down_proj(self.act_fn(gate) * up)  # type: ignore[no-any-return]

    class Rotation(nn.Module):
        """Returns what `rotated` takes. The first half of the sines has the sign that transformers gives to
        the states instead."""

        def __init__(self, own: Any) -> None:
            super().__init__()
            self.own = own

        def forward(self, states: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
            cos, sin = self.own(states, position_ids=position_ids)
            first, second = sin.chunk(2, -1)
            return cos[:, :, None], torch.cat((-first, second), -1)[:, :, None]

    return Attention, Perceptron, Rotation
