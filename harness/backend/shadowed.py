"""Is the code that was imported that of the distribution whose version is told?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path


def shadowed(name: str) -> str:
    """Returns a sentence where a package of the installed distribution was imported from another place, as
    from a checkout on PYTHONPATH; empty where it was not imported, where the distribution is installed for
    editing, and where there is none of that name."""
    try:
        installed = distribution(name) if name else None
    except PackageNotFoundError:
        return ""
    if installed is None or _is_editable(installed):
        return ""
    files = [Path(str(file)) for file in installed.files or []]
    for package in top_modules(files):
        origin = getattr(sys.modules.get(package), "__file__", None)
        own = {Path(str(installed.locate_file(file))).resolve() for file in files if _name(file) == package}
        if origin and Path(origin).resolve() not in own:
            return (
                f"{name} {installed.version} is installed, and {package} is imported from {origin}: what is "
                "told of that version is of the code there (is its folder on PYTHONPATH?)"
            )
    return ""


def top_modules(files: Iterable[Path]) -> list[str]:
    """Returns, in order, the modules and packages at the top of a distribution that has these files."""
    return sorted({_name(file) for file in files if _is_importable(file)})


def _name(file: Path) -> str:
    return file.parts[0].partition(".")[0]


def _is_importable(file: Path) -> bool:
    """Is this a module at the top, or a package's own file, and not a script, a library or the metadata?"""
    depth = len(file.parts)
    return (depth == 2 and file.name == "__init__.py") or (depth == 1 and file.suffix in (".py", ".so"))


def _is_editable(installed: Distribution) -> bool:
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        return bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return False
