"""xgrammar's kernels, which apply masks to logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

import xgrammar

from harness.backend.grammar import Kernel

KERNELS = {
    "cpu": ("cpu", {"cpu"}),
    "triton": ("triton", {"cuda"}),
    "cuda": ("cuda", {"cuda"}),
    "torch_compile": ("torch_compile", {"cpu", "cuda"}),
    "torch_native": ("torch", {"cpu", "cuda"}),
}
"""The library's kernels by its own names: the module of each, and the devices on which it exists."""

BEYOND = "The trailing logits are left unmasked, with a warning (docstring of apply_token_bitmask_inplace)."


def kernels() -> dict[str, Kernel]:
    """Returns the library's kernels by its own names."""
    documented = {"logits_beyond_the_mask_are_forbidden": BEYOND}
    return {
        name: Kernel(
            partial(load_kernel, name, module), frozenset(devices), indices=True, documented=documented
        )
        for name, (module, devices) in KERNELS.items()
    }


def load_kernel(name: str, module: str) -> Callable[..., object]:
    """Returns the library's kernel of that name. Raises what its module raises where it lacks something."""
    import_module(f"xgrammar.kernels.apply_token_bitmask_inplace_{module}")
    function: Callable[..., object] = xgrammar.apply_token_bitmask_inplace
    return lambda logits, bitmask, rows=None: function(logits, bitmask, indices=rows, backend=name)
