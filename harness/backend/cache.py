"""Where what was fetched or built is kept from one command to the next."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Returns the folder of all our caches: `grammarbench` in `$XDG_CACHE_HOME` or in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grammarbench"
