"""What keeps arms of several runs from being ranked against each other: other checks, other cases, another
machine. Arms of one run have all of these in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from harness.outcomes.answer.backends import Checked
from harness.report.page.inputs import Subject
from harness.report.page.lines import Line, RunSeen
from harness.report.page.matrix_cells import is_candidate

MACHINE = ("cpu_model_name", "cpus_usable")
"""What tells of two machines that times of one say nothing of the other: not its load or its temperature."""


def why_not_tried_alike(subjects: Sequence[Subject]) -> list[str]:
    """Returns, for each subject, why its outcomes are not ranked: it was tried in another way than most.
    Empty for one that may be ranked."""
    cases: dict[int, set[Hashable]] = {}
    for line in _lines(subjects):
        cases.setdefault(line.run.place, set()).update(line.arm.cases)

    def tried_on(run: RunSeen) -> Hashable:
        keys = cases[run.place]
        suites = {key: about.get("sha256", "") for key, about in run.info.suites.items()}
        return frozenset(keys), frozenset(suites.items())

    checks = _unlike(subjects, lambda run: Checked.of(run.info), "tried with other checks")
    return [
        check or case
        for check, case in zip(checks, _unlike(subjects, tried_on, "tried on other cases"), strict=True)
    ]


def why_not_timed_alike(subjects: Sequence[Subject]) -> list[str]:
    """Returns, for each subject, why times of its walks are not ranked: they are of another machine than
    most. Empty for one that may be ranked."""
    return _unlike(
        subjects, lambda run: tuple(str(run.info.machine.get(name)) for name in MACHINE), "on another machine"
    )


def _lines(subjects: Sequence[Subject]) -> list[Line]:
    return [subject.line for subject in subjects if subject.line is not None and is_candidate(subject)]


def _unlike(subjects: Sequence[Subject], kind: Callable[[RunSeen], Hashable], why: str) -> list[str]:
    """Returns `why` for each subject whose run is of another kind than that of the most arms."""
    lines = _lines(subjects)
    kinds = {place: kind(run) for place, run in {line.run.place: line.run for line in lines}.items()}
    counted = Counter(kinds[line.run.place] for line in lines)
    usual = max(counted, key=counted.__getitem__, default=None)
    return [
        why
        if subject.line is not None and is_candidate(subject) and kinds[subject.line.run.place] != usual
        else ""
        for subject in subjects
    ]
