"""Modules of a package without what the package imports first: an engine's own start loads its kernels, which
need its hardware."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def bare_package(*names: str) -> None:
    """Puts these packages (dotted, parents before children) into `sys.modules` without running their
    `__init__`.

    Their modules can then be imported one by one; a package that is imported already is left as it is. Raises
    ImportError if one is not installed.
    """
    for name in names:
        if name in sys.modules:
            continue
        parent, _, _ = name.rpartition(".")
        spec = PathFinder.find_spec(name, sys.modules[parent].__path__ if parent else None)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"No package named {name!r}", name=name)
        bare = ModuleSpec(name, None, origin=spec.origin, is_package=True)
        bare.submodule_search_locations = list(spec.submodule_search_locations)
        module = ModuleType(name)
        module.__spec__, module.__path__, module.__file__ = bare, bare.submodule_search_locations, spec.origin
        module.__package__ = name
        sys.modules[name] = module


def stand_in(name: str, attributes: Iterable[str]) -> None:
    """Puts a module into `sys.modules` that has these names and nothing behind them, for what is imported but
    only named in annotations."""
    if name not in sys.modules:
        module = ModuleType(name)
        for attribute in attributes:
            setattr(module, attribute, type(attribute, (), {"__module__": name}))
        sys.modules[name] = module
