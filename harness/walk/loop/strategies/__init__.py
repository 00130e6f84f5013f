"""The strategies: what is written without asking the model.

A strategy is a file here with one subclass of Strategy; it is found without a list.
"""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module

from harness.backend.vocabulary import Vocabulary
from harness.walk.loop.strategies.base import Strategy


@cache
def strategies() -> dict[str, type[Strategy]]:
    """Returns the strategies by name, with `stepwise`, which writes nothing, first."""
    by_name = {Strategy.name: Strategy}
    for entry in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        mine = [
            kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Strategy)
        ]
        by_name |= {
            kind.name: kind for kind in mine if kind.__module__ == module.__name__ and kind is not Strategy
        }
    return by_name


def takes_drafts(name: str) -> bool:
    """Returns whether `draft_tokens` means anything to the strategy, which may be unknown here."""
    kind = strategies().get(name)
    return kind is not None and "draft_tokens" in inspect.signature(kind).parameters


def make_strategy(name: str, vocabulary: Vocabulary, draft_tokens: int) -> Strategy:
    """Returns a fresh strategy, which belongs to one loop. `draft_tokens` goes to the strategies that take
    it."""
    drafts = {"draft_tokens": draft_tokens} if takes_drafts(name) else {}
    return strategies()[name](vocabulary, **drafts)
