"""A run's `cases.jsonl`, held against the plan that the run's first line tells of."""

from __future__ import annotations

import filecmp
import hashlib
import os
from dataclasses import replace
from pathlib import Path

from harness.cases.case_line import CASES_FILE, LONGEST_CASE, case_from_line, case_to_line
from harness.errors import BadInput
from harness.shape import bounded_lines


def digested(line: bytes) -> tuple[str, str, bytes]:
    """Returns the suite and the case's id of a line of `cases.jsonl`, and the line as the digest in the run's
    first line takes it: without the other readings of its instances, which depend on the backends. Raises
    BadInput."""
    suite, version, case = case_from_line(line)
    instances = tuple(replace(instance, contrary=()) for instance in case.instances)
    return suite, case.id, case_to_line(suite, version, replace(case, instances=instances))


def put_back(planned: Path, folder: Path) -> bool:
    """Moves the plan of a run that goes on into the place of its `cases.jsonl`, unless it stands there;
    returns whether something else did, or nothing.

    What was damaged or lost is whole again then. Raises BadInput where a case stands there that was not
    planned: the rows that are there may be of it.
    """
    path = folder / CASES_FILE
    try:
        if path.exists():
            if filecmp.cmp(planned, path, shallow=False):
                return False
            _refuse_other_cases(planned, path)
        os.replace(planned, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    return True


def _refuse_other_cases(planned: Path, path: Path) -> None:
    with open(planned, "rb") as file:
        known = {None, *map(_digest, file)}
    with open(path, "rb") as file:
        for number, line in enumerate(bounded_lines(file, path, LONGEST_CASE), 1):
            if _digest(line) not in known:
                raise BadInput(
                    f"{path}:{number}: another case than its run was planned with; the file was changed, and "
                    "the rows there may be of it: give another --out"
                )


def _digest(line: bytes) -> bytes | None:
    """Returns the digest of a case; None of a line that is none, by which nothing was walked."""
    try:
        return hashlib.sha256(digested(line)[2]).digest()
    except BadInput:
        return None
