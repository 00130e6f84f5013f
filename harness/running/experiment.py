"""A saved experiment: what a run walked, in the words of the command line, so that it can be walked again.

The file is TOML. Its keys are the options of `grammarbench run` without their dashes, and `suites`; paths are
relative to the file. Every run holds one of itself, in which each version and each default is written out.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.backend.environments.source import is_path
from harness.backend.registry import BackendSpec, installed_version, parse_spec
from harness.cases.models import NAMED
from harness.cases.suite import suite_names
from harness.errors import BadInput
from harness.paths import expanded
from harness.rows.store import EXPERIMENT
from harness.whole_files import write_whole

if TYPE_CHECKING:
    from harness.backend.arm import Arm
    from harness.rows.row import RunInfo
    from harness.running.session import Request

HEAD = """\
# What this run walked. To walk it again: grammarbench run FILE --out FOLDER, where FILE is this file.
# Paths are relative to this file; the keys are the options of `grammarbench run`.
"""


def write_experiment(folder: Path, request: Request, specs: Sequence[BackendSpec], info: RunInfo) -> None:
    """Writes what the run walks into its folder.

    `specs` are the backends as they were asked for, each with the arm of the same place in `info`.
    """
    import tomli_w

    here = Path()
    suites = request.suites or tuple(info.suites)
    vocabularies = request.vocabularies or tuple(info.vocabularies)
    value: dict[str, Any] = {
        "suites": [moved_suite(name, here, folder) for name in suites],
        "backends": [
            moved_backend(str(_at_its_version(spec, arm)), here, folder)
            for spec, arm in zip(specs, info.arms, strict=True)
        ],
        "vocabularies": [moved_vocabulary(name, here, folder) for name in vocabularies],
        "profile": info.profile,
        "effort": "all" if info.effort == -1 else info.effort,
        "decode": info.decode,
        "spellings": request.spellings,
        "seed": info.seed,
        "timeout": info.timeout_s,
        "memory": request.memory_gb,
        "jobs": request.jobs,
    }
    others = {
        "bare": request.bare,
        "case": list(request.only),
        "checks": list(info.checks),
        "check-timeout": info.check_timeout_s,
        "shard": str(request.shard or ""),
        "executor": request.executor,
        "shards": request.shards,
    }
    if not value["jobs"]:  # as many as the cluster has
        del value["jobs"]
    value |= {key: other for key, other in others.items() if other}
    content = HEAD + tomli_w.dumps(value)
    write_whole(folder / EXPERIMENT, content.encode("utf-8", "replace"))


def write_experiment_of_whole(shard: Path, whole: Path) -> None:
    """Writes into the folder of a merged run what one of its shards walked, without that it was a shard.

    Nothing is written where the shard's file is missing or damaged: what was merged may be a stranger's.
    """
    import tomli_w

    try:
        value = _stored(shard)
        for key, move in (
            ("suites", moved_suite),
            ("backends", moved_backend),
            ("vocabularies", moved_vocabulary),
        ):
            value[key] = [move(name, shard, whole) for name in value[key]]
    except (OSError, ValueError, KeyError, TypeError, BadInput):
        return
    kept = {key: one for key, one in value.items() if key not in ("shard", "shards", "executor")}
    write_whole(whole / EXPERIMENT, (HEAD + tomli_w.dumps(kept)).encode("utf-8", "replace"))


def suites_of_run(run: Path, there: Path) -> list[str]:
    """Returns the suites that the run walked, as they are named in the folder `there`; none if its folder
    does not say."""
    try:
        return [moved_suite(name, run, there) for name in _stored(run)["suites"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _stored(run: Path) -> dict[str, Any]:
    """Returns what the file in the run's folder says; it may be anybody's."""
    return tomllib.loads((run / EXPERIMENT).read_text("utf-8"))


def _at_its_version(spec: BackendSpec, arm: Arm) -> BackendSpec:
    """Returns the backend with the version that is installed, where none was asked for."""
    if spec.version is not None or not arm.distribution:
        return spec
    return replace(spec, version=installed_version(arm.distribution))


def moved(path: str, here: Path, there: Path) -> str:
    """Returns the path, which is relative to the folder `here`, as it is written relative to `there`.

    It always has a slash, so that it is never read as a name.
    """
    if expanded(path).is_absolute():
        return path
    relative = Path(os.path.relpath(here / path, there)).as_posix()
    return relative if "/" in relative else f"./{relative}"


def moved_suite(name: str, here: Path, there: Path) -> str:
    """Returns the suite as it is named in another folder: one of ours and a pydantic model by name, others by
    path."""
    ours = {suite.replace("_", "-") for suite in suite_names()}
    is_model = NAMED.fullmatch(name) is not None and not os.path.exists(here / name)
    return name if is_model or name.replace("_", "-") in ours else moved(name, here, there)


def moved_backend(text: str, here: Path, there: Path) -> str:
    """Returns the backend as it is named in another folder: a wheel or a checkout is a path.

    Raises BadInput.
    """
    spec = parse_spec(text)
    if spec.version is None or not is_path(spec.version):
        return text
    return str(replace(spec, version=moved(spec.version, here, there)))


def moved_vocabulary(name: str, here: Path, there: Path) -> str:
    """Returns the vocabulary as it is named in another folder: a tokenizer's file or folder is a path."""
    prefix, colon, source = name.rpartition(":")
    try:
        is_there = bool(source) and (here / source).exists()
    except OSError:
        is_there = False
    return f"{prefix}{colon}{moved(source, here, there)}" if is_there else name
