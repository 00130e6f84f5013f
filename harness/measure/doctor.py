"""What can be concluded from times on this machine: its settings, and the noise that two arms of identical
code show on it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.backend.describe import catalogue
from harness.backend.registry import parse_specs
from harness.cases.suite import MEASURED
from harness.errors import BadInput
from harness.measure.estimate import Comparison, is_proven
from harness.measure.figures import METRICS
from harness.measure.record import read_measurement
from harness.measure.session import MeasureRequest, measure
from harness.measure.show import seen
from harness.rows.machine import describe_machine, hardware, hardware_key, usable_processors
from harness.running.limits import MEMORY_GB
from harness.text import one_line

BUSY = 0.5
"""The load, in processors, above which it is reported that the machine was busy before anything of ours
ran."""

STOLEN = 0.01


@dataclass(frozen=True)
class MachineState:
    """One observation of the machine."""

    what: str
    seen: str
    is_well: bool
    """False if it makes times worse than they need be; the text then says what to do."""


@dataclass(frozen=True)
class Diagnosis:
    """The result of `measure doctor`."""

    hardware: str
    advice: tuple[MachineState, ...]
    backend: str
    folder: Path
    comparisons: tuple[Comparison, ...]
    """The comparisons of the A/A arm with the reference."""
    proven: bool
    stolen: float
    """The share of the measured time that the hypervisor took from the arms' processor."""
    remade: int
    slots: int

    def of_metric(self, metric: str) -> list[Comparison]:
        """Returns the comparisons in this metric."""
        return [comparison for comparison in self.comparisons if comparison.metric == metric]


def diagnose(
    backend: str | None, vocabulary: str, forks: int | None, out: Path | None, say: Callable[[str], None]
) -> Diagnosis:
    """Looks at the machine, then measures one backend against itself, and returns what can be concluded.
    Raises BadInput."""
    if backend is not None and len(parse_specs(backend)) > 1:
        raise BadInput(
            f'"{one_line(backend)[:200]}": one backend is measured against itself; name one with --backends'
        )
    advice = tuple(look(describe_machine()))
    for line in advice:
        say(f"{'ok  ' if line.is_well else 'MIND'} {line.what}: {line.seen}")
    backend = default_backend() if backend is None else backend
    say(f"measuring {backend} against itself ...")
    request = MeasureRequest(
        (MEASURED,), backend, None, vocabulary, "quick", out, forks, None, MEMORY_GB, ("measure", "doctor")
    )
    folder, comparisons = measure(request, say)
    recorded = read_measurement(folder)
    wall = sum(slot.wall_ns for slot in recorded.slots) / 1e9
    return Diagnosis(
        hardware_key(hardware()),
        advice,
        backend,
        folder,
        tuple(comparison for comparison in comparisons if comparison.is_control),
        is_proven(comparisons),
        sum(slot.stolen_s for slot in recorded.slots) / wall if wall else 0.0,
        sum(slot.again > 0 for slot in recorded.slots),
        len(recorded.slots),
    )


def default_backend() -> str:
    """Returns the first backend that is installed and takes JSON Schema. Raises BadInput."""
    for entry in catalogue():
        if entry["version"] and "json_schema" in entry["dialects"]:
            return str(entry["name"])
    raise BadInput('no backend is installed to measure with; pip install "grammarbench[backends]"')


def look(machine: dict[str, Any]) -> list[MachineState]:
    """Returns observations of governor, turbo, address randomisation, load, processors and hypervisor."""
    usable = usable_processors()
    enough = usable > 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    quiet = load < BUSY * usable
    virtual = hardware().get("hypervisor") == "True"
    return [
        _governor(machine.get("cpu_config", "")),
        MachineState(
            "processors",
            f"{usable} usable" + ("" if enough else "; a second one for the coordinator would help"),
            enough,
        ),
        MachineState(
            "isolated processors",
            machine.get("isolated_cpus", "") or "none (isolcpus= would keep others away)",
            True,
        ),
        MachineState(
            "load",
            f"{load:.2f} over the last minute" + ("" if quiet else "; end what else is running"),
            quiet,
        ),
        MachineState(
            "hypervisor",
            "yes: neighbours share the machine, so compare only within one run" if virtual else "no",
            True,
        ),
        MachineState(
            "address randomisation",
            machine.get("aslr", "unknown") + " (fresh processes average over it)",
            True,
        ),
    ]


def _governor(config: str) -> MachineState:
    """Returns what pyperf's description of the processor says of governor and turbo."""
    what = "governor and turbo"
    if not config:
        return MachineState(what, "the system does not tell (usual in virtual machines)", True)
    governor = ", ".join(dict.fromkeys(re.findall(r"governor:([^,;]+)", config)))
    steady = not any(slow in config for slow in ("powersave", "schedutil", "ondemand"))
    hint = "" if steady else "; set it to performance (cpupower frequency-set -g performance)"
    return MachineState(what, f"{governor} ({config}){hint}" if governor else f"{config}{hint}", steady)


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Returns what can be concluded here, in plain words."""
    apart = ", ".join(
        f"{comparison.metric} {comparison.family}"
        for comparison in diagnosis.comparisons
        if comparison.verdict != "equivalent"
    )
    lines = [
        f"hardware {diagnosis.hardware}; {diagnosis.backend} against itself: "
        + (
            "equivalent everywhere"
            if diagnosis.proven
            else f"not equivalent in {apart}: there, times would be called unproven"
        ),
        f"the hypervisor took {diagnosis.stolen:.1%} of the measured processor's time; {diagnosis.remade} of "
        f"{diagnosis.slots} slots were made again",
        "",
        f"{'metric':12} {'noise floor':>12} {'margin':>8} {'smallest change that would be seen':>36}",
    ]
    for metric in METRICS:
        for comparison in diagnosis.of_metric(metric):
            lines.append(
                f"{metric:12} {comparison.floor:12.2%} {comparison.margin:8.1%} "
                f"{seen(comparison.smallest_effect):>36}  {comparison.family}"
            )
    lines += ["", *conclusions(diagnosis)]
    return "\n".join(lines)


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Returns the diagnosis as JSON: the advice, the comparisons of the arm with itself, and what can be
    concluded."""
    return {**asdict(diagnosis), "conclusions": conclusions(diagnosis)}


def conclusions(diagnosis: Diagnosis) -> list[str]:
    """Returns a sentence for each kind of claim."""
    sentences = []
    for metric, what in (
        ("fill", "a slower mask"),
        ("compile", "a slower compile"),
        ("cold_fill", "a slower first pass"),
    ):
        effects = [
            comparison.smallest_effect
            for comparison in diagnosis.of_metric(metric)
            if comparison.verdict == "equivalent"
        ]
        if not effects:
            sentences.append(
                f"- {what} between two versions cannot be detected here: two arms of identical code "
                "were not equivalent"
            )
        elif max(effects) < 0.25:
            sentences.append(
                f"- {what} between two versions is detected from {max(effects):.0%} on; a smaller one is "
                "called equivalent or inconclusive"
            )
        else:
            sentences.append(
                f"- {what} is detected from {max(effects):.0%} on only: enough to tell backends apart, "
                "not versions"
            )
    if diagnosis.stolen > STOLEN:
        sentences.append(
            "- the hypervisor takes time away: measure at another hour, or on another machine, "
            "before you believe a small change"
        )
    if any(not advice.is_well for advice in diagnosis.advice):
        sentences.append(
            "- put right what is marked MIND above; it makes these figures worse than they need be"
        )
    return sentences
