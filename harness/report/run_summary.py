"""What a run ends with: per backend the figures that matter most, its worst failure, and the commands to go
on with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backend.arm import arm_names, with_version
from harness.cases.case_line import CASES_FILE
from harness.checks import is_policy
from harness.diagnose.advise.stored import stored_advice
from harness.outcomes import delayed
from harness.outcomes.answer import Answer, read_answered
from harness.outcomes.case_state import FAILED, CaseState
from harness.outcomes.delayed import Delayed, DelayedCases
from harness.outcomes.metrics import METRICS, values_of
from harness.outcomes.outcome import Fault, in_words, worst_fault
from harness.outcomes.repro_command import repro_words
from harness.outcomes.slow_compiles import Tail
from harness.outcomes.summary import ArmSummary
from harness.report.labels import told_apart
from harness.report.side_by_side import Column, Section, percentile, side_by_side
from harness.report.values import number
from harness.rows.ends import one_end_lines
from harness.rows.row import Row, RunInfo, contested_lines, note
from harness.rows.sample import sample_of
from harness.rows.store import is_published, published_without, read_end, read_info
from harness.text import MOST_FOLDED, MOST_LINES, Console, command

ALWAYS = ("cases", "judged", "works", "failed")
IF_ANY = (*(state.value for state in FAILED), "refused", "not_judged", "not_measured")
"""Rows that are left out where they are 0 of every arm shown."""
SHARES = ("conformance", "declared_coverage", "compliance")
TIMES = (("ttfm", "p50"), ("ttfm", "p99"), ("tbm", "p50"), ("tbm", "p99"))


MOST_TAILS = 4
"""Backends whose slowest compile is named, the slowest ones."""


@dataclass(frozen=True)
class RunSummary:
    """A run in short."""

    folder: Path
    info: RunInfo
    rows: int | None
    """The number of rows; None if the run is incomplete."""
    statuses: dict[str, int]
    arms: tuple[ArmSummary, ...]
    worst: WorstFailure | None
    compiling: tuple[Tail, ...] = ()
    """The slow compiles of each backend."""
    delayed: tuple[Delayed, ...] = ()
    """What failed behind other cases and not alone; what `counts` in it is in the states too."""
    answer: Answer | None = None
    """Which backend to use, and how sure that is."""


@dataclass(frozen=True)
class WorstFailure:
    """The first of the worst failures in the order of the run."""

    state: CaseState
    """In which the failure puts its case."""
    case: str
    suite: str
    backend: str
    said: str
    repro: tuple[str, ...]
    """The words of the command that shows it."""


def read_summary(run: Path) -> RunSummary:
    """Returns the run in short. Raises BadInput."""
    info, end = read_info(run), read_end(run)
    later, worst = DelayedCases(), WorstRow()
    advice = stored_advice(run)
    untried = advice.untried if advice is not None else ""
    answer, arms, compiles = read_answered(run, later.add, worst.add, untried=untried)
    failure = _worst_failure(run, info, *worst.fault_and_row) if worst.fault_and_row else None
    rows, statuses = (end.rows, end.statuses) if end else (None, {})
    return RunSummary(
        run, info, rows, statuses, tuple(arms), failure, tuple(compiles.tails()), tuple(later.cases), answer
    )


@dataclass
class WorstRow:
    """Takes in rows, keeps the first one with the worst fault."""

    fault_and_row: tuple[Fault, Row] | None = None

    def add(self, row: Row) -> None:
        """Takes in one row."""
        fault = worst_fault(row)
        if fault is not None and (self.fault_and_row is None or fault.order < self.fault_and_row[0].order):
            self.fault_and_row = fault, row


def _worst_failure(run: Path, info: RunInfo, fault: Fault, row: Row) -> WorstFailure:
    name = arm_names(info.arms)[row.version_key]
    check = fault.finding.check if fault.finding is not None else ""
    words = repro_words(run, row.suite, row.case_id, name, row.vocabulary, check)
    if fault.finding is None and row.instance is not None:
        words += ("--instance", str(row.instance))
    message = fault.finding.text if fault.finding is not None else row.text
    return WorstFailure(
        fault.state, row.case, row.suite, with_version(name, row.backend_version), message, words
    )


def next_commands(summary: RunSummary) -> dict[str, list[str]]:
    """Returns what to do with the run, as words of commands."""
    run = str(summary.folder)
    published = is_published(
        summary.folder
    )  # nothing is written into its folder, and without its cases nothing is walked again
    page = ["--out", f"{summary.folder.name}-report"] if published else []
    commands = {"table": ["grammarbench", "table", run], "report": ["grammarbench", "report", run, *page]}
    if summary.worst and not published_without(summary.folder, CASES_FILE):
        commands["repro"] = list(summary.worst.repro)
    return commands | {"forms": [*commands["report"], "--format", "all"]}


def summary_text(summary: RunSummary, on: Console) -> str:
    """Returns the summary: the sample and what was judged, a table for each group of backends, the worst
    failure and commands."""
    told = [
        *((sentence, MOST_LINES) for sentence in (sample_of(summary.info), note(summary.info)) if sentence),
        *((sentences, MOST_FOLDED) for sentences in _answer_lines(summary)),
        *((sentence, MOST_LINES) for sentence in one_end_lines(summary.info)),
    ]
    first = [line for sentence, most in told for line in on.fold(sentence, most)]
    names = told_apart(
        [arm.name for arm in summary.arms],
        ([arm.version for arm in summary.arms], [arm.vocabulary for arm in summary.arms]),
    )
    judged = judged_lines(summary.arms, names, {summary.info.effort})
    first += [line for sentence in judged for line in on.fold(sentence)]
    parts = ["\n".join(first)]
    columns = [_column(arm) for arm in summary.arms]
    parts += side_by_side(columns, _sections, on.width, on.styled)
    after = [
        *_contested(summary, on),
        *_failure(summary, on),
        *_delayed(summary, on),
        *_compiling(summary, on),
        "next:",
        *_commands(summary, on),
    ]
    return "\n\n".join([*parts, "\n".join(after)])


def _answer_lines(summary: RunSummary) -> list[str]:
    """Returns the sentence that answers and how sure it is, for a run that is complete."""
    if summary.answer is None or summary.rows is None or not summary.arms:
        return []
    sure = " ".join([f"How sure: {summary.answer.sure}.", *summary.answer.doubts])
    return [summary.answer.sentence, sure]


def judged_lines(
    summaries: Sequence[ArmSummary], names: Sequence[str], efforts: Collection[int]
) -> list[str]:
    """Says how many cases were judged, in one line where that is the same for all backends, and what would
    judge the others. `names` tell the arms apart."""
    arms_by_sentence: dict[str, list[str]] = {}
    for arm, name in zip(summaries, names, strict=True):
        arms_by_sentence.setdefault(in_words(arm.counts()), []).append(name)
    lines = [
        line if len(arms_by_sentence) == 1 else f"{', '.join(arms)}: {line}"
        for line, arms in arms_by_sentence.items()
    ]
    if any(arm.counts().not_judged for arm in summaries):
        checked = (
            "; this run made no checks: with --effort 2 faults are found without instances too"
            if 0 in efforts
            else ""
        )
        lines.append(f"to judge the others, write instances with their verdicts (`tests`){checked}")
    return lines


def _contested(summary: RunSummary, on: Console) -> list[str]:
    return [part for line in contested_lines(summary.info.suites) for part in on.fold(line)]


def _failure(summary: RunSummary, on: Console) -> list[str]:
    if summary.rows is None:
        return [on.paint("INCOMPLETE", "bad") + " (no end): no gate can pass it"]
    if summary.worst is None:
        return [_no_failure(summary, on)]
    worst = summary.worst
    state = worst.state.words.title
    # The words are painted once they fit: colour must not count as columns.
    first, *more = on.fold(f"worst failure ({state}): {worst.backend} in {worst.case} ({worst.suite})")
    message = on.fold(f"  {worst.said}", most=2) if worst.said else []
    return [first.replace(state, on.paint(state, "bad"), 1), *more, *message]


def _no_failure(summary: RunSummary, on: Console) -> str:
    """Returns what is said where no case failed: good news only where some case works."""
    counts = [arm.counts() for arm in summary.arms]
    if any(count.works for count in counts):
        return on.paint("no failure", "good")
    if not any(count.cases for count in counts):
        return on.paint("no case was walked", "open")
    judged = any(count.judged for count in counts)
    return on.paint(f"no failure, but {'no case works' if judged else 'nothing was judged'}", "open")


def _delayed(summary: RunSummary, on: Console) -> list[str]:
    return [part for line in delayed.lines(summary.delayed) for part in on.fold(line)]


def _compiling(summary: RunSummary, on: Console) -> list[str]:
    """Returns the slowest compile of each backend and how many are slow, for the slowest backends."""
    lines = [
        f"slowest compile of {tail.slowest.backend}: {tail.slowest.duration_text}, {tail.slowest.case} "
        f"({tail.slowest.suite}); {tail.counts_text}"
        for tail in summary.compiling[:MOST_TAILS]
    ]
    return [part for line in lines for part in on.fold(line)]


def _commands(summary: RunSummary, on: Console) -> list[str]:
    return [
        f"  {line}"
        for words in next_commands(summary).values()
        for line in command(words, on.width - 2).split("\n")
    ]


def _column(arm: ArmSummary) -> Column:
    # What a check of policy finds is the backend's choice, and fails nothing.
    checks = [check for name, check in arm.checks.items() if check.looked and not is_policy(name)]
    failing = sum(check.failed > check.documented for check in checks)
    return arm.who | {"checks": f"{failing}/{len(checks)}" if checks else ""} | values_of(arm)


def _sections(columns: Sequence[Column]) -> list[Section]:
    """Cases, shares, walks and times, as rows of cells."""

    def rows(names: Iterable[str]) -> list[tuple[str, list[str]]]:
        return [
            (METRICS[name].title, [number(column[name], METRICS[name].unit) for column in columns])
            for name in names
        ]

    cases = rows([*ALWAYS, *(name for name in IF_ANY if any(column[name] for column in columns))])
    if any(column["checks"] for column in columns):
        cases.append(("Checks failing", [column["checks"] or "-" for column in columns]))
    times = [
        (f"{name.upper()} {level}", [percentile(column, name, level) for column in columns])
        for name, level in TIMES
    ]
    return [cases, rows(SHARES), [*times, *rows(["peak_rss"])]]


def to_json(summary: RunSummary) -> dict[str, Any]:
    """Returns folder, rows by status, every metric and check of every backend, the worst failure and the next
    commands."""
    return {
        "run": summary.info.run,
        "folder": summary.folder,
        "complete": summary.rows is not None,
        "sample": sample_of(summary.info),
        "knows_one_end": one_end_lines(summary.info),
        "shard": summary.info.shard,
        "rows": summary.rows,
        "statuses": summary.statuses,
        "backends": [
            {
                "backend": arm.backend,
                "version": arm.version,
                "options": arm.options,
                "vocabulary": arm.vocabulary,
                "counts": arm.counts(),
                "metrics": values_of(arm),
                "checks": arm.checks,
            }
            for arm in summary.arms
        ],
        "answer": {
            "sentence": summary.answer.sentence,
            "best": summary.answer.best.name if summary.answer.best else None,
            "sure": summary.answer.sure,
            "certainty": summary.answer.certainty,
        }
        if summary.answer
        else None,
        "worst": summary.worst,
        "delayed": summary.delayed,
        "slow_compiles": summary.compiling,
        "next": next_commands(summary),
    }
