"""What a case may take, and how much of it is checked."""

from __future__ import annotations

from dataclasses import dataclass

from harness.checks import Check, made
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
