"""A measurement of growth as text: the answers first, then how everything grows."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure.growth.conclude import (
    FIGURES,
    Caching,
    Conclusion,
    ManySchemas,
    Unit,
    caching,
    conclusions,
    many_schemas,
)
from harness.measure.growth.fit import Growth
from harness.measure.growth.record import Grown, Point
from harness.measure.statistics import LEVEL
from harness.text import PIPE, Console, counted, duration, grid, one_line

SHOWN = ("compile", "mask", "memory")
"""The figures that a terminal shows as tables; the page and the CSV have all of them."""

MOST_ANSWERS = 12

SHORT = {
    "constant": "constant",
    "less than linear": "less",
    "linear": "linear",
    "worse than linear": "worse",
    "exponential": "exponential",
    "not judged": "open",
}


def text(grown: Grown, on: Console = PIPE) -> str:
    """Returns everything that a terminal shows of it."""
    found = conclusions(grown)
    parts = [ours_text(grown, on), answers_text(grown, found, on)]
    for vocabulary in grown.plan.vocabularies:
        parts += [table(grown, found, vocabulary, figure, on) for figure in SHOWN]
    parts += [schemas_text(many_schemas(grown), on), caching_text(caching(grown), on)]
    parts.append(on.fit("\n".join(refusals(grown))))
    memory = f"{grown.plan.memory_bytes / 1e9:g} GB"
    parts.append(
        on.fit(
            "growth: `less` and `worse` mean less and worse than linear, `open` means not judged; n^b is "
            f"fitted to the largest sizes beside a fixed cost, with the interval of b at {LEVEL:.0%}. Sizes "
            f"larger than one that was refused or killed ({grown.plan.timeout_s:g} s, {memory}) were not "
            "tried."
        )
    )
    if not grown.finished:
        parts.append(on.fit("This measurement is incomplete: --resume completes it."))
    return "\n\n".join(part for part in parts if part)


def ours_text(grown: Grown, on: Console) -> str:
    """Returns a line about failures of our own, which are nobody's cost; empty if there is none."""
    ours = [point.text for point in grown.points if point.status == "harness_error"]
    ours += [block.text for block in grown.blocks if block.status == "harness_error"]
    if not ours:
        return ""
    counts, them = ("counts", "it") if len(ours) == 1 else ("count", "them")
    return on.fit(
        f"{counted(len(ours), 'point')} failed in our own code and {counts} against no backend; --resume "
        f"measures {them} anew. The first: {one_line(ours[0], 120)}"
    )


def refusals(grown: Grown) -> list[str]:
    """Returns a sentence for each arm that refuses an axis's own output: masks behind that token were not
    timed, and the refusal is a fault or a limit of the backend."""
    first: dict[tuple[str, str, str], Point] = {}
    for point in sorted(grown.points, key=lambda point: point.size):
        if point.refused_at is not None:
            first.setdefault((point.vocabulary, point.axis, point.arm), point)
    return [
        f"{arm} refuses token {point.refused_at} of the output of {axis} from size {point.size} on "
        f"({vocabulary}); no mask behind it is timed"
        for (vocabulary, axis, arm), point in first.items()
    ]


def answers_text(grown: Grown, found: Sequence[Conclusion], on: Console) -> str:
    """Returns what somebody must know: what did not load, what is killed, what is exponential, what grows
    worse than linearly."""
    bad = [
        one
        for one in found
        if one.figure in ("compile", "mask")
        and (one.growth.kind in ("exponential", "worse than linear") or is_killed(one))
    ]
    unloaded = _unloaded(grown)
    lines = [*unloaded, *(sentence(one) for one in sorted(bad, key=_badness))]
    more = len(lines) - MOST_ANSWERS
    shown = lines[:MOST_ANSWERS] + ([f"and {more} more, in the tables below"] if more > 0 else [])
    if not bad and (not unloaded or any(point.status == "ok" for point in grown.points)):
        ends = {point.status for point in grown.points} | {block.status for block in grown.blocks}
        also = "" if "killed" in ends else ", and nothing was killed"
        shown.append(f"Nothing that was measured grows worse than linearly{also}.")
    return on.fit("\n".join(shown))


def _unloaded(grown: Grown) -> list[str]:
    """Returns a sentence for each arm and vocabulary that did not load, through the backend."""
    first: dict[tuple[str, str], str] = {}
    for point in grown.points:
        if point.phase == "load" and point.status != "harness_error":
            first.setdefault((point.arm, point.vocabulary), point.text)
    return [
        f"{arm} cannot be measured with {vocabulary}: {one_line(why, 120)}"
        for (arm, vocabulary), why in first.items()
    ]


def is_killed(one: Conclusion) -> bool:
    """Returns whether a call that the figure is about was killed along this axis, or ended its process: for
    masks the walk, for a compile also the second one of the same grammar."""
    calls = ("walk",) if one.figure == "mask" else ("compile", "again")
    return one.end is not None and one.end.status == "killed" and one.end.phase in calls


