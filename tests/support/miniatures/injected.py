"""A right adapter that injects a fault by the name with which a pattern begins: `threadstray~3|ab+` leaves a
process behind."""

from __future__ import annotations

import builtins
import ctypes
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from harness.backend.grammar import Grammar, InvalidGrammar

from .harmful import LEFTOVER
from .reference import Reference, ReferenceGrammar, ReferenceObject


class Unprintable(Exception):
    """Its message cannot be had."""

    def __str__(self) -> NoReturn:
        raise RuntimeError("no message")

    __repr__ = __str__


class Base(BaseException):
    """No Exception."""


class Injected(Reference):
    """Does what the first word of a pattern says, and is right otherwise."""

    armed = ""
    """What the next compile in this process does."""

    def compile(self, grammar: Grammar) -> Any:
        armed, self.armed = self.armed, ""
        if armed:
            NOW[armed]()
        fault = grammar.text.partition("~")[0]
        if fault in NOW:
            NOW[fault]()
        elif fault in LATER:
            LATER[fault]()
        elif fault.startswith("arm-"):
            self.armed = fault.removeprefix("arm-")
        elif fault == "nogrammar":
            return None
        compiled = super().compile(grammar)
        method, _, answer = fault.partition("-")
        if answer in ANSWERS:
            return BrokenGrammar(compiled, method, ANSWERS[answer])
        return compiled


class BrokenGrammar(ReferenceGrammar):
    """A compiled grammar whose objects answer wrongly."""

    def __init__(self, right: ReferenceGrammar, method: str, answer: Callable[[], Any]) -> None:
        super().__init__(right.adapter, right.pattern)
        self.method, self.answer = method, answer

    def start(self) -> Any:
        if self.method == "start":
            return self.answer()
        grammar_object = ReferenceObject(self)
        setattr(grammar_object, self.method, lambda *_: self.answer())
        return grammar_object


def raising(error: type[BaseException]) -> Callable[[], NoReturn]:
    def answer() -> NoReturn:
        raise error("no")

    return answer


ANSWERS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "nan": lambda: float("nan"),
    "text": lambda: "yes",
    "floats": lambda: [0.5, -1.0],
    "negative": lambda: [-1],
    "stop": raising(StopIteration),
    "unprintable": raising(Unprintable),
    "base": raising(Base),
    "exit": raising(SystemExit),
    "generator": raising(GeneratorExit),
}
"""What a method gives, by the name of the fault."""


def hang() -> None:
    native = ctypes.PyDLL(None)
    while True:
        native.sleep(60)


def kill_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


NOW: dict[str, Callable[[], Any]] = {
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit": lambda: os._exit(0),
    "hang": hang,
    "raise": raising(RuntimeError),
    "killparent": kill_parent,
    "closeall": lambda: os.closerange(3, 1024),
}
"""What harms at once."""


def after(seconds: float, harm: Callable[[], Any]) -> None:
    def wait() -> None:
        time.sleep(seconds)
        harm()

    threading.Thread(target=wait, daemon=True).start()


def leave() -> None:
    subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(600)", LEFTOVER], start_new_session=True
    )


def alarm(handler: Any) -> None:
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)


def interrupt(*_: object) -> NoReturn:
    raise InvalidGrammar("by an alarm")


def spoil(module: Any, *names: str) -> None:
    for name in names:
        setattr(module, name, raising(RuntimeError))


def spoil_parsers() -> None:
    spoil(json, "loads", "dumps")
    spoil(json.JSONDecoder, "decode")
    spoil(json.JSONEncoder, "encode")


def lower(limit: int) -> None:
    resource.setrlimit(limit, (0, resource.getrlimit(limit)[1]))


LATER: dict[str, Callable[[], Any]] = {
    "threadsegfault": lambda: after(0.1, NOW["segfault"]),
    "threadhang": lambda: after(0.1, hang),
    "threadstray": lambda: after(0.1, leave),
    "alarm": lambda: alarm(signal.SIG_DFL),
    "handler": lambda: alarm(interrupt),
    "handlerexit": lambda: alarm(sys.exit),
    "clocks": lambda: spoil(time, "perf_counter_ns", "perf_counter", "process_time", "monotonic", "time"),
    "parsers": spoil_parsers,
    "open": lambda: spoil(builtins, "open"),
    "system": lambda: spoil(os, "read", "write", "getpid"),
    "recursion": lambda: sys.setrecursionlimit(90),
    "files": lambda: lower(resource.RLIMIT_NOFILE),
    "processor": lambda: resource.setrlimit(
        resource.RLIMIT_CPU, (1, resource.getrlimit(resource.RLIMIT_CPU)[1])
    ),
    "folder": lambda: os.chdir("/"),
    "environment": os.environ.clear,
    "collector": gc.disable,
    "streams": lambda: os.closerange(0, 3),
    "stdout": lambda: setattr(sys, "stdout", None),
}
"""What harms the cases after it, if it may."""
