"""Section 11: what the words mean, how it was run and on what, and how to cite it."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass

from harness import metrics
from harness.decode.titles import FIGURES
from harness.measure.estimate import METRICS
from harness.measure.show import smallest_effect
from harness.report.inputs import Inputs, Measured


@dataclass(frozen=True)
class Box:
    """Names and values about one thing that was done."""

    title: str
    rows: tuple[tuple[str, str], ...]


def definitions(inputs: Inputs) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """By what they are of: title, name and definition of every figure that the page may show."""
    rows = [(each.title, each.name, each.definition) for each in metrics.DISTRIBUTIONS.values()]
    rows += [(each.title, each.name, each.definition) for each in metrics.METRICS.values()]
    found = [("Of rows (grammarbench run)", rows)]
    if inputs.measured:
        found.append(("Of a measurement (grammarbench measure)", [(name.replace("_", " "), name, said) for name, said in METRICS.items()]))
    if inputs.decoded:
        found.append(("Of decoding (grammarbench decode)", [(each.title, name, each.definition) for name, each in FIGURES.items()]))
    return found


def boxes(inputs: Inputs) -> list[Box]:
    """How the measurements, decodings and kernels were made."""
    found = [_measured(each) for each in inputs.measured]
    for decoded in inputs.decoded:
        setup, model = decoded.decoding.setup, decoded.decoding.model
        facts = {"model": setup.model, **{name: value for name, value in model.items() if isinstance(value, str | int | float)}}
        rows = (
            ("command", shlex.join(setup.argv)), ("started", setup.started), ("profile", setup.profile), ("hardware key", setup.hardware),
            ("forks × rounds", f"{setup.forks} × {setup.rounds}, after a cold round each"),
            ("model", ", ".join(f"{name} {value}" for name, value in facts.items())[:600]),
            ("vocabulary", f"{setup.vocabulary} ({setup.sha256[:16]})"),
            ("settings", str(len(setup.settings))), ("not measured", f"{len(decoded.decoding.losses)} settings"),
            ("accounting", f"{len(decoded.findings())} things do not add up"),
        )  # fmt: skip
        found.append(Box(f"Decoding {setup.run}", rows))
    for path, stored in inputs.kernels:
        outcomes = Counter(row["outcome"] for row in stored.probes)
        told = (
            ("folder", path.name), ("kernels", ", ".join(str(row.get("kernel", row.get("name", "?"))) for row in stored.kernels)[:400]),
            ("probes", ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common())), ("times", str(len(stored.times))),
            ("state", "complete" if stored.end else "incomplete"),
        )  # fmt: skip
        found.append(Box("Mask kernels (every point: grammarbench kernels --show DIR)", told))
    return found


def _measured(one: Measured) -> Box:
    measurement, figures = one.figures.measurement, one.figures
    slots = figures.recorded.slots
    rounds = 1 + max((each.round for each in slots), default=-1)
    floors: dict[str, float] = {}
    for each in one.comparisons:
        if each.floor == each.floor:
            floors[each.metric] = max(each.floor, floors.get(each.metric, 0.0))
    seen = smallest_effect(one.comparisons, figures) if one.comparisons else {}
    rows = (
        ("started", measurement.started),
        ("profile", f"{measurement.profile}, protocol {measurement.protocol}"),
        ("hardware key", measurement.hardware),
        ("workload key", measurement.workload),
        ("arms", ", ".join(f"{each.name} {each.version} ({each.role})" for each in measurement.arms)[:600]),
        ("forks × rounds", f"{len(figures.forks)} × {rounds}, arms in ABBA order, one at a time on processor {measurement.cpu}"),
        ("rounds made again", f"{sum(each.again > 0 for each in slots):,} of {len(slots):,} slots (a processor was taken away)"),
        ("noise floor", ", ".join(f"{name} {value:.2%}" for name, value in floors.items()) or "not measured"),
        ("smallest change seen", ", ".join(f"{name} {value:.1%}" for name, value in seen.items()) or "not measured"),
        ("software", ", ".join(f"{name} {value}" for name, value in measurement.software.items())[:600]),
    )
    return Box(f"Measurement {measurement.run}", rows)


def citation(inputs: Inputs) -> str:
    """BibTeX."""
    versions = [run.info.harness for run in inputs.runs] + [each.decoding.setup.harness for each in inputs.decoded]
    harness = versions[0] if versions else "unknown"
    version = "".join(each for each in harness if each.isalnum() or each in ".+-")[:40]
    return (
        "@software{grammarbench,\n"
        "  title   = {GrammarBench: conformance and benchmarks for constrained decoding of language models},\n"
        f"  version = {{{version}}},\n"
        "  note    = {Cite the run ids above; figures hold for their machine, versions and options}\n"
        "}"
    )
