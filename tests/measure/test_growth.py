"""How cost grows: the word for each known growth, that an end is told and never fitted away, that cold and
warm are not mixed, and a whole measurement of a backend that hangs and refuses."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import growing
import pytest
from json_keys import check
from places import SUPPORT

from harness.backend.grammar import Grammar, UnsupportedGrammar
from harness.backend.process.lost import Lost, lost_in_time
from harness.backend.registry import BackendSpec
from harness.backend.vocabulary import load_vocabulary
from harness.cli.main import main
from harness.errors import BadInput
from harness.measure import passes
from harness.measure.growth import asking, conclude, record, session, show
from harness.measure.growth import handler as handler_module
from harness.measure.growth.axes import Axis, GrownCase, axes, chosen_axes, different_schema
from harness.measure.growth.conclude import FIGURES, Conclusion, concluded
from harness.measure.growth.fit import Growth, growth, slope
from harness.measure.growth.handler import GrowthHandler
from harness.measure.growth.record import (
    FILE,
    Block,
    Grown,
    GrowthArm,
    GrowthPlan,
    GrowthRecorder,
    Point,
    read_growth,
)
from harness.oracle.judge import is_valid

SIZES = tuple(2**power for power in range(11))


def wavering(cost: float, size: int) -> float:
    """Returns the cost with a few percent more at some sizes, as a machine adds them."""
    return cost * (1 + 0.04 * (size.bit_length() * 7 % 5) / 4)


@pytest.mark.parametrize(
    ("grows", "kind", "exponent"),
    [
        (lambda n: 9e5, "constant", None),
        (lambda n: 3e3 * math.sqrt(n), "less than linear", 0.5),
        (lambda n: 1e6 + 5e4 * n, "linear", 1.0),
        (lambda n: 1e6 + 900 * n * n, "worse than linear", 2.0),
        (lambda n: 1e5 + 4 * n**3, "worse than linear", 3.0),
        (lambda n: 1e5 + 1e3 * n * math.log2(n + 1), "worse than linear", 1.2),
    ],
)  # fmt: skip
def test_each_growth_has_its_word(grows: Callable[[int], float], kind: str, exponent: float | None) -> None:
    for costs in ([grows(n) for n in SIZES], [wavering(grows(n), n) for n in SIZES]):
        found = growth(SIZES, costs)
        assert found.kind == kind, found
        if exponent is not None:
            assert found.low is not None and found.high is not None and found.exponent is not None
            assert found.low <= exponent <= found.high
            assert found.exponent == pytest.approx(exponent, abs=0.15)


@pytest.mark.parametrize("base", [1.3, 2.0])
def test_an_exponential_is_told_from_a_power(base: float) -> None:
    sizes = SIZES[:6]
    found = growth(sizes, [wavering(1e5 + 1e4 * base**n, n) for n in sizes])
    assert found.kind == "exponential" and found.base == pytest.approx(base, rel=0.02)
    power = growth(sizes, [wavering(1e5 + 1e4 * n**4, n) for n in sizes])
    assert power.kind != "exponential", "a steep power is none"


@pytest.mark.parametrize(
    "before", [(1e5, 1.6e5, 1e5, 1.7e5, 1.65e5, 0.95e5), (1e5, 9e4, 1.6e5, 1.1e5, 1e5, 1.5e5)]
)
def test_a_jump_after_scatter_is_no_exponential(before: Sequence[float]) -> None:
    for jump in (1e8, 1e9):
        assert growth(SIZES[:7], [*before, jump]).kind != "exponential"


@pytest.mark.parametrize("jump", [2, 3, 5, 10])
def test_one_jump_at_the_last_size_is_no_power(jump: float) -> None:
    found = growth(SIZES[:7], [1.03e6, 0.98e6, 1.01e6, 0.97e6, 1e6, 1.04e6, jump * 1e6])
    assert found.kind == "not judged" and "it jumps at the last sizes" in found.why
    cubic = (1e6 * (1 + (jump - 1) * (size / 64) ** 3) for size in SIZES[:7])
    scatter = (1.03, 0.98, 1.01, 0.97, 1.0, 1.0, 1.02)
    assert growth(SIZES[:7], [a * b for a, b in zip(cubic, scatter, strict=True)]).kind == "worse than linear"


@pytest.mark.parametrize("costs", [[1e6 / n for n in SIZES], [1e5] * 6 + [1e6, 1e6] + [1e5] * 3])
def test_what_falls_or_has_a_hump_is_not_constant(costs: Sequence[float]) -> None:
    found = growth(SIZES, costs)
    assert found.kind == "not judged" and "falls, or is highest between" in found.why


def test_a_short_range_is_not_called_constant() -> None:
    """150 + 4n is linear, which the sizes up to 16 hardly show."""
    for few in (5, 6):
        found = growth(SIZES[:few], [150.0 + 4 * n / 2**few for n in SIZES[:few]])
        assert found.kind == "not judged" and found.why == f"it hardly grows, but over {few} sizes only"
    assert growth(SIZES[:5], [150.0 + 4 * n for n in SIZES[:5]]).kind == "not judged"
    assert growth(SIZES[:7], [150.0] * 7).kind == "constant"
    assert growth(SIZES[:5], [150.0] * 5, floor=1000).kind == "constant", "it cannot be told apart"


def test_too_few_sizes_are_not_judged() -> None:
    found = growth(SIZES[:4], [n * 1e6 for n in SIZES[:4]])
    assert found.kind == "not judged" and "4 sizes" in found.why
    jump = growth(SIZES[:6], [1e6, 1e6, 1e6, 1e6, 1e6, 1e9])
    assert jump.kind == "not judged"


def test_what_cannot_be_told_apart_is_constant() -> None:
    assert growth(SIZES, [4096.0 * n for n in range(11)], floor=1 << 20).kind == "constant"


def points(*statuses: str, cause: str = "timeout") -> list[Point]:
    """Returns the points of one arm: linear compile times for `ok`, then what ended it."""
    made = []
    for size, status in zip(SIZES, statuses, strict=False):
        times = (1000 * size,)
        point = Point(
            0, "a", "probe", "enum", size, "ok", compile_ns=times, wall_ns=times, mask_ns=(300, 900)
        )
        if status != "ok":
            point = Point(0, "a", "probe", "enum", size, status, "compile", cause, "why")  # type: ignore[arg-type]
        made.append(point)
    return made


def test_a_long_compile_costs_processor_time_and_a_short_one_wall_time() -> None:
    """On a busy machine only the long one is interrupted; ticks of 4 ms say nothing of the short one."""
    point = Point(
        0, "a", "probe", "enum", 1, "ok", compile_ns=(0, 4_000_000, 0), wall_ns=(900_000, 950_000, 9**8)
    )
    assert conclude.compile_cost([point]) == 900_000
    long = replace(point, compile_ns=(80_000_000, 84_000_000), wall_ns=(300_000_000, 500_000_000))
    assert conclude.compile_cost([long]) == 82_000_000
    assert conclude.first_mask_cost([replace(long, first_fill_ns=(9, 7))]) == 82_000_007
    assert conclude.compile_cost([replace(long, compile_ns=(304_000_000,))]) == 300_000_000
    assert conclude.compile_cost([replace(point, wall_ns=())]) is None


def only_survivors(axis_points: Sequence[Point]) -> Conclusion:
    """A wrong way to conclude: what failed is left out."""
    survivors = [point for point in axis_points if point.status == "ok"]
    return concluded("probe", "enum", "a", FIGURES["compile"], survivors)


@pytest.mark.parametrize("status", ["killed", "refused", "error"])
def test_an_end_is_part_of_the_verdict(status: str) -> None:
    axis_points = points(*["ok"] * 6, status)
    found = concluded("probe", "enum", "a", FIGURES["compile"], axis_points)
    assert found.verdict == f"{status} at 64, linear before"
    assert f"{status} at 64: why" in show.sentence(found)
    wrong = only_survivors(axis_points)
    assert wrong.verdict == "linear", "the mutant looks as if nothing had happened"


def test_a_killed_walk_is_not_held_against_the_compile() -> None:
    walked = replace(points("ok")[0], size=128, wall_ns=(128_000,), status="killed", phase="walk", mask_ns=())
    axis_points = [*points(*["ok"] * 7), walked]
    compiled = concluded("probe", "enum", "a", FIGURES["compile"], axis_points)
    masks = concluded("probe", "enum", "a", FIGURES["mask"], axis_points)
    assert compiled.verdict == "walk killed at 128, linear before" and not show.is_killed(compiled)
    assert masks.verdict == "walk killed at 128, constant before" and show.is_killed(masks)


@pytest.mark.parametrize(("ended", "is_told"), [("again", True), ("walk", True), ("", False)])
def test_nothing_was_killed_is_said_only_where_nothing_was(ended: str, is_told: bool, tmp_path: Path) -> None:
    """A second compile that aborted stood in the table as killed, below a line that nothing was."""
    last = replace(points(*["ok"] * 8)[-1], phase=ended, status="killed" if ended else "ok")
    said = show.text(written(tmp_path, *points(*["ok"] * 7), last))
    assert (f"{ended} killed at 128" in said.split("\n\n")[0]) == is_told, said
    assert ("nothing was killed" in said) != is_told


def test_a_killed_process_of_many_schemas_is_no_nothing(tmp_path: Path) -> None:
    killed = replace(blocks(0.0)[0], status="killed", done=0, text="killed by SIGABRT")
    said = show.text(written(tmp_path, *points(*["ok"] * 8), killed))
    assert "grows worse than linearly." in said and "nothing was killed" not in said


def test_an_output_that_is_refused_is_told() -> None:
    refusing = [replace(point, refused_at=2) for point in points("ok", "ok")[1:]]
    grown = Grown(Path(), plan(), (*points("ok"), *refusing), (), True)
    (sentence,) = show.refusals(grown)
    assert sentence.startswith("a refuses token 2 of the output of enum from size 2 on")
    assert sentence in show.text(grown).replace("\n  ", " ")


def test_what_is_refused_at_once_has_no_growth() -> None:
    found = concluded("probe", "enum", "a", FIGURES["compile"], points("refused"))
    assert found.verdict == "refused at 1" and found.values == ()


def test_a_failure_of_ours_is_nobodys() -> None:
    found = concluded("probe", "enum", "a", FIGURES["compile"], points("ok", "harness_error"))
    assert found.verdict == "failed in our own code at 2"


class FakeService:
    """A child on which compiling takes `cost(size)` nanoseconds, and which is lost beyond a deadline."""

    def __init__(self, cost: Callable[[int], float], whose: str = "backend") -> None:
        self.cost, self.whose = cost, whose
        self.children, self.is_ready = 0, False
        self.asked: list[tuple[str, int]] = []

    def wait(self) -> None:
        self.is_ready = True

    def renew(self) -> None:
        assert self.is_ready, "a child that nobody knows of yet cannot be dropped"
        self.children += 1

    def ask(self, message: dict[str, object], *, seconds: float) -> tuple[dict[str, object], bytes]:
        if message["op"] == "compile":
            size = int(str(message["size"]))
            self.asked.append(("compile", size))
            spent = int(self.cost(size))
            if spent > seconds * 1e9:
                lost = lost_in_time(seconds)
                raise Lost(lost.text, self.whose, lost.cause)  # type: ignore[arg-type]
            answer = {
                "status": "ok",
                "text": "",
                "compile_ns": spent,
                "first_fill_ns": 1,
                "wall_ns": spent,
            }
            return answer | {"memory_bytes": 0, "grammar_bytes": 9}, b""
        if message["op"] == "schemas":
            done = {"done": message["count"], "rss_bytes": 9, "cpu_s": 0.1, "status": "ok", "text": ""}
            return done | {"compile_ns": 5, "first_again_ns": 5}, b""
        if message["op"] == "walk":
            return {"mask_ns": [5, 7], "refused_at": None, "raised": ""}, b""
        return {"again_ns": 1, "cached_ns": None, "raised": ""}, b""


class ListRecorder:
    """Keeps what a session would write."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def point(self, point: Point) -> None:
        self.points.append(point)

    def write(self, kind: str, line: dict[str, object]) -> None:
        assert kind == "block" and line


