"""The commands that install distributions and list their releases: uv's where it is to be had, else pip's."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from packaging.utils import canonicalize_name

from harness.errors import BadInput
from harness.paths import expanded

_CONSTRAINTS = ("PIP_CONSTRAINT", "UV_CONSTRAINT")
"""The variables that name files of constraints for the installers."""


INDEXES = ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX", "DEFAULT_INDEX", "INDEX")
"""The variables that name the places where the installers look, behind `PIP_` or `UV_`."""


def offered(distribution: str) -> dict[str, list[str]]:
    """Returns where the installers are told to look besides the usual index, by variable: its value, and of
    local folders the distribution's files with size and time of change, because a wheel that was built anew
    may bear the same version."""
    found: dict[str, list[str]] = {}
    for variable in (f"{tool}_{name}" for tool in ("PIP", "UV") for name in INDEXES):
        value = os.environ.get(variable, "")
        if value:
            found[variable] = [value]
            folders = value.replace(",", " ").split() if variable.endswith("FIND_LINKS") else []
            for folder in map(expanded, folders):
                names = sorted(path for path in folder.glob("*") if _is_of(path, distribution))
                stats = [(path.name, path.stat()) for path in names]
                found[variable] += [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats]
    return found


def _is_of(path: Path, distribution: str) -> bool:
    """Is this a file with a version of the distribution, by its name?"""
    name = canonicalize_name(path.name)
    return path.is_file() and name.startswith(f"{canonicalize_name(distribution)}-")


def without_constraints() -> dict[str, str]:
    """Returns a copy of our environment's variables without those that name files of constraints."""
    return {name: value for name, value in os.environ.items() if name not in _CONSTRAINTS}


def without_connection(said: str) -> str:
    """Returns words for the end of an installer's error, where pip said on the way that a connection failed:
    its error is then the same as of a version that does not exist."""
    return " (a connection to a package index failed)" if "connection broken by" in said else ""


def installer(python: str) -> list[str]:
    """Returns the command that installs what follows it, and nothing else, into the environment of this
    interpreter. Raises BadInput if there is no installer."""
    if uv := _uv():
        return [uv, "pip", "install", "--python", python, "--no-deps"]
    if find_spec("pip") is None:
        raise BadInput(
            "another version of a backend needs an installer; install uv, or pip into this environment"
        )
    return [
        python,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--ignore-installed",
    ]


def pip_command() -> list[str]:
    """Returns the command `pip` for this interpreter; where only uv is, with the pip that uv fetches. Raises
    BadInput if there is neither."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if uv := _uv():
        return [uv, "run", "--no-project", "--python", sys.executable, "--with", "pip", "python", "-m", "pip"]
    raise BadInput("a package index is asked through an installer; install uv, or pip into this environment")


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv") or (str(beside) if beside.exists() else None)
