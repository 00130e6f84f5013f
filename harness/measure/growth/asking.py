"""Asks the process of one arm for what a size costs, in fresh children; what ends a child is written down as
it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.measure.growth.axes import axes
from harness.measure.growth.record import Block, Point, lost_status

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

PATIENCE = 60.0
"""How often the deadline in seconds of wall time is that in processor time: on a busy machine a process gets
a share only, and one that sleeps uses none."""


def measured_point(service: Service, point: Point, timeout_s: float) -> Point:
    """Returns the point as measured in fresh children of the service."""
    point = loaded(service, point)
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


def loaded(service: Service, point: Point) -> Point:
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
