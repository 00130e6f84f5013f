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
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.backend.arm import Arm
from harness.backend.describe import places
from harness.backend.environments.overlay import SHARED
from harness.backend.process.system import ENVIRONMENT, module
from harness.backend.registry import MARKER, BackendSpec, installed_version, parse_specs
from harness.errors import BadInput

CACHE = "GRAMMARBENCH_ENVIRONMENTS"
"""The environment variable that names another cache folder than `~/.cache/grammarbench/environments`."""

ROUNDS = 20
"""Of installing what is still missing; each finds the requirements of what the one before has installed."""

BUILT = {"build", "dist", "target", "_skbuild", "__pycache__"}
"""In a checkout, what building it writes: not its source."""

Placed = tuple[BackendSpec, str]
"""A backend with the version that its environment reports, and that environment's interpreter."""


@dataclass(frozen=True)
class Source:
    """What is to be installed."""

    distribution: str
    target: str
    """As the installer takes it: `name==version`, or a path."""
    version: str | None
    """The version asked for; None for a path, whose version is its own."""
    digest: str
    """Of a path's content; empty for a version, which is always the same."""


def cache_folder() -> Path:
    """Where environments are kept."""
    given = os.environ.get(CACHE)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given).expanduser().resolve() if given else home / "grammarbench" / "environments"


def resolve(specs: Sequence[BackendSpec], say: Callable[[str], None] = print) -> list[Placed]:
    """Each backend and the interpreter of an environment that holds it at its version: this one, or another,
    which is built if need be.

    Raises BadInput for a version that is not to be had, naming the log of its installation.
    """
    named = sorted({each.name for each in specs if each.version is not None})
    distributions = places(named) if named else {}
    return [
        (each, sys.executable) if each.version is None else place(each, *distributions[each.name], say)
        for each in specs
    ]


def environment_of(spec: str, say: Callable[[str], None] = print) -> Placed:
    """The same for the text of one backend."""
    (placed,) = resolve(parse_specs(spec), say)
    return placed


def python_of(arm: Arm, say: Callable[[str], None] = print) -> str:
    """The interpreter of an arm of a stored run; its environment is built again if it is gone.

    Raises BadInput.

    The run may be a stranger's. What it names is started only if it is the interpreter of an environment that
    we made for this version, and what it calls a version is no path, from which code would be installed.
    """
    if not arm.python or arm.python == sys.executable:
        return sys.executable
    if _is_ours(Path(arm.python), arm):
        return arm.python
    if _is_path(arm.version):
        raise BadInput(
            f'"{arm.version}" is no version of {arm.backend}, so no environment is made for it; '
            "run it again, with --backends"
        )
    return environment_of(f"{arm.backend}=={arm.version}", say)[1]


def _is_ours(python: Path, arm: Arm) -> bool:
    """Is this the interpreter of an environment in our cache, made for the arm's distribution at
    its version?
    """
    folder = python.parent.parent
    if (
        python != _python(folder)
        or ".." in python.parts
        or folder.parent != cache_folder()
        or not python.exists()
    ):
        return False
    try:
        made_for = json.loads((folder / MARKER).read_text("utf-8"))
        return (made_for["distribution"], made_for["version"]) == (arm.distribution, arm.version)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def place(spec: BackendSpec, distribution: str, installed: str, say: Callable[[str], None]) -> Placed:
    """The same for a backend with a version, of which the distribution is known and its version here (empty
    for none)."""
    assert spec.version is not None
    if not distribution:
        raise BadInput(
            f'backend "{spec}" belongs to no distribution, so it has no version to ask for; write {spec.name}'
        )
    source = source_of(distribution, spec.version)
    if source.version and installed and Version(installed) == Version(source.version):
        return replace(spec, version=installed), sys.executable
    folder = build(source, say)
    version = json.loads((folder / MARKER).read_text("utf-8"))["version"]
    return replace(spec, version=version), str(_python(folder))


def source_of(distribution: str, version: str) -> Source:
    """What the text behind `==` stands for: a version, a wheel or a source archive, or a folder.

    Raises BadInput.
    """
    if not _is_path(version):
        try:
            return Source(distribution, f"{distribution}=={Version(version)}", str(Version(version)), "")
        except InvalidVersion:
            raise BadInput(
                f'"{version}" is no version of {distribution}; write one like 1.2.3, or a path '
                "with a slash in it"
            ) from None
    path = Path(version).expanduser().resolve()
    if path.is_file():
        return Source(distribution, str(path), None, hashlib.sha256(path.read_bytes()).hexdigest())
    if path.is_dir():
        newest = max((each.stat().st_mtime_ns for each in _files_below(path)), default=0)
        return Source(distribution, str(path), None, hashlib.sha256(f"{path}\0{newest}".encode()).hexdigest())
    raise BadInput(f"{path}: no such file or folder to install {distribution} from")


