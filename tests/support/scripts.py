"""The scripts of benchmarks/ and docs/, as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from places import ROOT


def script_of(name: str, folder: str = "benchmarks") -> ModuleType:
    """Returns the script of that name as a module."""
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module
