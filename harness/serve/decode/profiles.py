"""How much is decoded by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.serve.decode.setting import Setting, without_idle_drafts
from harness.walk.loop.strategies import strategies

MECHANISMS = "mechanisms"
"""The profile that switches one mechanism of decoding at a time, which is none of PROFILES."""


@dataclass(frozen=True)
class DecodeProfile:
    """Every workload by every strategy at every batch."""

    workloads: tuple[str, ...]
    """The workloads; empty means all."""
    strategies: tuple[str, ...]
    """The strategies; empty means all."""
    batches: tuple[int, ...]
    texts: int
    """The least number of requests in a run; a run has never fewer than its batch has rows."""
    prompt_tokens: int
    rounds: int
    """Warm rounds of each fork; each has a cold one as well. The order is reversed from one round to the
    next, across forks too."""


PROFILES = {
    "quick": DecodeProfile(("enums", "all_forced"), ("stepwise", "jump_forward"), (1, 8), 1, 16, 1),
    "default": DecodeProfile((), (), (1, 8), 8, 64, 4),
    "full": DecodeProfile((), (), (1, 8, 32, 128), 32, 256, 8),
}


def settings(profile: DecodeProfile, usual: Setting, workloads: Sequence[str]) -> tuple[Setting, ...]:
    """Returns the profile's settings, with the other knobs of `usual`; settings of one load stand
    together."""
    return tuple(
        without_idle_drafts(
            replace(usual, workload=workload, batch=batch, texts=max(profile.texts, batch), strategy=strategy)
        )
        for workload in workloads
        for batch in profile.batches
        for strategy in profile.strategies or strategies()
    )
