"""Starts llama-cpp-python's server on this machine, and ends it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

START_S = 300.0


@dataclass(frozen=True)
class Server:
    """Has where the server listens, the file with each answer's times (see serve.py), and its process."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]


@contextmanager
def serving(model: Path, folder: Path) -> Iterator[Server]:
    """Ready to answer, until the block is left."""
    (folder / "log").touch()
    arguments = {
        "model": model,
        "n_ctx": 2048,
        "n_threads": 1,
        "n_threads_batch": 1,
        "logits_all": False,  # for each of 2,048 places a row as wide as the vocabulary
        "interrupt_requests": False,  # by default each request cuts off the one before it
        "verbose": False,
    }
    with socket.create_server(("127.0.0.1", 0)) as listening, open(folder / "output", "wb") as output:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        command = [
            sys.executable,
            str(Path(__file__).parent / "serve.py"),
            str(listening.fileno()),
            str(folder / "log"),
        ]
        process = subprocess.Popen(
            [*command, *(part for name, value in arguments.items() for part in (f"--{name}", str(value)))],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=[listening.fileno()],
        )
    try:
        _wait(url, process, folder / "output")
        yield Server(url, folder / "log", process)
    finally:
        process.kill()  # it has nothing to save
        process.communicate()


def _wait(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    """Until it answers; fails with what it wrote if it ends first or takes too long."""
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with straight.open(f"{url}/v1/models", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server did not start: {output.read_text('utf-8', 'replace')[-2000:]}")
