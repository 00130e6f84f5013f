"""Adapters that harm the process they run in, for a grammar that contains `boom`, and are right for any other
one."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar, Literal, NoReturn

from harness.backend.grammar import Bitmask, Grammar
from harness.backend.vocabulary import Vocabulary

from .reference import Reference, ReferenceGrammar, ReferenceObject

LEFTOVER, MARK = "miniature-leftover", "MINIATURE_TEST"
"""A process that a miniature left behind is found by this word in its command line or its name, and by the
value that this variable has in its environment: another test run on the same machine has another value."""

GIGABYTE = 1 << 30


class Harmful(Reference):
    """Calls `harm` at one moment, for a grammar that contains `boom`."""

    moment: ClassVar[Literal["compile", "start", "fill", "accept"]] = "compile"

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        if "boom" not in grammar.text:
            return compiled
        self.harm_at("compile")
        return HarmfulGrammar(self, compiled.pattern)

    def harm_at(self, moment: str) -> None:
        if moment == self.moment:
            self.harm()

    def harm(self) -> None:
        raise NotImplementedError


class HarmfulGrammar(ReferenceGrammar):
    """A grammar that contains `boom`."""

    adapter: Harmful

    def start(self) -> ReferenceObject:
        self.adapter.harm_at("start")
        return HarmfulObject(self)


class HarmfulObject(ReferenceObject):
    """An object of a grammar that contains `boom`."""

    compiled: HarmfulGrammar

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.compiled.adapter.harm_at("fill")
        super().fill_bitmask(bitmask)

    def accept_token(self, token: int) -> bool:
        self.compiled.adapter.harm_at("accept")
        return super().accept_token(token)


class Hangs(Harmful):
    """Waits in C for ever, holding the GIL: no Python signal handler ever runs, and no other thread."""

    def harm(self) -> None:
        native = ctypes.PyDLL(None)
        mutex = ctypes.create_string_buffer(256)
        native.pthread_mutex_init(mutex, None)
        native.pthread_mutex_lock(mutex)
        native.pthread_mutex_lock(mutex)


class HangsInStart(Hangs):
    moment = "start"


class HangsInFill(Hangs):
    moment = "fill"


class HangsInAccept(Hangs):
    moment = "accept"


class HangsDeaf(Hangs):
    """Hangs, and ignores every signal that can be ignored."""

    def harm(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_IGN)
        super().harm()


class Segfaults(Harmful):
    def harm(self) -> None:
        ctypes.string_at(0)


class SegfaultsInFill(Segfaults):
    moment = "fill"


class EatsMemory(Harmful):
    """Takes and touches memory, a sixteenth of a gigabyte at a time, until it has `gigabytes`; then gives it
    back and goes on."""

    def __init__(self, vocabulary: Vocabulary, *, gigabytes: int = 64) -> None:
        super().__init__(vocabulary)
        self.gigabytes = gigabytes

    def harm(self) -> None:
        eaten = [b"\x01" * (GIGABYTE // 16) for _ in range(self.gigabytes * 16)]
        del eaten


class AbortsOutOfMemory(Harmful):
    """Takes half a gigabyte, then aborts, as native code does that finds no more."""

    def harm(self) -> NoReturn:
        eaten = b"\x01" * (GIGABYTE // 2)
        os.write(
            2, b"terminate called after throwing an instance of 'std::bad_alloc' with %d bytes\n" % len(eaten)
        )
        os.abort()


class PrintsGarbage(Harmful):
    """Writes to standard output and standard error, through Python and past it, what is neither UTF-8 nor a
    line; then goes on."""

    def harm(self) -> None:
        print('{"kind": "row", "status": "ok"}')
        print("garbage", file=sys.stderr, flush=True)
        sys.stdout.flush()
        for descriptor in (1, 2):
            os.write(descriptor, b"\xff\x00garbage without end" * 500)


class Raises(Harmful):
    """Raises what the contract does not name."""

    def harm(self) -> NoReturn:
        raise RuntimeError("boom\nin two lines")


class RaisesInAccept(Raises):
    moment = "accept"


class RaisesSystemExit(Harmful):
    def harm(self) -> NoReturn:
        raise SystemExit(0)


class RaisesKeyboardInterrupt(Harmful):
    def harm(self) -> NoReturn:
        raise KeyboardInterrupt


class ExitsSilently(Harmful):
    """Ends the process with 0, past every `finally`."""

    def harm(self) -> NoReturn:
        os._exit(0)


class LeavesChild(Harmful):
    """Leaves a process in a session of its own that holds every inheritable descriptor; then goes on."""

    def harm(self) -> None:
        sleeper = [sys.executable, "-S", "-c", "import time; time.sleep(600)", LEFTOVER]
        subprocess.Popen(sleeper, start_new_session=True, close_fds=False)


class DoubleForks(Harmful):
    """Leaves an orphan in a session of its own that holds every descriptor; then goes on."""

    def harm(self) -> None:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        ctypes.CDLL(None).prctl(15, LEFTOVER[:15].encode(), 0, 0, 0)  # PR_SET_NAME, at most 15 bytes
        time.sleep(600)
        os._exit(0)


class AnswersTwice(Harmful):
    """Returns in two processes, so that two answers come for one case."""

    def harm(self) -> None:
        os.fork()


class WritesIntoPipes(Harmful):
    """Writes bytes that look like an answer, framed in the usual ways, into every pipe and socket that the
    process holds; then goes on."""

    def harm(self) -> None:
        answer = b'{"kind": "row", "status": "ok", "accepted": true, "valid": true, "findings": []}'
        sized = [len(answer).to_bytes(size, order) + answer for size in (4, 8) for order in ("big", "little")]
        for name in os.listdir("/proc/self/fd"):
            for frame in (answer + b"\n", *sized, b"\xff" * 64):
                try:
                    mode = os.fstat(int(name)).st_mode
                    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                        os.write(int(name), frame)
                except OSError:
                    break


class ClosesDescriptors(Harmful):
    """Closes every descriptor but the standard three; then goes on."""

    def harm(self) -> None:
        os.closerange(3, 1024)


class Connects(Harmful):
    """Opens a TCP connection to this machine and says something; raises OSError if it cannot."""

    def __init__(self, vocabulary: Vocabulary, *, port: int = 9) -> None:
        super().__init__(vocabulary)
        self.port = port

    def harm(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(b"hello")


def leftovers() -> list[int]:
    """Returns the ids of the living processes that `LeavesChild` and `DoubleForks` left, of those whose MARK
    is ours.
    """
    pids = []
    ours = f"{MARK}={os.environ[MARK]}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            name = (folder / "comm").read_text().strip()
            is_ours = ours in (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if is_ours and state != "Z" and (LEFTOVER.encode() in words or name == LEFTOVER[:15]):
            pids.append(int(folder.name))
    return pids
