"""The perfect backend, but that a copy of an object harms the process, for a grammar that contains `boom`."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import NoReturn

from harness.backend.grammar import Grammar
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject


class Hanging(ReferenceObject):
    def copy(self) -> NoReturn:
        while True:
            time.sleep(1)


class Segfaulting(ReferenceObject):
    def copy(self) -> NoReturn:
        ctypes.string_at(0)
        raise AssertionError("still here")


class Exiting(ReferenceObject):
    def copy(self) -> NoReturn:
        sys.exit(3)


class _Boom(Reference):
    object_class: type[ReferenceObject]

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        right = super().compile(grammar)
        return _BoomGrammar(self, right._language) if "boom" in grammar.text else right


class _BoomGrammar(ReferenceGrammar):
    _adapter: _Boom

    def start(self) -> ReferenceObject:
        return self._adapter.object_class(self._adapter, self._language)


class HangsInCopy(_Boom):
    object_class = Hanging


class SegfaultsInCopy(_Boom):
    object_class = Segfaulting


class ExitsInCopy(_Boom):
    object_class = Exiting
