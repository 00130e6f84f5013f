"""A cost at one size of an axis over releases: a slow stretch has a release where it begins and one where it
ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.diagnose.bisect import growth as over_releases
from harness.diagnose.bisect.growth import Change, GrowthQuestion, ReleaseCost, changes
from harness.diagnose.bisect.outcome import Unproven
from harness.errors import BadInput
from harness.measure.growth.axes import Axis
from harness.measure.growth.record import Point

QUESTION = GrowthQuestion("toy", "tags", 16, "compile", "bytes")


def cost(version: str, *milliseconds: float, killed: bool = False, ended: str = "") -> ReleaseCost:
    return ReleaseCost(version, tuple(1e6 * one for one in milliseconds), 1e6, ended, killed)


def named(found: list[ReleaseCost]) -> list[tuple[str, bool]]:
    return [(change.version, change.slower) for change in changes(found)]


def by_means(found: list[ReleaseCost]) -> list[tuple[str, bool]]:
    """A wrong way to tell: by the means of processes, of which one was disturbed."""
    means = [(one.version, sum(one.costs) / len(one.costs)) for one in found]
    return [
        (version, after > before)
        for (_, before), (version, after) in pairwise(means)
        if not 2 / 3 < after / before < 1.5
    ]


def test_a_slow_stretch_has_a_beginning_and_an_end() -> None:
    found = [
        cost("1.0", 5, 6),
        cost("1.1", 5, 5),
        cost("1.2", 90, 95),
        cost("1.3", 99, 91),
        cost("1.4", 4, 5),
    ]
    assert named(found) == [("1.2", True), ("1.4", False)]
    text = over_releases.GrowthBisection(QUESTION, tuple(found), tuple(changes(found))).text("toy")
    assert (
        "toy==1.2 is slower than 1.1: 18 times" in text and "toy==1.4 is faster than 1.3: 22.8 times" in text
    )


def test_a_disturbed_process_is_no_change() -> None:
    found = [cost("1.0", 5, 5), cost("1.1", 5, 40), cost("1.2", 5, 5)]
    assert named(found) == []
    assert by_means(found) == [("1.1", True), ("1.2", False)], "the mutant sees two"


def test_what_is_killed_is_slower_than_what_is_not() -> None:
    found = [cost("1.0", 5), cost("1.1", killed=True, ended="killed at size 16"), cost("1.2", 5)]
    assert changes(found) == [Change("1.1", "1.0", None, True), Change("1.2", "1.1", None, False)]


def answered(found: list[ReleaseCost]) -> over_releases.GrowthBisection:
    return over_releases.GrowthBisection(QUESTION, tuple(found), tuple(changes(found)))


def test_a_change_behind_a_release_that_cannot_be_had_came_with_one_of_several() -> None:
    found = [cost("1.0", 5), cost("1.1", ended="cannot be had"), cost("1.2", 50)]
    assert changes(found) == [Change("1.2", "1.0", 10.0, True, ("1.1",))]
    answer = answered(found)
    assert not answer.is_proven
    assert (
        "toy==1.2 is slower than 1.0: 10 times; it came with one of 1.1, 1.2: the others of these could not "
        "be measured\n1 of 3 releases could not be measured: 1.1\n" in answer.text("toy")
    )


def test_without_a_change_around_it_a_release_that_cannot_be_had_is_only_named() -> None:
    answer = answered([cost("1.0", 5), cost("1.1", ended="cannot be had"), cost("1.2", 5)])
    assert answer.is_proven
    assert answer.text("toy").startswith(
        "no release of toy that could be measured changes it by 1.5 times or more\n"
        "1 of 3 releases could not be measured: 1.1\n"
    )
    all_measured = answered([cost("1.0", 5), cost("1.1", 5)]).text("toy")
    assert all_measured.startswith("no release of toy changes it by 1.5 times or more\n\n")


@pytest.mark.parametrize("place", [0, -1])
def test_what_an_end_without_a_cost_would_show_is_not_known(place: int) -> None:
    found = [cost("1.0", 5), cost("1.1", 5), cost("1.2", 5)]
    assert answered(found).is_proven and answered(found).to_json()["ratio"] == [1.0]
    found[place] = cost(found[place].version, ended="cannot be had")
    assert not answered(found).is_proven and answered(found).to_json()["ratio"] == []


def test_the_ratio_is_that_of_the_two_ends_and_of_no_other() -> None:
    answer = answered([cost("1.0", 5), cost("1.1", 5), cost("1.2", killed=True, ended="killed at size 16")])
    assert answer.is_proven, "what is killed is known to be slower"
    assert answer.to_json()["ratio"] == []


def test_memory_of_nothing_is_a_cost_and_below_the_floor_nothing_is_told_apart() -> None:
    nothing, little, much = (
        ReleaseCost(version, (bytes_,) * 3, 0.0, "", False)
        for version, bytes_ in (("1.0", 0.0), ("1.1", 36_864.0), ("1.2", 8.0 * (1 << 20)))
    )
    found = [nothing, little, much]
    assert changes(found, float(1 << 20)) == [Change("1.2", "1.1", 8.0, True)]
    question = GrowthQuestion("toy", "tags", 16, "memory", "bytes")
    answer = over_releases.GrowthBisection(question, tuple(found), tuple(changes(found, float(1 << 20))))
    assert answer.to_json()["ratio"] == [8.0]


class NoService:
    """Stands in for the processes of a release."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> NoService:
        return self

    def __exit__(self, *_: object) -> None: ...

    def wait(self) -> None: ...


