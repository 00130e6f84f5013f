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

from harness.backend.arm import arm, arm_names, version_key
from harness.backend.describe import Description
from harness.backend.process.service import Service
from harness.backend.registry import parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.backend.vocabulary.fetched import with_all
from harness.errors import BadInput
from harness.measure.growth.asking import SLOW_NS, loaded, measured_point, schemas_block
from harness.measure.growth.axes import SCHEMAS, Axis, axes
from harness.measure.growth.record import (
    Block,
    GrowthArm,
    GrowthPlan,
    GrowthRecorder,
    Point,
    has_growth,
    read_growth,
)
from harness.rows.folder import locked, make_writable, now
from harness.rows.machine import describe_machine, hardware, hardware_key
from harness.running.looking import look_at
from harness.text import one_line

LOADER = "harness.measure.growth.handler:load_growth"

BLOCK = 500
"""The number of different schemas after each of which the memory of the process is looked at."""

SCHEMAS_SECONDS = 6.0
"""For each second of the deadline, the seconds of processor time that all different schemas of an arm may
take."""

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
    specs = parse_specs(request.backends)
    vocabularies = tuple(map(prepare_vocabulary, with_all(request.vocabularies)))
    found = look_at(specs, vocabularies, say, reads=False)
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
            stored = [point for point in self.points if point.key[1:4] == (one.name, vocabulary, axis.name)]
            if not stored:
                self._add(replace(failed, fork=fork, axis=axis.name, size=min(sizes)))
            for point in stored:
                if point.status == "harness_error":  # which was to be measured anew, and cannot be
                    self.points.remove(point)
                    self._add(replace(failed, fork=point.fork, axis=axis.name, size=point.size))
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
            failed = loaded(service, Point(fork, one.name, vocabulary, SCHEMAS, 1, "ok"))
            if failed.status == "ok":
                return True
            self._note_load(failed)
        else:
            stored = [
                block for block in self.blocks if (block.arm, block.vocabulary) == (one.name, vocabulary)
            ]
            ours = [block for block in stored if block.status == "harness_error" and block.fork == fork]
            if not ours and any(block.status != "harness_error" for block in stored):
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
