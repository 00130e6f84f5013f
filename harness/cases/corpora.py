"""Fetches the two public corpora by cloning each at a pinned commit."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput


@dataclass(frozen=True)
class Corpus:
    """A repository at a commit, and the folder in it that holds the cases."""

    url: str
    commit: str
    cases: str


CORPORA = {
    "maskbench": Corpus(
        "https://github.com/guidance-ai/jsonschemabench",
        "ba103c73756198dd9b149ddc7db7867da7a077f6",
        "maskbench/data",
    ),
    "json-schema-test-suite": Corpus(
        "https://github.com/json-schema-org/JSON-Schema-Test-Suite",
        "44401e0c046704b476ec9d2e2fccdaee618f259d",
        "tests",
    ),
}


UNHOOKED = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
"""Options for git that switch off hooks and monitors: a folder that is already there may bring programs of
its own, which git would run."""


def fetch_corpus(name: str, out: Path) -> Path:
    """Clones the corpus below `out`, or finds it there, and returns the folder of its cases. Raises BadInput
    when git or the network fails."""
    corpus = CORPORA[name]
    folder = out / name
    if not (folder / ".git").exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{folder}: cannot be written ({error.strerror}); give another --out") from error
        _git(folder, "init", "--quiet")
    # A commit may be fetched by its full name; only its own files come, not the history.
    _git(folder, "fetch", "--quiet", "--depth=1", corpus.url, corpus.commit)
    _git(folder, "checkout", "--quiet", "--detach", corpus.commit)
    return folder / corpus.cases


def _git(folder: Path, *arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *UNHOOKED, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise BadInput(
            "git is not installed; install it, or clone the corpus by hand and give its folder as SUITE"
        ) from error
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["git said nothing"])[-1]
        raise BadInput(
            f"git {arguments[0]} failed: {message}; is there a network? a copy of the corpus can be "
            "given to run as a folder"
        )
