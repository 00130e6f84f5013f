"""The tests' own sharing of processes: who gets one that another had, and who does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from places import SUPPORT
from shared_services import DESCRIBES, LOADERS, services_are_shared

from harness.backend.describe import describe
from harness.backend.process.service import Service


@pytest.fixture
def take_environment() -> Iterator[Callable[[], None]]:
    """Returns what makes the environment that is there the one in which processes are shared."""
    with services_are_shared() as take:
        yield take


def process_of_one() -> int:
    """Returns the process of a service that is closed then."""
    with Service(LOADERS[0]) as service:
        service.wait()
        assert service._process is not None
        return service._process.popen.pid


def test_the_next_service_has_the_process_of_the_one_before(take_environment: Callable[[], None]) -> None:
    assert process_of_one() == process_of_one()


def test_what_a_test_puts_into_the_environment_is_for_its_own_processes(
    take_environment: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = process_of_one()
    monkeypatch.setenv("OF_THIS_TEST", "1")
    first, second = process_of_one(), process_of_one()
    assert len({shared, first, second}) == 3
    monkeypatch.delenv("OF_THIS_TEST")
    assert process_of_one() == shared


def test_what_a_library_has_left_there_ends_no_sharing_after_its_module(
    take_environment: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's compiler and llama.cpp leave variables when they are imported, and from then on each run of
    all tests behind them had a judge and a generator of its own, half a second of processor time."""
    monkeypatch.setenv("LEFT_BY_A_LIBRARY", "1")
    assert process_of_one() != process_of_one()
    take_environment()  # as before each module
    assert process_of_one() == process_of_one()


# --- the look at backends


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Returns what describes these backends, and returns the process that has looked at them."""
    asked: list[int] = []
    sharing = Service.ask

    def ask(service: Service, *rest: object, **options: float) -> object:
        answer = sharing(service, *rest, **options)  # type: ignore[arg-type]
        assert service.loader == DESCRIBES and service._process is not None
        asked.append(service._process.popen.pid)
        return answer

    def look(*backends: str) -> int:
        with monkeypatch.context() as patch:
            patch.setattr(Service, "ask", ask)
            found = describe(backends, ["bytes"])
        assert [arm.backend for arm in found.arms] == list(backends)
        return asked[-1]

    return look


def test_one_process_looks_at_our_backends_for_run_after_run(
    take_environment: Callable[[], None], looked: Callable[..., int]
) -> None:
    assert looked("reference") == looked("unconstrained", "reference")


def test_a_look_at_another_backend_or_a_file_has_a_process_of_its_own(
    take_environment: Callable[[], None],
    looked: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    shared = looked("reference")
    assert looked("reference", "miniatures:Reference") != shared
    monkeypatch.chdir(tmp_path)
    assert looked("reference") == shared
    (tmp_path / "bytes").mkdir()
    assert looked("reference") != shared
    (tmp_path / "bytes").rmdir()
    assert looked("reference") == shared
