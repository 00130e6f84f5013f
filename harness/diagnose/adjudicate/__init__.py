"""Adjudication of JSON Schema: where the arms of a run disagree, whose fault is it, and which document shows
it?

Each arm lives in a service of its own, as isolated as a worker. Along the cases' instances, and along
documents that the arms write themselves, masks are compared. A token on which they disagree is put to the
automaton of the case's documents (reference.py). If no document goes on with it, whoever allows it is
under-constrained; if one does, whoever forbids it is over-constrained, unless its own layout has no such
document. Where there is no automaton, an arm that allows the token finishes a document.

Two independent validators judge each document, and it is replayed on every arm (evidence.py). Invalid:
whoever accepts it is under-constrained. Valid: whoever refuses its canonical tokenization is
over-constrained. Without the same verdict of both validators, or against the automaton, nobody is blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.backend.arm import arm_names, pinned, version_key
from harness.backend.environments.build import python_of
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case
from harness.cases.case_line import CASES_FILE
from harness.diagnose.adjudicate.trial import Settings as Settings
from harness.diagnose.adjudicate.trial import Trial
from harness.diagnose.adjudicate.verdicts import Validators
from harness.diagnose.adjudicate.witness import Summary as Summary
from harness.diagnose.adjudicate.witness import Witness
from harness.oracle.judge import Judge
from harness.rows.appending import encoded, write_lines
from harness.rows.folder import locked
from harness.rows.row import DECLINED, Row, RunInfo
from harness.rows.store import read_cases, read_cases_at, read_info, read_rows, refuse_published
from harness.text import one_line
from harness.whole_files import drafted

WITNESSES = "witnesses.jsonl"

Step = Callable[[int, int, str], None]
"""A function that is called with the number of cases done, the number of all cases, and what is done now."""


@dataclass(frozen=True)
class _Work:
    """A run, and how it is to be adjudicated."""

    folder: Path
    info: RunInfo
    walked: dict[tuple[str, str, str], _Walked]
    """What the run saw of each JSON Schema, by vocabulary, suite and case."""
    settings: Settings
    summary: Summary
    say: Callable[[str], None]
    step: Step
    total: int
    """The number of cases to adjudicate, each counted once for each vocabulary."""

    @property
    def cases(self) -> str:
        """Returns the whole path of the cases: an arm may change its folder while it loads."""
        return str((self.folder / CASES_FILE).absolute())


@dataclass
class _Walked:
    """What the run saw of a case in one vocabulary: the arms that compiled it, and which instances were
    accepted, refused, and decided wrongly by one of them, by their index."""

    arms: set[str] = field(default_factory=set)
    accepted: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)

    def add(self, row: Row) -> None:
        """Takes in what an arm decided about an instance."""
        if row.instance is None or row.accepted is None:
            return
        (self.accepted if row.accepted else self.refused).add(row.instance)
        if row.valid is not None and row.accepted != row.valid:
            self.wrong.add(row.instance)

    @property
    def doubtful(self) -> frozenset[int]:
        """Returns the indices of the instances that were decided wrongly, or in two ways."""
        return frozenset(self.wrong | (self.accepted & self.refused))


@dataclass(frozen=True)
class _PlannedCase:
    """A case to adjudicate in one vocabulary, and what the run saw of it."""

    suite: str
    offset: int
    case: Case
    walked: _Walked


def adjudicate(
    folder: Path,
    settings: Settings,
    say: Callable[[str], None],
    step: Step = lambda done, total, doing: None,
) -> Summary:
    """Adjudicates a finished run and writes its `witnesses.jsonl`. Raises BadInput."""
    refuse_published(
        folder, "adjudicated", "run its command again where the suites are, and adjudicate that run"
    )
    info = read_info(folder)
    next(read_cases(folder), None)  # raises where the run has none
    with locked(folder):
        step(0, 0, f"reading the rows of {folder}")
        walked = _walked(read_rows(folder), arm_names(info.arms))
        work = _Work(
            folder,
            info,
            walked,
            replace(settings, compile_s=max(settings.timeout_s, info.timeout_s)),
            Summary(vocabularies=len(info.vocabularies)),
            say,
            step,
            len({(vocabulary, case_id) for vocabulary, _, case_id in walked}),
        )
        with (
            Judge(settings.timeout_s) as judge,
            drafted(folder / WITNESSES) as draft,
            open(draft, "wb") as file,
        ):
            validators = Validators(judge, settings.formats)
            done = 0
            for vocabulary in info.vocabularies:
                for witness in _in_vocabulary(work, vocabulary, validators, done):
                    work.summary.add(witness)
                    write_lines(file, [encoded(witness.to_json())])
                done += len({case_id for name, _, case_id in walked if name == vocabulary})
    return work.summary


def _walked(
    rows: Iterator[Row], names: dict[tuple[str, str, str], str]
) -> dict[tuple[str, str, str], _Walked]:
    walked: dict[tuple[str, str, str], _Walked] = {}
    for row in rows:
        if (
            row.dialect == "json_schema"
            and row.compile_ns is not None
            and row.status not in DECLINED
            and row.phase != "compile"
        ):
            case = walked.setdefault((row.vocabulary, row.suite, row.case_id), _Walked())
            case.arms.add(names[row.version_key])
            case.add(row)
    return walked


def _in_vocabulary(work: _Work, name: str, validators: Validators, before: int) -> Iterator[Witness]:
    """Yields the witnesses of all cases, one case after another; `before` is how many were adjudicated in
    other vocabularies."""
    vocabulary = load_vocabulary(name)
    names = arm_names(work.info.arms)
    arms = {names[version_key(arm)]: arm for arm in work.info.arms}
    versions = {arm_name: arm.version for arm_name, arm in arms.items()}
    services = {
        arm_name: Service(
            "harness.diagnose.adjudicate.arm:load_arm",
            {"spec": pinned(arm, arm.version), "vocabulary": name, "cases": work.cases},
            work.info.memory_bytes,
            python_of(arm, work.say),
        )
        for arm_name, arm in arms.items()
    }
    try:
        work.step(before, work.total, f"starting {', '.join(services)} with {name}")
        for service in services.values():
            service.start()
        for arm_name, service in list(services.items()):
            try:
                service.wait()
            except Lost as why:
                work.summary.left_out.append(f"{arm_name} with {name}: {why}")
                work.say(f"{arm_name} is left out: {why}")
                del services[arm_name]
        plan = list(_planned_cases(work, name))
        for number, planned in enumerate(plan, 1):
            work.step(before + number - 1, work.total, f"{planned.case.name} ({name})")
            asked = {arm: service for arm, service in services.items() if arm in planned.walked.arms}
            trial = Trial(
                planned.case,
                planned.suite,
                planned.offset,
                planned.walked.doubtful,
                vocabulary,
                asked,
                versions,
                validators,
                work.settings,
                work.summary,
            )
            witnesses = trial.run()
            work.say(f"{name} {number}/{len(plan)} {one_line(planned.case.name)}: {_blame(witnesses)}")
            yield from witnesses
    finally:
        for service in services.values():
            service.close()


def _blame(witnesses: list[Witness]) -> str:
    """Returns what the witnesses of a case blame on which arm, in one line."""
    causes: dict[str, list[str]] = {}
    for witness in witnesses:
        causes.setdefault(f"{witness.arm or 'nobody'} {witness.kind}", []).append(witness.cause)
    return (
        "; ".join(f"{who} ({', '.join(what)})" for who, what in causes.items())
        or "nothing counts against a backend"
    )


def _planned_cases(work: _Work, vocabulary: str) -> Iterator[_PlannedCase]:
    """Yields every case that some arm compiled, once, however many suites hold it."""
    case_ids: set[str] = set()
    for offset, suite, _, case in read_cases_at(work.folder):
        walked = work.walked.get((vocabulary, suite, case.id))
        if walked is not None and case.id not in case_ids:
            case_ids.add(case.id)
            yield _PlannedCase(suite, offset, case, walked)
