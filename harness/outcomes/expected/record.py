"""The file of expected outcomes: how it is written and read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from harness.backend.environments.releases import release
from harness.errors import BadInput
from harness.outcomes.expected.arm_faults import ArmFaults, Faults, RecordedArm, faults_of_run
from harness.outcomes.settings import differing
from harness.rows.row import RunInfo
from harness.rows.sample import sample
from harness.rows.store import read_info
from harness.running.experiment import moved_suite, suites_of_run
from harness.shape import json_line, read_bytes, shaped

FORMAT = 3
"""It is raised by a change after which records of before would fail a gate, or let it pass, wrongly."""

COUNTS = ("cases", "cases_in_all")
"""What a record keeps of each suite: how many cases were walked, and how many it held."""


@dataclass(frozen=True)
class Recorded:
    """The expected outcomes of a file, and the settings of the run that they are of."""

    arms: ArmFaults
    effort: int
    seed: int
    decode: bool = False
    profile: str = "gate"
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each suite: `cases` walked, and `cases_in_all`, how many the suite held."""
    asked: tuple[str, ...] = ()
    """The suites as they are named in the folder that we are in; empty if the record does not say."""
    timeout_s: float | None = None

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """Returns the vocabularies on which the recorded arms walked, each once."""
        return tuple(dict.fromkeys(arm.vocabulary for arm in self.arms))

    @property
    def sample(self) -> str:
        """Returns the sample of its suites that the record is of; empty if it is of whole suites."""
        return sample(self.suites, self.profile)

    @property
    def backends(self) -> str:
        """Returns the recorded backends with their options, as `--backends` takes them; without versions, for
        it is another version that is held against the record."""
        names = dict.fromkeys(f"{arm.backend}{':' if arm.options else ''}{arm.options}" for arm in self.arms)
        return ",".join(names)

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
        if self.vocabularies and not set(walked) & set(self.vocabularies):
            parts.append(f"recorded on {', '.join(self.vocabularies)}, walked on {', '.join(walked)}")
        return "; ".join(parts)


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
    if arm in recorded:
        return recorded[arm], arm
    key = (arm.backend, arm.options, arm.vocabulary)
    others = [other for other in recorded if (other.backend, other.options, other.vocabulary) == key]
    newest = max(others, key=lambda other: release(other.version), default=None)
    return (None, None) if newest is None else (recorded[newest], newest)


def refuse_some_checks(folder: Path, info: RunInfo) -> None:
    """Raises BadInput for a run that made only some checks."""
    if info.checks:
        raise BadInput(f"{folder}: only some checks were made, and a record is of all; walk without --checks")


def write_record(folder: Path, path: Path) -> int:
    """Writes what the cases of a run came to; returns how many. Raises BadInput for an incomplete run."""
    now = faults_of_run(folder)
    info = read_info(folder)
    if info.shard:
        raise BadInput(
            f"{folder}: shard {info.shard} of a run makes no record; put the shards together "
            "first (grammarbench merge)"
        )
    refuse_some_checks(folder, info)
    value = {
        "format": FORMAT,
        "profile": info.profile,
        "effort": info.effort,
        "decode": info.decode,
        "seed": info.seed,
        "timeout_s": info.timeout_s,
        "asked": suites_of_run(folder, path.parent),
        "suites": {
            name: {key: suite[key] for key in COUNTS if key in suite} for name, suite in info.suites.items()
        },
        "arms": [
            {
                **vars(arm),
                "cases": {
                    case: " ".join(sorted(faults))
                    for case, faults in sorted(cases.items())
                    if (arm, case) not in now.unmeasured
                },
            }
            for arm, cases in sorted(now.arms.items())
        ],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=0, ensure_ascii=True) + "\n", "utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    return sum(map(len, now.arms.values()))


def read_record(path: Path) -> Recorded:
    """Reads a file of expected outcomes. Raises BadInput."""
    value = json_line(read_bytes(path), str(path))
    try:
        form = shaped(_Format, value)["format"]
        if form != FORMAT:
            raise BadInput(
                f"{path}: written in format {form}, this version reads {FORMAT}; write it again from its "
                "run (grammarbench compare RUN --record FILE)"
            )
        record = shaped(_Record, value)
    except ValueError as error:
        raise BadInput(f"{path}: not a record of outcomes (`--record` writes one): {error}") from error
    arms = {
        RecordedArm(arm["backend"], arm["options"], arm["version"], arm["vocabulary"]): {
            case: frozenset(faults.split()) for case, faults in arm["cases"].items()
        }
        for arm in record["arms"]
    }
    suites: Mapping[str, Mapping[str, Any]] = record["suites"] if "suites" in record else _counted(arms)
    return Recorded(
        arms,
        record["effort"],
        record["seed"],
        record.get("decode", False),
        record.get("profile", "gate"),
        suites,
        tuple(moved_suite(name, path.parent, Path()) for name in record.get("asked", ())),
        record.get("timeout_s"),
    )


def _counted(arms: ArmFaults) -> dict[str, dict[str, int]]:
    """Returns the sample of a record that does not name one: how many cases of each suite it holds."""
    most: Counter[str] = Counter()
    for cases in arms.values():
        most |= Counter(case.rpartition("/")[0] for case in cases)
    return {name: {"cases": count} for name, count in most.items()}


class _Suite(TypedDict):
    """How many cases of a suite were walked, and how many it held."""

    cases: int
    cases_in_all: NotRequired[int]


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
    decode: NotRequired[bool]
    profile: NotRequired[str]
    suites: NotRequired[dict[str, _Suite]]
    asked: NotRequired[list[str]]
    timeout_s: NotRequired[float]
    arms: list[_Arm]
