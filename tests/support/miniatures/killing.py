"""Adapters that kill the process above their worker: the task, where they run on Ray."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from harness.backend.grammar import Grammar

from .harmful import Harmful
from .reference import ReferenceGrammar

FLAG = "MINIATURE_KILLED"
"""The environment variable that names a file: it is there once it was done."""
HOLD = "hold"
"""The name of a file beside it: while it is there, `TakesItsTime` waits."""


def grandparent() -> int:
    """Returns the process that started the worker of the child that serves cases."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


class KillsTheTask(Harmful):
    """Every time, as a fault in a library of the task's own process would."""

    def harm(self) -> None:
        os.kill(grandparent(), signal.SIGSEGV)
        time.sleep(60)


class KillsTheTaskOnce(KillsTheTask):
    """The first time only."""

    def harm(self) -> None:
        flag = Path(os.environ[FLAG])
        if not flag.exists():
            flag.touch()
            super().harm()


class TakesItsTime(KillsTheTask):
    """A tenth of a second for each grammar, so that something can happen meanwhile.

    While a file `hold` stands beside the flag, every process waits before its third grammar, for 15 seconds
    at most: what a test does to the cluster meanwhile happens in the middle of the sweep, however slow the
    machine is.
    """

    compiled = 0

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        time.sleep(0.1)
        TakesItsTime.compiled += 1
        hold, until = Path(os.environ.get(FLAG, "/nowhere/flag")).with_name(HOLD), time.monotonic() + 15
        while TakesItsTime.compiled >= 3 and hold.exists() and time.monotonic() < until:
            time.sleep(0.02)
        return super().compile(grammar)

    def harm(self) -> None:
        pass
