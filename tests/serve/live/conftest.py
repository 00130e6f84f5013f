"""A real server on this machine, with a small model of random weights that we write; and what sessions with
servers that are not real share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live.server import Server, serving
from live.sessions import sharing

from harness.backend.vocabulary import load_vocabulary


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's file; without the server's packages the tests are skipped."""
    for name in ("llama_cpp", "gguf", "fastapi", "uvicorn"):
        pytest.importorskip(name, reason=f"{name} is not installed (extra llama)")
    from gguf_model import write_model

    path = tmp_path_factory.mktemp("model") / "model.gguf"
    write_model(load_vocabulary("mistral-v3"), path)
    return path


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """For all tests of the session, and ended with it, however they ended."""
    with serving(model, tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """One judge and one look at the machine for the sessions of a module."""
    with sharing():
        yield
