"""The options, the session's measurement and the hooks behind `benchmarks/test_speed.py`; only
pytest-benchmark's public interface is used.

What is measured, and what is concluded, is the measuring engine's (`harness.measure`). Here its figures
become samples: a clock that stands still but for what an item moves it by is the `timer` of the item's
marker, and `benchmark.pedantic` reads it.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness.backend.registry import parse_specs
from harness.cases.suite import MEASURED, find_suite, read_cases
from harness.errors import BadInput
from harness.measure.estimate import Comparison, is_proven, log_ratios, per_fork
from harness.measure.figures import METRICS, Figures
from harness.measure.protocol import PROFILES, MeasuredArm
from harness.measure.record import Trace, has_measurement, read_measurement
from harness.measure.session import MeasureRequest, conclude, measure
from harness.measure.statistics import LEVEL, interval
from harness.outcomes.metrics import few, percentiles
from harness.rows.machine import hardware, hardware_key
from harness.rows.store import read_cases as read_stored_cases

BACKENDS = "llguidance,xgrammar,outlines-core,lm-format-enforcer"
VOCABULARY = "tekken"
PROFILE = "quick"
MEMORY_GB = 4.0

MACHINE_OF_THE_REPLAY = ("node", "processor", "machine", "release", "system", "cpu")
"""What the plugin tells of the machine that it runs on."""


class Clock:
    """The time that the items say has passed, in seconds."""

    __name__ = "grammarbench_engine"  # shown as options.timer
    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


@dataclass(frozen=True)
class Wanted:
    """What the items are of, known before anything is measured."""

    cases: dict[str, str]
    """Ids by label, `suite-name`."""
    backends: tuple[str, ...]
    """Labels of the arms, in the order of the measurement: the backend and its options, its version only
    beside another one of it."""


@dataclass(eq=False)
class Speed:
    """A finished measurement, and the labels of its items."""

    folder: Path
    wanted: Wanted
    figures: Figures
    comparisons: list[Comparison]

    def replay(self, benchmark: Any, metric: str, case: str, backend: str) -> None:
        """Hands the series of one item to the plugin, sample by sample; skips, with the reason, where there
        is none."""
        arm, case_id = self.arms[backend], self.wanted.cases[case]
        by_fork = self.figures.cells[metric].get((arm.name, case_id), {})
        samples = [rounds[number] / 1e9 for _, rounds in sorted(by_fork.items()) for number in sorted(rounds)]
        if not samples:
            pytest.skip(f"{backend}: {self.why_not(arm.name, case_id)}")
        left = iter(samples)

        def reset() -> None:
            CLOCK.now = 0.0  # so that the difference of two readings is the sample, to the last bit

        def advance() -> None:
            CLOCK.now += next(left, 0.0)  # asked for once more by --benchmark-cprofile

        benchmark.pedantic(advance, setup=reset, rounds=len(samples), iterations=1)
        benchmark.extra_info.update(self.of_item(metric, arm, self.traces[case_id]))

    @cached_property
    def arms(self) -> dict[str, MeasuredArm]:
        """Returns the measured arms by their label."""
        return dict(
            zip(
                self.wanted.backends,
                (arm for arm in self.figures.measurement.arms if arm.role != "a/a"),
                strict=True,
            )
        )

    @cached_property
    def traces(self) -> dict[str, Trace]:
        """Returns the traces by the id of their case."""
        return {trace.case_id: trace for trace in self.figures.measurement.traces}

    @cached_property
    def reference(self) -> str:
        """Returns the arm that all others are held against."""
        return next(arm.name for arm in self.arms.values() if arm.role == "reference")

    def why_not(self, arm: str, case_id: str) -> str:
        """Why there is no figure."""
        if case_id not in self.traces:
            return "not measured: the profile leaves this case out, or no backend walked a valid text of it"
        solved = self.figures.measurement.unsolved.get(arm, {}).get(case_id)
        return (
            f"not solved: {solved}"
            if solved
            else f"no figure: {self.lost(arm, case_id) or 'the arm was lost'}"
        )

    def lost(self, arm: str, case_id: str) -> str | None:
        """Returns what ended the arm's process on this case, if anything did."""
        lost = (other for other in self.figures.recorded.others if other["kind"] == "lost")
        return next((line["text"] for line in lost if (line["arm"], line["case_id"]) == (arm, case_id)), None)

    def of_item(self, metric: str, arm: MeasuredArm, trace: Trace) -> dict[str, Any]:
        """Returns what is known of an item besides its samples."""
        of = self.figures.measurement
        return {
            "metric": metric,
            "definition": METRICS[metric],
            "suite": trace.suite,
            "case": trace.case,
            "case_id": trace.case_id,
            "tokens": self.figures.tokens[trace.case_id],
            "backend": arm.backend,
            "version": arm.version,
            "options": arm.options,
            "lost": self.lost(arm.name, trace.case_id),
            "reference": self.reference,
            "ratio_to_reference": self.ratio(metric, arm.name, trace.case_id),
            "judged": self.judged(metric, arm, trace.family),
            "per_token_ns": self.per_token(metric, arm.name, trace),
            "vocabulary": of.vocabulary,
            "profile": of.profile,
            "hardware": of.hardware,
            "workload": of.workload,
            "protocol": of.protocol,
            "software": of.software,
            "run": of.run,
            "measurement": str(self.folder.resolve()),
        }

    def ratio(self, metric: str, arm: str, case_id: str) -> dict[str, Any] | None:
        """This case alone, the arm over the reference; descriptive, for verdicts are of families.

        None for the reference itself.
        """
        x = (
            []
            if arm == self.reference
            else per_fork(log_ratios(self.figures, metric, self.reference, arm, [case_id]))
        )
        if not x:
            return None
        estimate = interval(x)
        return {
            "ratio": estimate.ratio,
            "low": estimate.low,
            "high": _finite(estimate.high),
            "level": LEVEL,
            "forks": estimate.forks,
        }

    def judged(self, metric: str, arm: MeasuredArm, family: str) -> dict[str, Any] | None:
        """Returns the verdict on the family of cases, of the arm over the reference; of the reference, that
        of its A/A copy."""
        head = (
            next((one.name for one in self.figures.measurement.arms if one.role == "a/a"), "")
            if arm.name == self.reference
            else arm.name
        )
        comparisons = (
            comparison
            for comparison in self.comparisons
            if (comparison.base, comparison.head, comparison.metric, comparison.family)
            == (self.reference, head, metric, family)
        )
        return next(map(_comparison, comparisons), None)

    def per_token(self, metric: str, arm: str, trace: Trace) -> dict[str, float] | None:
        """Percentiles over the tokens of the text; only those that at least ten tokens lie beyond.

        None for what is not per token.
        """
        values: Any
        if metric == "cold_fill":
            (values,) = self.figures.cold(arm, [trace])
        elif metric in ("fill", "accept"):
            values = self.figures.structural(arm, [trace])[0][:, ("fill", "accept").index(metric)]
        else:
            return None
        by_name = percentiles(values)
        return {"n": len(values)} | {
            name: value for name, value in by_name.items() if value is not None and not few(name, len(values))
        }

    def as_block(self) -> dict[str, Any]:
        """Returns what the file says of the measurement as a whole."""
        of = self.figures.measurement
        labels = {case_id: label for label, case_id in self.wanted.cases.items()}
        return {
            **{
                name: getattr(of, name)
                for name in (
                    "run",
                    "started",
                    "profile",
                    "vocabulary",
                    "hardware",
                    "workload",
                    "software",
                    "protocol",
                )
            },
            "measurement": str(self.folder.resolve()),
            "reference": self.reference,
            "forks": len(self.figures.forks),
            "proven": is_proven(self.comparisons),
            "arms": [asdict(arm) for arm in of.arms],
            "unsolved": {
                arm: {labels[case]: why for case, why in cases.items()} for arm, cases in of.unsolved.items()
            },
            "comparisons": [_comparison(comparison) for comparison in self.comparisons],
        }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    estimate = comparison.found
    interval_of = {
        "ratio": estimate.ratio,
        "low": estimate.low,
        "high": _finite(estimate.high),
        "level": LEVEL,
        "forks": estimate.forks,
    }
    names = ("base", "head", "metric", "family", "cases", "margin", "verdict", "why")
    return {
        **{name: getattr(comparison, name) for name in names},
        **interval_of,
        "floor": _finite(comparison.floor),
        "mean_ratio": _finite(comparison.mean_ratio),
    }


