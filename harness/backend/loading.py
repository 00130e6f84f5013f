"""Loads a backend in a process of its own, and tells the client when the backend itself is at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.backend.grammar import Adapter
from harness.backend.process.child import LOADING, Page
from harness.backend.registry import BackendSpec, make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.errors import is_slip_of_ours


def load_adapter(spec: str, vocabulary: str, page: Page | None = None) -> tuple[Adapter, BackendSpec]:
    """Returns the adapter of one backend, bound to the vocabulary, and what `spec` asks for. Raises BadInput,
    and whatever the backend raises.

    What befalls this process while the vocabulary is read is ours, and what befalls it from then on is the
    backend's.
    """
    loaded = load_vocabulary(vocabulary)
    (backend,) = parse_specs(spec)
    with at_work(page):
        return make(backend, loaded), backend


@contextmanager
def at_work(page: Page | None, cell: int = LOADING) -> Iterator[None]:
    """Says in this cell of the page, if there is one, that the backend itself is at work in the block. The
    cell still says so after an exception, unless that is a slip of ours."""
    _note(page, cell, True)
    try:
        yield
    except NameError as error:
        _note(page, cell, not is_slip_of_ours(error))
        raise
    _note(page, cell, False)


def _note(page: Page | None, cell: int, is_at_work: bool) -> None:
    if page is not None:
        page[cell] = is_at_work
