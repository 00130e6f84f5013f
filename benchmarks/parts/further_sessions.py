"""The further sessions of a run in its published folder, where they are read with its rows."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.rows.sessions import FILE


def copy_sessions(run: Path, into: Path) -> None:
    """Copies what is noted of them beside the published rows of the run; those of another run that lay there
    are removed."""
    (into / FILE).unlink(missing_ok=True)
    if (run / FILE).exists():
        shutil.copyfile(run / FILE, into / FILE)