def _finite(value: float) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if math.isfinite(value) else None


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


def wanted(backends: str) -> Wanted:
    """Returns the items of what is going to be measured. Raises BadInput."""
    suite = find_suite(MEASURED)
    specs = parse_specs(backends)
    versions = {spec.name: {other.version for other in specs if other.name == spec.name} for spec in specs}
    labels = []
    for spec in specs:
        version = f"=={spec.version}" if len(versions[spec.name]) > 1 and spec.version is not None else ""
        labels.append(spec.name + version + "".join(f":{name}={value}" for name, value in spec.options))
    return Wanted(
        _labelled((suite.name, case.name, case.id) for case in read_cases(suite)),
        tuple(labels),
    )


def read_speed(folder: Path, planned: Wanted | None = None) -> Speed:
    """Returns a stored measurement, which must be complete. Raises BadInput."""
    recorded = read_measurement(folder)
    if recorded.end is None:
        raise BadInput(
            f"{folder}: the measurement has no end, it was killed; measure anew into another folder"
        )
    figures = Figures(recorded)
    measured = Wanted(
        _labelled((suite, case.name, case.id) for suite, _, case in read_stored_cases(folder)),
        tuple(figures.arms),
    )
    return Speed(folder, planned or measured, figures, conclude(folder))


def _labelled(cases: Iterator[tuple[str, str, str]]) -> dict[str, str]:
    """Ids by label; a second case of the same name has its id in the label."""
    labelled: dict[str, str] = {}
    for suite, name, case_id in cases:
        label = f"{suite}-{name}"
        labelled[label if label not in labelled else f"{label} {case_id}"] = case_id
    return labelled


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
