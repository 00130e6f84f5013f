"""More adapters that trouble the run itself, for a grammar that contains `boom` (`Slow`: for every one)."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import stat
import time
from pathlib import Path
from typing import ClassVar

from harness.backend.grammar import Grammar
from harness.backend.process.channel import send
from harness.backend.vocabulary import Vocabulary

from .harmful import Harmful, HarmfulObject
from .reference import Reference, ReferenceGrammar, ReferenceObject


class SegfaultsInAcceptOfB(Harmful):
    """Segfaults when it is given a token that begins with `b`."""

    moment = "accept"

    def harm(self) -> None:
        pass  # see accept_token below: only here is the token known

    def compile(self, grammar: object) -> object:  # type: ignore[override]
        compiled = super().compile(grammar)  # type: ignore[arg-type]
        compiled.start = lambda: _SegfaultsOnB(compiled)  # type: ignore[method-assign]
        return compiled


class _SegfaultsOnB(HarmfulObject):
    def accept_token(self, token: int) -> bool:
        if self.vocabulary.tokens[token].startswith(b"b"):
            ctypes.string_at(0)
        return ReferenceObject.accept_token(self, token)


class AnswersForAnother(Harmful):
    """Writes a well-formed answer for a case that nobody asked for into every pipe that it holds."""

    def harm(self) -> None:
        for name in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                    send(int(name), {"event": "done", "nonce": "0123456789abcdef", "pid": os.getpid()})
            except OSError:
                continue


class HoardsMemory(Harmful):
    """Keeps a tenth of a gigabyte of every case."""

    hoard: ClassVar[list[bytes]] = []

    def harm(self) -> None:
        self.hoard.append(b"\x01" * 100_000_000)


class PrintsVeryMuch(Harmful):
    """Prints 20 MB."""

    def harm(self) -> None:
        for _ in range(200):
            os.write(1, b"-" * 100_000)


class Slow(Reference):
    """Right, and takes 20 ms for each compile."""

    def compile(self, grammar: object) -> object:  # type: ignore[override]
        time.sleep(0.02)
        return super().compile(grammar)  # type: ignore[arg-type]


class CrashesInRollback(Reference):
    """Right, but for rollback, which ends the process."""

    def compile(self, grammar: object) -> object:  # type: ignore[override]
        compiled = super().compile(grammar)  # type: ignore[arg-type]
        compiled.start = lambda: _CrashesInRollback(compiled)  # type: ignore[method-assign]
        return compiled


class _CrashesInRollback(ReferenceObject):
    def rollback(self, count: int) -> None:
        ctypes.string_at(0)


class PrintsMuch(Harmful):
    """Prints a megabyte, more than a pipe holds; then goes on."""

    def harm(self) -> None:
        for _ in range(100):
            os.write(2, b"x" * 10_000)


class DiesAtTheEnd(Harmful):
    """Segfaults when the compiled grammar is given up, after every walk."""

    def compile(self, grammar: object) -> object:  # type: ignore[override]
        compiled = super().compile(grammar)  # type: ignore[arg-type]
        compiled.end = _SegfaultsWhenGivenUp() if "boom" in compiled.pattern.pattern.decode() else None  # type: ignore[attr-defined]
        return compiled

    def harm(self) -> None:
        pass


class DiesWithACopy(Reference):
    """Segfaults when a copy is given up, of which there are none but in checks."""

    def compile(self, grammar: object) -> object:  # type: ignore[override]
        compiled = super().compile(grammar)  # type: ignore[arg-type]
        if "boom" in grammar.text:  # type: ignore[attr-defined]
            compiled.start = lambda: _DiesWithACopy(compiled)  # type: ignore[method-assign]
        return compiled


class _DiesWithACopy(ReferenceObject):
    def copy(self) -> ReferenceObject:
        made = super().copy()
        made.end = _SegfaultsWhenGivenUp()  # type: ignore[attr-defined]
        return made


class KillsItself(Harmful):
    """Kills its process as the kernel does where memory is short."""

    def harm(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class KilledOnce(KillsItself):
    """Is killed by somebody the first time."""

    def harm(self) -> None:
        mark = Path(os.environ["MINIATURE_KILLED"])
        if not mark.exists():
            mark.touch()
            super().harm()


class _SegfaultsWhenGivenUp:
    def __del__(self) -> None:
        ctypes.string_at(0)


class DiesWhileLoading(Reference):
    """Ends the process when it is made for the run's vocabulary."""

    def __init__(self, vocabulary: object) -> None:
        super().__init__(vocabulary)  # type: ignore[arg-type]
        if os.environ.get("MINIATURE_LOADS_FROM"):  # as many lives as there are files in the folder
            lives = os.listdir(os.environ["MINIATURE_LOADS_FROM"])
            if not lives:
                return
            os.unlink(os.path.join(os.environ["MINIATURE_LOADS_FROM"], lives[0]))
        os._exit(3)


class LoadsAlone(Reference):
    """Loads in one process at a time, as a library with one licence does; takes its time for a grammar."""

    def __init__(self, vocabulary: object) -> None:
        super().__init__(vocabulary)  # type: ignore[arg-type]
        self.licence = open(os.environ["MINIATURE_LICENCE"], "w")  # noqa: SIM115
        try:
            fcntl.flock(self.licence, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RuntimeError("another process has the licence") from error

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        time.sleep(0.3)
        return super().compile(grammar)


class TakesNoVocabulary(Reference):
    """Forgets to call the constructor of its base."""

    def __init__(self, vocabulary: object) -> None:
        pass


class LacksALibrary(Reference):
    """Imports what is not installed when it is made, for any vocabulary but the one that it is looked at
    with."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        if vocabulary.size > 257:
            import no_such_library  # type: ignore[import-not-found]  # noqa: F401


class ChangesFolder(Reference):
    """Goes to another folder while it is made."""

    def __init__(self, vocabulary: object) -> None:
        super().__init__(vocabulary)  # type: ignore[arg-type]
        os.chdir("/")


class Large(Reference):
    """Takes 400 MB once it is loaded."""

    def __init__(self, vocabulary: object) -> None:
        super().__init__(vocabulary)  # type: ignore[arg-type]
        self.kept = b"1" * 400_000_000


class ExitsWhenMade(Reference):
    """Ends the process with 0 when it is made."""

    def __init__(self, vocabulary: object) -> None:
        os._exit(0)


class ExitsInACheck(Reference):
    """Right, but for rollback, which ends the process with 0."""

    def compile(self, grammar: object) -> object:  # type: ignore[override]
        compiled = super().compile(grammar)  # type: ignore[arg-type]
        compiled.start = lambda: _ExitsInRollback(compiled)  # type: ignore[method-assign]
        return compiled


class _ExitsInRollback(ReferenceObject):
    def rollback(self, count: int) -> None:
        os._exit(0)
