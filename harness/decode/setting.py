"""A setting: everything that decides what a run of the loop does, besides the arm and the model."""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

Mode = Literal["replay", "greedy", "seeded"]
Arrivals = Literal["poisson", "gamma", "fixed"]
Fallback = Literal["unconstrained", "abort"]

MODES: tuple[Mode, ...] = get_args(Mode)
ARRIVALS: tuple[Arrivals, ...] = get_args(Arrivals)
FALLBACKS: tuple[Fallback, ...] = get_args(Fallback)

OWN = "own"
"""The value of `kernel` that stands for the backend's own one, whatever its name."""


@dataclass(frozen=True)
class Setting:
    """One run of the loop: a workload's requests, served so. The knobs have the meaning that they have in serving engines."""

    workload: str
    strategy: str = "stepwise"
    batch: int = 1
    """Rows of the batch."""
    texts: int = 8
    """Requests in all."""
    mode: Mode = "replay"
    prompt_tokens: int = 32
    limit: int | None = None
    """Output tokens at most, of each request; None: as many as the text to replay has."""
    rate: float | None = None
    """Requests a second, as an open loop; None: all are there at the start."""
    arrivals: Arrivals = "poisson"
    overlap: bool = True
    """Fill while the model computes."""
    fill_threads: int = 1
    batch_fill: bool = False
    """One call fills the masks of all rows, with the backend's own threads."""
    kernel: str = ""
    """What applies the masks: a kernel of the backend by name, OWN for its first one; empty for torch's own operations."""
    cache: bool = True
    """Of compiled grammars, for as long as the process lives."""
    compile_workers: int = 1
    """Threads that compile beside the loop; 0: the loop compiles itself and waits."""
    compile_timeout_s: float = 60.0
    poll_interval_s: float = 0.0
    most_polls: int | None = None
    fallback: Fallback = "unconstrained"
    """What becomes of a request whose grammar did not compile in time."""
    draft_tokens: int = 4
    """Of the strategy `speculative`."""

    @property
    def name(self) -> str:
        """What a reader calls it: the workload, the strategy, the batch, and every knob that is not as usual."""
        parts = [self.workload, self.strategy, f"batch {self.batch}"]
        parts += [] if self.mode == "replay" else [self.mode]
        parts += [] if self.rate is None else [f"{self.rate:g}/s {self.arrivals}"]
        return " ".join([*parts, *self.unusual])

    @property
    def unusual(self) -> list[str]:
        """The knobs that are not as usual, as `knob=value`."""
        return [f"{each.name}={_text(getattr(self, each.name))}" for each in _KNOBS if getattr(self, each.name) != each.default]

    @property
    def plain(self) -> Setting:
        """The same load without a grammar: the usual strategy and knobs. Settings of one `plain` share their unconstrained runs."""
        return replace(self, strategy="stepwise", **{each.name: each.default for each in _KNOBS if each.default is not MISSING})

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Setting:
        """The setting of such fields. TypeError for others."""
        return cls(**value)


_LOAD = ("workload", "strategy", "batch", "texts", "mode", "prompt_tokens", "limit", "rate", "arrivals")
_KNOBS = tuple(each for each in fields(Setting) if each.name not in _LOAD)


def _text(value: object) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
