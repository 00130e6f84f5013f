"""Real models: any causal LM of Hugging Face, from a folder or from the hub. A model's own code is never
run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput, did_you_mean
from harness.serve.decode.model.memory import is_out_of_memory
from harness.serve.decode.model.shapes import SHAPES
from harness.text import one_line

if TYPE_CHECKING:
    import torch


def load_pretrained(
    name: str, vocabulary_size: int, device: torch.device, dtype: torch.dtype, attention: str
) -> Any:
    """Returns a causal LM of transformers, from safetensors. Raises BadInput if it is not there, cannot be
    reached, or is of the wrong kind or vocabulary."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = Path(name).is_dir()
    if folder and not (Path(name) / "config.json").is_file():
        raise BadInput(f'"{name}" holds no config.json; name a folder that a model was saved to')
    if not folder and name.startswith((".", "/", "~")):
        raise BadInput(
            f'there is no folder "{name}"; name a model\'s folder, a model of the Hugging Face hub, or a '
            f"shape: {', '.join(SHAPES)}"
        )
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
    except Exception as error:  # the hub's client raises of many kinds
        raise _absent(name, folder, error) from error
    logits = int(getattr(config.get_text_config(), "vocab_size", 0))
    if logits < vocabulary_size:
        raise BadInput(
            f'"{name}" has logits for {logits:,} tokens, the vocabulary has {vocabulary_size:,}; name the '
            "model's own vocabulary"
        )
    try:
        with torch.device(device):
            return AutoModelForCausalLM.from_pretrained(
                name,
                config=config,
                dtype=dtype,
                attn_implementation=attention,
                use_safetensors=True,
                trust_remote_code=False,
            )
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise _absent(name, folder, error) from error


def _absent(name: str, folder: bool, error: Exception) -> BadInput:
    reason = one_line(str(error)).strip()[:200]
    if folder:
        return BadInput(
            f'the model in "{name}" cannot be loaded ({reason}); it must be a causal LM of '
            "transformers, in safetensors"
        )
    return BadInput(
        f'"{name}" is no shape{did_you_mean(name, list(SHAPES))}; and as a model of the Hugging Face hub it '
        f"cannot be had ({reason})"
    )
