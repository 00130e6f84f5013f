"""The commands that install distributions and list their releases: uv's where it is to be had, else pip's."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from harness.errors import BadInput

CONSTRAINTS = ("PIP_CONSTRAINT", "UV_CONSTRAINT")
"""The variables that name files of constraints for the installers."""


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
