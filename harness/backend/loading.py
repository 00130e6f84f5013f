"""Loads a backend in a process of its own, and tells the client when the backend itself is at work."""

from __future__ import annotations

from harness.backend.grammar import Adapter
from harness.backend.process.child import LOADING, Page
from harness.backend.registry import BackendSpec, make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.errors import is_slip_of_ours


def load_adapter(spec: str, vocabulary: str, page: Page | None = None) -> tuple[Adapter, BackendSpec]:
    """Returns the adapter of one backend, bound to the vocabulary, and what `spec` asks for. Raises BadInput,
    and whatever the backend raises.

    What befalls this process while the vocabulary is read is ours, and what befalls it from then on is the
    backend's: the cell LOADING of the page says which it is.
    """
    loaded = load_vocabulary(vocabulary)
    (backend,) = parse_specs(spec)
    _note(page, True)
    try:
        adapter = make(backend, loaded)
    except NameError as error:
        _note(page, not is_slip_of_ours(error))
        raise
    _note(page, False)
    return adapter, backend


def _note(page: Page | None, is_loading: bool) -> None:
    if page is not None:
        page[LOADING] = is_loading
