"""The file of expected outcomes: how it is written and read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from harness.backend.arm import pinned
from harness.backend.environments.releases import same_or_newest
from harness.errors import BadInput
from harness.outcomes.expected.arm_faults import (
    TIMEOUT,
    ArmFaults,
    Faults,
    RecordedArm,
    faults_of_run,
)
from harness.outcomes.settings import differing, digests
from harness.rows.row import RunInfo
from harness.rows.sample import sample
from harness.rows.store import read_info
from harness.running.experiment import moved_suite, suites_of_run
from harness.running.leftovers import refuse_to_replace
from harness.shape import json_line, read_bytes, shaped
from harness.text import counted
from harness.whole_files import refuse_unwritable, write_files

FORMAT = 4
"""It is raised by a change after which records of before would fail a gate, or let it pass, wrongly."""

OF_SUITE = ("cases", "cases_in_all", "sha256")
"""What a record keeps of each suite: how many cases were walked, how many it held, and their digest."""


OURS = rb'\s*\{\s*"(format": ?[0-9]|arms": ?\[)'
"""How a record begins, also one of an earlier format, and one whose keys somebody sorted."""


@dataclass(frozen=True)
class Recorded:
    """The expected outcomes of a file, and the settings of the run that they are of."""

    arms: ArmFaults
    effort: int
    seed: int
    decode: bool = False
    profile: str = "gate"
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each suite: `cases` walked, `cases_in_all`, how many the suite held, and the digest of those
    walked, which records from before it was kept lack."""
    asked: tuple[str, ...] = ()
    """The suites as they are named in the folder that we are in."""
    timeout_s: float | None = None
    memory_bytes: int | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    """The digest of each vocabulary."""
    checks: frozenset[str] | None = None
    """The names of the checks that were made in every case; None where the record does not say."""

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """Returns the vocabularies on which the recorded arms walked, each once."""
        return tuple(dict.fromkeys(arm.vocabulary for arm in self.arms))

    @property
    def sample(self) -> str:
        """Returns the sample of its suites that the record is of; empty if it is of whole suites."""
        return sample(self.suites)

    @property
    def backends(self) -> str:
        """Returns the recorded backends with their options, as `--backends` takes them; without versions, for
        it is another version that is held against the record."""
        return ",".join(dict.fromkeys(pinned(arm, "") for arm in self.arms))

    def different(self, effort: int, decode: bool, seed: int, vocabularies: Iterable[str]) -> str:
        """Says in what a run with these settings differs from the record, so that nothing can be compared;
        empty if in nothing."""
        settings = [
            ("effort", self.effort, effort),
            ("decode", self.decode, decode),
            ("seed", self.seed, seed),
        ]
        parts = differing("recorded", "walked", settings)
        walked = list(vocabularies)
        if self.vocabularies and len(self.unrecorded(walked)) == len(walked):
            parts.append(f"recorded on {', '.join(self.vocabularies)}, walked on {', '.join(walked)}")
        return "; ".join(parts)

    def unrecorded(self, vocabularies: Iterable[str]) -> list[str]:
        """Returns those of the vocabularies on which nothing is recorded, so that nothing could be proven
        there; none where the record has no vocabulary."""
        return [name for name in vocabularies if self.vocabularies and name not in self.vocabularies]


def is_record(path: Path) -> bool:
    """Is this the path of a file of expected outcomes, and not of a run's folder?

    A missing file is one if its name ends in `.json`.
    """
    return not path.is_dir() and (path.exists() or path.suffix == ".json")


def recorded_faults(
    arm: RecordedArm, recorded: ArmFaults
) -> tuple[Mapping[str, Faults], RecordedArm] | tuple[None, None]:
    """Returns what is recorded of an arm, and of which: of itself, or of its newest version that is recorded.

    None and None if neither is there.
    """
    key = (arm.backend, arm.options, arm.vocabulary)
    others = (other for other in recorded if (other.backend, other.options, other.vocabulary) == key)
    found = same_or_newest(arm.version, others)
    return (None, None) if found is None else (recorded[found], found)


def refuse_some_checks(folder: Path, info: RunInfo) -> None:
    """Raises BadInput for a run that made only some checks."""
    if info.checks:
        raise BadInput(f"{folder}: only some checks were made, and a record is of all; walk without --checks")


def refuse_no_record(path: Path) -> None:
    """Raises BadInput if a record cannot be written to this path, or would overwrite another kind of file."""
    refuse_unwritable(path, "--record")
    refuse_to_replace(path, OURS, "--record", "record of outcomes")


@dataclass(frozen=True)
class Written:
    """What a record that was written holds."""

    outcomes: int
    """How many outcomes; those that we did not measure are not among them."""
    late: int
    """How many of them missed a deadline."""