def _is_path(version: str) -> bool:
    return "/" in version or version.startswith((".", "~")) or version.endswith((".whl", ".tar.gz", ".zip"))


def _files_below(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        folders[:] = [
            each
            for each in folders
            if each not in BUILT and not each.startswith(".") and not each.endswith(".egg-info")
        ]
        yield from (Path(folder, each) for each in files if not Path(folder, each).is_symlink())


def build(source: Source, say: Callable[[str], None] = print) -> Path:
    """The folder of the environment, built if it is not there. Raises BadInput.

    Only one process builds; a build that was killed is thrown away, because the marker is written last.
    """
    folder = folder_of(source)
    if (folder / MARKER).exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder) as lock:
            if not (folder / MARKER).exists():
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
    """Another interpreter, another environment under it, or another version of what they share, and it is
    another environment."""
    told = [
        platform.python_implementation(),
        sys.version,
        sys.prefix,
        source.target,
        source.digest,
        _shared(),
    ]
    key = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]
    return cache_folder() / f"{canonicalize_name(source.distribution)}-{source.version or 'local'}-{key}"


def _shared() -> dict[str, str | None]:
    return {name: installed_version(name) for name in SHARED}


@contextmanager
def _only_builder(folder: Path) -> Iterator[int]:
    """Holds the lock of that folder; whatever inherits the descriptor keeps it locked, so that no installer
    outlives its lock."""
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _build(source: Source, folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    path = Path(f"{folder}.log")
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
                env={**os.environ, **OFFLINE_HUB},
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
            missing = _asked(python, "missing", source.distribution)
            if "bad_input" in missing:
                raise BadInput(f"{source.target} {missing['bad_input']}")
            if not missing["missing"]:
                break
            must("lacks what it requires", *install, *missing["missing"])
        found = _asked(python, "verify", source.distribution)
        if "bad_input" in found:
            raise BadInput(f"{source.target} {found['bad_input']}; the installation's log is {path}")
    version = Version(str(found["version"]))
    if source.version is not None and version != Version(source.version):
        raise BadInput(f"{source.target}: version {version} was installed; all of it is in {path}")
    label = f"{'.' if version.local else '+'}local.{source.digest[:8]}" if source.digest else ""
    draft = folder / f"{MARKER}.part"
    made_for = {
        "distribution": source.distribution,
        "version": f"{found['version']}{label}",
        "from": source.target,
    }
    draft.write_text(json.dumps(made_for), "utf-8")
    os.replace(draft, folder / MARKER)


OFFLINE_HUB = {name: value for name, value in ENVIRONMENT.items() if name.endswith("_OFFLINE")}


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def lay_over(folder: Path) -> None:
    """What is installed here can be imported there, after its own; editable installations and other .pth
    files are followed too."""
    ours = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    (own,) = folder.glob("lib/python*/site-packages")
    statements = ["import site", *(f"site.addsitedir({each!r})" for each in ours)]
    (own / "zz_below.pth").write_text("; ".join(statements) + "\n", "utf-8")


def installer(python: str) -> list[str]:
    """uv where it is to be had, else pip: the command that installs what follows, and nothing else, into that
    environment."""
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


def index_command() -> list[str]:
    """`pip index` for this interpreter; where only uv is, the pip that uv fetches."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "index"]
    if uv := _uv():
        return [
            uv,
            "run",
            "--no-project",
            "--python",
            sys.executable,
            "--with",
            "pip",
            "python",
            "-m",
            "pip",
            "index",
        ]
    raise BadInput(
        "the releases of a backend are listed by an installer; install uv, or pip into this environment"
    )


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv") or (str(beside) if beside.exists() else None)


def _asked(python: str, *question: str) -> dict[str, list[str] | str]:
    done = subprocess.run(
        [*module("harness.backend.environments.overlay", python), *question],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **ENVIRONMENT},
    )
    try:
        answer: dict[str, list[str] | str] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return {
            "bad_input": f"cannot be looked at in its environment (exit {done.returncode}): {''.join(last)}"
        }
    return answer


def _reason(log: Path) -> str:
    """The line of an installer's output that says why: its first error, or the last thing that it said."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error:", "error "))]
    return (errors or lines or ["it said nothing"])[-1][:300]
