"""What the pages presuppose: cases, a tokenizer, a model, releases of a backend, finished runs.

Each made once, when first asked for.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pages
import toy_releases
from places import ROOT
from toy_releases import FAULT, RIGHT, SOURCE, wheel

SECONDS = 300
"""The time that one command may take."""

RELEASES = {
    "1.0": SOURCE,
    "1.1": SOURCE + "\n# nothing else\n",
    "1.2": SOURCE.replace(
        "        if grammar.dialect",
        "        import time\n\n        time.sleep(0.02)\n        if grammar.dialect",
        1,
    ),
    "2.0": SOURCE.replace(RIGHT, FAULT),
}
"""The releases of the third-party toy backend: 1.1 is the same, 1.2 compiles slowly, 2.0 ends outputs too
early."""

OWN_WHEEL = "toy_backend-1.3-py3-none-any.whl"

MODEL = {
    "vocab_size": 512,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}


@dataclass(frozen=True)
class Store:
    """A folder that all tests of the session share, whatever process they are in."""

    folder: Path

    def get(self, name: str) -> Path:
        """Returns a file or folder, to be copied and left alone."""
        path = self.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / f".{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                SEEDS[name](self, path)
        return path

    def put(self, name: str, target: Path) -> None:
        """A copy of it."""
        source = self.get(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)

    def run(self, words: Sequence[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
        """One command of ours, or Python, as somebody would give it in that folder: no network, one thread,
        no plug-in of this session."""
        program, *arguments = words
        python = (
            str(self.get("toy") / "bin" / "python")
            if any("toy-choice" in word for word in words)
            else sys.executable
        )
        started = {
            "grammarbench": [python, "-P", "-m", "harness"],
            "pytest": [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider"],
            "python": [sys.executable],
        }[program]
        clean = toy_releases.environ(self.get("index"), self.folder / "environments")
        ours = {name: value for name, value in clean.items() if not name.startswith(("PYTEST_", "COV_"))}
        quiet = {
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "80",
            "PYTHONDONTWRITEBYTECODE": "",
        }
        return subprocess.run(
            [*started, *arguments], cwd=folder, env={**ours, **quiet, **more}, text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True, timeout=SECONDS,
        )  # fmt: skip

    def make(self, line: str, folder: Path) -> None:
        """A command that must succeed."""
        done = self.run(line.split(), folder)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"


def written_by_the_tutorial() -> dict[str, str]:
    """Returns the files that its heredocs write, by name."""
    written: dict[str, str] = {}
    for block in pages.blocks(pages.text_of("docs/tutorial.md")):
        written |= pages.heredocs(block.text)[1]
    return written


def _my_schemas(_: Store, path: Path) -> None:
    path.mkdir()
    for name, text in written_by_the_tutorial().items():
        if name.startswith("my_schemas/"):
            (path / Path(name).name).write_text(text, "utf-8")


def _tools(_: Store, path: Path) -> None:
    path.write_text(written_by_the_tutorial()["tools.json"], "utf-8")


def _my_cases(_: Store, path: Path) -> None:
    path.write_text(written_by_the_tutorial()["my_cases.jsonl"], "utf-8")


def _choices(_: Store, path: Path) -> None:
    """What the toy backend can do."""
    cases = [
        {
            "description": name,
            "choice": texts,
            "tests": [{"text": texts[0], "valid": True}, {"text": texts[0][:-1], "valid": False}],
        }
        for name, texts in (("two choices", ["ab", "abc"]), ("tool call", ["hello"]))
    ]
    path.write_text("".join(json.dumps(case) + "\n" for case in cases), "utf-8")


def _tokenizer(store: Store, path: Path) -> None:
    here = store.folder / "making_tokenizer"
    here.mkdir(exist_ok=True)
    store.put("my_cases.jsonl", here / "my_cases.jsonl")
    (here / "make.py").write_text(written_by_the_tutorial()["make_tokenizer.py"], "utf-8")
    store.make("python make.py", here)
    (here / "my_tokenizer").rename(path)


MAKE_MODEL = f"""
import json
from pathlib import Path
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
torch.manual_seed(0)
config = Qwen2Config(**{MODEL!r}, num_key_value_heads=1, max_position_embeddings=4096)
Qwen2ForCausalLM(config).save_pretrained("model")
"""


def _model(store: Store, path: Path) -> None:
    """A real folder of a model, with random weights, and the tokenizer from above."""
    here = store.folder / "making_model"
    here.mkdir(exist_ok=True)
    (here / "make.py").write_text(MAKE_MODEL, "utf-8")
    store.make("python make.py", here)
    for file in store.get("tokenizer").iterdir():
        shutil.copy(file, here / "model")
    (here / "model").rename(path)


def _index(_: Store, path: Path) -> None:
    made = path.with_name("making_index")
    for version, source in RELEASES.items():
        wheel(made, version, source, ["grammarbench"])
    made.rename(path)


def _toy(store: Store, path: Path) -> None:
    """An environment over this one, with the first release."""
    toy_releases.environment(path, store.get("index") / "toy_backend-1.0-py3-none-any.whl")


def _dist(_: Store, path: Path) -> None:
    wheel(path, "1.3", RELEASES["1.1"], ["grammarbench"])


def _my_run(store: Store, path: Path) -> None:
    for name in ("my_schemas", "my_cases.jsonl"):
        store.get(name)
    line = (
        "grammarbench run my_schemas my_cases.jsonl --backends outlines-core,llguidance --vocabularies "
        "probe --effort 0 --out making_run"
    )
    store.make(line, store.folder)
    (store.folder / "making_run").rename(path)


def _record(store: Store, path: Path) -> None:
    store.get("my_run")
    store.make(f"grammarbench compare my_run --record {path}", store.folder)


def _measured(store: Store, path: Path) -> None:
    store.get("choices.jsonl")
    backends = "toy-choice==1.0,toy-choice==1.1"
    line = (
        f"grammarbench measure choices.jsonl --backends {backends} --vocabularies bytes --forks 2 --out "
        "making_measured"
    )
    done = store.run(line.split(), store.folder)
    assert done.returncode in (0, 4), done.stderr  # 4: two forks on a noisy machine
    (store.folder / "making_measured").rename(path)


def _test_suite(_: Store, path: Path) -> None:
    """A file as the JSON-Schema-Test-Suite has them, at its place in the clone."""
    path.mkdir()
    group = {
        "description": "minimum",
        "schema": {"minimum": 2},
        "tests": [{"description": "below", "data": 1, "valid": False}],
    }
    (path / "minimum.json").write_text(json.dumps([group]), "utf-8")


def _own_test(_: Store, path: Path) -> None:
    path.mkdir()
    (path / "test_own.py").write_text("def test_own() -> None:\n    pass\n", "utf-8")


def _baseline(_: Store, path: Path) -> None:
    shutil.copy(ROOT / "results" / "baseline" / "default.json", path)


ONE_FORK = """
import sys
from dataclasses import replace
import pytest
from harness.measure.protocol import PROFILES
PROFILES["quick"] = replace(PROFILES["quick"], forks=1, most_forks=1, rounds=2, batch_sizes=())
sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]]))
"""
"""`pytest` where the quick profile, of which benchmarks/test_speed.py has no smaller one, takes seconds."""


def _one_fork(_: Store, path: Path) -> None:
    path.write_text(ONE_FORK, "utf-8")


def _published(store: Store, path: Path) -> None:
    """A published run."""
    shutil.copytree(ROOT / "results" / "published" / "corpora-cpu-epyc-2vcpu-20261122" / "maskbench", path)


SEEDS: dict[str, Callable[[Store, Path], None]] = {
    "my_schemas": _my_schemas,
    "my_cases.jsonl": _my_cases,
    "tools.json": _tools,
    "choices.jsonl": _choices,
    "tokenizer": _tokenizer,
    "model": _model,
    "index": _index,
    "toy": _toy,
    "dist": _dist,
    "my_run": _my_run,
    "record.json": _record,
    "measured": _measured,
    "test_suite": _test_suite,
    "own_test": _own_test,
    "baseline.json": _baseline,
    "one_fork.py": _one_fork,
    "published": _published,
}


def shared(basetemp: Path) -> Path:
    """Returns the folder of the whole session; under xdist every worker has a base of its own below it."""
    return (basetemp.parent if "PYTEST_XDIST_WORKER" in os.environ else basetemp) / "seeds"
