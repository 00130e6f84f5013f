"""What several test files need."""

from __future__ import annotations

import os

# Before torch is imported, and for every process that a test starts: on two cores with two tests at a time, threads only get in each
# other's way, and some operations become many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from types import ModuleType

import pytest
import synthetic as synthetic_runs


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """tests/synthetic.py: runs that nobody measured."""
    return synthetic_runs
