"""Environments that hold another version of a backend: built once, kept in a cache, and laid over the
environment that we run in.

Such an environment is a virtual environment whose own packages come first and ours after them: it holds the
one distribution that was asked for, and of its requirements only what we do not have. So two versions of a
backend share torch, numpy and the harness itself. The coordinator builds; workers are started with the
environment's interpreter and make no network access.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.backend.arm import Arm
from harness.backend.cache import cache_home
from harness.backend.describe import places
from harness.backend.environments.installer import (
    installer,
    offered,
    without_connection,
    without_constraints,
)
from harness.backend.environments.overlay import SHARED
from harness.backend.environments.source import Source, is_path, source_of
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.process.system import ENVIRONMENT
from harness.backend.registry import MARKER, BackendSpec, installed_version, parse_specs
from harness.errors import BadInput
from harness.paths import expanded
from harness.whole_files import write_whole

CACHE = "GRAMMARBENCH_ENVIRONMENTS"
"""The environment variable that names another cache folder than `~/.cache/grammarbench/environments`."""

ROUNDS = 20
"""The most rounds of installing what is still missing; each finds the requirements of what the one before has
installed."""

LOOK_SECONDS = 300.0
"""The time that a process of an environment has to look at it, which may import the backend."""

Placed = tuple[BackendSpec, str]
"""A backend with the version that its environment reports, and that environment's interpreter."""


def environments_folder() -> Path:
    """Returns the folder in which environments are kept."""
    given = os.environ.get(CACHE)
    return expanded(given).resolve() if given else cache_home() / "environments"


def resolve(specs: Sequence[BackendSpec], say: Callable[[str], None]) -> list[Placed]:
    """Returns each backend with the interpreter of an environment that holds it at its version: this one, or
    another, which is built if need be.

    Raises BadInput for a version that is not to be had, naming the log of its installation.
    """
    named = sorted({spec.name for spec in specs if spec.version is not None})
    distributions = places(named) if named else {}
    return [
        (spec, sys.executable) if spec.version is None else place(spec, *distributions[spec.name], say)
        for spec in specs
    ]


def environment_of(spec: str, say: Callable[[str], None]) -> Placed:
    """Returns the backend that this text names, with the interpreter of an environment that holds it. Raises
    BadInput, also for several."""
    specs = parse_specs(spec)
    if len(specs) > 1:
        raise BadInput(f'"{spec}" names {len(specs)} backends; give one')
    return resolve(specs, say)[0]


def python_of(arm: Arm, say: Callable[[str], None]) -> str:
    """Returns the interpreter of an arm of a stored run; its environment is built again if it is gone.

    Raises BadInput.

    The run may be a stranger's. What it names is started only if it is the interpreter of an environment that
    we made for this version, and what it calls a version is no path, from which code would be installed.
    """
    if not arm.python or arm.python == sys.executable:
        return sys.executable
    if _is_ours(Path(arm.python), arm):
        return arm.python
    if is_path(arm.version):
        raise BadInput(
            f'"{arm.version}" is no version of {arm.backend}, so no environment is made for it; '
            "run it again, with --backends"
        )
    # Not read as text again, in which a name or a version could stand for something else.
    ((_, python),) = resolve([BackendSpec(arm.backend, arm.version)], say)
    return python


def _is_ours(python: Path, arm: Arm) -> bool:
    """Is this the interpreter of an environment in our cache, made for the arm's distribution at
    its version?
    """
    folder = python.parent.parent
    if python != _python(folder) or ".." in python.parts or folder.parent != environments_folder():
        return False
    made_for = _made_for(folder)
    return (made_for.get("distribution"), made_for.get("version")) == (arm.distribution, arm.version)


def place(spec: BackendSpec, distribution: str, installed: str, say: Callable[[str], None]) -> Placed:
    """Returns the same for a backend with a version, of which the distribution is known and its version here
    (empty for none). Raises BadInput."""
    assert spec.version is not None
    if not distribution:
        raise BadInput(
            f'backend "{spec}" belongs to no distribution, so it has no version to ask for; write {spec.name}'
        )
    source = source_of(distribution, spec.version)
    if source.version and installed and _is_same(installed, source.version):
        return replace(spec, version=installed), sys.executable
    folder = build(source, say)
    return replace(spec, version=str(_made_for(folder)["version"])), str(_python(folder))


def _is_same(one: str, other: str) -> bool:
    """Are the two versions one? What an installed distribution calls its version may be none by PEP 440."""
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _made_for(folder: Path) -> dict[str, Any]:
    """Returns for what the environment was made; empty where it is not whole."""
    try:
        made_for: dict[str, Any] = json.loads((folder / MARKER).read_text("utf-8"))
        return made_for if _python(folder).exists() and {*made_for} >= {"distribution", "version"} else {}
    except (OSError, ValueError, TypeError):
        return {}


