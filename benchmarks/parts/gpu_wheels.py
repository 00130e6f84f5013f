"""Whether wheels can be installed on the machine with the GPU, and go on with a folder of results.
benchmarks/gpu.sh asks, before anything is installed, so this needs Python alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class Unfit(Exception):
    """Says why the wheels cannot be used."""


def main(arguments: Sequence[str]) -> None:
    """Prints what was compared. The arguments: the folder of wheels, that of results, the Python as `3.12`,
    and the projects that are needed. Raises Unfit."""
    wheels, out, python, *projects = arguments
    brought = looked_at(Path(wheels), python, projects)
    held = compared(Path(wheels), brought, Path(out))
    print(f"{len(brought)} wheels for Python {python} are complete; {held}")


def looked_at(folder: Path, python: str, projects: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the folder's wheels, by project. Raises Unfit for a folder without wheels, two
    wheels of a project, a wheel for another Python or without a wheel's name, and
    a project without a wheel."""
    brought: dict[str, str] = {}
    refill = f"remove them and fill it anew: rm {folder}/*.whl; gpu.sh wheels {folder}"
    for wheel in sorted(folder.glob("*.whl")):
        parsed = re.fullmatch(r"([^-]+)-([^-]+)(?:-\d[^-]*)?-([^-]+)-([^-]+)-[^-]+", wheel.stem)
        if parsed is None:
            raise Unfit(f"{wheel} has no name of a wheel; {refill}")
        name, version, tag, abi = parsed.groups()
        project = normal(name)
        if project in brought:
            raise Unfit(f"{folder} has two wheels of {project} ({brought[project]} and {version}); {refill}")
        if not fits(tag, abi, python):
            filled = refill.replace("gpu.sh", f"PYTHON_OF_WHEELS={python} gpu.sh")
            raise Unfit(f"{wheel} is not for Python {python}; {filled}")
        brought[project] = version
    if not brought:
        raise Unfit(f"{folder} holds no wheel; where pip reaches an index: gpu.sh wheels {folder}")
    if missing := [project for project in map(normal, projects) if project not in brought]:
        raise Unfit(f"{folder} has no wheel of {', '.join(missing)}; {refill}")
    return brought


def normal(project: str) -> str:
    """Returns the project's name as all spellings of it have in common."""
    return re.sub(r"[-_.]+", "-", project).lower()


def fits(tag: str, abi: str, python: str) -> bool:
    """Returns whether that Python, as `3.12`, takes wheels with this tag and ABI. An ABI that ends in `t` is
    of a Python without a global lock, which is another one."""
    major, minor = map(int, python.split("."))
    known = [one for one in abi.split(".") if not one.endswith("t")]
    for one in tag.split(".") if known else ():
        if one in (f"py{major}", f"cp{major}{minor}"):
            return True
        older = re.fullmatch(rf"(py|cp){major}(\d+)", one)
        if older and int(older[2]) <= minor and (older[1] == "py" or "abi3" in known):
            return True
    return False


def compared(folder: Path, brought: Mapping[str, str], out: Path) -> str:
    """Returns what the folder of results holds, beside which the wheels may be used. Raises Unfit if what it
    holds is of other versions of the backends than the wheels have."""
    if not out.is_dir():
        return f"there is no {out} yet"
    known: dict[str, str] = {}
    parts = []
    for path in sorted(out.glob("*.json")):
        try:
            environment = json.loads(path.read_text("utf-8"))["environment"]
            measured, torch = environment["versions"].items(), environment.get("torch", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # gpu.py says what is wrong with it
        parts.append(path.name)
        for name, version in measured:
            here = brought.get(normal(name))
            if version and here and here != version:
                raise Unfit(
                    f"{path} is of {name} {version}, and {folder} has {here}; give another --out or other "
                    "wheels (docs/gpu.md)"
                )
        known |= {name: version for name, version in [("torch", torch), *measured] if version}
    if not parts:
        return f"{out} holds no part yet"
    of = ", ".join(f"{name} {version}" for name, version in known.items())
    return f"{out} holds {', '.join(parts)} of the same backends ({of})"


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Unfit as unfit:
        sys.exit(f"gpu.sh: {unfit}")
