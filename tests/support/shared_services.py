"""Judges, generators, rewriters and validators of one test after another in the same processes, as all cases
of a run have them; and what looks at our backends, which would import PyTorch anew for each of xgrammar.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from places import SUPPORT

from harness.backend.process.channel import BrokenChannel
from harness.backend.process.child import Answer
from harness.backend.process.lost import Lost
from harness.backend.process.process import Process
from harness.backend.process.service import Service

LOADERS = (
    "harness.oracle.judge.handler:open_judge",
    "harness.cases.generated.handler:open_generator",
    "harness.cases.rewrites.handler:open_rewriter",
    "harness.diagnose.repro.evidence:open_validators",
)
"""Services of our own code alone, which keep nothing of one question for the next one."""

DESCRIBES = "harness.backend.describe:open_service"
"""The service that looks at the backends of a run."""
HARMLESS = {"llguidance", "lm-format-enforcer", "outlines-core", "reference", "unconstrained", "xgrammar"}
"""Backends that leave nothing behind in the process that looks at them."""

MAKE, ASK, CLOSE = Service.__init__, Service.ask, Service.close


@contextmanager
def services_are_not_shared() -> Iterator[None]:
    """While it lasts, each service has a process of its own again, where that process is a test's subject."""
    with _replaced(MAKE, ASK, CLOSE):
        yield


@contextmanager
def services_are_shared() -> Iterator[Callable[[], None]]:
    """While it lasts, the process of such a service that is closed is kept, and the next one has it.

    That holds in the environment that is nobody's question, and where the miniatures can be imported besides:
    the one in which it begins, and then the one at the last call of what this yields. Libraries set variables
    when they are imported, and from then on no process would be shared. A process ends with the thread that
    started it: services are made in the main thread and asked for the first time in any, so that they start
    here when they are made. One that is closed while it is asked, or that has lost its child, is ended as
    ever.
    """
    shared: list[dict[str, str]] = []

    def take_environment() -> None:
        bare = _environment()
        shared[:] = bare, bare | {"PYTHONPATH": str(SUPPORT)}

    take_environment()
    begun: dict[Process, tuple[str, dict[str, str]]] = {}
    idle: list[Process] = []
    unsettled: set[Process] = set()

    def starting(service: Service, loader: str, *rest: Any, **options: Any) -> None:
        MAKE(service, loader, *rest, **options)
        if loader in LOADERS:
            take_process(service)

    def take_process(service: Service) -> None:
        what = service.loader, _environment()
        if threading.current_thread() is not threading.main_thread() or what[1] not in shared:
            return
        for process in [process for process in idle if begun[process] == what]:
            idle.remove(process)
            if _is_well(process):
                service._process = process
                return
            process.close()  # it was lost while nobody had it
        service.start()
        assert service._process is not None
        begun[service._process] = what

    def noted(service: Service, message: Mapping[str, Any], blob: bytes = b"", *, seconds: float) -> Answer:
        if service.loader == DESCRIBES and service._process is None and _leaves_nothing(service, message):
            take_process(service)
        process = service._process
        if process is not None:
            unsettled.add(process)
        try:
            answer = ASK(service, message, blob, seconds=seconds)
        except Lost as lost:
            if process in begun:  # pytest shows it below a test that fails
                print(f"a shared service was lost ({lost.cause}): {lost}", file=sys.stderr)
            raise
        if process is not None:  # else it may be at work on that question still, or have lost its child
            unsettled.discard(process)
        return answer

    def keeping(service: Service) -> None:
        process = service._process
        if process is not None and process in begun and process not in unsettled and _is_well(process):
            idle.append(process)
            service._process = None
        else:
            CLOSE(service)

    with _replaced(starting, noted, keeping):
        yield take_environment
    for process in idle:
        process.close()


def _leaves_nothing(service: Service, message: Mapping[str, Any]) -> bool:
    """Is this a question to `DESCRIBES` after which its process is as before, and whose answer is the same
    from every folder? One about harmless backends alone, or about the classes of those that are installed."""
    named = message.get("specs") or message.get("names") or ()
    vocabularies = message.get("vocabularies") or ()
    return (
        service.python == sys.executable
        and "name" not in message
        and all(spec.partition(":")[0].replace("_", "-") in HARMLESS for spec in named)
        and not any(":" in name or os.path.exists(name) for name in vocabularies)
    )


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@contextmanager
def _replaced(make: object, ask: object, close: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "__init__", make)
        patch.setattr(Service, "ask", ask)
        patch.setattr(Service, "close", close)
        yield


def _is_well(process: Process) -> bool:
    """Does the process run, and has it nothing to tell of its child? One that nobody has asked yet has its
    first child still to tell of."""
    if process.child is not None:
        try:
            events, is_closed = process.hear()
        except BrokenChannel:
            return False
        if events or is_closed:
            return False
    return process.popen.poll() is None
