"""Adapters that kill the process above their worker: the task, where they run on Ray."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from harness.grammar import Grammar

from .harmful import Harmful
from .reference import ReferenceGrammar

FLAG = "MINIATURE_KILLED"
"""The environment variable that names a file: it is there once it was done."""


def grandparent() -> int:
    """Of the child that serves cases: the process that started its worker."""
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
    """A tenth of a second for each grammar, so that something can happen meanwhile."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        time.sleep(0.1)
        return super().compile(grammar)

    def harm(self) -> None:
        pass
