"""The search for the first slower release: what a measurement at each step may say, and what it may not
decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compared import measured_run
from measured import concluded

from harness.backend.registry import BackendSpec
from harness.cli.main import main
from harness.diagnose.bisect import slowdown as module
from harness.diagnose.bisect.outcome import Question, Unavailable, Unproven
from harness.diagnose.bisect.slowdown import LostWhileMeasured, Measured, slowdown
from harness.errors import BadInput
from harness.measure.session import MeasureRequest
from harness.measure.statistics import Interval

QUESTION = Question("toy", "a case", ())
VERSIONS = [f"1.{number}" for number in range(9)]


def around(ratio: float, width: float = 0.02) -> Interval:
    return Interval(ratio, ratio * (1 - width), ratio * (1 + width), 5)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Measured]:
    """What every version over 1.0 comes to: 1.5 was the first to be 30 % slower."""
    known = {
        each: Measured(around(1.3), "regressed")
        if int(each[2:]) >= 5
        else Measured(around(1.01), "equivalent")
        for each in VERSIONS
    }

    def ratio(
        question: Question, spec: BackendSpec, metric: str, good: str, version: str, say: object
    ) -> Measured:
        assert (good, metric) == ("1.0", "fill")
        if version not in known:
            raise Unavailable("does not install")
        return known[version]

    monkeypatch.setattr(module, "ratio", ratio)
    monkeypatch.setattr(module, "without_version", lambda backend: (BackendSpec(backend), "toy", "1.8"))
    monkeypatch.setattr(module, "check_named", lambda *_: None)
    return known


def search(metric: str = "fill") -> module.Slowdown:
    return slowdown(QUESTION, metric, "1.0", "1.8", lambda _: None, lambda _: VERSIONS)


def test_the_first_slower_release_is_found(measured: dict[str, Measured]) -> None:
    found = search()
    assert (found.search.first_bad, found.search.last_good, found.search.skipped) == ("1.5", "1.4", ())
    assert found.is_proven
    assert "toy==1.5 is the first version" in found.text("toy") and found.to_json()["first_bad"] == "1.5"
    assert len(found.steps) <= 2 + math.ceil(math.log2(len(VERSIONS)))


def test_a_small_step_before_is_not_taken_for_it(measured: dict[str, Measured]) -> None:
    slower_but_nearer_to_the_first = Measured(around(1.06), "regressed")
    measured["1.4"] = slower_but_nearer_to_the_first
    assert search().search.first_bad == "1.5"


REFUTED = Measured(around(1.3), "inconclusive", "regressed, but 3 fresh forks say equivalent")


@pytest.mark.parametrize(
    "untold",
    [Measured(around(1.14, 0.1), "regressed"), Measured(around(1.3), "unproven"), REFUTED, None],
    ids=["across the middle", "unproven", "refuted by fresh forks", "not had"],
)
def test_what_is_not_clear_is_skipped(measured: dict[str, Measured], untold: Measured | None) -> None:
    if untold is None:
        del measured["1.4"]
    else:
        measured["1.4"] = untold
    found = search()
    assert found.search.candidates == ("1.4", "1.5") and found.to_json()["first_bad"] is None
    assert "one of 1.4, 1.5" in found.text("toy") and not found.is_proven


def test_why_a_release_is_skipped_is_said(measured: dict[str, Measured]) -> None:
    measured["1.4"] = REFUTED
    steps = dict(search().steps)
    assert steps["1.4"] == (
        "skipped: 1.300 [1.274, 1.326], inconclusive (regressed, but 3 fresh forks say equivalent)"
    )


def test_what_is_not_decided_below_the_middle_does_not_show_it(measured: dict[str, Measured]) -> None:
    measured["1.4"] = Measured(around(1.05), "inconclusive")  # slower or not, it is far from the last one
    assert search().search.first_bad == "1.5" and search().is_proven


def test_without_a_proven_slowdown_there_is_nothing_to_search_for(
    measured: dict[str, Measured],
) -> None:
    measured["1.8"] = Measured(around(1.02), "equivalent")
    with pytest.raises(BadInput, match="not proven to be slower") as raised:
        search()
    assert raised.value.exit_code == 2
    with pytest.raises(BadInput, match="is not measured; choose one of"):
        search("speed")


@pytest.mark.parametrize(
    ("verdict", "code"), [("equivalent", 2), ("improved", 2), ("inconclusive", 4), ("unproven", 4)]
)
def test_the_exit_code_tells_what_is_not_slower_from_what_is_not_known(
    verdict: Any,
    code: int,
    measured: dict[str, Measured],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured["1.8"] = Measured(around(1.3, 0.2), verdict, "for a reason")
    monkeypatch.setattr(module, "between", lambda *_: VERSIONS)
    command = "bisect toy 1.0..1.8 speed --slower fill --vocabularies bytes --case"
    assert main([*command.split(), "a case"]) == code
    said = f"not proven to be slower than 1.0 in fill: 1.300 [1.040, 1.560], {verdict} (for a reason)"
    assert said in capsys.readouterr().err


def test_a_version_that_was_lost_at_an_end_is_not_known(
    measured: dict[str, Measured], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> Measured:
        raise LostWhileMeasured("toy==1.8 was lost while it was measured: killed")

    monkeypatch.setattr(module, "ratio", lost)
    with pytest.raises(Unproven, match=r"1\.0 and 1\.8 cannot be measured .* killed"):
        search()


def test_a_name_of_several_cases_is_refused(measured: dict[str, Measured]) -> None:
    def search_for(case: str, *suites: str) -> module.Slowdown:
        question = Question("toy", case, suites)
        return slowdown(question, "fill", "1.0", "1.8", lambda _: None, lambda _: VERSIONS)

    both = "speed", "json_schema"
    with pytest.raises(BadInput, match=r'"tool call" is the name of 2 cases; give the id of one: ') as raised:
        search_for("tool call", *both)
    said = str(raised.value)
    ids = [word for word in said.split() if f"{word} (speed)" in said]
    assert len(ids) == 1 and "(json_schema)" in said
    assert search_for(ids[0], *both).is_proven and search_for("tool call", "speed").is_proven


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Measured]:
    """Returns what `ratio` says of version 2, which takes 1.3 times as long, when it was measured so."""

    def says(**options: Any) -> Measured:
        def measure(request: MeasureRequest, say: object) -> tuple[Path, list[Any]]:
            folder = measured_run(tmp_path / "run", 1.3, cases=1, **options)
            return folder, concluded(folder)

        monkeypatch.setattr(module, "measure", measure)
        return module.ratio(QUESTION, BackendSpec("toy"), "fill", "1", "2", lambda _: None)

    return says


def test_the_ratio_is_that_of_the_measurement(measuring: Callable[..., Measured]) -> None:
    measured = measuring(lost={"toy==1 (again)": "another case"})
    assert measured.verdict == "regressed" and measured.found.low < 1.3 < measured.found.high


def test_a_version_that_is_lost_while_it_is_measured_is_not_called_wrong(
    measuring: Callable[..., Measured],
) -> None:
    with pytest.raises(LostWhileMeasured, match=r"^toy==2 was lost while it was measured: killed$"):
        measuring(lost={"toy==2": "speed0"})


def test_a_version_that_does_not_solve_the_case_is_not_called_lost(
    measuring: Callable[..., Measured],
) -> None:
    with pytest.raises(Unavailable, match="the case is not solved by both") as raised:
        measuring(unsolved={"toy==2": {"speed0": "refused"}})
    assert not isinstance(raised.value, LostWhileMeasured)
