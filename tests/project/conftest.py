"""What the tests of benchmarks/reference.py share, and those of benchmarks/gpu.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from reference_corpora import made_corpora
from scripts import script_of


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """The script."""
    return script_of("reference")


@pytest.fixture(scope="module")
def gpu() -> ModuleType:
    """The script."""
    return script_of("gpu")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small corpora; tests leave it as it is."""
    return made_corpora(tmp_path_factory.mktemp("corpora"))
