"""Adapters that work with what belongs to their process: its pipes, a process besides it, its collector of
cycles, its network."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from answering import close_pipes

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary

from .harmful import Harmful
from .reference import Reference, ReferenceGrammar, ReferenceObject

CALLS = ("miniatures.", "harness.walk.watched")
"""The modules that are at work during a call of a backend."""


class ClosesAllAndWaits(Harmful):
    """Begins a thread when it is made, so that the worker serves without a fork; later closes what it has
    inherited, as a daemon does, and waits."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()

    def harm(self) -> None:
        os.closerange(3, 1024)
        time.sleep(600)


class ClosesAllWhileLoading(Reference):
    """Closes what it has inherited when it is made, and waits."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        os.closerange(3, 1024)
        time.sleep(600)


class ClosesPipes(Harmful):
    """Closes every pipe but what is printed on; then goes on."""

    moment = "accept"

    def harm(self) -> None:
        close_pipes()


class ClosesPipesInACheck(Harmful):
    """Closes its pipes when an object is copied, which nothing but a check does; then goes on, so that this
    shows where the check answers."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        if "boom" in grammar.text:
            compiled.start = lambda: _ClosesPipesInCopy(compiled)  # type: ignore[method-assign]
        return compiled

    def harm(self) -> None:
        pass


class ClosesPipesInACheckOnThreads(ClosesPipesInACheck):
    """Does so in a worker that serves without a fork, because of a thread."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        threading.Thread(target=time.sleep, args=(600,)).start()


class _ClosesPipesInCopy(ReferenceObject):
    def copy(self) -> ReferenceObject:
        close_pipes()
        return super().copy()


class HasAHelper(Harmful):
    """Right; each grammar goes through a program that was started when the adapter was made."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.helper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        assert self.helper.stdin is not None and self.helper.stdout is not None
        sent = grammar.text.encode() + b"\n"
        self.helper.stdin.write(sent)
        self.helper.stdin.flush()
        if self.helper.stdout.readline() != sent:
            raise RuntimeError("the helper answers for another grammar")
        return super().compile(grammar)

    def harm(self) -> None:
        pass


class HasAHelperAndHangs(HasAHelper):
    """Hangs, with a question to its helper whose answer nobody reads."""

    def harm(self) -> None:
        assert self.helper.stdin is not None
        self.helper.stdin.write(b"unread\n")
        self.helper.stdin.flush()
        time.sleep(600)


class HasAHelperAndLeavesAnother(HasAHelper):
    """Leaves a process behind besides its helper."""

    def harm(self) -> None:
        subprocess.Popen(["sleep", "600"], start_new_session=True)


class DiesInACycle(Reference):
    """Leaves with each copy, of which there are none but in checks, a cycle of objects whose destructor
    segfaults where Python collects it in the code of a check."""

    def destroy(self) -> None:
        ctypes.string_at(0)

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        compiled.start = lambda: _LeavesCycles(compiled)  # type: ignore[method-assign]
        return compiled


class HangsInACycle(DiesInACycle):
    """Leaves cycles whose destructor hangs."""

    def destroy(self) -> None:
        time.sleep(600)


class _LeavesCycles(ReferenceObject):
    def copy(self) -> ReferenceObject:
        adapter = self.compiled.adapter
        assert isinstance(adapter, DiesInACycle)
        _leave_cycle(adapter.destroy)
        gc.set_threshold(1)  # so that Python collects soon after this call too, and not only in the next one
        return super().copy()


class _Native:
    def __init__(self, destroy: Callable[[], object]) -> None:
        self.destroy: Callable[[], object] = destroy
        self.itself: object = self

    def __del__(self) -> None:
        destroy = self.destroy
        modules, frame = [], sys._getframe().f_back
        while frame is not None:
            modules.append(str(frame.f_globals.get("__name__")))
            frame = frame.f_back
        is_checked = any(name.startswith("harness.checks") for name in modules)
        if is_checked and not any(name.startswith(CALLS) for name in modules):
            destroy()
        else:  # within a call of the backend, what happens is told as the backend's anyway
            _leave_cycle(destroy)


def _leave_cycle(destroy: Callable[[], object]) -> None:
    _Native(destroy)


class Listens(Harmful):
    """Looks for names and listens, each of which must be refused, and says what was not."""

    def harm(self) -> None:
        attempts: dict[str, Callable[[], object]] = {
            "gethostbyaddr": lambda: socket.gethostbyaddr("127.0.0.1"),
            "getnameinfo": lambda: socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST),
            "bind": lambda: socket.socket().bind(("127.0.0.1", 0)),
        }
        passed = []
        for name, attempt in attempts.items():
            try:
                attempt()
                passed.append(name)
            except PermissionError:
                continue
        path = f"\0miniature-{os.getpid()}"  # a socket of this machine alone is nobody's network
        with socket.socket(socket.AF_UNIX) as local:
            local.bind(path)
        if passed:
            raise RuntimeError(f"passed: {', '.join(passed)}")
