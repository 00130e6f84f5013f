"""Whether wheels can be installed on the machine with the GPU, and go on with a folder of results.
benchmarks/gpu.sh asks, before anything is installed, so this needs Python alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # python -P has it not

from gpu_plan import FORMAT, PARTS, SAME

ANOTHER = "give another --out"
OR_WHEELS = f"{ANOTHER} or other wheels (docs/gpu.md)"


class Unfit(Exception):
    """Says why the wheels cannot be used."""


def main(arguments: Sequence[str]) -> None:
    """Prints what was compared. The arguments: the folder of wheels, that of results, the kind of device that
    is to be measured (`cuda` or `cpu`), the Python as `3.12`, the machine as `x86_64`, and the projects that
    are needed. Raises Unfit."""
    wheels, out, device, python, machine, *projects = arguments
    brought = looked_at(Path(wheels), python, machine, projects)
    held = compared(Path(wheels), brought, Path(out), device)
    print(f"{len(brought)} wheels for Python {python} are complete; {held}")


def looked_at(folder: Path, python: str, machine: str, projects: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the folder's wheels, by project. Raises Unfit for a folder without wheels, two
    wheels of a project, a wheel for another Python or machine or without a wheel's name, and a project
    without a wheel."""
    brought: dict[str, str] = {}
    refill = f"remove them and fill it anew: rm {folder}/*.whl; gpu.sh wheels {folder}"
    for wheel in sorted(folder.glob("*.whl")):
        parsed = re.fullmatch(r"([^-]+)-([^-]+)(?:-\d[^-]*)?-([^-]+)-([^-]+)-([^-]+)", wheel.stem)
        if parsed is None:
            raise Unfit(f"{wheel} has no name of a wheel; {refill}")
        name, version, tag, abi, platforms = parsed.groups()
        project = normal(name)
        if project in brought:
            raise Unfit(f"{folder} has two wheels of {project} ({brought[project]} and {version}); {refill}")
        if not fits(tag, abi, python):
            filled = refill.replace("gpu.sh", f"PYTHON_OF_WHEELS={python} gpu.sh")
            raise Unfit(f"{wheel} is not for Python {python}; {filled}")
        if not any(re.fullmatch(f"any|(many)?linux.*_{machine}", one) for one in platforms.split(".")):
            raise Unfit(f"{wheel} is not for Linux on {machine}; {refill}")
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


def compared(folder: Path, brought: Mapping[str, str], out: Path, device: str) -> str:
    """Returns what the folder of results holds, beside which the wheels may be used. Raises Unfit for what
    gpu.py would refuse there: a part that cannot be read, one of another kind of device, parts that differ in
    their device, torch or versions, and one of other versions of the backends than the wheels have."""
    if not out.is_dir():
        return f"there is no {out} yet"
    parts = {path: read(path) for path in (out / f"{part}.json" for part in PARTS) if path.exists()}
    if not parts:
        return f"{out} holds no part yet"
    first, beside = next(iter(parts.items()))
    for path, (kind, known) in parts.items():
        if kind != device:
            raise Unfit(f"{path} is of --device {kind}, and --device {device} is asked for; {ANOTHER}")
        for name, different in SAME.items():
            if known.get(name) != beside[1].get(name):
                ours, theirs = known.get(name), beside[1].get(name)
                raise Unfit(f"{path} is of {different} ({ours}, in {first.name} {theirs}); {ANOTHER}")
        for name, version in known["versions"].items():
            here = brought.get(normal(name))
            if here and here != version:
                raise Unfit(f"{path} is of {name} {version or 'none'}, and {folder} has {here}; {OR_WHEELS}")
    versions = {"torch": beside[1].get("torch", "")} | beside[1]["versions"]
    of = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    names = ", ".join(path.name for path in parts)
    return f"{out} holds {names} of {beside[1].get('device')} and of the same backends ({of})"


def read(path: Path) -> tuple[str, dict[str, Any]]:
    """Returns the part's kind of device and its environment. Raises Unfit for what gpu.py cannot read."""
    try:
        value = json.loads(path.read_text("utf-8"))
        if value["format"] != FORMAT or value["part"] not in PARTS:
            raise ValueError("another format")
        dict(value["cells"]), list(value["commands"]), dict(value["environment"]["versions"])
        return value["device"], value["environment"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unfit(f"{path} is no file of benchmarks/gpu.py ({error!r}); remove it, or {ANOTHER}") from error


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Unfit as unfit:
        sys.exit(f"gpu.sh: {unfit}")
