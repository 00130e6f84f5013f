"""What an adapter must say of itself: its class before it is made, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, get_args

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
    documented: object = getattr(adapter, "documented", None)
    if not isinstance(documented, Mapping) or not all(
        isinstance(text, str) for pair in documented.items() for text in pair
    ):
        return f"documented must map causes to sentences; it is {_shown(documented)}"
    return "" if isinstance(adapter, type) else _wrong_field(adapter)


def _wrong_field(adapter: Adapter) -> str:
    """Returns in one line which field of a made adapter is against the contract; empty if none is."""
    from harness.backend.grammar import KnownBy, MaskFormat
    from harness.backend.layout import Layout

    for name in ("wraps", "knows_one_end", "refused_vocabulary"):
        if not isinstance(value := getattr(adapter, name), str):
            return f"{name} must be a text, empty where there is none; it is {_shown(value)}"
    for name, known in (("mask_format", get_args(MaskFormat)), ("loader", get_args(KnownBy))):
        if not isinstance(value := getattr(adapter, name), str) or value not in known:
            return f"{name} must be one of {', '.join(map(repr, known))}; it is {_shown(value)}"
    for name in ("layout", "layout_in_tags"):
        if not isinstance(value := getattr(adapter, name), Layout | None):
            return f"{name} must be a Layout, or None; it is {_shown(value)}"
    return ""


def _shown(value: object) -> str:
    return repr(value)[:200]


def adapter_of(spec: str, vocabulary: str) -> Adapter:
    """Returns the adapter of a backend, as a user writes it, on the vocabulary of that name. Raises BadInput,
    also for a value of an option that the adapter refuses."""
    from harness.backend.registry import make, parse_specs
    from harness.backend.vocabulary import load_vocabulary

    try:
        (backend,) = parse_specs(spec)
        return make(backend, load_vocabulary(vocabulary))
    except ValueError as error:
        raise BadInput(str(error)) from error


def load_declared(name: str) -> type[Adapter]:
    """Returns the adapter class of a backend. Raises BadInput, which names the backend, also where the class
    does not say of itself what the contract asks."""
    from harness.backend.registry import load

    adapter = load(name)
    refuse_wrongly_declared(adapter, name)
    return adapter


def refuse_wrongly_declared(adapter: Adapter | type[Adapter], name: str) -> None:
    """Raises BadInput, which names the backend, for an adapter that says something of itself against the
    contract."""
    if problem := wrongly_declared(adapter):
        raise BadInput(f'backend "{name}" breaks the contract: {problem}')
