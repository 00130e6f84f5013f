"""Fetches the two public corpora by cloning each at a pinned commit."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

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
"""Options for git that switch off the hooks and monitors that a user has for repositories of their own."""
NOT_OURS = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"))
"""Variables that would turn git to another repository, as they are set where a hook of it starts us."""
MARK = ".grammarbench"
"""The file in a corpus that says which commit was put there, and what its cases are."""


def fetch_corpus(name: str, out: Path) -> Path:
    """Clones the corpus below `out`, or finds it there as it was cloned, and returns the folder of its cases.
    Raises BadInput when git or the network fails, or something else lies there.

    No repository that is already there is used: its settings could name programs, which git would run.
    """
    corpus = CORPORA[name]
    folder = out / name
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            return _found(folder, corpus)
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{name}.", dir=out) as made:
            clone = Path(made) / name
            clone.mkdir()
            _git(clone, "init", "--quiet")
            # A commit may be fetched by its full name; only its own files come, not the history.
            _git(clone, "fetch", "--quiet", "--depth=1", corpus.url, corpus.commit)
            _git(clone, "checkout", "--quiet", "--detach", corpus.commit)
            shutil.rmtree(clone / ".git")
            (clone / MARK).write_text(_mark(clone, corpus))
            clone.rename(folder)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written ({error.strerror}); give another --out") from error
    return folder / corpus.cases


def _found(folder: Path, corpus: Corpus) -> Path:
    mark = folder / MARK
    try:
        is_as_put = mark.is_file() and mark.read_text(errors="replace") == _mark(folder, corpus)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read ({error.strerror}); give another --out") from error
    if not is_as_put:
        raise BadInput(
            f"{folder} is not commit {corpus.commit[:12]} as fetch has put it there; move it away and fetch "
            "again, or give it to run as a folder of your own"
        )
    return folder / corpus.cases


def _mark(folder: Path, corpus: Corpus) -> str:
    """Returns the commit, and a hash of the names and contents of all cases."""
    found = hashlib.sha256()
    cases = folder / corpus.cases
    for path in sorted(path for path in cases.rglob("*") if path.is_file() and path != folder / MARK):
        content = path.read_bytes()
        found.update(os.fsencode(path.relative_to(cases)) + f"\n{len(content)}\n".encode() + content)
    return f"{corpus.url} {corpus.commit}\nsha256 {found.hexdigest()}\n"


def _git(folder: Path, *arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *UNHOOKED, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in NOT_OURS},
        )
    except FileNotFoundError as error:
        raise BadInput(
            "git is not installed; install it, or clone the corpus by hand and give its folder as SUITE"
        ) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["git said nothing"]
        message = next((line for line in lines if line.startswith("fatal:")), lines[-1])
        raise BadInput(
            f"git {arguments[0]} failed: {message}; is there a network? a copy of the corpus can be "
            "given to run as a folder"
        )
