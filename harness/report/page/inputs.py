"""The folders of a report, the rows of each read once: runs of rows, measurements, decodings and kernels, in
any mixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from harness.backend.arm import arm_names, version_key
from harness.diagnose.advise.stored import StoredAdvice, stored_advice
from harness.errors import BadInput
from harness.measure.estimate import Comparison, conclude, is_proven
from harness.measure.figures import Figures
from harness.measure.kernels import stored
from harness.measure.kernels.session import FILE as KERNELS
from harness.measure.record import has_measurement, read_measurement
from harness.outcomes.answer import Answer, Proofs, answer_of, backends_of, together
from harness.outcomes.compare import Pair, compare_runs, compare_versions
from harness.outcomes.constructs import KEYWORDS, tagged_rows
from harness.outcomes.controls import controls
from harness.outcomes.endless import Endless
from harness.outcomes.outcome import walk_verdict
from harness.outcomes.result import Change, Gate, Noticed, Result, held_to_pairs, result_of
from harness.outcomes.slow_compiles import Compiles
from harness.outcomes.summary import ArmKey, ArmSummary, arm_key, each_taken_in, summarize
from harness.report.cases.cases import Cases, kept_tags
from harness.report.cases.failing import Failures, Who
from harness.report.figures import charts
from harness.report.page.lines import Line, RunSeen, labels
from harness.report.tables.masks import ExactMasks
from harness.rows.again import suite_word
from harness.rows.row import CHECKS_MODE, Row
from harness.rows.store import NO_END, has_rows, read_end, read_info, read_samples
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import has_decoding, read_decoding

UTF8 = "utf8"
"""The suite whose tags are classes of bytes."""

TAG = "tag"
"""The group of what a suite says of a JSON Schema that is no keyword."""

Feature = tuple[str, str]
"""Group and name."""


@dataclass
class Features:
    """Takes in rows, counts walks by what their grammars are made of."""

    counts: dict[Who, dict[Feature, Counter[str]]] = field(default_factory=dict)

    def add(self, row: Row, run: int) -> None:
        """Takes in one row of the run at this position."""
        if row.mode == CHECKS_MODE:
            return
        mine, kind = self.counts.setdefault((run, arm_key(row)), {}), walk_verdict(row)
        group = (
            "byte class"
            if row.suite == UTF8
            else "keyword"
            if row.dialect == "json_schema"
            else (f"{row.dialect} feature")
        )
        named = (
            (TAG if group == "keyword" and tag not in KEYWORDS else group, tag) for tag in kept_tags(row)
        )
        for feature in (("dialect", row.dialect), *named):
            mine.setdefault(feature, Counter())[kind] += 1


@dataclass(frozen=True)
class Measured:
    """A measurement and what it says."""

    folder: Path
    figures: Figures
    comparisons: list[Comparison]

    @property
    def is_complete(self) -> bool:
        return self.figures.recorded.end is not None

    @property
    def is_proven(self) -> bool:
        return is_proven(self.comparisons)


@dataclass(frozen=True)
class Subject(charts.Styled):
    """A backend at a version with its options, wherever it was seen: the same colour, dash and marker
    everywhere."""

    position: int
    label: str
    backend: str
    version: str
    options: str
    vocabulary: str
    line: Line | None
    """The subject's rows; None if it has none here."""
    measured: tuple[Measured, str] | None = None
    """The measurement that the subject is an arm of, and the arm's name in it."""
    decoded: tuple[tuple[Decoded, str], ...] = ()


