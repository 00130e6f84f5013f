"""Finds the failure that a user asks for in a run's files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from harness.backend.environments.build import python_of
from harness.backend.registry import parse_spec
from harness.cases.case import Case, Instance
from harness.errors import BadInput, did_you_mean
from harness.outcomes.outcome import outcome
from harness.rows.row import DECLINED, OURS, Finding, Row, verdict
from harness.rows.store import read_cases, read_info, read_rows


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


def find_failure(
    folder: Path,
    wanted: str,
    backend: str,
    vocabulary: str | None,
    number: int | None,
    check: str | None = None,
) -> Failure:
    """Returns the first failing row of that case (given by name or id) and backend. Raises BadInput.

    With a number, the row of that instance, failing or not; with a check, the first row with a finding of it.
    """
    info = read_info(folder)
    suites_and_cases = [(suite, case) for suite, _, case in read_cases(folder)]
    ids = {(suite, case.id) for suite, case in suites_and_cases if wanted in (case.id, case.name)}
    if not ids:
        raise BadInput(
            f"{folder} has no case "
            f'"{wanted[:100]}"{did_you_mean(wanted, [case.name for _, case in suites_and_cases])}'
        )
    spec = parse_spec(backend)
    options = ":".join(f"{name}={value}" for name, value in spec.options)
    matching = {
        (arm.backend, arm.version, arm.options)
        for arm in info.arms
        if arm.backend == spec.name and spec.version in (None, arm.version) and options in ("", arm.options)
    }
    if not matching:
        raise BadInput(
            f"{folder} has no backend "
            f'"{backend}"{did_you_mean(spec.name, [arm.backend for arm in info.arms])}'
        )
    rows = [
        row
        for row in read_rows(folder)
        if (row.suite, row.case_id) in ids
        and (row.backend, row.backend_version, row.options) in matching
        and vocabulary in (None, row.vocabulary)
    ]
    if not rows:
        raise BadInput(
            f"{folder} has no row of {backend} for that case{f' with {vocabulary}' if vocabulary else ''}; "
            "the run may be incomplete"
        )
    check = check and check.replace(" ", "_")  # the report writes it with blanks
    row = _chosen(rows, number, check)
    (case,) = (case for suite, case in suites_and_cases if (suite, case.id) == (row.suite, row.case_id))
    finding = _finding(row, check)
    along = row.instance if row.instance is not None else finding.instance if finding is not None else None
    if along is None and case.instances:
        along = 0
    if along is not None and not 0 <= along < len(case.instances):
        raise BadInput(
            f"{folder}: a row of that case, or its finding, is of instance {along}, and the case has "
            f"{len(case.instances)}; the file was changed or damaged"
        )
    instance = case.instances[along] if along is not None else Instance("", b"", None)
    whose = (row.backend, row.backend_version, row.options)
    (its_arm,) = (arm for arm in info.arms if (arm.backend, arm.version, arm.options) == whose)
    return Failure(row, case, instance, finding, info.timeout_s, info.memory_bytes, python_of(its_arm))


def _chosen(rows: list[Row], number: int | None, check: str | None) -> Row:
    if number is not None:
        chosen = [row for row in rows if row.instance == number]
        if not chosen:
            raise BadInput(
                f"that case has instances 0 to {max(row.instance or 0 for row in rows)}; there is no {number}"
            )
    else:
        chosen = rows
    if check is not None:
        with_check = [row for row in chosen if any(finding.check == check for finding in row.findings)]
        if not with_check:
            names = sorted({finding.check for row in chosen for finding in row.findings})
            raise BadInput(
                f'that case has no finding "{check}"{did_you_mean(check, names) or "; it has none at all"}'
            )
        return with_check[0]
    if number is not None:
        return chosen[0]
    failed = [row for row in rows if outcome(row).fails] or [row for row in rows if row.status in DECLINED]
    noted = [row for row in rows if row.findings]
    return (failed or noted or [row for row in rows if row.status in OURS] or rows)[0]


def _verdict_fails(row: Row) -> bool:
    return verdict(row.status, row.valid, row.accepted) not in ("pass", "unjudged")


def _finding(row: Row, check: str | None) -> Finding | None:
    """Returns the row's finding that is the failure, if none is asked for by name and the verdict is not:
    rather one that is not documented."""
    if check is not None:
        return next(finding for finding in row.findings if finding.check == check)
    if _verdict_fails(row) or not row.findings:
        return None
    return next((finding for finding in row.findings if not finding.documented), row.findings[0])
