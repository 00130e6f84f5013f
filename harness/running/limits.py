"""What a case may take, and how much of it is checked."""

from __future__ import annotations

from dataclasses import dataclass

from harness.backend.process.memory import memory_to_be_had
from harness.checks import Check, made
from harness.rows.machine import usable_processors
from harness.rows.row import makes_checks

MEMORY_GB = 4.0
"""The resident memory that one case may take, in GB, unless somebody wants another limit."""


@dataclass(frozen=True)
class Limits:
    """What one case may take, in seconds for each call of the backend and bytes of resident memory, and how
    much of it is checked."""

    timeout_s: float
    memory_bytes: int
    effort: int = 0
    """The number of places of the case that each check looks at; 0 for no checks, -1 for every place."""
    decode: bool = False
    """Whether the valid instances are decoded too."""
    only: tuple[str, ...] = ()
    """The names of the only checks that are made; empty for all of the effort."""
    check_timeout_s: float | None = None
    """The processor time of all checks of a case, after which no further one is begun; None: timeout_s."""

    @property
    def checks(self) -> bool:
        """Is there a row of the whole case?"""
        return makes_checks(self.effort, self.decode)

    @property
    def made(self) -> dict[str, Check]:
        """The checks that are made, by name."""
        return made(self.effort, self.decode, self.only)

    @property
    def check_seconds(self) -> float:
        """The processor time of all checks of a case, after which no further one is begun."""
        return self.timeout_s if self.check_timeout_s is None else self.check_timeout_s


def most_workers(memory_bytes: int) -> int:
    """Returns how many workers there may be at a time: one for each processor that may be used, as far as
    each finds so much memory; at least 1."""
    there = memory_to_be_had()
    return max(1, min(usable_processors(), there // memory_bytes if there else usable_processors()))


def memory_notes(jobs: int, memory_bytes: int) -> list[str]:
    """Returns a sentence where all workers may together take more memory than there is; nothing else."""
    there = memory_to_be_had()
    if not 0 < there < jobs * memory_bytes:
        return []
    each = f"each of {jobs} workers" if jobs > 1 else "a worker"
    then = "give fewer --jobs" if jobs > 1 else "give a smaller --memory"
    return [
        f"{each} may take {memory_bytes / 1e9:g} GB (--memory), and there are {there / 1e9:.3g} GB: where "
        f"that is not enough, the kernel kills a worker, and its case is walked again; {then}"
    ]
