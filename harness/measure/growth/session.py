"""Measures growth: every size in a fresh child with a deadline, size after size until an arm is refused,
killed or through; what ends it is written down as it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from harness.backend.arm import arm, arm_names, version_key
from harness.backend.describe import Description, describe
from harness.backend.environments.build import resolve
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.registry import parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.backend.vocabulary.fetched import with_all
from harness.errors import BadInput
from harness.measure.growth.axes import SCHEMAS, Axis, axes
from harness.measure.growth.record import (
    Block,
    GrowthArm,
    GrowthPlan,
    GrowthRecorder,
    Point,
    has_growth,
    lost_status,
    read_growth,
)
from harness.rows.folder import locked, make_writable, now
from harness.rows.machine import describe_machine, hardware, hardware_key
from harness.text import one_line

LOADER = "harness.measure.growth.handler:load_growth"

PASSES = 3
"""Warm passes over the output; the first pass after a compile is cold, and is not one of them."""

WALKED = 256
"""The number of tokens of a long output for each of which the walk along it has the whole deadline."""

CHILDREN = 3
"""Fresh children in which a quick size is compiled in one fork."""

QUICK_NS = 100_000_000
"""Nanoseconds of a compile. A size that compiles faster is compiled in CHILDREN children of a fork, a slower
one in one."""

SLOW_NS = 1_000_000_000
"""Nanoseconds of a compile. A size that compiles more slowly is measured in the first fork only, and is not
compiled a second time."""

BLOCK = 500
"""The number of different schemas after each of which the memory of the process is looked at."""

SCHEMAS_SECONDS = 6.0
"""For each second of the deadline, the seconds of processor time that all different schemas of an arm may
take."""

PATIENCE = 60.0
"""How often the deadline in seconds of wall time is that in processor time: on a busy machine a process gets
a share only, and one that sleeps uses none."""

TIME_IS_UP = "the time for all schemas was up"

Say = Callable[[str], None]


@dataclass(frozen=True)
class GrowthRequest:
    """The arguments of `grammarbench measure growth`."""

    axes: tuple[str, ...]
    backends: str
    vocabularies: tuple[str, ...]
    out: Path
    resume: bool
    most: int | None
    forks: int
    timeout_s: float
    memory_gb: float
    schemas: int
    argv: tuple[str, ...]


def measure_growth(request: GrowthRequest, say: Say) -> None:
    """Measures what is asked for into the folder, or what of it is missing there. Raises BadInput."""
    specs, pythons = zip(*resolve(parse_specs(request.backends), say), strict=True)
    vocabularies = tuple(map(prepare_vocabulary, with_all(request.vocabularies)))
    found = describe([str(spec) for spec in specs], vocabularies, pythons)
    asked = planned(request, found)
    make_writable(request.out)
    with locked(request.out):
        exists = has_growth(request.out)
        if exists and not request.resume:
            raise BadInput(
                f"{request.out} holds a measurement of growth; give another --out, or --resume to complete it"
            )
        plan, points, blocks = _continued(request.out, asked) if exists else (asked, (), ())
        recorder = GrowthRecorder(request.out, plan, resume=exists)
        try:
            GrowthSession(plan, recorder, say, list(points), list(blocks)).run()
            recorder.write("end", {"finished": now()})
        finally:
            recorder.close()


def planned(request: GrowthRequest, found: Description) -> GrowthPlan:
    """Returns the plan of the request for these arms and vocabularies."""
    names = arm_names(found.arms)
    return GrowthPlan(
        started=now(),
        argv=request.argv,
        arms=tuple(
            GrowthArm(
                names[version_key(one)],
                arm(one),
                one.backend,
                one.version,
                one.options,
                one.python,
            )
            for one in found.arms
        ),
        vocabularies={name: fields["size"] for name, fields in found.vocabularies.items()},
        axes=request.axes,
        most=request.most,
        forks=request.forks,
        timeout_s=request.timeout_s,
        memory_bytes=int(request.memory_gb * 1e9),
        schemas=request.schemas,
        hardware=hardware_key(hardware()),
        machine=describe_machine(),
    )


def _continued(folder: Path, asked: GrowthPlan) -> tuple[GrowthPlan, Sequence[Point], Sequence[Block]]:
    """Returns the stored plan with what is asked now too, and what is stored: a measurement that was
    interrupted has an end only where everything is measured that was ever asked of it. Raises BadInput."""
    stored = read_growth(folder)
    if stored.plan.asked() != asked.asked():
        raise BadInput(
            f"{folder} was measured with other backends or limits, or on another machine; ask for the same "
            "as before, or give another --out"
        )
    if gone := [axis for axis in stored.plan.axes if axis not in (*axes(), SCHEMAS)]:
        raise BadInput(
            f'{folder} was measured along "{one_line(gone[0], 80)}", an axis that this version does not '
            "have; give another --out"
        )
    for vocabulary in stored.plan.vocabularies:
        prepare_vocabulary(vocabulary)
    return stored.plan.with_more(asked.more()), stored.points, stored.blocks


@dataclass(eq=False)
class GrowthSession:
    """One measurement that is under way, with what is stored of it already."""

    plan: GrowthPlan
    recorder: GrowthRecorder
    say: Say
    points: list[Point]
    blocks: list[Block]
    unloaded: dict[tuple[str, str], Point] = field(default_factory=dict)
    """For an arm and a vocabulary that did not load, through the backend, what was written down of it. No
    other axis and no other fork waits for it again."""

    def __post_init__(self) -> None:
        for point in self.points:
            self._note_load(point)

    def _note_load(self, point: Point) -> None:
        if point.phase == "load" and _is_end(point):
            self.unloaded.setdefault((point.arm, point.vocabulary), point)

    def run(self) -> None:
        """Measures every point that is missing, and anew what failed in our own code. In a fork the arms take
        turns axis by axis, so that a drift of the machine meets all of them."""
        families = axes()
        for fork, vocabulary in product(range(self.plan.forks), self.plan.vocabularies):
            with ExitStack() as stack:
                services = [
                    stack.enter_context(self._service(one, vocabulary, fork)) for one in self.plan.arms
                ]
                for axis in self.plan.axes:
                    for service, one in zip(services, self.plan.arms, strict=True):
                        if axis == SCHEMAS:
                            self._schemas(service, one, vocabulary, fork)
                        else:
                            self._along(service, one, vocabulary, fork, families[axis])

    def _service(self, one: GrowthArm, vocabulary: str, fork: int) -> Service:
        arguments, seed = {"spec": one.spec, "vocabulary": vocabulary}, {"PYTHONHASHSEED": str(fork)}
        # An arm that was found in an environment of its own is loaded by that environment's interpreter.
        python = one.python or sys.executable
        return Service(LOADER, arguments, self.plan.memory_bytes, python, seed, tells_load=True)

    def _along(self, service: Service, one: GrowthArm, vocabulary: str, fork: int, axis: Axis) -> None:
        """Measures one arm size by size, until it is refused, killed or raises: larger sizes would only cost
        more. A failure of ours ends this fork only, and what is stored of one is measured anew."""
        sizes = axis.sizes(self.plan.most)
        if (failed := self.unloaded.get((one.name, vocabulary))) is not None:
            if not any(point.key[1:4] == (one.name, vocabulary, axis.name) for point in self.points):
                self._add(replace(failed, fork=fork, axis=axis.name, size=min(sizes)))
            return
        for size in sizes:
            stored = self._stored(one, vocabulary, axis.name, size)
            others = [point for point in stored if point.fork != fork]
            mine = next((point for point in stored if point.fork == fork), None)
            if mine is None:
                is_owed = not any(_is_final(point) for point in others)
            else:
                is_owed = mine.status == "harness_error" and not any(_is_end(point) for point in others)
            if is_owed:
                if mine is not None:
                    self.points.remove(mine)
                self._add(mine := self._point(service, one, vocabulary, fork, axis, size))
            if any(_is_end(point) for point in others) or (mine is not None and mine.status != "ok"):
                return

    def _add(self, point: Point) -> None:
        self.points.append(point)
        self.recorder.point(point)
        self._note_load(point)

    def _stored(self, one: GrowthArm, vocabulary: str, axis: str, size: int) -> list[Point]:
        wanted = (one.name, vocabulary, axis, size)
        return [point for point in self.points if point.key[1:] == wanted]

    def _point(
        self, service: Service, one: GrowthArm, vocabulary: str, fork: int, axis: Axis, size: int
    ) -> Point:
        point = measured_point(
            service, Point(fork, one.name, vocabulary, axis.name, size, "ok"), self.plan.timeout_s
        )
        shown = f"{min(point.wall_ns) / 1e6:,.1f} ms" if point.wall_ns else ""
        end = "" if point.status == "ok" else f"{point.status} {point.phase} {one_line(point.text)}".strip()
        said = " ".join(filter(None, (shown, end)))
        self.say(f"fork {fork + 1}: {vocabulary} {axis.name} {size} {one.name}: {said}")
        return replace(point, load=round(os.getloadavg()[0], 2))

    def _schemas(self, service: Service, one: GrowthArm, vocabulary: str, fork: int) -> None:
        """Compiles the different schemas in one child, block by block; begun anew if it was interrupted, or
        if it failed in our own code."""
        mine = [
            block
            for block in self.blocks
            if (block.fork, block.arm, block.vocabulary) == (fork, one.name, vocabulary)
        ]
        is_ours = bool(mine) and mine[-1].status == "harness_error"
        is_through = bool(mine) and mine[-1].first + mine[-1].done >= self.plan.schemas
        if mine and not is_ours and (mine[-1].text or is_through):
            return
        if not self._is_loaded(service, one, vocabulary, fork):
            return
        service.renew()
        seconds = SCHEMAS_SECONDS * self.plan.timeout_s
        first = 0
        while first < self.plan.schemas:
            count = min(BLOCK, self.plan.schemas - first)
            block, spent = schemas_block(
                service, Block(fork, one.name, vocabulary, first, 0, "ok"), count, seconds
            )
            seconds -= spent
            if block.status == "ok" and block.done < count:
                block = replace(block, text=TIME_IS_UP)
            self._add_block(block)
            first += block.done
            if block.text:
                break
        self.say(f"fork {fork + 1}: {vocabulary} schemas {one.name}: {first} compiled {one_line(block.text)}")

    def _is_loaded(self, service: Service, one: GrowthArm, vocabulary: str, fork: int) -> bool:
        """Returns whether the schemas can be compiled; where the arm does not load, a block that says so is
        written down, and for a failure of the backend's in the first fork only."""
        failed = self.unloaded.get((one.name, vocabulary))
        if failed is None:
            failed = _loaded(service, Point(fork, one.name, vocabulary, SCHEMAS, 1, "ok"))
            if failed.status == "ok":
                return True
            self._note_load(failed)
        elif any((block.arm, block.vocabulary) == (one.name, vocabulary) for block in self.blocks):
            return False
        self._add_block(Block(fork, one.name, vocabulary, 0, 0, failed.status, failed.cause, failed.text))
        return False

    def _add_block(self, block: Block) -> None:
        self.blocks.append(block)
        self.recorder.write("block", asdict(block))


