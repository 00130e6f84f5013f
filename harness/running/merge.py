"""Shards, or other runs of one plan, put together: the run that one machine would have made, its rows in the
plan's order."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.cases.case_line import CASES_FILE
from harness.cases.plan import rows_owed
from harness.errors import BadInput, damaged
from harness.rows.folder import ROWS, SAMPLES, locked, make_writable, new_run_id, now
from harness.rows.machine import all_machines
from harness.rows.resume import StoredCase, stored
from harness.rows.row import Row, RunInfo, makes_checks, row_from_json, untimed
from harness.rows.store import has_begun, read_info, refuse_published
from harness.rows.writer import Writer
from harness.running.experiment import write_experiment_of_whole
from harness.running.leftovers import OF_A_RUN, refuse_strangers
from harness.running.planned_cases import digested
from harness.running.same_run import checks_apart, checks_of, first_difference
from harness.whole_files import drafted

Key = tuple[str, ...]


@dataclass(frozen=True)
class Merged:
    """Where the whole lies, its rows by status, and what it lacks."""

    folder: Path
    runs: int
    statuses: dict[str, int]
    missing: int
    """The number of cases of one backend and vocabulary that no run holds; 0 if the whole is complete."""
    missing_shards: tuple[str, ...]
    unfinished: tuple[Path, ...]
    """The runs without an end."""


@dataclass(frozen=True)
class Part:
    """One of the runs."""

    folder: Path
    is_complete: bool
    stored: dict[Key, StoredCase]


def merge(out: Path, folders: Sequence[Path], argv: Sequence[str]) -> Merged:
    """Write the whole into `out`.

    Raises BadInput, before anything is written, for runs that do not belong together.

    A case that several runs hold must have come out the same in all of them; the first one's rows are taken.
    """
    for folder in folders:
        refuse_published(folder, "merged", "merge the runs themselves")
    _refuse_occupied(out)
    first, *others = infos = [read_info(folder) for folder in folders]
    for folder, info in zip(folders[1:], others, strict=True):
        _belongs(first, info, folders[0], folder)
    _same_cases(folders, first)
    owed = rows_owed(folders[0] / CASES_FILE, makes_checks(first.effort, first.decode))
    wanted = [
        (arm.backend, arm.version, arm.options, vocabulary, *case)
        for vocabulary in first.vocabularies
        for arm in first.arms
        for case in owed
    ]
    if len(set(wanted)) < len(wanted):
        raise damaged(f"{folders[0]}/rows.jsonl names one backend twice")
    parts = [_part(folder, owed, set(wanted)) for folder in folders]
    _same_checks(folders)
    for place, part in enumerate(parts):
        _agree(part, parts[:place])
    make_writable(out)
    with locked(out):
        _refuse_occupied(out)  # another process may have written there since
        with drafted(out / CASES_FILE) as draft:
            shutil.copyfile(folders[0] / CASES_FILE, draft)
        missing = 0
        with Writer(out, _header(infos, argv)) as writer:
            for key in wanted:
                holder = next((part for part in parts if key in part.stored), None)
                if holder is None:
                    missing += 1
                else:
                    writer.append(list(_walks(holder, holder.stored[key])))
            if not missing:
                writer.finish(now())
        write_experiment_of_whole(folders[0], out)
    unfinished = tuple(part.folder for part in parts if not part.is_complete)
    return Merged(
        out, len(parts), writer.statuses, missing, _missing_shards(infos) if missing else (), unfinished
    )


def _refuse_occupied(out: Path) -> None:
    """Raises BadInput if the whole would be written over something in the folder."""
    otherwise = "give another folder for the whole"
    if has_begun(out):
        raise BadInput(f"{out} holds a run already; {otherwise}")
    refuse_strangers(out, OF_A_RUN, otherwise)


def _belongs(first: RunInfo, other: RunInfo, there: Path, here: Path) -> None:
    """Raise BadInput unless they are runs of one plan, by one harness, of the same versions."""
    if different := first_difference(first, other, ("shard",)):
        what = "with the same adapters" if different.is_of_code else "with one command"
        raise BadInput(
            f"{here} does not belong to {there} (there {different.was}; here {different.is_now}); merge what "
            f"one GrammarBench made {what}"
        )


def _same_checks(folders: Sequence[Path]) -> None:
    """Raise BadInput unless all made the same checks: a version of GrammarBench may have others and the same
    number."""
    first, *others = folders
    there = checks_of(first)
    for folder in others:
        here = checks_of(folder)
        if there is not None and here is not None and (apart := checks_apart(there, here)):
            raise BadInput(f"{folder} does not belong to {first} ({apart}); merge what one GrammarBench made")
        there = here if there is None else there


def _same_cases(folders: Sequence[Path], info: RunInfo) -> None:
    """Raise BadInput unless the plans are one and the same, and the one that the header tells of."""
    first, *others = folders
    whole = _digest_of_cases(first)
    for folder in others:
        if _digest_of_cases(folder) != whole:
            raise BadInput(
                f"{folder}/cases.jsonl holds other cases than {first}/cases.jsonl; merge what one command "
                "made"
            )
    digests: dict[str, Any] = {}
    with open(first / CASES_FILE, "rb") as file:
        for line in file:
            suite, _, text = _digested(line, first)
            digests.setdefault(suite, hashlib.sha256()).update(text)
    stated = {name: suite["sha256"] for name, suite in info.suites.items() if suite["cases"]}
    if stated != {name: digest.hexdigest() for name, digest in digests.items()}:
        raise damaged(f"{first}/cases.jsonl is not what its run was planned with")


def _digest_of_cases(folder: Path) -> bytes:
    try:
        with open(folder / CASES_FILE, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise BadInput(
            f"{folder}/cases.jsonl: cannot be read ({error.strerror}); take the whole folder of each run "
            "along"
        ) from error


def _digested(line: bytes, folder: Path) -> tuple[str, str, bytes]:
    try:
        return digested(line)
    except BadInput as error:
        raise BadInput(f"{folder}/{error}") from error


def _part(folder: Path, owed: dict[tuple[str, str], int], wanted: set[Key]) -> Part:
    samples = folder / SAMPLES
    if not samples.is_file():
        raise BadInput(f"{folder}: no samples.i64 here; take the whole folder of each run along")
    with locked(folder):
        there = stored(folder, owed)
    by_identity: dict[Key, StoredCase] = {}
    for case in there.cases:
        if case.identity not in wanted:
            raise BadInput(
                f"{folder}/rows.jsonl: rows of {' '.join(filter(None, case.identity))}, which its "
                "run did not plan"
            )
        if 8 * case.samples > samples.stat().st_size:
            raise damaged(f"{samples}: shorter than the rows say")
        if case.identity in by_identity or len(case.statuses) != owed[case.identity[-2], case.identity[-1]]:
            raise BadInput(
                f"{folder}/rows.jsonl: too many or too few rows of {' '.join(filter(None, case.identity))}"
            )
        by_identity[case.identity] = case
    return Part(folder, there.is_complete, by_identity)


def _agree(part: Part, earlier: Sequence[Part]) -> None:
    """Raise BadInput unless the rows that an earlier run holds too came out the same."""
    for other in earlier:
        for key in part.stored.keys() & other.stored.keys():
            mine, theirs = (
                [untimed(row) for row, _ in _walks(one, one.stored[key])] for one in (part, other)
            )
            if mine != theirs:
                who = " ".join(filter(None, key))
                raise BadInput(
                    f"{part.folder} and {other.folder} both walked {who}, and it came out "
                    "differently; merge only one of them"
                )


def _walks(part: Part, case: StoredCase) -> Iterator[tuple[Row, bytes]]:
    """Yields the rows of one case, each with its samples."""
    with open(part.folder / ROWS, "rb") as rows, open(part.folder / SAMPLES, "rb") as samples:
        rows.seek(case.begin)
        for line in rows.read(case.end - case.begin).rstrip(b"\n").split(b"\n"):
            row = row_from_json(json.loads(line))
            values = b""
            if row.samples is not None:
                samples.seek(8 * row.samples[0])
                values = samples.read(8 * row.samples[1])
            yield replace(row, samples=None), values


def _header(infos: Sequence[RunInfo], argv: Sequence[str]) -> RunInfo:
    """Returns the first line of the whole: what the parts share, and of the rest what each of them says."""
    return replace(
        infos[0],
        run=new_run_id(),
        started=min(info.started for info in infos),
        argv=tuple(argv),
        jobs=max(info.jobs for info in infos),
        executor=max(info.executor for info in infos),
        shard="",
        machine=all_machines([info.machine for info in infos]),
    )


def _missing_shards(infos: Sequence[RunInfo]) -> tuple[str, ...]:
    """Returns the shards that are missing where all are of one number."""
    there = {info.shard for info in infos}
    numbers = {shard.partition("/")[2] for shard in there}
    if len(numbers) != 1 or "" in numbers:
        return ()
    (of,) = numbers
    return tuple(
        name
        for name in (f"{number}/{of}" for number in range(1, min(int(of), 10_000) + 1))
        if name not in there
    )
