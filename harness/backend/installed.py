"""The backends that are installed here, for a command that names none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.backend.describe import catalogue
from harness.errors import BadInput


def installed_backends(say: Callable[[str], None]) -> str:
    """Returns the backends whose libraries are installed here, as `--backends` takes them, and says in one
    line which these are and why others were left out. Raises BadInput if there is none.

    A backend without a library of its own, such as `unconstrained`, is a control, and is taken by name only.
    """
    return chosen_backends(catalogue(), say)


def chosen_backends(entries: Sequence[Mapping[str, Any]], say: Callable[[str], None]) -> str:
    """Returns the names of the catalogue's backends that can be used, joined with commas; see above."""
    taken = [entry for entry in entries if entry["distribution"] and not entry["problem"]]
    missing = [entry["name"] for entry in entries if entry["problem"]]
    controls = [entry["name"] for entry in entries if not entry["distribution"] and not entry["problem"]]
    if not taken:
        raise BadInput(
            'no backend is installed; pip install "grammarbench[backends]", or name one with --backends '
            "(grammarbench list backends)"
        )
    names = ", ".join(f"{entry['name']} {entry['version']}" for entry in taken)
    parts = [
        f"backends installed here: {names}",
        *([f"not installed or not importable: {', '.join(missing)}"] if missing else []),
        *([f"only by name: {', '.join(controls)}"] if controls else []),
    ]
    say("; ".join(parts))
    return ",".join(entry["name"] for entry in taken)
