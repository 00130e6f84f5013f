"""A setting: everything that decides what a run of the loop does, besides the arm and the model."""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Literal

from harness.walk.loop.intake import Fallback
from harness.walk.loop.strategies import takes_drafts

Mode = Literal["replay", "greedy", "seeded"]
Arrivals = Literal["poisson", "gamma", "fixed"]

OWN = "own"
"""The value of `kernel` that stands for the backend's own kernel, whatever its name."""


@dataclass(frozen=True)
class Setting:
    """How one run of the loop serves the requests of a workload.

    The knobs mean what they mean in serving engines.
    """

    workload: str
    strategy: str = "stepwise"
    batch: int = 1
    """Rows of the batch."""
    texts: int = 8
    """Number of requests."""
    mode: Mode = "replay"
    prompt_tokens: int = 32
    limit: int | None = None
    """The most output tokens of each request; None: as many as the text to replay has."""
    rate: float | None = None
    """Requests a second, in an open loop; None: all requests are there at the start."""
    arrivals: Arrivals = "poisson"
    overlap: bool = True
    """Whether masks are filled while the model computes."""
    fill_threads: int = 1
    """Threads that fill masks: ours, each with a share of the rows, or with `batch_fill` the backend's own.
    With `batch_fill` 1 leaves to the backend how many it has."""
    batch_fill: bool = False
    """Whether one call of the backend fills the masks of all rows."""
    kernel: str = ""
    """What applies the masks: a kernel of the backend by name, OWN for its first one, or empty for torch's
    operations."""
    cache: bool = True
    """Whether compiled grammars are cached, from a cold run on for as long as the process lives."""
    compile_workers: int = 1
    """Threads that compile beside the loop; with 0 the loop compiles itself and waits."""
    compile_timeout_s: float = 60.0
    poll_interval_s: float = 0.0
    most_polls: int | None = None
    fallback: Fallback = "unconstrained"
    """What becomes of a request whose grammar was not compiled in time."""
    draft_tokens: int = 4
    """Draft tokens of the strategy `speculative`."""

    @property
    def name(self) -> str:
        """Returns the setting's name for readers: the workload, the strategy, the batch, and every knob that
        differs from its default."""
        parts = [self.workload, self.strategy, f"batch {self.batch}"]
        parts += [] if self.mode == "replay" else [self.mode]
        parts += [] if self.rate is None else [f"{self.rate:g}/s {self.arrivals}"]
        return " ".join([*parts, *self.unusual])

    @property
    def queues(self) -> bool:
        """Returns whether requests wait for a row from the start, so that their TTFT, E2E and goodput have
        the time of the requests before them in them."""
        return self.rate is None and self.texts > self.batch

    @property
    def unusual(self) -> list[str]:
        """Returns the knobs that differ from their defaults, as `knob=value`."""
        return [
            f"{knob.name}={_text(getattr(self, knob.name))}"
            for knob in _KNOBS
            if getattr(self, knob.name) != knob.default
        ]

    @property
    def plain(self) -> Setting:
        """Returns the same load without a grammar: strategy and knobs have their defaults.

        Settings with the same `plain` share their unconstrained runs.
        """
        return replace(
            self,
            strategy="stepwise",
            **{knob.name: knob.default for knob in _KNOBS if knob.default is not MISSING},
        )

    def to_json(self) -> dict[str, Any]:
        """Returns all fields, as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Setting:
        """Returns the setting with these fields. Raises TypeError for unknown ones."""
        return cls(**value)


def without_idle_drafts(setting: Setting) -> Setting:
    """Returns the setting with the usual number of draft tokens where its strategy drafts nothing, so that
    settings that do the same are the same."""
    if takes_drafts(setting.strategy):
        return setting
    return replace(setting, draft_tokens=Setting.draft_tokens)


_LOAD = ("workload", "strategy", "batch", "texts", "mode", "prompt_tokens", "limit", "rate", "arrivals")
_KNOBS = tuple(knob for knob in fields(Setting) if knob.name not in _LOAD)


def _text(value: object) -> str:
    return (
        ("off", "on")[value]
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