def _is_end(point: Point) -> bool:
    """Is a point one at which the backend ended, and not our own code?"""
    return point.status not in ("ok", "harness_error")


def _is_final(point: Point) -> bool:
    """Is a point one that further forks do not measure again, because it ended the arm or took long?"""
    return _is_end(point) or (point.status == "ok" and min(point.compile_ns) > SLOW_NS)


def measured_point(service: Service, point: Point, timeout_s: float) -> Point:
    """Returns the point as measured in fresh children of the service."""
    point = _loaded(service, point)
    if point.status != "ok":
        return point
    for _ in range(CHILDREN):
        service.renew()
        point = _compiled(service, point, timeout_s)
        if point.status != "ok":
            return point
        if point.wall_ns[-1] > QUICK_NS:
            break
    walk_s = timeout_s * max(1.0, point.size / WALKED) if axes()[point.axis].is_position else timeout_s
    answer, point = _asked(service, point, "walk", walk_s, passes=PASSES)
    if answer is None:
        return point
    point = replace(point, mask_ns=tuple(answer["mask_ns"]), refused_at=answer["refused_at"])
    if answer["raised"]:
        return replace(point, status="error", phase="walk", text=answer["raised"])
    if point.compile_ns[-1] > SLOW_NS:
        return point
    answer, point = _asked(service, point, "again", 3 * timeout_s)
    if answer is None:
        return point
    point = replace(point, again_ns=answer["again_ns"], cached_ns=answer["cached_ns"])
    return replace(point, status="error", phase="again", text=answer["raised"]) if answer["raised"] else point


