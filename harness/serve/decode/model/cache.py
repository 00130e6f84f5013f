"""The key-value cache: one static memory, in which every row is at a position of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass
class CachePlace:
    """Says where the next pass writes and what it reads; the model sets it before each pass."""

    rows: torch.Tensor
    """The rows of the pass, as int64 [rows of the pass]."""
    at: torch.Tensor
    """The positions of the tokens, as int64 [rows of the pass, count]."""
    span: int
    """The pass sees the positions below this one."""
    whole: bool
    """Whether the pass has all rows, in order: the memory is then read in place, without a copy."""


def row_cache(layers: int, rows: int, capacity: int) -> Any:
    """Returns a transformers Cache of `layers` memories [rows, heads, capacity, dim], which the first pass
    allocates. Its `place` must be set before each pass."""
    return _cache_class()(layers, rows, capacity)


def memory_bytes(cache: Any) -> int:
    """Bytes of all layers' keys and values that the model's first pass has allocated."""
    held = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values) if tensor is not None]
    return sum(tensor.numel() * tensor.element_size() for tensor in held)


@cache
def _cache_class() -> type:
    """Returns the class of the cache. It is made here so that transformers is imported only with a model."""
    from transformers.cache_utils import Cache, CacheLayerMixin

    class RowLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
        """One layer.

        What lies at and beyond a row's length is never seen: the mask hides it until a later token overwrites
        it. So a rollback only changes lengths.
        """

        def __init__(self, owner: RowCache) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.owner = owner

        def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
            rows, capacity = self.owner.rows, self.owner.capacity
            # Zeros, not whatever was there: a hidden NaN still spoils the sum.
            self.keys = key_states.new_zeros(rows, key_states.shape[1], capacity, key_states.shape[3])
            self.values = value_states.new_zeros(rows, value_states.shape[1], capacity, value_states.shape[3])
            self.is_initialized = True

        def memories(
            self, key_states: torch.Tensor, value_states: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Returns the keys and the values of all rows, [rows, heads, capacity, dim], made for states like
            these, [rows of the pass, heads, count, dim]."""
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            assert self.keys is not None and self.values is not None
            return self.keys, self.values

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Write states [rows of the pass, heads, count, dim], and return all that the pass may see, [rows
            of the pass, heads, span, dim]."""
            all_keys, all_values = self.memories(key_states, value_states)
            place = self.owner.place
            where = (place.rows[:, None], slice(None), place.at)
            all_keys[where] = key_states.transpose(1, 2)
            all_values[where] = value_states.transpose(1, 2)
            keys, values = all_keys[:, :, : place.span], all_values[:, :, : place.span]
            return (
                (keys, values)
                if place.whole
                else (keys.index_select(0, place.rows), values.index_select(0, place.rows))
            )

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return self.owner.place.span, 0

        def get_seq_length(self) -> int:
            return 0  # rows differ; the model is given positions and masks

        def get_max_length(self) -> int:
            return int(self.owner.capacity)

        get_max_cache_shape = get_max_length  # its name before transformers 5

    class RowCache(Cache):
        place: CachePlace

        def __init__(self, layers: int, rows: int, capacity: int) -> None:
            self.rows, self.capacity = rows, capacity
            super().__init__(layers=[RowLayer(self) for _ in range(layers)])

    return RowCache
