"""What a case can change of the process that serves it, to the harm of the cases after it: clocks, parsers,
limits, handlers, threads."""

from __future__ import annotations

import builtins
import gc
import json
import json.decoder
import json.encoder
import os
import resource
import signal
import sys
import threading
import time

# Bound before a backend is imported, which may put something else in their place. The signal module's own
# functions would make an enumeration's member of each answer, which takes longer than everything else here.
from _signal import getsignal  # type: ignore[import-not-found]
from gc import get_threshold, isenabled
from os import fstat, getcwd
from resource import getrlimit
from signal import getitimer, pthread_sigmask, setitimer
from sys import _current_frames, getrecursionlimit
from typing import Any

SPACES: dict[str, Any] = {
    **{f"the module {module.__name__}": vars(module) for module in (builtins, gc, json, os, threading, time)},
    **{f"the module {module.__name__}": vars(module) for module in (json.decoder, json.encoder)},
    **{f"the class {kind.__name__}": vars(kind) for kind in (json.JSONDecoder, json.JSONEncoder)},
}
"""Every name in these must stand for what it stood for before a case; new names may come."""

TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
LIMITS = tuple(sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}))
SIGNALS = tuple(sorted({int(number) for number in signal.valid_signals()} - {signal.SIGKILL, signal.SIGSTOP}))


class ProcessState:
    """Compares the process with what it was when this was made."""

    def __init__(self, descriptors: tuple[int, ...]) -> None:
        """`descriptors` are the open files that we need."""
        self._descriptors = descriptors
        self._spaces = {name: dict(space) for name, space in SPACES.items()}
        self._others = self._look()

    def changes(self) -> list[str]:
        """Returns the names, for people, of what is no longer as it was."""
        now = self._look()
        changed = [name for name, was in self._others.items() if now[name] != was]
        return changed + [name for name, was in self._spaces.items() if not _stands(was, SPACES[name])]

    def _look(self) -> dict[str, Any]:
        return {
            "the folder": _folder(),
            "the environment": dict(os.environ._data),  # type: ignore[attr-defined]  # decoding each name takes ten times as long
            "a limit of the system": [getrlimit(number) for number in LIMITS],
            "a handler of a signal": [getsignal(number) for number in SIGNALS],
            "the blocked signals": pthread_sigmask(signal.SIG_BLOCK, ()),
            "an alarm": [getitimer(timer) != (0.0, 0.0) for timer in TIMERS],
            "the recursion limit": getrecursionlimit(),
            "the garbage collector": (isenabled(), get_threshold()),
            "the number of threads": len(_current_frames()),
            "a trace or profile function": (sys.gettrace(), sys.getprofile()),
            "an open file of ours": [_identity(number) for number in self._descriptors],
            "a standard stream": [
                (id(stream), bool(getattr(stream, "closed", True)))
                for stream in (sys.stdin, sys.stdout, sys.stderr)
            ],
        }


def stop_alarms() -> None:
    """Stop every alarm of this process: the handler of one that repeats may raise wherever we are."""
    for timer in TIMERS:
        setitimer(timer, 0)


def _stands(was: dict[str, Any], now: Any) -> bool:
    return now == was or all(name in now and now[name] is value for name, value in was.items())


def _folder() -> str:
    try:
        return getcwd()
    except OSError:
        return ""


def _identity(descriptor: int) -> tuple[int, int] | None:
    """Returns the device and the number of the open file; None if it is closed."""
    try:
        status = fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
