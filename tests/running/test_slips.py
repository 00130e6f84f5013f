"""A name that an adapter of ours misspells is our failure, in every phase; a user's adapter is the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.running import worker
from harness.running.limits import Limits
from harness.walk.replay import compile_grammar
from harness.walk.watched import LOADS, unwatched


def raising(module: str) -> Callable[..., Any]:
    """Returns a function of a module of that name in which a name is misspelt."""
    names: dict[str, Any] = {"__name__": module}
    exec("def raises(*_, **__):\n    return ends_off\n", names)
    made: Callable[..., Any] = names["raises"]
    return made


@pytest.mark.parametrize(("module", "ours"), [("harness.adapters.llama_cpp", True), ("my_backend", False)])
def test_a_misspelt_name_of_an_adapter_of_ours_is_our_failure(
    module: str, ours: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raises, page = raising(module), unwatched()
    monkeypatch.setattr(worker, "make", raises)
    with pytest.raises(NameError):
        worker.open_worker(page, "reference", "bytes", str(tmp_path), vars(Limits(1.0, 10**9)))
    assert page[LOADS] == (not ours)
    adapter: Any = SimpleNamespace(compile=raises)
    compiled = compile_grammar(adapter, Grammar("regex", "a"), page)
    assert compiled.status == ("harness_error" if ours else "backend_error")
