"""The closing experiment: model and load are fixed, and one mechanism at a time is switched on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.serve.decode.setting import OWN, Setting, without_idle_drafts

WORKLOADS = ("function_calls", "all_forced", "nothing_forced")
BATCHES = (1, 8)
FORKS, ROUNDS = 5, 1
"""Forks and rounds. An interval is over forks, so that more forks say more than more rounds of each."""

RATES = {8: 16.0}
"""Requests a second by batch, for the mechanisms of compiling beside the loop: a compile must have other
requests that it can hold up."""


@dataclass(frozen=True)
class Mechanism:
    """One switch, under one load."""

    name: str
    off: Setting
    on: Setting


def mechanisms(usual: Setting) -> list[Mechanism]:
    """Returns every switch under the load of `usual`; `usual` itself is one side of most of them."""
    drafting, usual = usual, without_idle_drafts(usual)
    listed = [
        Mechanism(strategy, usual, without_idle_drafts(replace(drafting, strategy=strategy)))
        for strategy in ("jump_forward", "interleaved", "speculative")
    ]
    listed += [
        Mechanism("overlap", replace(usual, overlap=False), usual),
        Mechanism("batch_fill", usual, replace(usual, batch_fill=True)),
        Mechanism("own_kernel", usual, replace(usual, kernel=OWN)),
        Mechanism("compile_cache", replace(usual, cache=False), usual),
    ]
    if usual.batch in RATES:
        cold = replace(usual, cache=False, rate=RATES[usual.batch], texts=max(2 * usual.batch, usual.texts))
        listed.append(Mechanism("asynchronous_compile", replace(cold, compile_workers=0), cold))
    return listed


def experiment(
    usual: Setting, workloads: Sequence[str]
) -> tuple[tuple[Setting, ...], tuple[dict[str, Any], ...]]:
    """Returns all settings, those of one load together, and each mechanism with the places of its two sides
    among them."""
    planned: list[Mechanism] = []
    for workload in workloads:
        for batch in BATCHES:
            planned += mechanisms(
                replace(usual, workload=workload, batch=batch, texts=max(batch, usual.texts))
            )
    every = list(dict.fromkeys(side for mechanism in planned for side in (mechanism.off, mechanism.on)))
    loads = [mechanism.plain for mechanism in every]
    every.sort(key=lambda setting: loads.index(setting.plain))
    return tuple(every), tuple(
        {"name": mechanism.name, "off": every.index(mechanism.off), "on": every.index(mechanism.on)}
        for mechanism in planned
    )
