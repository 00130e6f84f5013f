"""A real server on this machine: llama-cpp-python's, with a small model of random weights that we write."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.vocabulary import load_vocabulary

START_S = 90.0
STOP_S = 10.0


@dataclass(frozen=True)
class Server:
    """Where it listens, and the file in which each answer's times stand (see serve.py)."""

    url: str
    log: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Ready to answer; ended with the session, however the tests ended."""
    for name in ("llama_cpp", "gguf", "fastapi", "uvicorn"):
        pytest.importorskip(name, reason=f"{name} is not installed (extra llama)")
    from harness.vocabulary.gguf_file import Shape, write_model

    folder = tmp_path_factory.mktemp("server")
    write_model(load_vocabulary("mistral-v3"), folder / "model.gguf", Shape())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "log").touch()
    arguments = {
        "model": folder / "model.gguf",
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": 2048,
        "n_threads": 1,
        "n_threads_batch": 1,
        "logits_all": False,  # for each of 2,048 places a row as wide as the vocabulary
        "interrupt_requests": False,  # by default each request cuts off the one before it
        "verbose": False,
    }
    command = [sys.executable, str(Path(__file__).parent / "serve.py"), str(folder / "log")]
    with (
        open(folder / "output", "wb") as output,
        subprocess.Popen(
            [*command, *(part for name, value in arguments.items() for part in (f"--{name}", str(value)))],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "NO_PROXY": "*"},
        ) as process,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}", process, folder / "output")
            yield Server(f"http://127.0.0.1:{port}", folder / "log")
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    """Until it answers; fails with what it wrote if it ends first or takes too long."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/v1/models", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server did not start: {output.read_text('utf-8', 'replace')[-2000:]}")