def plan(forks: int = 1, **fields: object) -> GrowthPlan:
    arm = GrowthArm("a", "a", "a", "1", "", "")
    made = GrowthPlan(
        "2026-11-23T00:00:00+00:00", (), (arm,), {"probe": 9}, ("enum",), None, forks, 1.0, 10**9, 10, "h", {}
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def along(service: FakeService, forks: int = 1) -> list[Point]:
    """Returns the points of one arm along one axis, as a session measures them."""
    recorder = ListRecorder()
    running = session.GrowthSession(plan(forks), recorder, lambda _: None, [], [])  # type: ignore[arg-type]
    for fork in range(forks):
        running._along(service, running.plan.arms[0], "probe", fork, axes()["enum"])  # type: ignore[arg-type]
    return recorder.points


def test_a_backend_of_two_to_the_n_is_killed_and_not_asked_again() -> None:
    service = FakeService(lambda n: 1000 * 2.0**n)
    measured = along(service, forks=2)
    last = max(measured, key=lambda point: point.size)
    assert (last.size, last.status, last.cause, last.phase) == (32, "killed", "timeout", "compile")
    assert service.asked.count(("compile", 32)) == 1, "what was killed is not tried again in the second fork"
    assert [size for _, size in service.asked if size > 32] == [], "larger sizes are not tried"
    found = concluded("probe", "enum", "a", FIGURES["compile"], measured)
    assert found.verdict.startswith("killed at 32"), found


def test_quick_sizes_are_compiled_in_several_children_and_slow_ones_once() -> None:
    service = FakeService(lambda n: 2e5 * n)
    measured = {point.size: point for point in along(service)}
    assert len(measured[1].compile_ns) == asking.CHILDREN
    assert len(measured[1024].compile_ns) == 1
    assert service.children == len(service.asked), "every compile has a fresh child"
    found = concluded("probe", "enum", "a", FIGURES["compile"], list(measured.values()))
    assert found.verdict == "linear"


def test_a_fork_says_nothing_beyond_where_another_one_ended() -> None:
    """One fork was killed at 4, and the other went on to 1,024, which would have been "linear before"."""
    killed = replace(points(*["ok"] * 2, "killed")[-1], fork=1)
    found = concluded("probe", "enum", "a", FIGURES["compile"], [*points(*["ok"] * 11), killed])
    assert found.verdict == "killed at 4" and found.values[-1][0] == 4


def test_a_failure_of_ours_below_what_was_measured_is_no_end() -> None:
    ours = replace(points(*["ok"] * 2, "harness_error")[-1], fork=1)
    found = concluded("probe", "enum", "a", FIGURES["compile"], [*points(*["ok"] * 11), ours])
    assert found.verdict == "linear" and found.end is None and found.values[-1][0] == 1024
    ended = concluded("probe", "enum", "a", FIGURES["compile"], [*points(*["ok"] * 6, "killed"), ours])
    assert ended.verdict == "killed at 64, linear before"
    beside = replace(points("ok", "harness_error")[-1], fork=1)
    both = concluded("probe", "enum", "a", FIGURES["compile"], [beside, *points("ok", "killed")])
    assert both.verdict == "killed at 2", "where both ended, it is the backend's"


class FailingOnce:
    """Measures every point as it should be, but for one that fails in our own code the first time."""

    def __init__(self) -> None:
        self.measured: list[tuple[int, int]] = []
        self.has_failed = False

    def __call__(self, _: object, point: Point, __: float) -> Point:
        self.measured.append((point.fork, point.size))
        if (point.fork, point.size) == (0, 4) and not self.has_failed:
            self.has_failed = True
            return replace(point, status="harness_error", phase="load", text="it did not load in time")
        return replace(point, compile_ns=(1000 * point.size,), wall_ns=(1000 * point.size,))


def test_a_failure_of_ours_ends_its_fork_only_and_is_measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the axis for every later fork too, and resuming did not try it again."""
    measuring = FailingOnce()
    monkeypatch.setattr(session, "measured_point", measuring)
    recorder = ListRecorder()

    def measured_now(stored: list[Point]) -> tuple[list[tuple[int, int]], list[Point]]:
        measuring.measured.clear()
        running = session.GrowthSession(plan(3), recorder, lambda _: None, stored, [])  # type: ignore[arg-type]
        for fork in range(3):
            running._along(None, running.plan.arms[0], "probe", fork, axes()["enum"])  # type: ignore[arg-type]
        return list(measuring.measured), running.points

    first, stored = measured_now([])
    others = [(fork, size) for fork in (1, 2) for size in SIZES]
    assert first == [(0, 1), (0, 2), (0, 4), *others]
    again, stored = measured_now(stored)
    assert again == [(0, size) for size in SIZES[2:]]
    assert all(point.status == "ok" for point in stored) and len(stored) == 3 * len(SIZES)
    assert measured_now(stored)[0] == []


def test_a_failure_of_ours_is_not_tried_where_another_fork_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "measured_point", lambda *_: pytest.fail("nothing is owed"))
    stored = [replace(points("harness_error")[0], fork=1), *points("killed")]
    running = session.GrowthSession(plan(2), ListRecorder(), print, stored, [])  # type: ignore[arg-type]
    for fork in range(2):
        running._along(None, running.plan.arms[0], "probe", fork, axes()["enum"])  # type: ignore[arg-type]


def written(folder: Path, *measured: Point | Block) -> Grown:
    """Returns these points and blocks as they are read again."""
    recorder = GrowthRecorder(folder, plan(axes=("enum", "schemas")), resume=False)
    for one in measured:
        recorder.write("point" if isinstance(one, Point) else "block", asdict(one))
    recorder.close()
    return read_growth(folder)


def test_of_what_was_measured_anew_the_last_line_counts(tmp_path: Path) -> None:
    ours = points("ok", "harness_error")
    lost = Block(0, "a", "probe", 0, 0, "harness_error", text="it did not load")
    read = written(tmp_path, *ours, lost, *points("ok", "ok"), *blocks(0.0)[:2])
    assert list(read.points) == points("ok", "ok") and list(read.blocks) == blocks(0.0)[:2]
    assert "our own code" not in show.text(read)


@pytest.mark.parametrize("times", [{"wall_ns": (9**9,)}, {"compile_ns": (9**9,)}, {}])
def test_a_compile_without_both_its_times_is_bad_input(times: dict[str, Any], tmp_path: Path) -> None:
    """It ended in a traceback: no mean of no processor times."""
    with pytest.raises(BadInput, match=r"growth\.jsonl"):
        written(tmp_path, Point(0, "a", "probe", "enum", 1, "ok", **times))


def test_what_was_measured_is_never_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk that would lose it."""
    before = written(tmp_path, *points("ok", "ok"))
    with open(tmp_path / FILE, "ab") as file:
        file.write(b'{"kind": "poi')

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(record, "write_lines", full)
    with pytest.raises(OSError, match="no space"):
        GrowthRecorder(tmp_path, before.plan, resume=True)
    assert read_growth(tmp_path) == before
    assert (tmp_path / FILE).read_bytes().endswith(b"\n")


@pytest.mark.parametrize("first", [500, -500])
def test_blocks_without_those_before_them_are_bad_input(tmp_path: Path, first: int) -> None:
    with pytest.raises(BadInput, match="a block of schemas that does not follow those before it"):
        written(tmp_path, Block(0, "a", "probe", first, 500, "ok", rss_bytes=9))


def test_schemas_that_failed_in_our_own_code_are_compiled_anew(tmp_path: Path) -> None:
    lost = Block(0, "a", "probe", 0, 0, "harness_error", text="it did not load")
    recorder = ListRecorder()
    running = session.GrowthSession(plan(), recorder, lambda _: None, [], [lost])  # type: ignore[arg-type]
    running._schemas(FakeService(lambda n: n), running.plan.arms[0], "probe", 0)  # type: ignore[arg-type]
    assert [(block.first, block.done, block.status) for block in running.blocks[1:]] == [(0, 10, "ok")]
    running._schemas(FakeService(lambda n: n), running.plan.arms[0], "probe", 0)  # type: ignore[arg-type]
    assert len(running.blocks) == 2, "what is through is not compiled again"


def test_many_schemas_are_judged_by_the_forks_that_did_not_fail_in_our_own_code() -> None:
    lost = Block(1, "a", "probe", 0, 0, "harness_error", text="it did not load")
    grown = Grown(Path(), plan(2, axes=("schemas",)), (), (lost, *blocks(4000.0)), True)
    (found,) = conclude.many_schemas(grown)
    assert found.verdict == "grows"
    (ours,) = conclude.many_schemas(replace(grown, blocks=(lost,)))
    assert (ours.verdict, ours.text) == ("harness_error", "it did not load")


class DoesNotLoad(FakeService):
    """An arm that is lost as it loads; counts how often that was waited for."""

    waited = 0

    def __init__(self, lost: Lost) -> None:
        super().__init__(lambda _: 1)
        self.lost = lost

    def wait(self) -> None:
        type(self).waited += 1
        raise self.lost


@pytest.mark.parametrize(
    ("lost", "status", "waits"),
    [
        (Lost("it does not load: RuntimeError: no", "backend", "load"), "error", 1),
        (Lost("it did not load within 300 s", "backend", "timeout"), "killed", 1),
        (Lost("killed by SIGABRT while it loaded", "backend", "crash", "SIGABRT"), "killed", 1),
        (Lost("the process was killed by SIGKILL while it loaded", "harness", "load"), "harness_error", 4),
    ],
)
def test_an_arm_that_does_not_load_is_waited_for_once(lost: Lost, status: str, waits: int) -> None:
    """Each axis of each fork waited anew, 300 s for one that hangs, and it counted as a failure of ours."""
    recorder, service = ListRecorder(), DoesNotLoad(lost)
    DoesNotLoad.waited = 0
    known = axes()
    asked = plan(2, axes=("enum", "nesting", "schemas"))
    running = session.GrowthSession(asked, recorder, lambda _: None, [], [])  # type: ignore[arg-type]
    for fork in range(2):
        for axis in ("enum", "nesting"):
            running._along(service, asked.arms[0], "probe", fork, known[axis])  # type: ignore[arg-type]
    assert DoesNotLoad.waited == waits
    ended = {(point.axis, point.size, point.status, point.phase) for point in recorder.points}
    assert ended == {(axis, 1, status, "load") for axis in ("enum", "nesting")}
    assert len(recorder.points) == (4 if status == "harness_error" else 2)
    before = DoesNotLoad.waited
    for fork in range(2):
        running._schemas(service, asked.arms[0], "probe", fork)  # type: ignore[arg-type]
    assert len(running.blocks) == (2 if status == "harness_error" else 1)
    assert DoesNotLoad.waited - before == (2 if status == "harness_error" else 0)
    resumed = session.GrowthSession(asked, recorder, print, running.points, running.blocks)  # type: ignore[arg-type]
    resumed._along(service, asked.arms[0], "probe", 1, known["tools"])  # type: ignore[arg-type]
    assert (DoesNotLoad.waited == before) == (status != "harness_error"), "a load of the backend's is final"


def test_a_failure_of_ours_does_not_stay_where_the_arm_does_not_load_at_last() -> None:
    """The screen said that --resume measures it anew, after every --resume."""
    recorder, asked = ListRecorder(), plan(2, axes=("enum", "nesting", "schemas"))
    name = asked.arms[0].name
    ours = [
        replace(points("harness_error")[0], fork=fork, axis=axis, arm=name)
        for fork in (0, 1)
        for axis in ("enum", "nesting")
    ]
    lost = [Block(fork, name, "probe", 0, 0, "harness_error", text="killed") for fork in (0, 1)]
    running = session.GrowthSession(asked, recorder, lambda _: None, ours, lost)  # type: ignore[arg-type]
    service = DoesNotLoad(Lost("it does not load: RuntimeError: no", "backend", "load"))
    for fork in range(2):
        for axis in ("enum", "nesting"):
            running._along(service, asked.arms[0], "probe", fork, axes()[axis])  # type: ignore[arg-type]
        running._schemas(service, asked.arms[0], "probe", fork)  # type: ignore[arg-type]
    assert {point.status for point in running.points} == {"error"}
    last = {block.fork: block.status for block in running.blocks}
    assert last == {0: "error", 1: "error"}


@pytest.mark.parametrize(
    ("backend", "status", "text"),
    [
        ("growing:RaisesAsItLoads", "error", "it does not load: RuntimeError: no such device"),
        ("growing:DiesAsItLoads", "killed", "killed by SIGABRT while it loaded"),
    ],
)
def test_a_load_that_fails_is_the_backends(
    backend: str,
    status: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    command = ["measure", "growth", "enum", "nesting", "schemas", "--backends", f"{backend},growing:Clocked"]
    command += ["--vocabularies", "probe", "--forks", "1", "--most", "1", "--schemas", "2"]
    assert main([*command, "--out", str(tmp_path / "g")]) == 0
    said = capsys.readouterr().out
    assert (
        "our own code" not in said and f"{backend} cannot be measured with probe: " in said and text in said
    )
    ended = [
        (p.axis, p.size, p.status, p.phase) for p in read_growth(tmp_path / "g").points if p.arm == backend
    ]
    assert ended == [("enum", 1, status, "load"), ("nesting", 1, status, "load")]
    others = {p.status for p in read_growth(tmp_path / "g").points if p.arm != backend}
    assert others == {"ok"}


def test_a_loss_of_ours_is_no_kill() -> None:
    (point,) = along(FakeService(lambda n: 1e12, whose="harness"))
    assert point.status == "harness_error"


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> GrowthHandler:
    clock = growing.FakeClock()
    monkeypatch.setattr(growing.Clocked, "clock", clock)
    monkeypatch.setattr(passes, "time", clock)
    monkeypatch.setattr(handler_module, "time", clock)
    vocabulary = load_vocabulary("bytes")
    return GrowthHandler(growing.Clocked(vocabulary), BackendSpec("growing:Clocked"))


class WarmCompile(GrowthHandler):
    """Takes a second compile for the cold one."""

    def compile(self) -> dict[str, object]:
        super().compile()
        return super().compile()


class ColdMasks(GrowthHandler):
    """Takes the first pass for a warm one."""

    def walk(self, passes: int) -> dict[str, object]:
        assert self.compiled is not None and isinstance(self.compiled, growing.ClockedGrammar)
        self.compiled.filled.clear()
        answer = super().walk(0)
        return answer | {"mask_ns": [growing.COLD_FILL]}


def is_cold_then_warm(handler: GrowthHandler) -> bool:
    """Returns whether the compile is the first one, and every mask a warm one."""
    size = 4
    text = axes()["enum"].grow(size).grammar.text
    answer, _ = handler({"op": "compile", "axis": "enum", "size": size}, b"")
    walked, _ = handler({"op": "walk", "passes": 2}, b"")
    again, _ = handler({"op": "again"}, b"")
    return (
        answer["compile_ns"] == answer["wall_ns"] == growing.COLD * len(text)
        and answer["first_fill_ns"] == growing.COLD_FILL
        and set(walked["mask_ns"]) == {growing.FILL}
        and again["again_ns"] == growing.AGAIN * len(text)
        and again["cached_ns"] == len(text)
    )


def test_cold_and_warm_are_not_mixed(handler: GrowthHandler) -> None:
    assert is_cold_then_warm(handler)
    for mutant in (WarmCompile, ColdMasks):
        handler.adapter.seen.clear()  # type: ignore[attr-defined]
        assert not is_cold_then_warm(mutant(handler.adapter, handler.spec)), mutant


class Panic(BaseException):
    """What a panic in Rust is to Python."""


COMPILE: dict[str, Any] = {"op": "compile", "axis": "enum", "size": 4}


def ending(error: BaseException) -> Callable[..., Any]:
    def ends(*_: object) -> Any:
        raise error

    return ends


@pytest.mark.parametrize("error", [Panic("index out of bounds"), SystemExit(3), ValueError("no")])
def test_whatever_a_backend_raises_is_its_own_error(
    handler: GrowthHandler, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """It was booked as a failure of ours where it was no Exception."""
    messages: list[dict[str, Any]] = [COMPILE, {"op": "schemas", "first": 0, "count": 3, "seconds": 1.0}]
    handler(COMPILE, b"")
    monkeypatch.setattr(growing.Clocked, "compile", ending(error))
    monkeypatch.setattr(growing.ClockedGrammar, "start", ending(error))
    for message in messages:
        answer, _ = handler(message, b"")
        assert answer["status"] == "error" and type(error).__name__ in answer["text"]
    walks: list[dict[str, Any]] = [{"op": "walk", "passes": 2}, {"op": "again"}]
    for message in walks:
        answer, _ = handler(message, b"")
        assert type(error).__name__ in answer["raised"]


def test_a_refusal_along_schemas_is_no_error(handler: GrowthHandler, monkeypatch: pytest.MonkeyPatch) -> None:
    class Handed(FakeService):
        """Asks the handler."""

        def ask(self, message: dict[str, Any], *, seconds: float) -> tuple[dict[str, Any], bytes]:
            return handler(message, b"")

    monkeypatch.setattr(growing.Clocked, "compile", ending(UnsupportedGrammar("no objects")))
    running = session.GrowthSession(plan(axes=("schemas",)), ListRecorder(), lambda _: None, [], [])  # type: ignore[arg-type]
    running._schemas(Handed(lambda n: n), running.plan.arms[0], "probe", 0)  # type: ignore[arg-type]
    (block,) = running.blocks
    assert (block.status, block.done) == ("refused", 0) and "no objects" in block.text
    (found,) = conclude.many_schemas(Grown(Path(), running.plan, (), (block,), True))
    assert found.verdict == "refused"


def test_growing_a_grammar_is_not_charged_to_the_backend(
    handler: GrowthHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    known = axes()

    def grow(size: int) -> GrownCase:
        done.append("grown")
        return known["enum"].grow(size)

    monkeypatch.setattr(handler_module, "axes", lambda: {"enum": replace(known["enum"], grow=grow)})
    monkeypatch.setattr(handler_module, "allow_cpu_seconds", done.append)
    handler({**COMPILE, "cpu_s": 2.0}, b"")
    assert done == ["grown", 2.0]


def test_along_an_output_only_its_end_is_timed(handler: GrowthHandler) -> None:
    handler({"op": "compile", "axis": "output", "size": 32}, b"")
    walked, _ = handler({"op": "walk", "passes": 1}, b"")
    assert len(walked["mask_ns"]) == 16 and walked["refused_at"] is None


@pytest.mark.parametrize("axis", axes().values(), ids=lambda axis: axis.name)
def test_an_axis_allows_its_output(axis: Axis) -> None:
    """The grammar is what the axis says, it grows, and the output is one that it allows (judged by our own
    judges, not by a backend)."""
    sizes = [len(axis.grow(n).grammar.text) + len(axis.grow(n).text) for n in (1, 2, 8, 64)]
    assert sizes == sorted(set(sizes)) or axis.name in ("maxLength", "repetition", "items")
    for n in (1, 3, 8):
        grown = axis.grow(n)
        if grown.position is not None:
            assert len(grown.text) > n
            continue
        if axis.dialect == "structural_tag":
            begin, _, rest = grown.text.partition(b">")
            (tag,) = [
                one
                for one in json.loads(grown.grammar.text)["structures"]
                if one["begin"].encode() == begin[begin.index(b"<") :] + b">"
            ]
            grammar = Grammar("json_schema", json.dumps(tag["schema"]))
            assert is_valid(grammar, rest.removesuffix(tag["end"].encode()))
        else:
            assert is_valid(grown.grammar, grown.text)


def test_axes_are_named_and_counted() -> None:
    assert {
        "tools",
        "properties",
        "enum",
        "nesting",
        "maxLength",
        "repetition",
        "alternatives",
        "output",
    } <= set(axes())
    assert all(axis.about.endswith(".") for axis in axes().values())
    assert axes()["enum"].sizes(10) == (1, 2, 4, 8)
    assert chosen_axes(("schemas", "enum")) == ["enum", "schemas"]
    assert len({different_schema(number).text for number in range(200)}) == 200


def blocks(per_schema: float, *, start: float = 5e8) -> list[Block]:
    """Returns what a process that keeps so many bytes a schema would show, after a first rise."""
    return [
        Block(
            0,
            "a",
            "probe",
            first,
            500,
            "ok",
            rss_bytes=int(start + min(first, 2000) * 9e3 + per_schema * first),
        )
        for first in range(0, 10_000, 500)
    ]


@pytest.mark.parametrize(("per_schema", "verdict"), [(0.0, "bounded"), (4000.0, "grows")])
def test_many_schemas_are_bounded_or_grow(per_schema: float, verdict: str) -> None:
    grown = Grown(Path(), plan(axes=("schemas",)), (), tuple(blocks(per_schema)), True)
    (found,) = conclude.many_schemas(grown)
    assert found.verdict == verdict and found.compiled == 10_000
    assert found.slope is not None and found.slope.per_step == pytest.approx(per_schema, abs=10)
    assert slope([[(0, 1.0), (500, 2.0)]]) is None


def test_a_last_block_of_few_schemas_weighs_as_little_as_it_is() -> None:
    """An allocator takes 300 kB once, in a whole block or in one that was cut off after three schemas."""
    flat = [(500 * number, 30e6) for number in range(1, 10)]
    whole, cut = slope([[*flat, (5000, 30.3e6)]]), slope([[*flat, (4503, 30.3e6)]])
    assert whole is not None and cut is not None
    assert (whole.per_step, whole.steps) == (150.0, 2000)
    assert cut.per_step == pytest.approx(whole.per_step, rel=0.01)
    assert [cut.low, cut.high] == pytest.approx([whole.low, whole.high], rel=0.01)


def test_a_killed_process_of_many_schemas_is_told() -> None:
    ended = Block(0, "a", "probe", 500, 0, "killed", "oom", "killed at 4 GB")
    grown = Grown(Path(), plan(axes=("schemas",)), (), (*blocks(9e5)[:1], ended), True)
    (found,) = conclude.many_schemas(grown)
    assert found.verdict == "killed" and "4 GB" in found.text


@pytest.mark.parametrize("kind", ["constant", "not judged"])
def test_a_growth_without_exponent_is_written(kind: str) -> None:
    assert show.power(Growth(kind)) == ""  # type: ignore[arg-type]


def test_a_whole_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backend that hangs and refuses: written down as it ended, continued, drawn, and read again."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    folder = tmp_path / "g"
    command = ["measure", "growth", "enum", "repetition", "--backends", "growing:Ending", "--vocabularies"]
    command += ["bytes", "--forks", "1", "--timeout", "0.04", "--out", str(folder)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "growing:Ending: compile with enum (bytes)" in said and "killed at 8" in said
    ends = {(p.axis, p.size): p.status for p in read_growth(folder).points if p.status != "ok"}
    assert ends == {("enum", 8): "killed", ("repetition", 1): "refused"}
    page = (folder / "growth.html").read_text("utf-8")
    assert "killed at 8" in page and "<svg" in page and "<script" not in page
    assert "refused,1" in (folder / "growth.csv").read_text("utf-8")

    record = folder / "growth.jsonl"
    whole = record.read_bytes()
    record.write_bytes(whole[: whole.rfind(b"\n", 0, -1) - 3])  # cut within the last point
    assert main(["measure", "growth", "--show", str(folder), "--json"]) == 3
    assert len(check(capsys.readouterr().out, "measure growth")["conclusions"]) == 5
    narrower = [word for word in command if word != "repetition"]
    assert main([*narrower, "--resume"]) == 0, "what was asked for before is measured too"
    assert [(p.axis, p.size) for p in read_growth(folder).points] == [
        ("enum", 1), ("enum", 2), ("enum", 4), ("enum", 8), ("repetition", 1)
    ]  # fmt: skip
    capsys.readouterr()
    assert main(command) == 2
    assert main([*command, "--resume", "--most", "2"]) == 2
    assert main(["measure", "growth", "tolls", "--backends", "growing:Ending", "--out", str(folder)]) == 2
    assert 'no axis "tolls"; did you mean' in capsys.readouterr().err

    record.write_bytes(record.read_bytes().replace(b'"repetition"', b'"refrains"'))
    assert main(["measure", "growth", "--show", str(folder)]) == 0
    assert main([*command, "--resume"]) == 2
    assert 'along "refrains", an axis that this version does not have' in capsys.readouterr().err
