"""Layers of Llama's kind in fewer kernels, as engines have them: one projection for queries, keys and
values, one for both halves of the perceptron, and on CUDA, where Triton is installed, five kernels of `few`
for passes of up to 16 tokens, and four products and two kernels of `kernels` for the others.

At batch 1 a pass is bound by reading its weights, and each small kernel stands beside that: with the
dimensions of 8B an H200 took 2.07 times the floor with transformers' own layers, which run about 50
operations each, and 1.22 with nine kernels each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harness.serve.decode.model.attention import GROUPED

if TYPE_CHECKING:
    import torch

    Tensor = torch.Tensor


@dataclass
class Turns:
    """The cosines and sines by which queries and keys are turned. The first half of the sines has the sign
    that transformers gives to the states instead."""

    cos: Tensor
    """The cosines of all positions, [positions, dim]."""
    sin: Tensor
    """The sines of all positions, [positions, dim]."""
    positions: Tensor
    """The positions of the tokens, [rows, count]."""

    @cached_property
    def of_tokens(self) -> tuple[Tensor, Tensor]:
        """Returns cosines and sines of each token, [rows, count, 1, dim]."""
        return self.cos[self.positions][:, :, None], self.sin[self.positions][:, :, None]


def fuse(model: Any) -> None:
    """Puts such layers into a causal LM of transformers that is built like Llama (`llama` or `qwen2`, without
    windows). It computes the same as before, up to rounding."""
    layer, norm, rotation, head = _classes()
    for number, own in enumerate(model.model.layers):
        model.model.layers[number] = layer(own)
    model.model.norm = norm(model.model.norm)
    model.model.rotary_emb = rotation(model.model.rotary_emb)
    model.lm_head.__class__ = head


def see_alone(model: Any, count: int) -> bool:
    """Returns whether the layers of a causal LM find what each of `count` tokens of a row sees by its
    position, so that they take no mask."""
    layers = getattr(getattr(model, "model", None), "layers", None)
    return all(hasattr(layer, "sees_alone") and layer.sees_alone(count) for layer in layers or [None])


def limit_positions(model: Any, positions: int) -> None:
    """Tells a causal LM, if its layers are fused, below which position all of its tokens are, so that it
    keeps no more turns than these."""
    rotation: Any = getattr(getattr(model, "model", None), "rotary_emb", None)
    if hasattr(rotation, "positions"):
        rotation.positions = positions


def kernels_for(states: Tensor) -> Any:
    """Returns the module `kernels` where its kernels take the place of torch's operations; None elsewhere."""
    return working_kernels() if states.is_cuda else None


def few_for(states: Tensor) -> Any:
    """Returns the module `few` where its kernels are for states [rows, count, width]; None elsewhere."""
    if kernels_for(states) is None:
        return None
    from harness.serve.decode.model import few

    return few if states.shape[0] * states.shape[1] <= few.FEW else None


@cache
def working_kernels() -> Any:
    """Returns the module `kernels` if Triton compiles a kernel here and the device runs it, and None if not:
    Triton may be missing, or the C compiler that it needs."""
    import torch

    if find_spec("triton") is None or not torch.cuda.is_available():
        return None
    from harness.serve.decode.model import kernels

    try:
        kernels.normed(torch.ones(1, 1, 32, device="cuda"), torch.ones(32, device="cuda"), 1e-5)
    except Exception:  # whatever a compiler says
        return None
    return kernels


def _merged(norm: Any, *own: Any) -> Any:
    """Returns one linear module whose output is that of all of them, one after the other, with the weight of
    the norm before them in its own."""
    import torch
    from torch import nn

    width, biased = own[0].in_features, own[0].bias is not None
    made = nn.Linear(width, sum(one.out_features for one in own), bias=biased, device="meta")
    made.weight = nn.Parameter(torch.cat([one.weight.detach() for one in own]) * norm.weight.detach())
    if biased:
        made.bias = nn.Parameter(torch.cat([one.bias.detach() for one in own]))
    return made


