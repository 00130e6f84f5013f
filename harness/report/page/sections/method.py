"""Method and environment: how everything was made and on what, and how to cite it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.measure.show import seen, smallest_effect
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs, Measured
from harness.report.page.lines import RunSeen
from harness.report.page.section import Section, Values
from harness.rows.ends import ends_text
from harness.rows.row import note
from harness.text import counted

SETTINGS = 120
"""Most settings of a run that are listed."""


@dataclass(frozen=True)
class Box:
    """Names and values about one thing that was done."""

    title: str
    rows: tuple[tuple[str, str], ...]


def values(page: Content) -> Values:
    """Settings and machine of each run, a box for each other record, and the citation."""
    inputs = page.inputs
    return {
        "runs": inputs.runs,
        "ends_text": ends_text,
        "settings": [settings(run) for run in inputs.runs],
        "boxes": boxes(inputs),
        "citation": citation(inputs),
    }


SECTION = Section("environment", "Method", 150, values, "method")


def settings(run: RunSeen) -> list[tuple[str, str]]:
    """Returns how and where the run was made, as names and values, flat."""
    info = run.info
    given: list[tuple[str, str]] = [
        ("command", shlex.join(info.argv)),
        ("harness", info.harness),
        ("profile", info.profile),
        ("seed", str(info.seed)),
        ("timeout", f"{info.timeout_s:g} s"),
        *(
            [("processor time for the checks of a case", f"{info.check_timeout_s:g} s")]
            if info.check_timeout_s
            else []
        ),
        ("memory limit", f"{info.memory_bytes / 1e9:g} GB"),
        ("jobs", str(info.jobs)),
        *([("shard", note(info))] if info.shard else []),
        *(
            [("executor", f"{info.executor}: times are of whatever machines its tasks ran on")]
            if info.executor
            else []
        ),
        ("places of a case that each check looks at", "all" if info.effort < 0 else str(info.effort)),
        *([("decoded", "each strategy, without a model")] if info.decode else []),
    ]
    flat = [*given, *_flat(info.machine, "")]
    cut = [
        (name[:100], value if len(value) <= 1000 else f"{value[:1000]}… ({len(value):,} characters)")
        for name, value in flat[:SETTINGS]
    ]
    return (
        [*cut, ("", f"{len(flat) - SETTINGS} more are in the run's first line")]
        if len(flat) > SETTINGS
        else cut
    )


def _flat(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth < 6:
        for key, inner in value.items():
            yield from _flat(inner, f"{name} {key}".strip(), depth + 1)
    elif (
        isinstance(value, list | tuple)
        and depth < 6
        and all(isinstance(item, str | int | float) for item in value)
    ):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)


def boxes(inputs: Inputs) -> list[Box]:
    """Returns how the measurements, decodings and kernels were made."""
    shown = [_measured(measured) for measured in inputs.measured]
    for decoded in inputs.decoded:
        setup, model = decoded.decoding.setup, decoded.decoding.model
        facts = {
            "model": setup.model,
            **{name: value for name, value in model.items() if isinstance(value, str | int | float)},
        }
        rows = (
            ("command", shlex.join(setup.argv)), ("started", setup.started), ("profile", setup.profile),
            ("hardware key", setup.hardware),
            ("forks and rounds", decoded.decoding.often),
            ("model", ", ".join(f"{name} {value}" for name, value in facts.items())[:600]),
            ("vocabulary", f"{setup.vocabulary} ({setup.sha256[:16]})"),
            ("settings", str(len(setup.settings))), ("not measured",
            counted(len(decoded.decoding.losses), "setting")),
            ("accounting", f"{len(decoded.findings())} things do not add up"),
        )  # fmt: skip
        shown.append(Box(f"Decoding {setup.run}", rows))
    for path, stored in inputs.kernels:
        outcomes = Counter(row["outcome"] for row in stored.probes)
        points = (
            ("folder", path.name), ("kernels", ", ".join(str(row.get("kernel", row.get("name",
            "?"))) for row in stored.kernels)[:400]),
            ("probes", ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common())), ("times",
            str(len(stored.times))),
            ("state", "complete" if stored.end else "incomplete"),
        )  # fmt: skip
        shown.append(Box("Mask kernels (every point: grammarbench measure kernels --show DIR)", points))
    return shown


def _measured(one: Measured) -> Box:
    measurement, figures = one.figures.measurement, one.figures
    slots = figures.recorded.slots
    rounds = 1 + max((slot.round for slot in slots), default=-1)
    floors: dict[str, float] = {}
    for comparison in one.comparisons:
        if comparison.floor == comparison.floor:
            floors[comparison.metric] = max(comparison.floor, floors.get(comparison.metric, 0.0))
    effects = smallest_effect(one.comparisons, figures) if one.comparisons else {}
    rows = (
        ("started", measurement.started),
        ("profile", f"{measurement.profile}, protocol {measurement.protocol}"),
        ("hardware key", measurement.hardware),
        ("workload key", measurement.workload),
        ("arms", ", ".join(f"{arm.name} {arm.version} ({arm.role})" for arm in measurement.arms)[:600]),
        (
            "forks × rounds",
            f"{len(figures.forks)} × {rounds}, arms in ABBA order, one at a time on "
            f"processor {measurement.cpu}",
        ),
        (
            "rounds made again",
            f"{sum(slot.again > 0 for slot in slots):,} of {len(slots):,} slots (a processor was taken away)",
        ),
        (
            "noise floor, the widest of a family",
            ", ".join(f"{name} {value:.2%}" for name, value in floors.items()) or "not measured",
        ),
        (
            "smallest change seen",
            ", ".join(f"{name} {seen(value)}" for name, value in effects.items()) or "not measured",
        ),
        ("software", ", ".join(f"{name} {value}" for name, value in measurement.software.items())[:600]),
    )
    return Box(f"Measurement {measurement.run}", rows)


def citation(inputs: Inputs) -> str:
    """Returns the page as an entry of BibTeX."""
    versions = [run.info.harness for run in inputs.runs] + [
        decoded.decoding.setup.harness for decoded in inputs.decoded
    ]
    harness = versions[0] if versions else "unknown"
    version = "".join(character for character in harness if character.isalnum() or character in ".+-")[:40]
    return (
        "@software{grammarbench,\n"
        "  title   = {GrammarBench: conformance and benchmarks for constrained decoding of language "
        "models},\n"
        f"  version = {{{version}}},\n"
        "  note    = {Cite the run ids above; figures hold for their machine, versions and options}\n"
        "}"
    )