def _loaded(service: Service, point: Point) -> Point:
    """Returns the point as it was once the service is ready, for before that there is no child to be renewed;
    or the point with what ended the loading."""
    try:
        service.wait()
    except Lost as lost:
        return replace(point, status=lost_status(lost), phase="load", cause=lost.cause, text=str(lost)[:300])
    return point


def _compiled(service: Service, point: Point, timeout_s: float) -> Point:
    answer, point = _asked(service, point, "compile", timeout_s, axis=point.axis, size=point.size)
    if answer is None:
        return point
    if answer["status"] != "ok":
        return replace(point, status=answer["status"], phase="compile", text=answer["text"])
    return replace(
        point,
        compile_ns=(*point.compile_ns, answer["compile_ns"]),
        wall_ns=(*point.wall_ns, answer["wall_ns"]),
        first_fill_ns=(*point.first_fill_ns, answer["first_fill_ns"]),
        memory_bytes=(*point.memory_bytes, answer["memory_bytes"]),
        grammar_bytes=answer["grammar_bytes"],
    )


def _asked(
    service: Service, point: Point, phase: str, seconds: float, **arguments: Any
) -> tuple[dict[str, Any] | None, Point]:
    """Returns the answer and the point as it was, or no answer and the point with what ended it."""
    try:
        answer, _ = service.ask({"op": phase, "cpu_s": seconds, **arguments}, seconds=PATIENCE * seconds)
    except Lost as lost:
        status, cause, text = lost_status(lost), lost.cause, str(lost)[:300]
        if lost.signal == "SIGXCPU":
            cause, text = "timeout", f"killed after {seconds:g} s of processor time"
        return None, replace(point, status=status, phase=phase, cause=cause, text=text)
    return answer, point


def schemas_block(service: Service, block: Block, count: int, seconds: float) -> tuple[Block, float]:
    """Returns the block as measured in the service's present child, and the seconds of
    processor time that it took."""
    seconds = max(seconds, 0.0)
    try:
        answer, _ = service.ask(
            {"op": "schemas", "first": block.first, "count": count, "seconds": seconds},
            seconds=PATIENCE * (seconds + 10),
        )
    except Lost as lost:
        return replace(block, status=lost_status(lost), cause=lost.cause, text=str(lost)[:300]), 0.0
    block = replace(
        block,
        status=answer["status"],
        text=answer["text"],
        done=answer["done"],
        rss_bytes=answer["rss_bytes"],
        compile_ns=answer["compile_ns"],
        first_again_ns=answer["first_again_ns"],
    )
    return block, answer["cpu_s"]
