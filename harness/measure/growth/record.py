"""A measurement of growth on disk: `growth.jsonl`, a line for each point, appended as soon as it is measured.

Nothing in it is a fit or a verdict: those are functions of it (`harness.measure.growth.conclude`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

from harness.backend.process.lost import Lost
from harness.errors import BadInput
from harness.rows.appending import RecordLines, encoded, reopened, write_lines
from harness.shape import shaped
from harness.text import our_command

FILE = "growth.jsonl"

PROTOCOL = 1
"""The version of the file and of what its figures mean."""

SHORT_NS = 5_000_000
"""Nanoseconds of wall time. A call that is shorter is hardly ever interrupted, and its wall time is its cost;
the cost of a longer one is its processor time, which some systems count in ticks of 4 ms."""

Status = Literal["ok", "refused", "error", "killed", "harness_error"]
"""How a point ended: `refused`, the backend says that it cannot; `error`, it raised something else; `killed`,
it was killed at a limit or ended its process; `harness_error`, a failure of ours, which is nobody's fault
else."""


@dataclass(frozen=True)
class GrowthArm:
    """A backend at one version with one set of options."""

    name: str
    spec: str
    backend: str
    version: str
    options: str
    python: str
    """The interpreter of its environment; empty for ours."""


class GrowthMore(TypedDict):
    """What a resumed measurement asks for: the fields of a plan that may be added to."""

    axes: tuple[str, ...]
    vocabularies: dict[str, int]
    forks: int


@dataclass(frozen=True)
class GrowthPlan:
    """The first line: what is measured, with what, and on which machine."""

    started: str
    argv: tuple[str, ...]
    arms: tuple[GrowthArm, ...]
    vocabularies: dict[str, int]
    """The number of ids of each vocabulary."""
    axes: tuple[str, ...]
    most: int | None
    """The largest size; None for each axis's own."""
    forks: int
    timeout_s: float
    memory_bytes: int
    schemas: int
    hardware: str
    machine: dict[str, Any]
    protocol: int = PROTOCOL

    def more(self) -> GrowthMore:
        """Returns what may be added to another plan."""
        return {"axes": self.axes, "vocabularies": self.vocabularies, "forks": self.forks}

    def with_more(self, more: GrowthMore) -> GrowthPlan:
        """Returns the plan with what was asked for later too."""
        return replace(
            self,
            axes=tuple(dict.fromkeys((*self.axes, *more["axes"]))),
            vocabularies=self.vocabularies | more["vocabularies"],
            forks=max(self.forks, more["forks"]),
        )

    def asked(self) -> tuple[Any, ...]:
        """Returns what must be the same for a measurement to be continued; axes, vocabularies and forks may
        be added."""
        return (
            tuple(sorted(asdict(arm).items()) for arm in self.arms),
            self.most,
            self.timeout_s,
            self.memory_bytes,
            self.schemas,
            self.hardware,
        )


@dataclass(frozen=True)
class Point:
    """One arm at one size in one fork. A list has a value for each fresh child; times are nanoseconds."""

    fork: int
    arm: str
    vocabulary: str
    axis: str
    size: int
    status: Status
    phase: str = ""
    """What was done when it ended: `load`, `compile`, `walk` or `again`; empty if all was done."""
    cause: str = ""
    """For `killed`: `timeout`, `oom` or `crash`."""
    text: str = ""
    compile_ns: tuple[int, ...] = ()
    """Processor time of the cold compile."""
    wall_ns: tuple[int, ...] = ()
    """Wall time of the same."""
    first_fill_ns: tuple[int, ...] = ()
    """Wall time of the new object and the first fill after it."""
    memory_bytes: tuple[int, ...] = ()
    grammar_bytes: int | None = None
    mask_ns: tuple[int, ...] = ()
    """Warm masks, a minimum over passes for each place of the output."""
    refused_at: int | None = None
    """The token of the output that the backend refuses, where it does."""
    again_ns: int | None = None
    cached_ns: int | None = None
    load: float = 0.0

    @property
    def key(self) -> tuple[int, str, str, str, int]:
        """Returns what a point is told apart by."""
        return self.fork, self.arm, self.vocabulary, self.axis, self.size