@dataclass(frozen=True)
class Inputs:
    """Everything that a page is made of."""

    folders: tuple[Path, ...]
    runs: list[RunSeen]
    scouting: list[RunSeen]
    """Runs whose walks only chose what to measure, and whose arms another run here has: not counted."""
    lines: list[Line]
    """Every arm of the runs, controls last."""
    subjects: list[Subject]
    failures: Failures
    features: Features
    cases: Cases
    measured: list[Measured]
    decoded: list[Decoded]
    kernels: list[tuple[Path, stored.StoredKernels]]
    noticed: list[tuple[Noticed, list[ArmSummary]]]
    """For each run, what its result is made of."""
    compiles: list[Compiles]
    """The compiles of each of the runs."""
    proofs: list[Proofs]
    """What shows that cases of each of the runs are refused or go wrong."""
    endless: list[Endless]
    """What the masks of each of the runs let go on without end."""
    masks: list[ExactMasks]
    """How many masks of each of the runs are right."""
    held: Result | None = None
    """What the only run came to, held against what the user named; None where the user named nothing."""

    @cached_property
    def advices(self) -> dict[Path, StoredAdvice]:
        """Returns what was advised on the runs, by their folders; nothing of those of which nobody asked for
        advice. Raises BadInput."""
        found = ((folder, stored_advice(folder)) for folder in self.folders)
        return {folder: advice for folder, advice in found if advice is not None}

    @property
    def tried(self) -> list[Line]:
        """Returns the arms but for controls, whose faults say nothing; all where there are only controls."""
        return [line for line in self.lines if not line.is_control] or self.lines

    @cached_property
    def results(self) -> list[Result]:
        """Returns what each of the runs came to: held against what the user named, else each later run
        against the first one, as the page has it. Raises BadInput."""
        if self.held is not None:
            return [self.held]
        return [
            self._held_to_first(run, result) for run, result in zip(self.runs, self._results, strict=True)
        ]

    @property
    def _results(self) -> list[Result]:
        """Returns what each of the runs came to by itself. Raises BadInput."""
        return [
            result_of(run.folder, read=read, versions=self.versions.get(run.folder, []))
            for run, read in zip(self.runs, self.noticed, strict=True)
        ]

    @cached_property
    def with_first(self) -> dict[Path, list[Pair] | BadInput]:
        """Returns, by the folder of each later run, its pairs with the first one, or why the two cannot be
        compared."""
        return {run.folder: _compared(self.runs[0].folder, run.folder) for run in self.runs[1:]}

    @cached_property
    def since_first(self) -> dict[Path, tuple[list[Change], Gate]]:
        """Returns, by the folder of each later run, what changed since the first one, and what a gate says of
        it, which is unproven where the two cannot be compared; nothing where something is not whole."""
        return {} if self.incomplete else {run.folder: self._since_first(run) for run in self.runs[1:]}

    def _since_first(self, run: RunSeen) -> tuple[list[Change], Gate]:
        first, pairs = self.runs[0], self.with_first[run.folder]
        against = f"{first.info.run} ({first.folder})"
        if isinstance(pairs, BadInput):
            return [], Gate("unproven", against, (str(pairs),))
        changes, gate = held_to_pairs(run.info, pairs, first.folder, time=False)
        return changes, replace(gate, against=against)

    def _held_to_first(self, run: RunSeen, result: Result) -> Result:
        """Returns the result of the run held against the first one; one that has a gate of its own already
        stays as it is."""
        found = self.since_first.get(run.folder) if result.gate.has_no_base else None
        return result if found is None else replace(result, changes=tuple(found[0]), gate=found[1])

    @cached_property
    def versions(self) -> dict[Path, list[Pair]]:
        """Returns, by the folder of each whole run with versions of one thing, their pairs. Raises
        BadInput."""
        runs = (run for run in (*self.runs, *self.scouting) if run.has_versions and not run.why_not_whole)
        return {run.folder: compare_versions(run.folder) for run in runs}

    @cached_property
    def answered(self) -> list[Line]:
        """Returns the arms that the answer is about, under the names that tell these apart: of an arm in
        several runs, that of the last one."""
        last = {line.arm.key: line for line in self.lines}
        kept = [line for line in self.lines if last[line.arm.key] is line]
        names = labels([(line.run, line.arm) for line in kept])
        return [replace(line, label=name) for line, name in zip(kept, names, strict=True)]

    def answer(self) -> Answer | None:
        """Returns what the runs answer together; None where there is no run of rows. Raises BadInput."""
        if not self.lines:
            return None
        backends, proofs = [], []
        for place, run in enumerate(self.runs):
            mine = [line for line in self.answered if line.run is run]
            self.proofs[place].explain(run.folder)
            arms, names = [line.arm for line in mine], [line.label for line in mine]
            tried = backends_of(arms, self.proofs[place], self.compiles[place], run.info, names)
            backends += [replace(one, run=run.info.run) for one in tried] if len(self.runs) > 1 else tried
            proofs.append(self.proofs[place].only({arm.key for arm in arms}))
        sizes = {name: size for run in self.runs for name, size in run.info.vocabulary_sizes.items()}
        tell = partial(answer_of, backends, together(proofs), sizes, is_complete=not self.incomplete_runs)
        advice = self.advices.get(self.runs[0].folder) if len(self.runs) == 1 else None
        return tell() if advice is None else tell(**advice.telling)

    @property
    def incomplete_runs(self) -> dict[str, str]:
        """Returns the runs of rows that are not whole, each with why it is not."""
        return {run.info.run: run.why_not_whole for run in self.runs if run.why_not_whole}

    @property
    def incomplete(self) -> dict[str, str]:
        """Returns what is not whole, each with why it is not."""
        without_end = [
            f"{measured.figures.measurement.run} (measurement)"
            for measured in self.measured
            if not measured.is_complete
        ]
        without_end += [
            f"{decoded.decoding.setup.run} (decoding)"
            for decoded in self.decoded
            if not decoded.decoding.is_complete
        ]
        without_end += [f"{path} (kernels)" for path, kernel_run in self.kernels if kernel_run.end is None]
        return self.incomplete_runs | dict.fromkeys(without_end, NO_END)


