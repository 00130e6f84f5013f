"""An arm of a run: one backend at one version with one set of options, and how it is called where several are
compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar


class OfABackend(Protocol):
    """What has a backend's name and its options as text: a row, an arm."""

    @property
    def backend(self) -> str: ...

    @property
    def options(self) -> str: ...


def arm(of: OfABackend) -> str:
    """Returns the backend as people call it: name and options."""
    return pinned(of, "")


def pinned(of: OfABackend, version: str) -> str:
    """Returns the backend as `--backends` takes it, pinned to the version that a run saw, if it saw one:
    another version must not answer for it.
    """
    wanted = f"{of.backend}=={version}" if version else of.backend
    return f"{wanted}:{of.options}" if of.options else wanted


def are_versions(one: OfABackend, other: OfABackend) -> bool:
    """Are the two versions of one thing, the same backend with the same options?

    Only then is a difference between them a change.
    """
    return (one.backend, one.options) == (other.backend, other.options)


AnArm = TypeVar("AnArm", bound=OfABackend)


def base_of(head: AnArm, arms: Sequence[AnArm]) -> AnArm | None:
    """Returns the arm of a run that `head` is held against: the first with its backend and its options.

    The first one itself is held against the first arm of its backend, whose options differ, so that the
    difference is no change; None if it is the first of its backend too.
    """
    first = next(candidate for candidate in arms if are_versions(candidate, head))
    if first is head:
        first = next(candidate for candidate in arms if candidate.backend == head.backend)
    return None if first is head else first


class OfAVersion(OfABackend, Protocol):
    """What has the version of its backend too: an arm of a run, an arm of a record."""

    @property
    def version(self) -> str: ...


class OnAVocabulary(OfAVersion, Protocol):
    """What has a vocabulary too: the rows of an arm, an arm of a record."""

    @property
    def vocabulary(self) -> str: ...


def full_name(of: OnAVocabulary) -> str:
    """Returns `backend:options version vocabulary`, `-` where there is no version: what tells apart whatever
    is counted by arm, and by which it is found again."""
    return f"{arm(of)} {of.version or '-'} {of.vocabulary}"


def version_key(of: OfAVersion) -> tuple[str, str, str]:
    """Returns backend, version and options, which tell the arms of a run with one vocabulary apart."""
    return of.backend, of.version, of.options


def arm_names(arms: Iterable[OfAVersion]) -> dict[tuple[str, str, str], str]:
    """Returns, by `version_key`, the arm as people call it, with `==version` where a backend has more than
    one in the run.

    What stands behind a `+`, such as the library behind an engine's wrapper, makes no other version unless
    the options are the same.
    """
    arms = list(arms)
    of_options = Counter((one.backend, one.options) for one in arms)
    versions = {
        one.backend: {
            other.version if of_options[other.backend, other.options] > 1 else other.version.partition("+")[0]
            for other in arms
            if other.backend == one.backend
        }
        for one in arms
    }
    return {
        version_key(one): pinned(one, one.version if len(versions[one.backend]) > 1 else "") for one in arms
    }


def with_version(name: str, version: str) -> str:
    """Returns the arm's name, and its version where that is not in the name."""
    return name if not version or f"=={version}" in name else f"{name} {version}"


@dataclass(frozen=True)
class Arm:
    """One backend of a run, as its worker described it."""

    backend: str
    version: str
    options: str
    distribution: str
    dialects: tuple[str, ...]
    mask_format: str
    documented: tuple[str, ...] = ()
    """The causes of divergences that the backend states of itself."""
    knows_one_end: str = field(default="", compare=False)
    """What the backend says where it knows one id of end-of-sequence only (`Adapter.knows_one_end`)."""
    unicode: str = field(default="", compare=False)
    """The version of Unicode of its regular expressions, found by the letters that it knows; empty if it has
    no such classes."""
    python: str = field(default="", compare=False)
    """The interpreter of the environment that holds this version; empty for the run's own."""

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Arm:
        """Returns the arm of a run's first line."""
        return cls(
            **fields | {name: tuple(fields[name]) for name in ("dialects", "documented") if name in fields}
        )
