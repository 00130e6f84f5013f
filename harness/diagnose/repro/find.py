"""Finds the failure that a user asks for in a run's files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.backend.arm import Arm, arm, version_key
from harness.backend.environments.build import python_of
from harness.backend.registry import parse_spec
from harness.backend.vocabulary.load import recorded_name
from harness.cases.case import Case, Instance
from harness.errors import BadInput, damaged, did_you_mean
from harness.outcomes.outcome import Fault, faults, telling
from harness.rows.row import DECLINED, OURS, Finding, Row, RunInfo, verdict
from harness.rows.store import read_cases, read_info, read_rows
from harness.text import listed


@dataclass(frozen=True)
class Failure:
    """A row that failed, its case, and the limits under which it is shown again."""

    row: Row
    case: Case
    instance: Instance
    finding: Finding | None
    """The finding that is the failure; None if it is the row's verdict."""
    timeout_s: float
    memory_bytes: int
    python: str = sys.executable
    """The interpreter of the environment that holds the backend at its version."""

    @property
    def number(self) -> int | None:
        """Returns the index of the instance; None where the case has none."""
        return _along(self.row, self.case, self.finding)

    @property
    def is_of_instance(self) -> bool:
        """Was it seen along the instance? A check may have made a walk of its own."""
        finding = self.finding
        is_along = finding is None or finding.instance is not None or not finding.walk
        return bool(self.case.instances) and (is_along or self.row.instance is not None)


def find_failure(
    folder: Path,
    wanted: str,
    backend: str,
    vocabulary: str | None,
    number: int | None,
    check: str | None = None,
    *,
    say: Callable[[str], None],
) -> Failure:
    """Returns the worst failure of that case (given by name, id or `SUITE/ID`) and backend, of the first
    vocabulary with which it fails, the first of those that are equally bad: what an answer tells of the case.
    Raises BadInput.

    With a number, of the walks of that instance and of what checks found along it: the worst that fails, else
    any. With a check, the worst finding of it, rather one that is not documented. `say` tells of an
    environment that is built again.
    """
    info = read_info(folder)
    suites_and_cases = [(suite, case) for suite, _, case in read_cases(folder)]
    ids = {
        (suite, case.id)
        for suite, case in suites_and_cases
        if wanted in (case.id, case.name, f"{suite}/{case.id}")
    }
    if not ids:
        raise BadInput(
            f"{folder} has no case "
            f'"{wanted[:100]}"{did_you_mean(wanted, [case.name for _, case in suites_and_cases])}'
        )
    rows = _rows_of(folder, info, ids, backend, vocabulary)
    check = check and check.replace(" ", "_")  # the report writes it with blanks
    row, finding = _chosen(rows, number, check)
    (case,) = (case for suite, case in suites_and_cases if (suite, case.id) == (row.suite, row.case_id))
    along = _along(row, case, finding)
    if along is not None and not 0 <= along < len(case.instances):
        raise damaged(
            f"{folder}: a row of that case, or its finding, is of instance {along}, and the case has "
            f"{len(case.instances)}"
        )
    instance = case.instances[along] if along is not None else Instance("", b"", None)
    its_arm = next(one for one in info.arms if version_key(one) == row.version_key)
    return Failure(row, case, instance, finding, info.timeout_s, info.memory_bytes, python_of(its_arm, say))


def _along(row: Row, case: Case, finding: Finding | None) -> int | None:
    """Returns the index of the instance along which it was seen, the first where neither row nor finding says
    which; None where the case has none."""
    if row.instance is not None:
        return row.instance
    if finding is not None and finding.instance is not None:
        return finding.instance
    return 0 if case.instances else None


def _rows_of(
    folder: Path, info: RunInfo, ids: Collection[tuple[str, str]], backend: str, vocabulary: str | None
) -> list[Row]:
    """Returns the rows of those cases, by suite and id, on that backend. Raises BadInput if there is none."""
    arms = _arms_named(folder, info, backend)
    wanted = vocabulary and _vocabulary_named(folder, info, vocabulary)
    matching = {version_key(one) for one in arms}
    rows = [
        row
        for row in read_rows(folder)
        if (row.suite, row.case_id) in ids
        and row.version_key in matching
        and wanted in (None, row.vocabulary)
    ]
    if not rows:
        raise BadInput(
            f"{folder} has no row of {backend} for that case{f' with {vocabulary}' if vocabulary else ''}; "
            "the run may be incomplete"
        )
    return rows


