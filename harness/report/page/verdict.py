"""The strip on top: what the page says in one word, what that rests on, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.errors import BadInput
from harness.measure.estimate import Comparison, is_change
from harness.outcomes.result import Change, Gate, held_to_pairs
from harness.report.page.inputs import Inputs
from harness.report.values import short
from harness.rows.store import NO_END
from harness.text import some

LINES = 5
"""The most changes that the verdict lists."""

WORDS = {
    "PASS": ("✓", "good", "nothing is worse than the baseline"),
    "REGRESSED": ("↘", "bad", "something is worse than the baseline"),
    "NOT AS RECORDED": (
        "↗",
        "open",
        "nothing is worse, and what was recorded as failing is right: the gate fails until you record anew",
    ),
    "INCONCLUSIVE": ("≈", "open", "nothing is proven worse, and not everything is proven equal"),
    "UNPROVEN": ("×", "open", "the measurement cannot be believed, or nothing can be compared"),
    "INCOMPLETE": ("…", "bad", "something did not come to its end, so nothing is concluded"),
    "NO BASELINE": (
        "·",
        "none",
        "there is nothing to compare with: give two runs, or measure two versions in one run",
    ),
}
"""Glyph, colour and meaning."""

NOT_HELD = "the runs cannot be compared with one another"
"""What NO BASELINE means where there are several runs; the reasons are told beside it."""


@dataclass(frozen=True)
class PageVerdict:
    """What stands on top of the page."""

    word: str
    reasons: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    """Glyph and line."""
    samples: tuple[str, ...]
    """The samples of their suites that the runs are."""
    more: int
    """Changes that are not among them."""
    baseline: str
    control: str
    """What two arms of identical code said."""
    facts: tuple[tuple[str, str], ...]
    """Names and values: runs, dates, hardware, versions."""
    is_listed: bool = True
    """Does the section "Changes" of the page have all changes?"""

    @property
    def glyph(self) -> str:
        return WORDS[self.word][0]

    @property
    def colour(self) -> str:
        return WORDS[self.word][1]

    @property
    def meaning(self) -> str:
        is_told_why = self.word == "NO BASELINE" and self.reasons
        return NOT_HELD if is_told_why else WORDS[self.word][2]


def verdict(inputs: Inputs) -> PageVerdict:
    """Returns the verdict on everything on the page together: the worst word holds."""
    found: dict[Change, None] = {}
    gates: list[Gate] = []
    baselines: list[str] = []
    reasons: list[str] = []
    missing = inputs.incomplete
    if not missing:
        for gate, found_changes in _held(inputs, reasons):
            gates.append(gate)
            baselines.append(gate.against)
            found |= dict.fromkeys(found_changes)
    word = _word(inputs, gates, bool(missing), bool(reasons) and inputs.held is None)
    if word == "REGRESSED" and found and all(change.kind == "better" for change in found):
        word = "NOT AS RECORDED"  # a gate fails on what is mended too, so that its record stays true
    reasons += [f"{part} has no end" if why == NO_END else f"{part}: {why}" for part, why in missing.items()][
        :LINES
    ]
    reasons += [reason for gate in gates for reason in gate.reasons]
    order = {"worse": 0, "other": 1, "better": 2}
    glyphs = {"worse": "↘", "other": "↔", "better": "↗"}
    changes = sorted(found, key=lambda change: order[change.kind])
    shown = tuple(
        (glyphs[change.kind], short(f"{change.arm}: {change.what}", 240)) for change in changes[:LINES]
    )
    lines = tuple(dict.fromkeys(short(reason, 400) for reason in reasons))[:LINES]
    baseline = ", ".join(dict.fromkeys(baselines))
    return PageVerdict(
        word,
        lines,
        shown,
        samples(inputs),
        max(0, len(changes) - LINES),
        baseline,
        control(inputs),
        facts(inputs),
        inputs.held is None,
    )


def _held(inputs: Inputs, reasons: list[str]) -> Iterator[tuple[Gate, list[Change]]]:
    """The run against what the user named; later runs against the first one; versions of one arm within a
    run.

    Why a pair cannot be compared goes to the reasons.
    """
    if inputs.held is not None:
        gate = inputs.held.gate
        reasons.append(f"the gate against {gate.against}: {gate.verdict}")
        yield gate, list(inputs.held.changes)
    for run in inputs.runs[1:]:
        pairs = inputs.with_first[run.folder]
        if isinstance(pairs, BadInput):
            reasons.append(str(pairs))
        else:
            changes, gate = inputs.since_first[run.folder]
            yield gate, changes
    for run in (*inputs.runs, *inputs.scouting):
        if versions := inputs.versions.get(run.folder):
            is_measured = any(one.folder == run.folder for one in inputs.measured)
            changes, gate = held_to_pairs(run.info, versions, time=is_measured)
            yield gate, changes


def _word(inputs: Inputs, gates: list[Gate], missing: bool, uncompared: bool) -> str:
    """Returns the worst word that holds; `uncompared`: some run could not be held against the first one."""
    if missing:
        return "INCOMPLETE"
    verdicts = {gate.verdict for gate in gates}
    of_versions = list(_within(inputs))
    if "failed" in verdicts or any(comparison.verdict == "regressed" for comparison in of_versions):
        return "REGRESSED"
    if "unproven" in verdicts or any(comparison.verdict == "unproven" for comparison in of_versions):
        return "UNPROVEN"
    if not gates:
        return "NO BASELINE"
    if uncompared:
        return "UNPROVEN"
    return (
        "INCONCLUSIVE" if any(comparison.verdict == "inconclusive" for comparison in of_versions) else "PASS"
    )


def _within(inputs: Inputs) -> Iterator[Comparison]:
    """Yields the comparisons of two versions of one backend with the same options, without the control."""
    for one in inputs.measured:
        for comparison in one.comparisons:
            if is_change(comparison, one.figures) and not comparison.is_control:
                yield comparison


def samples(inputs: Inputs) -> tuple[str, ...]:
    """Says which samples of their suites the runs are, with the run's name where the page is
    about several.
    """
    runs = (*inputs.runs, *inputs.scouting)
    notes = {
        f"{run.info.run}: {run.sample}" if len(runs) > 1 else run.sample: None for run in runs if run.sample
    }
    return tuple(short(line, 400) for line in notes)[:LINES]


def control(inputs: Inputs) -> str:
    """Returns what the A/A arms of all measurements said."""
    if not inputs.measured:
        return "A/A not measured"
    sentences = []
    for one in inputs.measured:
        controls = [
            comparison for comparison in one.comparisons if comparison.is_control and comparison.cases
        ]
        equal = sum(comparison.verdict == "equivalent" for comparison in controls)
        if not controls:
            sentences.append("A/A not measured")
        elif one.is_proven:
            sentences.append(f"A/A proven: identical code equivalent in all {len(controls)} figures")
        else:
            sentences.append(f"A/A unproven: identical code equivalent in {equal} of {len(controls)} figures")
    return "; ".join(dict.fromkeys(sentences))


def facts(inputs: Inputs) -> tuple[tuple[str, str], ...]:
    """Returns what was run, when, on what."""
    runs = [
        (f"{run.info.run} (shard {run.info.shard})" if run.info.shard else run.info.run, run.info.started)
        for run in (*inputs.runs, *inputs.scouting)
    ]
    runs += [(decoded.decoding.setup.run, decoded.decoding.setup.started) for decoded in inputs.decoded]
    hardware = [measured.figures.measurement.hardware for measured in inputs.measured]
    hardware += [decoded.decoding.setup.hardware for decoded in inputs.decoded]
    cpus = [
        run.info.machine.get("cpu_model_name") or run.info.machine.get("cpu")
        for run in (*inputs.runs, *inputs.scouting)
    ]
    versions = [f"{subject.backend} {subject.version}".rstrip() for subject in inputs.subjects]
    return (
        ("Run", _listed(run for run, _ in runs)),
        ("Date", _listed(started[:16].replace("T", " ") for _, started in runs)),
        ("Hardware key", _listed(hardware) or "not recorded (measured and decoded runs have one)"),
        ("Machine", _listed(str(cpu) for cpu in cpus if cpu)),
        ("Versions", _listed(versions)),
    )


def _listed(values: Iterable[str]) -> str:
    return some(list(dict.fromkeys(value[:60] for value in values)), 8)
