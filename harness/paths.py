"""Paths as users write them."""

from __future__ import annotations

from pathlib import Path

from harness.errors import BadInput


def expanded(path: str) -> Path:
    """Returns the path with the home folder for `~` or `~NAME` at its beginning. Raises BadInput where that
    is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise BadInput(f"{path}: nobody's home folder is known by the name of its beginning") from error
