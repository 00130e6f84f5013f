"""What is written without asking the model. A strategy is a file here with one subclass of Strategy; it is found without a list."""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module

from harness.loop.strategies.base import Strategy
from harness.vocabulary import Vocabulary


@cache
def strategies() -> dict[str, type[Strategy]]:
    """By name; the one that writes nothing first."""
    found = {Strategy.name: Strategy}
    for each in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{each.name}")
        mine = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Strategy)]
        found |= {kind.name: kind for kind in mine if kind.__module__ == module.__name__ and kind is not Strategy}
    return found


def make_strategy(name: str, vocabulary: Vocabulary, draft_tokens: int) -> Strategy:
    """A fresh one; one belongs to one loop. `draft_tokens` goes to those that take it."""
    kind = strategies()[name]
    drafts = {"draft_tokens": draft_tokens} if "draft_tokens" in inspect.signature(kind).parameters else {}
    return kind(vocabulary, **drafts)