def write_record(folder: Path, path: Path) -> Written:
    """Writes what the cases of a run came to; returns what the record holds.

    Raises BadInput for an incomplete run, and where the path holds something else than a record.
    """
    refuse_no_record(path)
    now = faults_of_run(folder)
    info = read_info(folder)
    if info.shard:
        raise BadInput(
            f"{folder}: shard {info.shard} of a run makes no record; put the shards together "
            "first (grammarbench merge)"
        )
    refuse_some_checks(folder, info)
    arms = {
        arm: {
            case: " ".join(sorted(faults))
            for case, faults in sorted(cases.items())
            if (arm, case) not in now.unmeasured
        }
        for arm, cases in sorted(now.arms.items())
    }
    value = {
        "format": FORMAT,
        "profile": info.profile,
        "effort": info.effort,
        "decode": info.decode,
        "seed": info.seed,
        "timeout_s": info.timeout_s,
        "memory_bytes": info.memory_bytes,
        "asked": suites_of_run(folder, path.parent),
        "suites": {
            name: {key: suite[key] for key in OF_SUITE if key in suite} for name, suite in info.suites.items()
        },
        "vocabularies": {
            name: {"sha256": digest, **_way_to(name, path.parent)}
            for name, digest in digests(info.vocabularies).items()
        },
        **({} if now.made.always is None else {"checks": sorted(now.made.always)}),
        "arms": [{**vars(arm), "cases": cases} for arm, cases in arms.items()],
    }
    content = json.dumps(value, indent=0, ensure_ascii=True) + "\n"
    write_files(path.parent, {path.name: content}, "--record")
    outcomes = [faults.split() for cases in arms.values() for faults in cases.values()]
    return Written(len(outcomes), sum(TIMEOUT in faults for faults in outcomes))


def late_in_words(written: Written) -> str:
    """Returns a sentence about the outcomes of a record that missed a deadline, because a gate sees nothing
    of what is new in these cases; empty where none did."""
    if not written.late:
        return ""
    them = "this case" if written.late == 1 else "these cases"
    return (
        f"{written.late:,} of the {counted(written.outcomes, 'outcome')} missed a deadline: what goes wrong "
        f"later in {them} fails nothing; record on a quiet machine, or with a longer --timeout"
    )


def _way_to(vocabulary: str, folder: Path) -> dict[str, str]:
    """Returns, of a tokenizer in a file or a folder, its path relative to that folder: it is somewhere else
    in another checkout. Empty for others."""
    source = vocabulary.partition(":")[2]
    if not Path(source).is_absolute():
        return {}
    try:
        return {"path": Path(os.path.relpath(source, folder)).as_posix()}
    except ValueError:  # on another drive
        return {}


def _rebased(record: _Record, folder: Path) -> dict[str, str]:
    """Returns where the record's tokenizers in files and folders lie beside it, by their recorded names;
    those that do not lie there stay as they are named."""
    found = {}
    for name, stored in record["vocabularies"].items():
        kind, _, source = name.partition(":")
        path = os.path.abspath(folder / stored.get("path", ""))
        if "path" in stored and os.path.abspath(source) != path and os.path.exists(path):
            found[name] = f"{kind}:{path}"
    return found


def read_record(path: Path) -> Recorded:
    """Reads a file of expected outcomes. Raises BadInput."""
    value = json_line(read_bytes(path), str(path))
    try:
        form = shaped(_Format, value)["format"]
        if form != FORMAT:
            raise BadInput(
                f"{path}: written in format {form}, this version reads {FORMAT}; write it again from its run "
                "(grammarbench compare RUN --record FILE)"
            )
        record = shaped(_Record, value)
    except ValueError as error:
        raise BadInput(f"{path}: not a record of outcomes (`--record` writes one): {error}") from error
    here = _rebased(record, path.parent)
    arms = {
        RecordedArm(
            arm["backend"], arm["options"], arm["version"], here.get(arm["vocabulary"], arm["vocabulary"])
        ): {case: frozenset(faults.split()) for case, faults in arm["cases"].items()}
        for arm in record["arms"]
    }
    return Recorded(
        arms,
        record["effort"],
        record["seed"],
        record["decode"],
        record["profile"],
        record["suites"],
        tuple(moved_suite(name, path.parent, Path()) for name in record["asked"]),
        record["timeout_s"],
        record["memory_bytes"],
        {here.get(name, name): one["sha256"] for name, one in record["vocabularies"].items()},
        frozenset(record["checks"]) if "checks" in record else None,
    )


class _Suite(TypedDict):
    """How many cases of a suite were walked, how many it held, and the digest of those walked."""

    cases: int
    cases_in_all: NotRequired[int]
    sha256: NotRequired[str]


class _Vocabulary(TypedDict):
    """The digest of a vocabulary, and the way to its file or folder from that of the record."""

    sha256: str
    path: NotRequired[str]


class _Arm(TypedDict):
    """An arm, and the faults of each of its cases, joined with spaces."""

    backend: str
    options: str
    version: str
    vocabulary: str
    cases: dict[str, str]


class _Format(TypedDict):
    """The one field that every format of the file has."""

    format: int


class _Record(_Format):
    """What is read of the file."""

    effort: int
    seed: int
    decode: bool
    profile: str
    suites: dict[str, _Suite]
    asked: list[str]
    timeout_s: float
    memory_bytes: int
    vocabularies: dict[str, _Vocabulary]
    checks: NotRequired[list[str]]
    arms: list[_Arm]
