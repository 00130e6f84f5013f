"""What several test files need."""

from __future__ import annotations

from types import ModuleType

import pytest
import synthetic as synthetic_runs


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """tests/synthetic.py: runs that nobody measured."""
    return synthetic_runs
