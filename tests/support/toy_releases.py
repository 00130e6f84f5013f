"""Releases of the third-party toy backend, as wheels that the tests write, and an environment that has one of
them installed."""

from __future__ import annotations

import os
import subprocess
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

from harness.backend.environments import build as environments

SOURCE = (Path(__file__).parent / "third_party" / "toy_backend.py").read_text("utf-8")

RIGHT = "return self.text in self.choices"
FAULT = "return any(choice.startswith(self.text) for choice in self.choices)"
"""A fault that a release brings: the output may end anywhere inside a choice."""


def wheel(
    folder: Path, version: str, source: str = SOURCE, requires: Sequence[str] = (), name: str = "toy_backend"
) -> Path:
    """Returns a wheel of one module, as an index would serve it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {name.replace('_', '-')}",
        f"Version: {version}",
        *(f"Requires-Dist: {require}" for require in requires),
    ]
    files = {
        f"{name}.py": source,
        f"{about}/METADATA": "\n".join([*metadata, ""]),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[harness.adapters]\ntoy_choice = toy_backend:ToyChoice\n"
        if name == "toy_backend"
        else "",
    }
    files[f"{about}/RECORD"] = "".join(f"{file_name},,\n" for file_name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file_name, text in files.items():
            archive.writestr(file_name, text)
    return path


def environment(folder: Path, installed: Path) -> Path:
    """Returns the interpreter of an environment over this one that has the wheel installed."""
    venv.create(folder, symlinks=True)
    environments.lay_over(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(installed) as archive:
        archive.extractall(packages)
    return folder / "bin" / "python"


def grammarbench(python: Path, *arguments: str, index: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Returns the command in that environment, with a folder of wheels for an index."""
    return subprocess.run(
        [python, "-P", "-m", "harness", *arguments], env=environ(index, cache), capture_output=True, text=True
    )


def environ(index: Path, cache: Path) -> dict[str, str]:
    """No package index, no plug-in of this environment left out, and a cache of its own."""
    without = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "GRAMMARBENCH_"))
    }
    path = os.pathsep.join(
        part for part in without.get("PATH", "").split(os.pathsep) if not Path(part, "uv").exists()
    )
    ours = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull, "PATH": path}
    return {**without, **ours, environments.CACHE: str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