def rotated(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Returns states [rows, count, heads, dim] turned by their positions, given cosines and signed sines
    [rows, count, 1, dim]."""
    import torch

    first, second = states.chunk(2, -1)
    return torch.addcmul(states * cos, torch.cat((second, first), -1), sin)


def product(states: Tensor, module: Any, onto: Tensor | None = None) -> Tensor:
    """Returns the linear module of states [rows, count, width], plus `onto` if it is given, which may be
    overwritten."""
    if onto is not None and module.bias is None and kernels_for(states) is not None:
        onto.flatten(0, 1).addmm_(states.flatten(0, 1), module.weight.t())
        return onto
    made: Tensor = module(states)
    return made if onto is None else onto + made


@cache
def _classes() -> tuple[type, type, type, type]:
    """Returns the modules: layer, norm, rotation and head. They are made here so that torch and transformers
    are imported only with a model."""
    import torch
    from torch import nn
    from torch.nn.functional import linear
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama.modeling_llama import eager_attention_forward

    class Norm(nn.Module):
        """Takes the place of LlamaRMSNorm and Qwen2RMSNorm."""

        def __init__(self, own: Any) -> None:
            super().__init__()
            self.weight, self.eps = own.weight, own.variance_epsilon

        def forward(self, states: Tensor) -> Tensor:
            if (kernels := kernels_for(states)) is not None:
                return kernels.normed(states, self.weight, self.eps)  # type: ignore[no-any-return]
            return nn.functional.rms_norm(states, self.weight.shape, self.weight, self.eps)

    class Layer(nn.Module):
        """Takes the place of LlamaDecoderLayer and Qwen2DecoderLayer."""

        def __init__(self, own: Any) -> None:
            super().__init__()
            attention, perceptron = own.self_attn, own.mlp
            self.config, self.layer_idx = attention.config, attention.layer_idx
            self.scaling = attention.scaling
            self.attention_type = getattr(own, "attention_type", "full_attention")  # transformers 4 reads it
            self.num_key_value_groups = attention.num_key_value_groups  # its plain attention reads it
            self.dim = attention.head_dim
            self.heads = attention.q_proj.out_features // self.dim
            self.turning = self.heads + attention.k_proj.out_features // self.dim
            before, behind = own.input_layernorm, own.post_attention_layernorm
            self.eps = before.variance_epsilon, behind.variance_epsilon
            self.attention = _merged(before, attention.q_proj, attention.k_proj, attention.v_proj)
            self.o_proj = attention.o_proj
            self.perceptron = _merged(behind, perceptron.gate_proj, perceptron.up_proj)
            self.act_fn, self.down_proj = perceptron.act_fn, perceptron.down_proj

        def forward(
            self,
            hidden_states: Tensor,
            attention_mask: Tensor | None = None,
            position_embeddings: Turns | None = None,
            past_key_values: Any = None,
            cache: Any = None,  # its name from transformers 5.24 on
            **others: Any,
        ) -> Tensor:
            assert position_embeddings is not None
            states, turns = hidden_states, position_embeddings
            held = past_key_values if cache is None else cache
            rows, count, _ = states.shape
            alone = held is not None and self.sees_alone(count)
            if alone and (few := few_for(states)) is not None:
                return self._of_few(few, states, turns, held)
            kernels = kernels_for(states)
            if alone:
                merged = linear(states, self.attention.weight).view(rows, count, -1, self.dim)
                keys, values = self._memories(merged, held)
                place = held.place
                attended = kernels.attended(
                    merged, self.attention.bias, states, self.eps[0], turns.cos, turns.sin, keys, values,
                    place.rows, place.at, self.scaling,
                )  # fmt: skip
            else:
                merged = self.attention(self._normed(states, 0)).view(rows, count, -1, self.dim)
                attended = self._attended(merged, turns, attention_mask, held, others)
            states = product(attended.reshape(rows, count, -1), self.o_proj, states)
            if kernels is not None:
                merged = kernels.gated(linear(states, self.perceptron.weight), states, self.eps[1])
            else:
                gate, up = self.perceptron(self._normed(states, 1)).chunk(2, -1)
                merged = self.act_fn(gate) * up
            return product(merged, self.down_proj, states)

        def _normed(self, states: Tensor, number: int) -> Tensor:
            """Returns the states as the first or the second norm of the layer leaves them, but for its
            weight."""
            return nn.functional.rms_norm(states, states.shape[-1:], None, self.eps[number])

        def sees_alone(self, count: int) -> bool:
            """Returns whether our kernels attend for `count` tokens of a row."""
            kernels = kernels_for(self.o_proj.weight)
            if kernels is None or self.config._attn_implementation != GROUPED:
                return False
            return bool(count * self.heads // (self.turning - self.heads) <= kernels.MOST_QUERIES)

        def _of_few(self, few: Any, states: Tensor, turns: Turns, held: Any) -> Tensor:
            """Returns what the layer makes of the states [rows, count, width] of few tokens."""
            rows, count, _ = states.shape
            merged = few.product(states, self.attention.weight, self.attention.bias, norm=self.eps[0])
            merged = merged.view(rows, count, -1, self.dim)
            keys, values = self._memories(merged, held)
            place = held.place
            attended = few.attended(
                merged, turns.cos, turns.sin, keys, values, place.rows, place.at, self.scaling
            )
            states = few.product(
                attended.view(rows, count, -1), self.o_proj.weight, self.o_proj.bias, onto=states
            )
            gated = few.product(states, self.perceptron.weight, norm=self.eps[1], gated=True)
            made: Tensor = few.product(gated, self.down_proj.weight, self.down_proj.bias, onto=states)
            return made

        def _memories(self, merged: Tensor, held: Any) -> tuple[Tensor, Tensor]:
            """Returns the cache's keys and values for this layer, given merged [rows, count, heads + 2 key
            heads, dim]."""
            like = merged.transpose(1, 2)[:, : self.turning - self.heads]
            memories: tuple[Tensor, Tensor] = held.layers[self.layer_idx].memories(like, like)
            return memories

        def _attended(
            self, merged: Tensor, turns: Turns, mask: Tensor | None, held: Any, others: dict[str, Any]
        ) -> Tensor:
            turned = rotated(merged[:, :, : self.turning], *turns.of_tokens).transpose(1, 2)
            query, key = turned[:, : self.heads], turned[:, self.heads :]
            value = merged[:, :, self.turning :].transpose(1, 2)
            if held is not None:
                key, value = held.update(key, value, self.layer_idx)
            attend: Any = ALL_ATTENTION_FUNCTIONS.get_interface(
                self.config._attn_implementation, eager_attention_forward
            )
            attended: Tensor = attend(
                self, query, key, value, mask, dropout=0.0, scaling=self.scaling, **others
            )[0]
            return attended

    class Rotation(nn.Module):
        """Returns the turns of each token, out of a table of all positions."""

        def __init__(self, own: Any) -> None:
            super().__init__()
            self.own = own
            self.positions: int = own.config.max_position_embeddings
            self.table: tuple[Tensor, Tensor] | None = None

        def forward(self, states: Tensor, position_ids: Tensor) -> Turns:
            if self.table is None or self.table[0].device != states.device:
                cos, sin = self.own(states, torch.arange(self.positions, device=states.device)[None])
                first, second = sin[0].chunk(2, -1)
                self.table = cos[0], torch.cat((-first, second), -1)
            return Turns(*self.table, position_ids)

    class Head(nn.Linear):
        """Takes the place of the linear module that gives the logits: of one token they are float32. The
        products of several are not ours, which take an H200 longer."""

        def forward(self, states: Tensor) -> Tensor:
            few = few_for(states)
            if few is not None and states.shape[:-1].numel() <= few.BY_SUMS:
                return few.product(states, self.weight, self.bias, dtype=torch.float32)  # type: ignore[no-any-return]
            return super().forward(states)

    return Layer, Norm, Rotation, Head
