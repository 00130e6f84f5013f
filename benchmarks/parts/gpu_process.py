"""The process of one cell: it is waited for until it ends or has answered, and then ended in any case."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

POLITE = 15.0
"""Seconds that a process which is told to end has to end its own processes before it is killed."""
LINGER = 5.0
"""Seconds that a process has to end by itself once its answer is there."""
LOOK = 0.5
"""Seconds between two looks at whether the answer is there."""
KILLED = "killed after"
"""How the error of a cell begins that took too long."""


def answer_of(process: subprocess.Popen[bytes], answer: Path, seconds: float) -> dict[str, Any]:
    """Waits for the process for so many seconds at most, ends it, and returns what it has written into the
    file, whatever became of the process behind that; `error` without a whole answer."""
    try:
        why = _waited(process, answer, seconds)
    finally:
        end(process)
    if not answer.exists():
        return {"error": why}
    try:
        result = json.loads(answer.read_text("utf-8"))
        if isinstance(result, dict):
            return result
    except (OSError, ValueError):  # the disk was full, or the memory
        pass
    return {"error": f"its answer is torn; {why}"}


def _waited(process: subprocess.Popen[bytes], answer: Path, seconds: float) -> str:
    """Returns how the waiting ended."""
    ends = time.monotonic() + seconds
    answered = False
    while True:
        try:
            return f"its process ended with {process.wait(max(0.0, min(LOOK, ends - time.monotonic())))}"
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        if not answered and answer.exists():
            answered, ends = True, min(ends, now + LINGER)
        if now >= ends:
            if answered:
                return "its process did not end"
            return f"{KILLED} {seconds:.0f} s; give the part more --seconds"


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process if it still runs: first it is asked to, and then it ends its own processes."""
    process.terminate()
    try:
        process.wait(POLITE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
