"""Which of our fast paths a model runs on. Where one cannot be had the model falls back to a slow one without
a word, and its figures are then those of another program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import BadInput
from harness.serve.decode.model.attention import GROUPED


def slow_paths(model: Mapping[str, Any]) -> list[str]:
    """Returns in words which paths of a model on CUDA (`Model.describe`) are not the fast ones; none for
    another device. What a record from before does not say is taken for fast."""
    if not str(model.get("device", "")).startswith("cuda"):
        return []
    known = {
        "layers by torch's operations, not by our kernels": model.get("kernels", True),
        f"attention {model.get('attention')}, not {GROUPED}": model.get("attention", GROUPED) == GROUPED,
        "passes launched one by one, not as captured graphs": model.get("graphs", True),
    }
    return [what for what, fast in known.items() if not fast]


def check_fast(model: Mapping[str, Any]) -> None:
    """Raises BadInput for a model that is not on the fast paths, with which nothing is to be measured."""
    slow = slow_paths(model)
    if slow:
        raise BadInput(
            f"{model.get('name')} on {model.get('device_name') or model.get('device')} is not on the fast "
            f"paths: {'; '.join(slow)}; mend that (Triton and a C compiler are needed) and measure again"
        )
