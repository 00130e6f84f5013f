"""Tells a lack of memory from everything else that torch raises."""

from __future__ import annotations


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether the memory of the device or of the host does not suffice."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    # For the host's memory torch has no class of its own.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
