"""The options, the session's measurement and the hooks behind `benchmarks/test_speed.py`; only
pytest-benchmark's public interface is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "parts"))
from speed import CLOCK, Speed, Wanted, read_speed, wanted

from harness.cases.suite import MEASURED
from harness.errors import BadInput
from harness.measure.protocol import PROFILES
from harness.measure.record import has_measurement
from harness.measure.session import MeasureRequest, measure
from harness.rows.machine import hardware, hardware_key
from harness.running.limits import MEMORY_GB

BACKENDS = "llguidance,xgrammar,outlines-core,lm-format-enforcer"
VOCABULARY = "tekken"
PROFILE = "quick"

MACHINE_OF_THE_REPLAY = ("node", "processor", "machine", "release", "system", "cpu")
"""What the plugin tells of the machine that it runs on."""


# ------------------------------------------------------------------------------------------------ the session

WANTED = pytest.StashKey[Wanted]()
SPEED = pytest.StashKey[Speed]()
COMPARED = pytest.StashKey[list[dict[str, Any]]]()
"""The blocks of the files that the session is compared with."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("grammarbench", "the quick set of GrammarBench (benchmarks/test_speed.py)")
    group.addoption(
        "--backends",
        metavar="A,B==1.2,...",
        help=f"as in `grammarbench measure`; the first is the reference (default: {BACKENDS})",
    )
    group.addoption(
        "--vocabularies", metavar="V", help=f"as in `grammarbench measure` (default: {VOCABULARY})"
    )
    group.addoption("--profile", choices=list(PROFILES), help=f"how much is measured (default: {PROFILE})")
    text = (
        "replay the measurement in this folder; with --backends, measure into it first (default: "
        "results/runs/<run>)"
    )
    group.addoption("--measurement", metavar="DIR", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("benchmarks/ needs pytest-benchmark; install it, or do not switch it off")
    if config.getoption("dist", "no") != "no" or "PYTEST_XDIST_WORKER" in os.environ:
        raise pytest.UsageError(
            "pytest-benchmark records nothing under pytest-xdist, and would write no file; leave -n out"
        )
    config.stash[COMPARED] = []
    try:
        folder = config.getoption("measurement", None)
        stored = folder is not None and (config.getoption("backends") is None or has_measurement(folder))
        if stored:
            _refuse_to_measure_again(config, folder)
            config.stash[SPEED] = read_speed(folder)
        config.stash[WANTED] = (
            config.stash[SPEED].wanted if stored else wanted(config.getoption("backends", None) or BACKENDS)
        )
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error


def _refuse_to_measure_again(config: pytest.Config, folder: Path) -> None:
    given = [
        f"--{name}" for name in ("backends", "vocabularies", "profile") if config.getoption(name) is not None
    ]
    if given and has_measurement(folder):
        raise BadInput(
            f"{folder} holds a measurement already; leave {' and '.join(given)} out to replay "
            "it, or give another folder"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "speed" not in metafunc.fixturenames:
        return
    metric, planned = metafunc.function.__name__.removeprefix("test_"), metafunc.config.stash[WANTED]
    items = [
        pytest.param(
            case,
            backend,
            id=f"{case}-{backend}",
            marks=pytest.mark.benchmark(timer=CLOCK, group=f"{metric} {case}"),
        )
        for case in planned.cases
        for backend in planned.backends
    ]
    metafunc.parametrize(("case", "backend"), items)


@pytest.fixture(scope="session")
def speed(pytestconfig: pytest.Config) -> Speed:
    """The measurement: made when the first item asks for it, of all backends at once, or the one that is
    replayed."""
    if SPEED not in pytestconfig.stash:
        try:
            with _terminal(pytestconfig) as say:
                folder, _ = measure(_request(pytestconfig), say)
            measured = read_speed(folder, pytestconfig.stash[WANTED])
        except BadInput as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        for block in pytestconfig.stash[COMPARED]:
            if problem := _other_than(block, "workload", measured.figures.measurement.workload):
                pytest.exit(
                    f"{problem}; what was measured is in {folder}", returncode=pytest.ExitCode.USAGE_ERROR
                )
        pytestconfig.stash[SPEED] = measured
    return pytestconfig.stash[SPEED]


def _request(config: pytest.Config) -> MeasureRequest:
    return MeasureRequest(
        suites=(MEASURED,),
        backends=config.getoption("backends", None) or BACKENDS,
        reference=None,
        vocabulary=config.getoption("vocabularies", None) or VOCABULARY,
        profile=config.getoption("profile", None) or PROFILE,
        out=config.getoption("measurement", None),
        forks=None,
        timeout_s=None,
        memory_gb=MEMORY_GB,
        argv=tuple(sys.argv[1:]),
    )


@contextmanager
def _terminal(config: pytest.Config) -> Iterator[Callable[[str], None]]:
    """Lines to the terminal, past pytest's capturing: minutes pass until the first item is done."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(line)

    yield say


# ----------------------------------------------------------------------------------------- the plugin's hooks


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """The key of the hardware that was measured, and nothing that differs from one minute to the next."""
    here = hardware_key(hardware())
    key = config.stash[SPEED].figures.measurement.hardware if SPEED in config.stash else here
    if key != here:  # replayed on another machine, which is none of the reader's business
        for name in MACHINE_OF_THE_REPLAY:
            machine_info.pop(name, None)
    for name in ("hz_actual", "hz_actual_friendly"):
        machine_info.get("cpu", {}).pop(name, None)
    machine_info["hardware_key"] = key


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Beside the plugin's own: what was measured, and what is concluded from it."""
    if SPEED in config.stash:
        output_json["grammarbench"] = config.stash[SPEED].as_block()


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_compare_machine_info(
    config: pytest.Config, machine_info: dict[str, Any], compared_benchmark: dict[str, Any]
) -> None:
    """Refuses to hold times against those of other hardware or of other work; the plugin itself
    only warns.
    """
    block = compared_benchmark.get("grammarbench")
    if block is None:  # none of our items is in that file
        return
    config.stash[COMPARED].append(block)
    problem = _other_than(block, "hardware", machine_info["hardware_key"])
    if SPEED in config.stash:
        problem = problem or _other_than(block, "workload", config.stash[SPEED].figures.measurement.workload)
    if problem:
        raise pytest.UsageError(problem)


def _other_than(block: dict[str, Any], what: str, ours: str) -> str | None:
    """Why the times of that file cannot be compared with ours."""
    if block[what] == ours:
        return None
    return (
        f"cannot compare with run {block['run']}: its {what} is {block[what]}, this one's {ours}; times "
        "of the two mean different things"
    )
