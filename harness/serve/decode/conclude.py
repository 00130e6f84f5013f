"""The conclusions of the closing experiment: where each mechanism wins, where it loses, and what to have as
the default on this machine.

The request's time from arrival to its end (E2E) decides, paired between the two sides of the switch as in
`harness.serve.decode.overhead`. To win or to lose, the whole interval must lie more than MARGIN from 1. Three
things overrule the interval: a strategy that saved no pass has not won; a mechanism under which fewer
requests come out right, or under which alone the backend's process is lost, has lost; and where a side was
lost otherwise, nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.measure.statistics import judge
from harness.serve.decode import right
from harness.serve.decode.figures import Decoded, Key
from harness.serve.decode.overhead import Paired, of_equal_text, paired, speed_up
from harness.serve.decode.record import DecodedBatch, Loss
from harness.serve.decode.setting import Setting
from harness.serve.requests import latency
from harness.text import counted

Effect = Literal["wins", "loses", "equal", "undecided"]

MARGIN = 0.02
"""The largest relative difference that counts as none."""

EFFECTS: dict[str, Effect] = {
    "improved": "wins",
    "regressed": "loses",
    "equivalent": "equal",
    "inconclusive": "undecided",
}


@dataclass(frozen=True)
class Switched:
    """One mechanism on one arm under one load, as a ratio of on over off: 0.9 takes ten percent less time."""

    mechanism: str
    arm: str
    off: Setting
    on: Setting
    e2e: Paired
    ttft: Paired
    tpot: Paired
    saved: int
    """How many fewer passes `on` made than `off`, on the same texts."""
    ceiling: float | None
    """Passes of `off` over passes of `on`."""
    effect: Effect
    why: str
    """What overrules the interval, or why there is no interval; empty if neither."""

    @property
    def load(self) -> str:
        """Returns what both sides have in common, as text."""
        rate = "" if self.on.rate is None else f" {self.on.rate:g}/s"
        return f"{self.on.workload} x{self.on.batch}{rate}"


@dataclass(frozen=True)
class DefaultAdvice:
    """What to have as the default on one arm."""

    mechanism: str
    arm: str
    default: Literal["on", "off", "by load", "either", "open"]
    """`by load`: it wins under some loads and loses under others. `either`: it makes no difference under any
    load. `open`: neither was shown."""
    switched: tuple[Switched, ...]

    def where(self, effect: Effect) -> list[str]:
        """Returns the loads under which the mechanism has that effect."""
        return [switch.load for switch in self.switched if switch.effect == effect]


def switched(decoded: Decoded) -> list[Switched]:
    """Returns every mechanism of the record, on every arm, under every load under which it was tried."""
    setup = decoded.decoding.setup
    losses = {(loss.arm, loss.setting): loss for loss in decoded.decoding.losses}
    switches = []
    for mechanism in setup.mechanisms:
        for arm in setup.arms:
            if arm.role == "a/a":
                continue
            sides: tuple[Key, Key] = (
                (arm.name, "constrained", mechanism["on"]),
                (arm.name, "constrained", mechanism["off"]),
            )
            off, on = setup.settings[mechanism["off"]], setup.settings[mechanism["on"]]
            lost = losses.get((arm.name, mechanism["on"])), losses.get((arm.name, mechanism["off"]))
            switches.append(_switched(mechanism["name"], arm.name, off, on, decoded.runs(*sides), lost))
    return switches


def _switched(
    mechanism: str,
    arm: str,
    off: Setting,
    on: Setting,
    runs: Sequence[tuple[DecodedBatch, DecodedBatch]],
    lost: tuple[Loss | None, Loss | None],
) -> Switched:
    e2e = paired(runs, latency.e2e, of_equal_text)
    gain = speed_up(runs)
    effect, why = _effect(e2e, runs, gain.saved, on.strategy != off.strategy, lost)
    others = paired(runs, latency.ttft, of_equal_text), paired(runs, latency.tpot, of_equal_text)
    return Switched(mechanism, arm, off, on, e2e, *others, gain.saved, gain.ceiling, effect, why)


def _effect(
    e2e: Paired,
    runs: Sequence[tuple[DecodedBatch, DecodedBatch]],
    saved: int,
    is_strategy: bool,
    lost: tuple[Loss | None, Loss | None],
) -> tuple[Effect, str]:
    """Returns the effect, and what overrules the interval. `lost` has the losses of `on` and of `off`."""
    on_lost, off_lost = lost
    if on_lost is not None and on_lost.whose == "backend" and off_lost is None:
        return "loses", f"lost in fork {on_lost.fork + 1}: {on_lost.why}"
    either = on_lost or off_lost
    if not runs:
        return "undecided", either.why if either is not None else "not measured"
    for count in (right.solved_or_cut, right.solved):
        ours = sum(count(on.completed).part for on, _ in runs)
        theirs = sum(count(off.completed).part for _, off in runs)
        if ours < theirs:
            return "loses", f"{counted(ours, 'request')} came out right instead of {theirs}"
    if either is not None:  # the forks that are left may be those in which it went well
        side = "on" if either is on_lost else "off"
        return "undecided", f"{side} was lost in fork {either.fork + 1}: {either.why}"
    if e2e.interval is None:
        return "undecided", "no request gave the same text on both sides"
    effect = EFFECTS[judge(e2e.interval, MARGIN)]
    if is_strategy and effect == "wins" and saved <= 0:
        return "undecided", "it saved no pass, so what was quicker is not the strategy"
    return effect, ""


def advise(switches: Sequence[Switched]) -> list[DefaultAdvice]:
    """Returns one advice for each mechanism and arm, in their order."""
    grouped: dict[tuple[str, str], list[Switched]] = {}
    for switch in switches:
        grouped.setdefault((switch.mechanism, switch.arm), []).append(switch)
    return [
        DefaultAdvice(mechanism, arm, _default({switch.effect for switch in of}), tuple(of))
        for (mechanism, arm), of in grouped.items()
    ]


def _default(effects: set[Effect]) -> Literal["on", "off", "by load", "either", "open"]:
    if {"wins", "loses"} <= effects:
        return "by load"
    if "wins" in effects:
        return "on"
    if "loses" in effects:
        return "off"
    return "either" if effects == {"equal"} else "open"


def conclusion(switches: Sequence[Switched]) -> list[str]:
    """Returns the figures of every mechanism, then the advice that follows from them, in lines; none where
    none was switched."""
    if not switches:
        return []
    advices = advise(switches)
    lines = [
        f"mechanisms, on over off: E2E decides; a whole interval more than {MARGIN:.0%} from 1 wins or loses",
        "",
        f"    {'load':24} {'':9} {'E2E':>18} {'TTFT':>5} {'TPOT':>5} {'passes':>6}",
    ]
    for advice in advices:
        effects: tuple[Effect, ...] = ("wins", "loses", "equal", "undecided")
        counts = ", ".join(
            f"{effect} {len(advice.where(effect))}" for effect in effects if advice.where(effect)
        )
        lines.append(f"  {advice.mechanism}, {advice.arm}"[:50] + f": {counts}")
        lines += [line for one in advice.switched for line in _lines(one)]
    lines += ["", "recommended defaults on this machine; what is undecided may stay as it is"]
    for mechanism in dict.fromkeys(advice.mechanism for advice in advices):
        defaults = [
            f"{advice.arm} {SAID[advice.default]}" for advice in advices if advice.mechanism == mechanism
        ]
        lines.append(f"  {mechanism}: {', '.join(defaults)}")
    return lines


SAID = {"on": "ON", "off": "OFF", "by load": "BY LOAD", "either": "no difference", "open": "undecided"}


def _lines(one: Switched) -> list[str]:
    passes = f"{1 / one.ceiling:.2f}" if one.ceiling is not None and one.saved else ""
    figures = f"{ratio(one.e2e):>18} {_short(one.ttft):>5} {_short(one.tpot):>5} {passes:>6}"
    lines = [f"    {one.load[:24]:24} {one.effect:9} {figures}".rstrip()]
    return lines + ([f"      {one.why[:74]}"] if one.why else [])


def ratio(of: Paired) -> str:
    """Returns the ratio as `1.03 [1.01, 1.05]`; a dash if there is none. It has at most 17 characters if the
    ratio is below 10."""
    if of.interval is None:
        return "-"
    high = of.interval.high
    upper = (
        f"{high:.2f}" if high < 9.995 else f"{high:.1f}" if high < 99 else ">99" if high < math.inf else "inf"
    )
    return f"{of.interval.ratio:.2f} [{of.interval.low:.2f}, {upper}]"


def _short(of: Paired) -> str:
    return "-" if of.interval is None else f"{of.interval.ratio:.2f}"
