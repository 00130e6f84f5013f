"""What an adapter's class must say of itself before it is made: its distribution and its dialects."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from harness.errors import BadInput

if TYPE_CHECKING:
    from harness.backend.grammar import Adapter


def wrongly_declared(adapter: Adapter | type[Adapter]) -> str:
    """Returns in one line what the adapter says of itself against the contract; empty if that is right."""
    from harness.backend.grammar import DIALECTS

    distribution: object = getattr(adapter, "distribution", None)
    if not isinstance(distribution, str):
        return f"distribution must be a text, empty where there is none; it is {distribution!r}"
    dialects: object = getattr(adapter, "dialects", None)
    if not isinstance(dialects, Set):
        return f"dialects must be a set of names; it is {dialects!r}"
    unknown = sorted(str(name) for name in dialects if name not in DIALECTS)
    if unknown:
        return f"dialects has {', '.join(unknown)}; the known ones are {', '.join(DIALECTS)}"
    return ""


def load_declared(name: str) -> type[Adapter]:
    """Returns the adapter class of a backend. Raises BadInput, which names the backend, also where the class
    does not say of itself what the contract asks."""
    from harness.backend.registry import load

    adapter = load(name)
    if problem := wrongly_declared(adapter):
        raise BadInput(f'backend "{name}" breaks the contract: {problem}')
    return adapter
