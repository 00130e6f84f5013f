"""Attention over a cache whose rows are at positions of their own: masks of what may be seen, and an
attention that does not copy shared keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput

if TYPE_CHECKING:
    import torch

GROUPED, EAGER = "grammarbench", "eager"
"""Names of attention in transformers: ours, and each model's own plain one."""

FULL, SLIDING = "full_attention", "sliding_attention"


def register() -> None:
    """Makes `grouped_attention` known to transformers; it may be called again."""
    from transformers import AttentionInterface

    AttentionInterface.register(GROUPED, grouped_attention)


def grouped_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Returns attention with grouped heads, as [rows, count, heads, dim].

    `query` is [rows, heads, count, dim], `key` and `value` are [rows, key heads, span, dim]; the additive
    mask [rows, 1, count, span] contains the windows. Query heads that share a key head become queries of one
    head, so that keys are read once and never repeated in memory.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    if attention_mask is None or others.get("s_aux") is not None or others.get("position_bias") is not None:
        raise NotImplementedError("attention without a mask, with sinks or with a position bias")
    rows, heads, count, dim = query.shape
    shared = key.shape[1]
    group = heads // shared
    if group > 1:
        query = query.reshape(rows, shared, group * count, dim)
        if count > 1:
            attention_mask = attention_mask.repeat(1, 1, group, 1)
    if softcap is None:
        attended = scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, scale=scaling)
    else:
        weights = torch.matmul(query, key.transpose(2, 3)) * (dim**-0.5 if scaling is None else scaling)
        weights = torch.tanh(weights / softcap) * softcap + attention_mask
        attended = torch.matmul(torch.softmax(weights, dim=-1, dtype=torch.float32).to(value.dtype), value)
    return attended.reshape(rows, heads, count, value.shape[-1]).transpose(1, 2).contiguous(), None


def windows(config: Any) -> dict[str, int | None]:
    """Returns, for each kind of layer that the configuration has, how many positions back it sees, itself
    included; None means all.

    Raises BadInput where rows cannot be at positions of their own: with recurrent state, other kinds of
    attention, or positions whose rotation depends on the longest row of the batch.
    """
    if getattr(config, "is_encoder_decoder", False):
        raise _unsupported(config, "is an encoder with a decoder")
    changing = sorted(
        {rope_type for rope_type in _rope_types(config) if rope_type in ("dynamic", "longrope")}
    )
    if changing:
        raise _unsupported(config, f"rotates positions by the length of the batch ({', '.join(changing)})")
    kinds = set(getattr(config, "layer_types", None) or ())
    window = getattr(config, "sliding_window", None)
    if not kinds:
        kinds = {SLIDING if window else FULL}
    if kinds - {FULL, SLIDING}:
        raise _unsupported(
            config, f"has layers of another kind ({', '.join(sorted(kinds - {FULL, SLIDING}))})"
        )
    return {kind: window if kind == SLIDING else None for kind in sorted(kinds)}


def masks(
    windows: Mapping[str, int | None],
    at: torch.Tensor,
    slots: torch.Tensor,
    seen: torch.Tensor,
    hidden: torch.Tensor,
) -> torch.Tensor | dict[str, torch.Tensor]:
    """Returns additive masks [rows, 1, count, span], one for each kind of layer; a single one if all layers
    are alike.

    `at` [rows, count] has the tokens' positions, `slots` [span] is 0, 1, ...; `seen` and `hidden` are 0 and a
    very low number in the model's dtype.
    """
    import torch

    here = at[:, None, :, None]
    causal = slots <= here
    masks_by_kind = {}
    for kind, window in windows.items():
        visible = causal if window is None else causal & (slots > here - window)
        masks_by_kind[kind] = torch.where(visible, seen, hidden)
    return masks_by_kind if len(masks_by_kind) > 1 else next(iter(masks_by_kind.values()))


def _rope_types(config: Any) -> Iterator[str]:
    """Yields the kinds of rotary positions in a configuration of the old form (`rope_scaling`) or of the new
    one, where each kind of layer may have its own."""
    for name in ("rope_parameters", "rope_scaling"):
        parameters = getattr(config, name, None)
        for settings in (parameters, *(parameters or {}).values()) if isinstance(parameters, Mapping) else ():
            if isinstance(settings, Mapping):
                yield str(settings.get("rope_type", settings.get("type", "default")))


def _unsupported(config: Any, why: str) -> BadInput:
    kind = getattr(config, "model_type", type(config).__name__)
    return BadInput(
        f'a model of type "{kind}" {why}, which the decode loop cannot drive; use a decoder '
        "whose layers attend to a cache"
    )
