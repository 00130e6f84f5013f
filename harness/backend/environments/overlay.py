"""What is asked inside an environment that was laid over another: what does its distribution still lack, and
is it the one that is imported?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.backend.process.child import Answer, Handler
from harness.backend.shadowed import top_modules
from harness.errors import BadInput

SHARED = ("torch", "numpy")
"""The distributions that all arms of a run use at one version; otherwise they would not be comparable."""


def missing(name: str) -> list[str]:
    """Returns the requirements of the distribution, and of what it requires, that are not met here.

    Raises ValueError for one of the shared distributions.
    """
    unmet: dict[str, None] = {}
    waiting: list[tuple[Distribution, frozenset[str]]] = [(distribution(name), frozenset())]
    visited = {(canonicalize_name(name), frozenset[str]())}
    while waiting:
        for requirement in _requirements(*waiting.pop()):
            try:
                there = distribution(requirement.name)
            except PackageNotFoundError:
                there = None
            if there is None or not requirement.specifier.contains(there.version, prereleases=True):
                if canonicalize_name(requirement.name) in SHARED:
                    here = f"has {there.version}" if there else "has none"
                    raise ValueError(
                        f"needs {_for_installer(requirement)}; this environment {here}, which all "
                        "arms of a run share"
                    )
                unmet[_for_installer(requirement)] = None
            elif _is_own(there) or requirement.extras:
                asked = (canonicalize_name(requirement.name), frozenset(requirement.extras))
                if asked not in visited:
                    visited.add(asked)
                    waiting.append((there, asked[1]))
    return list(unmet)


def _requirements(of: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yields what the distribution requires, and what it requires for these extras of its own."""
    for text in of.requires or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _for_installer(requirement: Requirement) -> str:
    """Returns the requirement as an installer takes it, without the condition, which holds."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    where = f" @ {requirement.url}" if requirement.url else str(requirement.specifier)
    return f"{requirement.name}{extras}{where}"


def _is_own(of: Distribution) -> bool:
    return Path(str(of.locate_file(""))).resolve().is_relative_to(Path(sys.prefix).resolve())


def verify(name: str) -> str:
    """Returns the version of the distribution. Raises ValueError if it is not imported from this environment
    itself.
    """
    installed = distribution(name)
    if not _is_own(installed):
        raise ValueError(
            f"is shadowed by version {installed.version} in {installed.locate_file('')}; is that "
            "folder on PYTHONPATH?"
        )
    for package in top_modules(Path(str(file)) for file in installed.files or []):
        try:
            imported = import_module(package)
        except BaseException as error:  # a panic of native code is no Exception
            raise ValueError(
                f"is installed, but cannot be imported: {type(error).__name__}: {error}"
            ) from error
        origin = Path(imported.__file__ or next(iter(imported.__path__))).resolve()
        if not origin.is_relative_to(Path(sys.prefix).resolve()):
            raise ValueError(f"is installed, but {package} is imported from {origin}")
    return installed.version


def open_overlay() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler of a process in that environment, which is asked what is `missing` of a
    distribution, or to `verify` it."""
    return _answer, {}


def _answer(question: dict[str, Any], blob: bytes) -> Answer:
    name = question["name"]
    try:
        answer = {"missing": missing(name)} if question["asks"] == "missing" else {"version": verify(name)}
    except PackageNotFoundError as error:
        raise BadInput(f"is not installed after all: {error}") from error
    except ValueError as error:
        raise BadInput(str(error)) from error
    return answer, b""