def read_inputs(folders: Sequence[Path], *, to_be_published: bool = False) -> Inputs:
    """Returns all of it; each row is looked at once. Raises BadInput.

    `to_be_published` says that the page is to lie in the published folder of the run: it then names no folder
    and no file that no reader has.
    """
    if not folders:
        raise BadInput("a report needs at least one run")
    measured = [_measured(folder) for folder in folders if has_measurement(folder)]
    decoded = [Decoded(read_decoding(folder)) for folder in folders if has_decoding(folder)]
    kernels = [(folder, stored.read(folder)) for folder in folders if (folder / KERNELS).is_file()]
    failures, features, cases = Failures(), Features(), Cases()
    runs: list[RunSeen] = []
    scouting: list[RunSeen] = []
    floors: set[Who] = set()
    arms_of_runs: list[tuple[RunSeen, ArmSummary]] = []
    noticed: list[tuple[Noticed, list[ArmSummary]]] = []
    elsewhere = {
        key for folder in folders if has_rows(folder) and not has_measurement(folder) for key in _keys(folder)
    }
    compiles: list[Compiles] = []
    proofs: list[Proofs] = []
    endless: list[Endless] = []
    masks: list[ExactMasks] = []
    for place, folder in enumerate(folders):
        if not has_rows(folder) and (has_decoding(folder) or (folder / KERNELS).is_file()):
            continue
        info = read_info(folder)
        if to_be_published:
            info = replace(info, asked=tuple(suite_word(name) for name in info.suites))
        if has_measurement(folder) and _keys(folder) <= elsewhere:
            end = read_end(folder)
            scouting.append(RunSeen(place, folder, info, end, end.rows if end else 0))
            continue
        mine, left_out = Noticed(folder), controls(info)
        floors |= {(place, key) for key in left_out}
        compiles.append(Compiles(info.timeout_s))
        proofs.append(Proofs())
        endless.append(Endless(arm_names(info.arms)))
        masks.append(ExactMasks(info))
        takers = [_but_for(left_out, partial(taker.add, run=place)) for taker in (failures, features, cases)]
        takers += [compiles[-1].add, proofs[-1].add, endless[-1].add, masks[-1].add]
        rows = each_taken_in(tagged_rows(folder), *takers, mine.add)
        arms = summarize(rows, read_samples(folder), info, folder)
        noticed.append((mine, arms))
        run = RunSeen(place, folder, info, read_end(folder), sum(arm.rows for arm in arms), to_be_published)
        runs.append(run)
        arms_of_runs += [(run, arm) for arm in arms]
    arms_of_runs.sort(key=lambda one: (one[0].place, one[1].key) in floors)
    named = zip(arms_of_runs, labels(arms_of_runs), strict=True)
    lines = [
        Line(position, label, run, arm, is_control=(run.place, arm.key) in floors)
        for position, ((run, arm), label) in enumerate(named)
    ]
    subjects = _subjects(lines, measured, decoded)
    return Inputs(
        tuple(folders),
        runs,
        scouting,
        lines,
        subjects,
        failures,
        features,
        cases,
        measured,
        decoded,
        kernels,
        noticed,
        compiles,
        proofs,
        endless,
        masks,
    )


def _compared(first: Path, later: Path) -> list[Pair] | BadInput:
    try:
        return compare_runs(first, later)
    except BadInput as error:
        return error


def _but_for(left_out: set[ArmKey], take: Callable[[Row], None]) -> Callable[[Row], None]:
    """Returns the taker of rows without those of the arms that are left out."""
    if not left_out:
        return take
    return lambda row: None if arm_key(row) in left_out else take(row)


def _keys(folder: Path) -> set[tuple[str, str, str, str]]:
    info = read_info(folder)
    return {
        (arm.backend, arm.version, arm.options, vocabulary)
        for arm in info.arms
        for vocabulary in info.vocabularies
    }


def _measured(folder: Path) -> Measured:
    figures = Figures(read_measurement(folder))
    return Measured(folder, figures, conclude(figures))


def _subjects(
    lines: Sequence[Line], measured: Sequence[Measured], decoded: Sequence[Decoded]
) -> list[Subject]:
    """Returns the lines, then what was only measured or decoded."""
    subjects = [Subject(line.position, line.label, *line.arm.key, line) for line in lines]

    def place_of(backend: str, version: str, options: str, vocabulary: str, name: str, folder: Path) -> int:
        mine = [
            number
            for number, subject in enumerate(subjects)
            if version_key(subject) == (backend, version, options)
        ]
        if not mine:
            subjects.append(Subject(len(subjects), name, backend, version, options, vocabulary, None))
            return len(subjects) - 1

        def nearness(number: int) -> tuple[bool, bool]:
            line = subjects[number].line
            return subjects[number].vocabulary == vocabulary, line is not None and line.run.folder == folder

        return max(mine, key=nearness)

    for one in measured:
        vocabulary = one.figures.measurement.vocabulary
        for arm in one.figures.measurement.arms:
            if arm.role != "a/a":
                number = place_of(arm.backend, arm.version, arm.options, vocabulary, arm.name, one.folder)
                if subjects[number].measured is None:
                    subjects[number] = replace(subjects[number], measured=(one, arm.name))
    for record in decoded:
        setup = record.decoding.setup
        for arm in setup.arms:
            if arm.role != "a/a":
                number = place_of(
                    arm.backend, arm.version, arm.options, setup.vocabulary, arm.name, record.decoding.folder
                )
                subjects[number] = replace(
                    subjects[number], decoded=(*subjects[number].decoded, (record, arm.name))
                )
    return subjects
