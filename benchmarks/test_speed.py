"""The quick set as pytest-benchmark items: one measurement of all backends, interleaved, and one item per
backend, metric and case.

    pytest benchmarks/test_speed.py --benchmark-json out.json [--backends a,b,...] [--vocabularies V] [--profile quick] [--measurement DIR]

An item measures nothing: it replays the figures that the measuring engine took of its backend, one sample per
fork and round, in seconds. Whatever reads pytest-benchmark's files reads these: --benchmark-save,
--benchmark-compare, --benchmark-compare-fail and dashboards. Verdicts and intervals are those of the engine
and stand in `extra_info` and in the block `grammarbench` of the file: what the plugin says of its own samples
knows nothing of forks, of an A/A arm, of a noise floor.
"""  # noqa: E501

from __future__ import annotations

from typing import Any


def test_compile(benchmark: Any, speed: Any, case: str, backend: str) -> None:
    """A fresh compile, cache off."""
    speed.replay(benchmark, "compile", case, backend)


def test_cold_fill(benchmark: Any, speed: Any, case: str, backend: str) -> None:
    """All fills of the first pass after a fresh compile."""
    speed.replay(benchmark, "cold_fill", case, backend)


def test_fill(benchmark: Any, speed: Any, case: str, backend: str) -> None:
    """Warm fills: per token the minimum over the passes, summed over the text."""
    speed.replay(benchmark, "fill", case, backend)


def test_accept(benchmark: Any, speed: Any, case: str, backend: str) -> None:
    """Warm accepts: per token the minimum over the passes, summed over the text."""
    speed.replay(benchmark, "accept", case, backend)
