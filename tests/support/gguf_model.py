"""A small Llama model with random weights as a GGUF file, for tests that need a server which generates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.gguf_file import Shape, write_tensors


def write_model(vocabulary: Vocabulary, path: Path, shape: Shape | None = None, seed: int = 0) -> None:
    """Writes a Llama model whose weights are random, the same bytes for the same seed."""
    shape = shape or Shape()
    write_tensors(vocabulary, path, shape, _tensors(vocabulary.size, shape, seed))


def _tensors(
    size: int, shape: Shape, seed: int
) -> Iterator[tuple[str, np.ndarray[Any, np.dtype[np.float32]]]]:
    """Names and weights, output first; the embedding is the output matrix too."""
    random = np.random.default_rng(seed)

    def matrix(outputs: int, inputs: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random.standard_normal((outputs, inputs), dtype=np.float32) * np.float32(inputs**-0.5)

    ones = np.ones(shape.width, dtype=np.float32)
    yield "token_embd.weight", matrix(size, shape.width)
    yield "output_norm.weight", ones
    for layer in range(shape.layers):
        for name, outputs, inputs in (
            ("attn_q", shape.width, shape.width),
            ("attn_k", shape.width, shape.width),
            ("attn_v", shape.width, shape.width),
            ("attn_output", shape.width, shape.width),
            ("ffn_gate", shape.inner, shape.width),
            ("ffn_up", shape.inner, shape.width),
            ("ffn_down", shape.width, shape.inner),
        ):
            yield f"blk.{layer}.{name}.weight", matrix(outputs, inputs)
        yield f"blk.{layer}.attn_norm.weight", ones
        yield f"blk.{layer}.ffn_norm.weight", ones
