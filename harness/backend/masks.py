"""What a grammar object allows, in whichever format its adapter has masks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import GrammarObject, MaskFormat, allocate_bitmask, unpack_mask


def allowed_mask(grammar_object: GrammarObject, size: int, mask_format: MaskFormat) -> NDArray[np.bool_]:
    """Returns the object's mask as bool `[size]`, `size` being the vocabulary's: True = allowed."""
    if mask_format == "bool":
        forbidden = np.ones(size, dtype=np.bool_)
        grammar_object.fill_bool_mask(forbidden)
        return ~forbidden
    bitmask = allocate_bitmask(size)
    grammar_object.fill_bitmask(bitmask)
    return unpack_mask(bitmask, size)