def _badness(one: Conclusion) -> tuple[bool, bool, float]:
    """Returns a key by which the worst comes first."""
    return not is_killed(one), one.growth.kind != "exponential", -(one.growth.exponent or 0.0)


def sentence(one: Conclusion) -> str:
    """Returns one conclusion as a sentence."""
    what = {"compile": "compile", "mask": "mask"}.get(one.figure, FIGURES[one.figure].title)
    parts = [f"{one.arm}: {what} with {one.axis} ({one.vocabulary})"]
    if one.growth.kind in ("constant", "not judged"):
        grows = "" if one.growth.kind == "not judged" else " is constant"
    else:
        grows = f" grows like {'' if one.growth.base else 'n^'}{power(one.growth)}"
    if one.values:
        size, cost = one.values[-1]
        grows += f"; {amount(cost, FIGURES[one.figure].unit)} at {size}"
    if one.end is not None:
        grows += f"; {one.end.word} at {one.end.size}: {one_line(one.end.text, 80)}"
    return parts[0] + grows


def power(growth: Growth) -> str:
    """Returns the fitted growth in a few characters, with the interval of its exponent."""
    if growth.base is not None:
        return f"{growth.base:.3g}^n"
    if growth.exponent is None:
        return ""
    return f"{growth.exponent:.2f} [{growth.low:.2f}, {growth.high:.2f}]"


def amount(cost: float, unit: Unit) -> str:
    """Returns a cost for people."""
    if unit == "ns":
        return duration(cost)
    return f"{cost / 1e6:.1f} MB" if abs(cost) >= 1e5 else f"{cost / 1e3:.1f} kB"


def table(grown: Grown, found: Sequence[Conclusion], vocabulary: str, figure: str, on: Console) -> str:
    """Returns the table of one figure: an axis a section, an arm a line."""
    mine = [one for one in found if (one.vocabulary, one.figure) == (vocabulary, figure)]
    if not mine:
        return ""
    sections: list[list[tuple[str, list[str]]]] = []
    for axis in grown.plan.axes:
        lines = []
        for one in mine:
            if one.axis != axis:
                continue
            largest = ""
            if one.values:
                size, cost = one.values[-1]
                largest = f"{amount(cost, FIGURES[figure].unit)} at {size}"
            ended = f"{one.end.word} at {one.end.size}" if one.end else ""
            word = SHORT[one.growth.kind] if one.values else "-"
            cells = [word, power(one.growth), largest, ended]
            lines.append((f"  {one_line(one.arm, 22, spelled=True)}", cells))
        if lines:
            sections.append([(axis, ["", "", "", ""]), *lines])
    title = f"{FIGURES[figure].title}, {vocabulary} ({grown.plan.vocabularies[vocabulary]:,} ids)"
    heads = ["growth", "n^b", "largest", "ended"]
    return f"{title}\n{grid('', heads, sections, on.width, on.styled, 24)}"


def schemas_text(found: Sequence[ManySchemas], on: Console) -> str:
    """Returns what many different schemas in one process do."""
    if not found:
        return ""
    lines = []
    for one in found:
        cells = [one.verdict, f"{one.compiled:,}", "", "", ""]
        if one.slope is not None:
            cells[2] = f"{one.slope.per_step:,.0f} [{one.slope.low:,.0f}, {one.slope.high:,.0f}]"
        if one.first_bytes is not None and one.last_bytes is not None:
            cells[3] = f"{one.first_bytes / 1e6:,.0f} to {one.last_bytes / 1e6:,.0f} MB"
        if one.again is not None:
            cells[4] = f"{one.again:.2f}"
        lines.append((f"{one.vocabulary} {one_line(one.arm, 24, spelled=True)}", cells))
    heads = ["verdict", "schemas", "bytes a schema", "resident", "first again"]
    notes = [f"{one.arm}: {one_line(one.text, 120)}" for one in found if one.text]
    table = grid("", heads, [lines], on.width, on.styled, 24)
    head = (
        "different schemas in one process (first again: the first schema compiled once more, over a compile)"
    )
    return "\n".join([*on.fold(head), table, *(line for note in notes for line in on.fold(note))])


def caching_text(found: Sequence[Caching], on: Console) -> str:
    """Returns what compiling the same grammar again costs."""
    if not found:
        return ""
    lines = [
        (
            f"{one.vocabulary} {one_line(one.arm, 24, spelled=True)}",
            [
                f"{one.again:.2f}",
                "no such option" if one.cached is None else f"{one.cached:.4f}",
                str(one.sizes),
            ],
        )
        for one in found
    ]
    heads = ["again", "with cache=true", "sizes"]
    return (
        f"the same grammar again, over its cold compile\n{grid('', heads, [lines], on.width, on.styled, 24)}"
    )
