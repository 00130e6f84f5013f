"""The released versions of a distribution that can be installed here, as the configured package
index tells.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterable
from http.client import HTTPException
from typing import Any, TypeVar

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from harness.backend.arm import OfAVersion
from harness.backend.environments.installer import pip_command, without_connection
from harness.errors import BadInput

INDEX = "https://pypi.org/simple"
"""The index that pip and uv use unless they are told another."""

SECONDS = 20.0

AnArm = TypeVar("AnArm", bound=OfAVersion)


def released(distribution: str) -> list[str]:
    """Returns the released versions, the oldest first, without those that were yanked.

    Raises BadInput if there is none, or no index.

    pip is asked, because it knows the indexes, folders and tags that hold here; it does not say what was
    yanked, which the index does.
    """
    command = [*pip_command(), "index", "versions", "--pre", distribution]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ)
    )
    listed = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode or not listed:
        said = done.stdout + done.stderr
        last = [line for line in said.splitlines() if line.strip()][-1:]
        raise BadInput(
            f"the releases of {distribution} cannot be listed: {''.join(last)}{without_connection(said)}; "
            "wheels in a folder count as releases where PIP_FIND_LINKS (for uv UV_FIND_LINKS) names it"
        )
    yanked = _yanked(distribution)
    versions = [version for version in re.split(r",\s*", listed[1].strip()) if _is_version(version)]
    return sorted((version for version in versions if Version(version) not in yanked), key=Version)


def between(listed: Callable[[], list[str]], good: str, bad: str) -> list[str]:
    """Returns the versions from `good` to `bad`, both included, released or not; pre-releases only if one of
    the two is one.

    `listed` returns what is released; it is called once the two are known to be in order, because it may ask
    an index. Raises BadInput."""
    for version in (good, bad):
        if not _is_version(version):
            raise BadInput(
                f'"{version}" is no version; write GOOD..BAD, for example 1.2.0..1.4.1, and let '
                "PIP_FIND_LINKS (for uv UV_FIND_LINKS) name the folder of wheels that are on no index"
            )
    if not Version(good) < Version(bad):
        raise BadInput(f"{good}..{bad}: the older version must come first")
    early = Version(good).is_prerelease or Version(bad).is_prerelease
    middle = [
        version
        for version in listed()
        if Version(good) < Version(version) < Version(bad) and (early or not Version(version).is_prerelease)
    ]
    return [good, *middle, bad]


def release(version: str) -> tuple[bool, Version]:
    """Returns what versions are ordered by; one that is no version of a release comes before all, and is
    ordered with no other."""
    try:
        return True, Version(version)
    except InvalidVersion:
        return False, Version("0")


def same_or_newest(version: str, of: Iterable[AnArm]) -> AnArm | None:
    """Returns the arm of this version, or else that of the newest; None if there is no arm."""
    arms = list(of)
    same = (arm for arm in arms if arm.version == version)
    return next(same, None) or max(arms, key=lambda arm: release(arm.version), default=None)


def _is_version(text: str) -> bool:
    return release(text)[0]


def _yanked(distribution: str) -> set[Version]:
    """Returns the versions whose every file was withdrawn; empty where the index does not tell (no network,
    or an index of another kind)."""
    index = _index()
    if not index:
        return set()
    page = f"{index.rstrip('/')}/{distribution}/"
    try:
        request = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return withdrawn(json.load(answer))
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return set()


def _index() -> str:
    """Returns the index that pip asks, by its variables and its files; empty where it asks none, or does not
    tell: a name of a private index is told to no other."""
    if os.environ.get("PIP_NO_INDEX"):
        return ""
    if given := os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX"):
        return given
    command = [*pip_command(), "config", "list"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    # What stands under the command's own name comes last, and outdoes what stands under `global`.
    told = dict(
        re.findall(r"^(?:global|index)\.(index-url|no-index)=[\"'](.*)[\"']$", done.stdout, re.MULTILINE)
    )
    return "" if done.returncode or "no-index" in told else told.get("index-url", INDEX)


def withdrawn(page: dict[str, Any]) -> set[Version]:
    """Returns the versions that have no file but yanked ones on an index's page (PEP 691)."""
    offered: set[Version | None] = set()
    gone: set[Version | None] = set()
    for file in page["files"]:
        version = _version_of(file["filename"])
        (gone if file.get("yanked") else offered).add(version)
    return {version for version in gone - offered if version is not None}


def _version_of(file: str) -> Version | None:
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