@pytest.fixture
def released_toys(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Four releases of a backend, of which 1.1 and 1.2 take the square of the size."""
    monkeypatch.setattr(over_releases, "without_version", lambda backend: (backend, "toy", "1.0"))
    monkeypatch.setattr(over_releases, "replace", lambda spec, version: version)
    monkeypatch.setattr(over_releases, "place", lambda spec, *_: (Version(spec), "python"))
    monkeypatch.setattr(over_releases, "Service", NoService)

    def measured(service: object, point: Point, timeout_s: float) -> Point:
        is_slow = point.arm in ("1.1", "1.2")
        spent = 1000 * point.size ** (2 if is_slow else 1)
        return Point(**(vars(point) | {"compile_ns": (spent,), "wall_ns": (spent,)}))

    monkeypatch.setattr(over_releases, "measured_point", measured)
    return lambda _: ["0.9", "1.0", "1.1", "1.2", "1.3"]


class Version(str):
    """A version that is its own backend spec."""

    @property
    def version(self) -> str:
        return str(self)


def test_every_release_between_is_measured(
    released_toys: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    found = over_releases.growth_over_releases(QUESTION, "1.0", "1.3", said.append, released_toys)
    assert [one.version for one in found.releases] == ["1.0", "1.1", "1.2", "1.3"]
    assert [(one.version, one.slower, one.ratio) for one in found.changes] == [
        ("1.1", True, 16.0),
        ("1.3", False, 1 / 16),
    ]
    assert found.to_json()["ratio"] == [1.0] and "256 µs (at size 1 1 µs)" in "".join(said)

    def refused(question: GrowthQuestion, axis: Axis, spec: object, python: str) -> ReleaseCost:
        return ReleaseCost(str(spec), (), None, "refused at size 1", False)

    monkeypatch.setattr(over_releases, "release_cost", refused)
    with pytest.raises(BadInput, match="no release of toy could be measured") as raised:
        over_releases.growth_over_releases(QUESTION, "1.0", "1.3", said.append, released_toys)
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("missing", "code"),
    [((), 0), (("1.1",), 4), (("1.0", "1.1", "1.2"), 4), (("1.3",), 4)],
    ids=["all are had", "a change is one of several", "one is had", "the last is not had"],
)
def test_the_exit_code_says_whether_all_that_counts_was_measured(
    missing: tuple[str, ...],
    code: int,
    released_toys: Callable[[str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def place(version: str, *_: object) -> tuple[Version, str]:
        if version in missing:
            raise BadInput("no wheel for this Python")
        return Version(version), "python"

    monkeypatch.setattr(over_releases, "place", place)
    monkeypatch.setattr(over_releases, "between", lambda *_: released_toys("toy")[1:])
    command = "bisect toy 1.0..1.3 --growth tags=16 --slower compile --vocabularies bytes"
    assert main([*command.split()]) == code
    printed = capsys.readouterr().out
    many = f"{len(missing)} of 4 releases could not be measured: {', '.join(missing)}\n"
    assert (many in printed) is bool(missing)


def test_where_all_are_killed_nothing_can_be_concluded(
    released_toys: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(question: GrowthQuestion, axis: Axis, spec: object, python: str) -> ReleaseCost:
        return cost(str(spec), killed=True, ended="killed at size 16")

    monkeypatch.setattr(over_releases, "release_cost", killed)
    with pytest.raises(Unproven, match="no release of toy could be measured; the first: killed at size 16"):
        over_releases.growth_over_releases(QUESTION, "1.0", "1.3", lambda _: None, released_toys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--growth tags --slower compile", "write AXIS=SIZE"),
        ("--growth tags=0 --slower compile", "write AXIS=SIZE"),
        ("--growth tags=4", "goes with --slower"),
        ("--growth togs=4 --slower compile", 'no axis "togs"; did you mean "tags"'),
        ("--growth tags=4 --slower fill", '"fill" is not measured along an axis'),
    ],
)
def test_a_wrong_question_is_one_line(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", "unconstrained", "1.0..1.1", *words.split()]) == 2
    printed = capsys.readouterr().err
    assert said in printed and printed.count("\n") == 1
