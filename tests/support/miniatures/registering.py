"""How wrong adapters are listed with the checks that must notice them."""

from __future__ import annotations

from collections.abc import Callable

from harness.backend.grammar import Adapter

from .reference import Reference, ReferenceObject

Mutants = dict[type[Adapter], frozenset[str]]
OfObjects = Callable[..., Callable[[type[ReferenceObject]], type[ReferenceObject]]]
OfAdapters = Callable[..., Callable[[type[Adapter]], type[Adapter]]]


def registering(mutants: Mutants) -> tuple[OfObjects, OfAdapters]:
    """Returns two decorators that take the names of checks: for a class of objects, which the reference
    adapter then has, and for an adapter."""

    def object_breaks(*checks: str) -> Callable[[type[ReferenceObject]], type[ReferenceObject]]:
        def register(wrong: type[ReferenceObject]) -> type[ReferenceObject]:
            mutants[type(wrong.__name__, (Reference,), {"object_class": wrong})] = frozenset(checks)
            return wrong

        return register

    def breaks(*checks: str) -> Callable[[type[Adapter]], type[Adapter]]:
        def register(wrong: type[Adapter]) -> type[Adapter]:
            mutants[wrong] = frozenset(checks)
            return wrong

        return register

    return object_breaks, breaks