def lost_status(lost: Lost) -> Status:
    """Returns the status of what was asked of a child that was lost: `error` where the backend raised as it
    was loaded."""
    if lost.whose == "harness":
        return "harness_error"
    return "error" if lost.cause == "load" else "killed"


@dataclass(frozen=True)
class Block:
    """Some of the different schemas that one process compiles, one after another."""

    fork: int
    arm: str
    vocabulary: str
    first: int
    done: int
    status: Status
    cause: str = ""
    text: str = ""
    rss_bytes: int | None = None
    compile_ns: int | None = None
    first_again_ns: int | None = None


@dataclass(frozen=True)
class Grown:
    """A measurement as read: of what was measured anew, as what failed in our own code is by `--resume`, only
    the last."""

    folder: Path
    plan: GrowthPlan
    points: tuple[Point, ...]
    blocks: tuple[Block, ...]
    finished: bool


class GrowthRecorder:
    """Appends lines; whatever was handed over is in the file, not in our memory."""

    def __init__(self, folder: Path, plan: GrowthPlan, *, resume: bool) -> None:
        """Begins the file, or opens it at its end. A last line that was cut off is cut away."""
        path = folder / FILE
        self.file = reopened(path) if resume else open(path, "xb")  # noqa: SIM115 - closed by `close`
        if resume:
            self.write("more", dict(plan.more()))
        else:
            self.write("growth", asdict(plan))

    def write(self, kind: str, line: dict[str, Any]) -> None:
        """Appends one line."""
        write_lines(self.file, [encoded({"kind": kind, **line})])

    def point(self, point: Point) -> None:
        """Appends a point, without the fields that say nothing."""
        defaults = {column.name: column.default for column in fields(Point)}
        self.write("point", {name: value for name, value in asdict(point).items() if value != defaults[name]})

    def close(self) -> None:
        """Closes the file."""
        self.file.close()


def has_growth(folder: Path) -> bool:
    """Returns whether the folder holds a measurement of growth."""
    return (folder / FILE).is_file()


def read_growth(folder: Path) -> Grown:
    """Returns the whole record. Raises BadInput."""
    if not has_growth(folder):
        raise BadInput(
            f"{folder}: no measurement of growth here (no {FILE}); "
            f"{our_command('measure', 'growth', '--out', str(folder))} makes one"
        )
    points: dict[tuple[int, str, str, str, int], Point] = {}
    blocks: dict[tuple[int, str, str], list[Block]] = {}
    finished = False
    with RecordLines(folder / FILE, PROTOCOL, "measurement of growth") as lines:
        plan = shaped(GrowthPlan, lines.first())
        arms = {arm.name for arm in plan.arms}
        for kind, line in lines:
            if kind == "point":
                point = shaped(Point, line)
                if point.arm not in arms or point.size < 1:
                    raise ValueError("a point of no arm of this measurement, or of no size")
                if len(point.compile_ns) != len(point.wall_ns) or (
                    point.status == "ok" and not point.wall_ns
                ):
                    raise ValueError("a point whose compiles do not each have both their times")
                points[point.key] = point
            elif kind == "block":
                _add_block(blocks, shaped(Block, line))
            elif kind == "more":
                plan = plan.with_more(shaped(GrowthMore, line))
            finished = kind == "end"
    in_order = tuple(block for blocks_of_one in blocks.values() for block in blocks_of_one)
    return Grown(folder, plan, tuple(points.values()), in_order, finished)


def _add_block(blocks: dict[tuple[int, str, str], list[Block]], block: Block) -> None:
    """Adds the block to those of its process, in place of them if it was begun anew. Raises ValueError if it
    does not follow the last of them."""
    mine = blocks.setdefault((block.fork, block.arm, block.vocabulary), [])
    if block.first == 0:
        mine.clear()
    if block.first != sum(before.done for before in mine) or block.done < 0:
        raise ValueError("a block of schemas that does not follow those before it")
    mine.append(block)
