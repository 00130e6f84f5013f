"""How much is decoded if nothing else is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.decode.setting import Setting
from harness.loop.strategies import strategies


@dataclass(frozen=True)
class Profile:
    """Every workload by every strategy at every batch."""

    workloads: tuple[str, ...]
    """Empty: all that there are."""
    strategies: tuple[str, ...]
    """Empty: all that there are."""
    batches: tuple[int, ...]
    texts: int
    """Requests of a run, at least; never fewer than rows."""
    prompt_tokens: int
    rounds: int
    """Of each fork, besides the cold one; the next one, of this fork or the next, stands in the other order."""


PROFILES = {
    "quick": Profile(("enums", "all_forced"), ("stepwise", "jump_forward"), (1, 8), 1, 16, 1),
    "default": Profile((), (), (1, 8), 8, 64, 4),
    "full": Profile((), (), (1, 8, 32, 128), 32, 256, 8),
}

FORKS = 3


def settings(profile: Profile, usual: Setting, workloads: Sequence[str]) -> tuple[Setting, ...]:
    """The profile's settings, their other knobs as in `usual`; those of one load stand together."""
    return tuple(
        replace(usual, workload=workload, batch=batch, texts=max(profile.texts, batch), strategy=strategy)
        for workload in workloads
        for batch in profile.batches
        for strategy in profile.strategies or strategies()
    )