def _vocabulary_named(folder: Path, info: RunInfo, name: str) -> str:
    """Returns the run's name of the vocabulary that the user names as `run` takes it. Raises BadInput if the
    run has none."""
    with suppress(BadInput):
        name = name if name in info.vocabularies else recorded_name(name)
    if name not in info.vocabularies:
        known = [*info.vocabularies]
        raise BadInput(f'{folder} has no vocabulary "{name}"{did_you_mean(name, known)}')
    return name


def _arms_named(folder: Path, info: RunInfo, backend: str) -> list[Arm]:
    """Returns the arms of the run that the user names: those with these options, at any version if none is
    said. A name without options also stands for an arm with some, where the run has no other of that name.

    Raises BadInput where it has none, or several that the name may mean.
    """
    spec = parse_spec(backend)
    named = [one for one in info.arms if one.backend == spec.name and spec.version in (None, one.version)]
    meant = [one for one in named if one.options == spec.options_text] or ([] if spec.options else named)
    if not meant:
        known = [arm(one) for one in named or info.arms]
        raise BadInput(f'{folder} has no backend "{backend}"{did_you_mean(backend, known)}')
    if len({one.options for one in meant}) > 1:
        names = listed(dict.fromkeys(map(arm, meant)))
        raise BadInput(f'{folder} has {names}, and "{backend}" may be any of them; name one with its options')
    return meant


@dataclass(frozen=True)
class _Seen:
    """A row, and those of its findings that are asked for."""

    row: Row
    findings: tuple[Finding, ...]
    is_whole: bool
    """Is the row itself asked for, and not only findings of it?"""

    def faults(self) -> list[Fault]:
        """Returns the faults that are asked for and cost the case, in the order of the row."""
        return [
            fault
            for fault in faults(self.row)
            if fault.fails and (self.is_whole or fault.finding in self.findings)
        ]


def _chosen(rows: list[Row], number: int | None, check: str | None) -> tuple[Row, Finding | None]:
    """Returns the row to show, and the finding of it that is the failure; None if its verdict is. Raises
    BadInput."""
    seen = [_Seen(row, row.findings, True) for row in rows]
    if number is not None:
        seen = _of_instance(rows, number)
    if check is not None:
        return _with_check(seen, number, check)
    failed = [(each.row, fault) for each in seen for fault in each.faults()]
    if failed:
        first = failed[0][0].vocabulary
        here = [one for one in failed if one[0].vocabulary == first]
        row, fault = min(here, key=lambda one: one[1].order)
        return row, fault.finding
    declined = [each for each in seen if each.row.status in DECLINED]
    noted = [each for each in seen if each.findings and (number is None or each.is_whole)]
    chosen = (declined or noted or [each for each in seen if each.row.status in OURS] or seen)[0]
    return chosen.row, _noted(chosen)


def _of_instance(rows: list[Row], number: int) -> list[_Seen]:
    """Returns the walks of the instance, and what the checks of its whole case found along it."""
    along = {row.instance for row in rows} | {finding.instance for row in rows for finding in row.findings}
    known = [instance for instance in along if instance is not None]
    if not known:
        raise BadInput(f"that case has no instances, so there is no {number}; leave --instance out")
    if number not in known:
        raise BadInput(f"that case has instances 0 to {max(known)}; there is no {number}")
    whole = [_Seen(row, row.findings, True) if row.instance == number else _part(row, number) for row in rows]
    return [each for each in whole if each.is_whole or each.findings]


def _part(row: Row, number: int) -> _Seen:
    is_of_case = row.instance is None
    findings = tuple(finding for finding in row.findings if is_of_case and finding.instance == number)
    return _Seen(row, findings, False)


def _with_check(seen: list[_Seen], number: int | None, check: str) -> tuple[Row, Finding]:
    """Returns the worst finding of the check that fails the case, or else the first one of it."""
    found = [(each.row, finding) for each in seen for finding in each.findings]
    of_check = [(row, finding) for row, finding in found if finding.check == check]
    if not of_check:
        names = sorted({finding.check for _, finding in found})
        which = "that case" if number is None else f"instance {number} of that case"
        raise BadInput(
            f'{which} has no finding "{check}"{did_you_mean(check, names) or "; it has none at all"}'
        )
    return min(of_check, key=lambda pair: telling(pair[1]))


def _noted(seen: _Seen) -> Finding | None:
    """Returns what there is to show of a row that fails nothing: None where its verdict is wrong, as the
    backend documents, else the first finding."""
    judged = verdict(seen.row.status, seen.row.valid, seen.row.accepted)
    if seen.is_whole and judged not in ("pass", "unjudged"):
        return None
    return min(seen.findings, key=telling, default=None)