def build(source: Source, say: Callable[[str], None]) -> Path:
    """Returns the folder of the environment, which is built if it is not there. Raises BadInput.

    Only one process builds; a build that was killed is thrown away, because the marker is written last.
    """
    folder = folder_of(source)
    if _made_for(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder, source.target, say) as lock:
            if not _made_for(folder):
                say(f"building an environment for {source.target} ...")
                try:
                    _build(source, folder, lock)
                except BadInput:
                    shutil.rmtree(folder, ignore_errors=True)  # its log stays
                    raise
    except OSError as error:
        raise BadInput(
            f"{folder}: the environment for {source.target} cannot be built: {error.strerror or error}"
        ) from error
    return folder


def folder_of(source: Source) -> Path:
    """Returns the environment's folder. For another interpreter, another environment under it, or another
    version of what they share, or where the installer is told to look elsewhere, it is another folder."""
    parts = [
        platform.python_implementation(),
        sys.version,
        sys.prefix,
        source.target,
        source.digest,
        _shared(),
    ]
    # Where nobody says where to look, the key is that of what was built before this was asked.
    if where := offered(source.distribution):
        parts.append(where)
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
    name = f"{canonicalize_name(source.distribution)}-{source.version or 'local'}-{key}"
    return environments_folder() / name


def _shared() -> dict[str, str | None]:
    return {name: installed_version(name) for name in SHARED}


@contextmanager
def _only_builder(folder: Path, target: str, say: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock of that folder, and yield its descriptor; whatever inherits that keeps the folder locked,
    so that no installer outlives its lock. Says so where another process holds it, before it waits."""
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is making an environment for {target} ({folder}.lock is held); waiting ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _build(source: Source, folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    path = Path(f"{folder}.log")
    # Somebody who asks for a version wants it, whatever a file of constraints around us pins (tox sets one).
    environment = without_constraints() | OFFLINE_HUB
    with open(path, "wb") as log:

        def run(*command: str) -> subprocess.CompletedProcess[bytes]:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                env=environment,
            )

        def must(why: str, *command: str) -> None:
            if run(*command).returncode:
                raise BadInput(f"{source.target} {why}: {_reason(path)}; all of it is in {path}")

        must("gets no environment", sys.executable, "-m", "venv", "--without-pip", str(folder))
        lay_over(folder)
        python = str(_python(folder))
        install = installer(python)
        must("cannot be installed", *install, source.target)
        for _ in range(ROUNDS):
            try:
                missing = _asked(python, "missing", source.distribution)["missing"]
            except BadInput as error:
                raise BadInput(f"{source.target} {error}") from error
            if not missing:
                break
            must("lacks what it requires", *install, *missing)
        try:
            verified = _asked(python, "verify", source.distribution)
        except BadInput as error:
            raise BadInput(f"{source.target} {error}; the installation's log is {path}") from error
    version = Version(str(verified["version"]))
    if source.version is not None and version != Version(source.version):
        raise BadInput(f"{source.target}: version {version} was installed; all of it is in {path}")
    label = f"{'.' if version.local else '+'}local.{source.digest[:8]}" if source.digest else ""
    made_for = {
        "distribution": source.distribution,
        "version": f"{verified['version']}{label}",
        "from": source.target,
    }
    write_whole(folder / MARKER, json.dumps(made_for))


OFFLINE_HUB = {name: value for name, value in ENVIRONMENT.items() if name.endswith("_OFFLINE")}


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def lay_over(folder: Path) -> None:
    """Let what is installed here be imported there, after the environment's own; editable installations and
    other .pth files are followed too."""
    ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (own,) = folder.glob("lib/python*/site-packages")
    statements = ["import site", *(f"site.addsitedir({path!r})" for path in ours)]
    (own / "zz_below.pth").write_text("; ".join(statements) + "\n", "utf-8")


def _asked(python: str, question: str, distribution: str) -> dict[str, Any]:
    """Returns the answer to one question that `overlay` answers, in a process of that environment. Raises
    BadInput."""
    loader = "harness.backend.environments.overlay:open_overlay"
    with Service(loader, python=python, keeps_output=True) as service:
        try:
            answer, _ = service.ask({"asks": question, "name": distribution}, seconds=LOOK_SECONDS)
        except Lost as lost:
            raise BadInput(f"cannot be looked at in its environment ({lost}){lost.last_line()}") from lost
    return answer


def _reason(log: Path) -> str:
    """Returns the line of an installer's output that says why it failed: its last error, or else its last
    line; and whether a connection failed before."""
    said = log.read_text("utf-8", "replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error:", "error "))]
    return f"{(errors or lines or ['it said nothing'])[-1][:300]}{without_connection(said)}"
