"""What was measured of cold grammars is kept as soon as a repeat is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gpu_loads
import pytest
from gpu_running import PLANNED

from harness.backend.vocabulary import load_vocabulary


@contextmanager
def compiled(*_: object) -> Iterator[None]:
    yield None


def test_each_repeat_of_each_newcomer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_loads, "compiled", compiled)
    monkeypatch.setattr(gpu_loads, "of_cold", lambda served: {})
    bench: Any = SimpleNamespace(
        vocabulary=load_vocabulary("probe"), adapter=None, serve=lambda *_: SimpleNamespace(wall_ns=4)
    )
    kept: list[int] = []
    planned: set[int] = set()

    def keep(so_far: dict[str, Any]) -> None:
        kept.append(len(so_far["runs"]))
        planned.add(so_far[PLANNED])

    gpu_loads.cold_cell(bench, 2, 3, keep)
    repeats = 3 * len(gpu_loads.newcomers())
    assert kept == [number * len(gpu_loads.MODES) for number in range(1, repeats + 1)]
    assert planned == {kept[-1]}, "the last one is known to be whole"
