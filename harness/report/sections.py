"""The parts of the page as plain values, one function each; the template only lays them out."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.metrics import summary
from harness.report import charts
from harness.report.failing import EXAMPLES, KINDS, CaseKey, FailedCase, Failures, Reason, Who, choose, fill_in, ordered
from harness.row import OURS, End, RunInfo, arm_names
from harness.seen import ArmSeen, common_solved
from harness.shard import note

CASES_BUDGET = 400_000
"""Bytes of the page that failing cases may fill without the case explorer, which has all of them."""
REASONS, SETTINGS = 30, 120
"""How many of each are shown."""

GLYPHS = {
    "pass": "✓", "over_constrained": "▼", "under_constrained": "▲", "declined": "⊘", "broken": "✖", "unjudged": "?", "harness_error": "⚑",
    "skipped": "–",
}  # fmt: skip


@dataclass(frozen=True)
class RunSeen:
    """One of the runs on the page."""

    place: int
    folder: Path
    info: RunInfo
    end: End | None
    rows: int


@dataclass(frozen=True)
class Line(charts.Styled):
    """One arm on the page: the same name, colour, dash and marker everywhere."""

    position: int
    label: str
    run: RunSeen
    arm: ArmSeen


def labels(seen: Sequence[tuple[RunSeen, ArmSeen]]) -> list[str]:
    """A short name for each arm; version, vocabulary and run are added only where they tell two arms apart."""
    names = [arm.name for _, arm in seen]
    particulars = zip(*((arm.version, arm.vocabulary, run.info.run, str(run.folder)) for run, arm in seen), strict=True)
    for parts in particulars:
        kinds: dict[str, set[str]] = {}
        for name, part in zip(names, parts, strict=True):
            kinds.setdefault(name, set()).add(part)
        names = [f"{name} · {part}" if len(kinds[name]) > 1 else name for name, part in zip(names, parts, strict=True)]
    return [name if len(name) <= 90 else f"{name[:89]}…" for name in names]


@dataclass(frozen=True)
class Common:
    """The arms on the cases that all of them solve."""

    cases: int
    left_out: list[Line]
    """Arms that solve nothing: with them there would be no such case."""
    summaries: list[dict[str, Any]]


def common(lines: Sequence[Line]) -> Common | None:
    """Times on the common solved set; None where there is nothing to compare."""
    keys = common_solved([line.arm for line in lines])
    if not keys or len(lines) < 2:
        return None
    return Common(len(keys), [line for line in lines if not line.arm.solves_any], [summary(line.arm.only(keys)) for line in lines])


# ------------------------------------------------------------------------------------------------------------ matrices


@dataclass(frozen=True)
class Cell:
    """How one arm did on one suite or tag."""

    passed: int
    judged: int
    """Walks but those that nobody can judge or that we lost."""
    rest: list[tuple[str, int]]
    """What did not pass: outcome and count."""

    @property
    def shade(self) -> int:
        """0 to 4, from nothing passes to everything does."""
        return 0 if not self.passed else 4 if self.passed == self.judged else 1 + min(2, int(3 * self.passed / self.judged))


def cell_of(outcomes: Counter[str]) -> Cell:
    """How the walks of these outcomes did."""
    judged = sum(count for kind, count in outcomes.items() if kind not in ("unjudged", *OURS))
    return Cell(outcomes["pass"], judged, [(kind, outcomes[kind]) for kind in GLYPHS if kind != "pass" and outcomes[kind]])


# ------------------------------------------------------------------------------------------------------- failing cases


@dataclass(frozen=True)
class ReasonShown:
    """A way in which an arm fails, and links to some of the cases."""

    kind: str
    said: str
    cases: int
    walks: int
    examples: list[tuple[str, str]]
    """Anchor and name."""


@dataclass(frozen=True)
class FailingCases:
    """What the page says of failing cases."""

    total: int
    hopeless: list[Line]
    """Arms that solve nothing, while others do: a few of their cases stand for all."""
    shown: list[Markup]
    by_line: list[tuple[Line, list[ReasonShown], int]]
    """With the number of reasons left off."""
    anchors: dict[CaseKey, str]
    """Where each of those shown is on the page."""


def failing_cases(template: jinja2.Template, failures: Failures, lines: Sequence[Line]) -> FailingCases:
    """The failing cases, as many as fit, each rendered; and the reasons of each arm. Raises BadInput."""
    by_who = {(line.run.place, line.arm.key): line for line in lines}
    hopeless = [line for line in lines if line.arm.cases and not line.arm.solves_any] if any(line.arm.solves_any for line in lines) else []
    whose = {(line.run.place, line.arm.key) for line in hopeless}
    chosen = choose(failures, whose)
    fill_in([failures.cases[key] for key in chosen], list(dict.fromkeys(line.run.folder for line in lines)))
    rendered: dict[CaseKey, Markup] = {}
    anchors: dict[CaseKey, str] = {}
    budget = CASES_BUDGET
    for number, key in enumerate(chosen):
        case = failures.cases[key]
        anchor = re.sub(r"[^a-z0-9]+", "-", f"case-{case.suite[:40]}-{case.id}".lower())
        anchor = f"{anchor}-{number}" if anchor in anchors.values() else anchor
        repro = [(by_who[who], command(by_who[who], case)) for who in case.kinds]
        html = Markup(template.render(case=case, anchor=anchor, lines=by_who, repro=repro, gravest=_gravest(case, whose)))
        budget -= len(html.encode("utf-8", "replace"))
        if budget < 0:
            break
        rendered[key], anchors[key] = html, anchor
    grave = list(KINDS)
    order = sorted(rendered, key=lambda key: (grave.index(_gravest(failures.cases[key], whose)), key[0], failures.cases[key].name, key))
    reasons: dict[int, list[ReasonShown]] = {line.position: [] for line in lines}
    for reason in ordered(failures):
        reasons[by_who[reason.who].position].append(_reason(reason, failures, anchors))
    by_line = [(line, reasons[line.position][:REASONS], max(0, len(reasons[line.position]) - REASONS)) for line in lines]
    return FailingCases(len(failures.cases), hopeless, [rendered[key] for key in order], by_line, anchors)


def _gravest(case: FailedCase, hopeless: set[Who]) -> str:
    telling = [kinds for who, kinds in case.kinds.items() if who not in hopeless]
    kinds = set().union(*(telling or case.kinds.values()))
    return next(kind for kind in KINDS if kind in kinds)


def _reason(reason: Reason, failures: Failures, anchors: dict[CaseKey, str]) -> ReasonShown:
    examples = [(anchors[key], failures.cases[key].name[:60]) for key in reason.cases if key in anchors][:EXAMPLES]
    return ReasonShown(reason.kind, reason.said, len(reason.cases), reason.walks, examples)


def command(line: Line, case: FailedCase) -> str:
    """What a reader types to see the case for themselves."""
    vocabulary = ["--vocabulary", line.arm.vocabulary] if len(line.run.info.vocabularies) > 1 else []
    backend = arm_names(line.run.info.arms).get(line.arm.key[:3], line.arm.name)
    return shlex.join(["grammarbench", "repro", str(line.run.folder), case.id, "--backend", backend, *vocabulary])


# --------------------------------------------------------------------------------------------------------- environment


def settings(run: RunSeen) -> list[tuple[str, str]]:
    """How and where the run was made, as names and values, flat."""
    info = run.info
    given: list[tuple[str, str]] = [
        ("command", shlex.join(info.argv)),
        ("harness", info.harness),
        ("profile", info.profile),
        ("seed", str(info.seed)),
        ("timeout", f"{info.timeout_s:g} s"),
        ("memory limit", f"{info.memory_bytes / 2**30:.3g} GiB"),
        ("jobs", str(info.jobs)),
        *([("shard", note(info))] if info.shard else []),
        *([("executor", f"{info.executor}: times are of whatever machines its tasks ran on")] if info.executor else []),
        ("places of a case that each check looks at", "all" if info.effort < 0 else str(info.effort)),
        *([("decoded", "each strategy, without a model")] if info.decode else []),
    ]
    flat = [*given, *_flat(info.machine, "")]
    cut = [(name[:100], value if len(value) <= 1000 else f"{value[:1000]}… ({len(value):,} characters)") for name, value in flat[:SETTINGS]]
    return [*cut, ("", f"{len(flat) - SETTINGS} more are in the run's first line")] if len(flat) > SETTINGS else cut


def _flat(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth < 6:
        for key, each in value.items():
            yield from _flat(each, f"{name} {key}".strip(), depth + 1)
    elif isinstance(value, list | tuple) and depth < 6 and all(isinstance(each, str | int | float) for each in value):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
