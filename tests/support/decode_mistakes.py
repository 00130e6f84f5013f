"""Mistakes that are put into the source of the decode loop, for tests that must notice them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

SetAttribute = Callable[[object, str, object], None]


def put_mistake(module: str, right: str, wrong: str, set_attribute: SetAttribute) -> None:
    """Replaces a text that stands once in a module of the loop, and puts what the module then defines
    wherever
    something of it was imported."""
    original = import_module(f"harness.walk.loop.{module}")
    assert original.__file__ is not None
    with open(original.__file__, encoding="utf-8") as file:
        source = file.read()
    assert source.count(right) == 1, f"{module}: {source.count(right)} times: {right}"
    mutant = ModuleType(original.__name__)
    exec(compile(source.replace(right, wrong), f"<mutant of {original.__name__}>", "exec"), mutant.__dict__)
    for name, value in vars(original).items():
        if getattr(value, "__module__", None) != original.__name__:
            continue
        for other in list(sys.modules.values()):
            if (
                getattr(other, "__name__", "").startswith(("harness.walk.loop", "decode_", "test_decode"))
                and vars(other).get(name) is value
            ):
                set_attribute(other, name, getattr(mutant, name))
