"""Files of others that stand where we are about to write: nothing that a user made is written over."""

from __future__ import annotations

import os
import re
import secrets
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from harness.cases.case_line import CASES_FILE, cases_in
from harness.errors import BadInput
from harness.rows.folder import RECORDS, ROWS, SAMPLES
from harness.rows.sessions import FILE as SESSIONS
from harness.rows.store import EXPERIMENT
from harness.running.experiment import HEAD
from harness.whole_files import IN_PLACE

OF_A_RUN = (CASES_FILE, EXPERIMENT, ROWS, SAMPLES, SESSIONS)
"""The names of the files that a run writes into its folder."""

BEGINNING = b'{"kind":"run",'
"""The beginning of a run's first line."""

DRAFT_BYTES = 4
DRAFT = re.compile(rf"cases\.[0-9a-f]{{{2 * DRAFT_BYTES}}}\.new")
"""The name of a plan while it is written."""
CASE_BEGINNING = b'{"suite":'
"""The beginning of each line of a plan."""

HEAD_BYTES = 4096
"""How much of a file is looked at to tell whether we wrote it."""


def new_draft(folder: Path) -> Path:
    """Returns the path at which a plan is drafted in a folder that is ours, and deletes the drafts of runs
    that were killed while they planned."""
    for path in folder.glob("cases.*.new"):
        if DRAFT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(len(CASE_BEGINNING))
            if CASE_BEGINNING.startswith(head):
                path.unlink()
    return folder / f"cases.{secrets.token_hex(DRAFT_BYTES)}.new"


def refuse_strangers(
    folder: Path, names: Sequence[str], otherwise: str = "give another --out, or move it away"
) -> None:
    """Raises BadInput, which says what to do otherwise, if a file of one of these names stands in a folder in
    which nothing of ours has begun, and is none that we left behind before our first line was written."""
    for path in (folder / name for name in names):
        if os.path.lexists(path) and not _is_leftover(path):
            raise BadInput(f"{path} is there, is no part of a run, and would be overwritten; {otherwise}")


def refuse_to_replace(path: Path, ours: bytes, option: str, kind: str = "file of GrammarBench") -> None:
    """Raises BadInput, which says to give another `option`, if the file to write has the name of a file of a
    run, or is there, is not empty, and does not begin as ours of that kind do: `ours` is a pattern."""
    if path.name in (*OF_A_RUN, *RECORDS):
        raise BadInput(f"{path}: a run's own file has this name; give another {option}")
    if not path.is_file() or path.parts[:2] in IN_PLACE:  # a stream, redirected to a file, is written to
        return
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); give another {option}") from error
    if head and not re.match(ours, head):
        raise BadInput(
            f"{path} is there, is no {kind}, and would be overwritten; give another {option}, or move it away"
        )


def _is_leftover(path: Path) -> bool:
    """Could a run have left this file behind that was ended before its first line was whole?"""
    try:
        if path.is_symlink() or not path.is_file():  # what a link leads to is not ours
            return False
        if path.name == CASES_FILE:
            deque(cases_in(path), maxlen=0)
            return True
        with path.open("rb") as file:
            if path.name == EXPERIMENT and not path.with_name(CASES_FILE).exists():
                return False  # a copy that a user made: a run writes the cases first
            begins = {EXPERIMENT: HEAD.encode(), ROWS: BEGINNING}.get(path.name, b"")
            content = file.read(len(begins) or 1)
            # The file may have been cut off amid its beginning; one that begins in no such way must be empty,
            # or stand beside the torn first line of a run.
            return begins.startswith(content) or (not begins and _has_torn_line(path.with_name(ROWS)))
    except (OSError, BadInput):
        return False


def _has_torn_line(rows: Path) -> bool:
    """Does the file hold a part of a run's first line? Raises OSError."""
    with rows.open("rb") as file:
        content = file.read(len(BEGINNING))
    return bool(content) and BEGINNING.startswith(content)
