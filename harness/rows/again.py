"""Words the commands that measure more of what a run walked, with its suites as they were given, its
tokenizers and its backends' versions.

Every command that is printed about a run is made here or holds the run's folder, is quoted for a shell, and
runs as printed in the folder in which the run was made.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.backend.arm import OfABackend, pinned
from harness.cases.suite import suite_names
from harness.rows.row import RunInfo
from harness.rows.store import EXPERIMENT

ONE_VOCABULARY = ("measure", "decode")
"""The commands that take a single vocabulary: they are given the run's first."""

SUFFIX = {"run": "walked", "measure": "measured", "decode": "decoded", "kernels": "kernels"}
"""The suffix that a command's output folder gets behind the name of the run's."""

NO_WAY_ON = "a live session cannot be resumed; repeat its command with another --out"
"""The sentence for an incomplete run that no command completes."""


def suites_of(info: RunInfo) -> list[str]:
    """Returns the run's suites as its command named them, or else those of its suites that come with the
    package."""
    return list(info.asked) or [name for name in info.suites if name in suite_names()]


def suite_word(suite: str) -> str:
    """Returns a suite of a run as a command of any reader names it: `CORPUS` stands for the folder in which
    those that do not come with the package lie."""
    return suite if suite in suite_names() else f"CORPUS/{suite}"


def spec_of(of: OfABackend, version: str, released: bool) -> str:
    """Returns the backend as `--backends` takes it.

    A version with a local part (`1.0+inner-0.2`) names no release of an index, so it is left out.
    """
    return pinned(of, version if released and "+" not in version else "")


def more(verb: str, runs: Sequence[tuple[Path, RunInfo]], specs: Sequence[str], *options: str) -> str:
    """Returns the command `verb` for what the runs walked, to be copied into a shell; DIR and A,B stand for
    what no run says."""
    suites = list(dict.fromkeys(suite for _, info in runs for suite in suites_of(info)))
    vocabularies = list(dict.fromkeys(name for _, info in runs for name in info.vocabularies))
    return worded(verb, runs[0][0] if runs else None, suites, vocabularies, specs, *options)


def worded(
    verb: str,
    folder: Path | None,
    suites: Sequence[str],
    vocabularies: Sequence[str],
    specs: Sequence[str],
    *options: str,
) -> str:
    """Returns the command `verb` with these words, whose output lies beside the folder; DIR and A,B stand for
    what is not known."""
    words = ["grammarbench", *(["measure"] if verb == "kernels" else []), verb]
    if verb != "kernels":
        words += suites
    words += ["--backends", ",".join(specs) or "A,B"]
    if vocabularies and verb != "kernels":
        words += ["--vocabularies", vocabularies[0] if verb in ONE_VOCABULARY else ",".join(vocabularies)]
    out = "DIR" if folder is None else f"{folder.name}-{SUFFIX[verb]}"
    return shlex.join([*words, *options, "--out", out])


def is_live(info: RunInfo) -> bool:
    """Returns whether the run is a session with a live server, whose rows no other command makes."""
    return info.argv[:1] == ("live",)


def how_to_complete(folder: Path, info: RunInfo) -> str:
    """Returns what becomes of an incomplete run, to stand behind `; `: the command that completes it, or that
    none does."""
    command = resume_command(folder, info)
    return f"`{command}` completes it" if command else NO_WAY_ON


def resume_command(folder: Path, info: RunInfo) -> str:
    """Returns the command that completes an incomplete run, or the advice that rests on it; nothing for a
    live session. If no command of ours made the run, or it was put together, it is `run --resume` with the
    folder and what it holds of its options."""
    if is_live(info):
        return ""
    experiment = folder / EXPERIMENT
    if info.argv[:1] == ("merge",) and experiment.is_file():
        return shlex.join(["grammarbench", "run", str(experiment), "--resume", "--out", str(folder)])
    if info.argv[:1] not in (("run",), ("advise",)):
        return shlex.join(["grammarbench", "run", "--resume", "--out", str(folder)])
    names_folder = any(word == "--out" or word.startswith("--out=") for word in info.argv)
    added = [
        *([] if "--resume" in info.argv else ["--resume"]),
        *([] if names_folder else ["--out", str(folder)]),
    ]
    return shlex.join(["grammarbench", *info.argv, *added])
