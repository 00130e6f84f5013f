"""What several test files need."""

from __future__ import annotations

import os

# Before torch is imported, and for every process that a test starts: where several tests share two cores,
# threads only get in each other's way, and some operations become many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import gc
from collections.abc import Callable, Generator, Iterator
from types import ModuleType

import pytest
import synthetic as synthetic_runs
from browser import CHROMIUM, Browser
from places import SUPPORT
from shared_services import services_are_shared


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Twelve thousand tests are collected without a look for garbage, of which there is none: that took a
    sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Takes what is there before the first test, a million objects, out of Python's collections of garbage:
    several checks collect, and each of them would go through all of it in a quarter of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _shared_services() -> Iterator[Callable[[], None]]:
    """Five hundred runs of these tests ask a judge, whose process takes a third of a second to load."""
    with services_are_shared() as take_environment:
        yield take_environment


@pytest.fixture(scope="module", autouse=True)
def _state_of_the_module(_shared_services: Callable[[], None]) -> None:
    """What a library has left in the environment that the modules before have imported is no test's
    question; what they have left in memory is none of the collections of garbage, many of which are timed."""
    _shared_services()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """tests/support/synthetic.py: runs that nobody measured."""
    return synthetic_runs


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium; where there is none, the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def importable_miniatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes can import the miniatures by their names."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
