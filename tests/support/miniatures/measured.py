"""Adapters that behave while they are scouted (one walk of each text) and not when they are measured."""

from __future__ import annotations

import ctypes
import time
from collections import Counter

from harness.backend.grammar import CompiledGrammar, Grammar

from .reference import Reference, ReferenceGrammar, ReferenceObject

SCOUTED = 2
"""So many objects of one grammar a scout makes in our tests: one for each text."""


class _Misbehaving(Reference):
    """Calls `misbehave` with every object of a grammar that is one too many, however often the grammar is
    compiled."""

    def compile(self, grammar: Grammar) -> CompiledGrammar:  # type: ignore[override]
        vars(self).setdefault("started", Counter())
        return _Grammar(self, super().compile(grammar), grammar.text)

    def misbehave(self, grammar_object: ReferenceObject) -> None:
        raise NotImplementedError


class _Grammar(CompiledGrammar):
    def __init__(self, adapter: _Misbehaving, right: CompiledGrammar, text: str) -> None:
        self.adapter, self.right, self.text = adapter, right, text

    def start(self) -> ReferenceObject:
        assert isinstance(self.right, ReferenceGrammar)
        started: Counter[str] = vars(self.adapter)["started"]
        started[self.text] += 1
        grammar_object = self.right.start()
        if started[self.text] > SCOUTED:
            self.adapter.misbehave(grammar_object)
        return grammar_object


class HangsWhenMeasured(_Misbehaving):
    def misbehave(self, grammar_object: ReferenceObject) -> None:
        time.sleep(3600)


class DiesWhenMeasured(_Misbehaving):
    def misbehave(self, grammar_object: ReferenceObject) -> None:
        ctypes.string_at(0)


class RaisesWhenMeasured(_Misbehaving):
    def misbehave(self, grammar_object: ReferenceObject) -> None:
        raise RuntimeError("one object too many")


class ForgetsWhenMeasured(_Misbehaving):
    def misbehave(self, grammar_object: ReferenceObject) -> None:
        grammar_object.accept_token = lambda token: False  # type: ignore[method-assign]
