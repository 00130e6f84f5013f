"""How far a run is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunProgress:
    """How far a run is, for the line that a person sees meanwhile."""

    done: int
    total: int
    failures: int
    """The number of rows so far whose status is that of a broken backend."""
