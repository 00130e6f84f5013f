"""The tables of what benchmarks/gpu.py measured, as sections of Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from gpu_anchors import NOT
from gpu_figures import Figures
from gpu_plan import FORCED, LONG_LIMIT, MIXED, NO_OVERLAP
from gpu_store import middle
from gpu_text import ms, noise, plain, shown, titled, us

FLOOR_TEXT = """\
The floor is the weights once and each row's cache at its length, at the bandwidth of a copy (bytes read and
written: {}). The column is of the bare step at its length; TPOT is over the floor of the
requests' own lengths. In larger batches arithmetic and the loop are in TPOT too."""
COST_TEXT = """\
`x none`: TPOT over that of the unconstrained run beside it. `a/a`: the most by which two identical arms
differ there in TPOT, over all ways to fill with overlap, or without; a smaller difference says nothing.
Exposed (what masks held the loop up), move and apply: medians of a step, by the device's clock."""
GAIN_TEXT = """\
The ceiling is the passes of stepwise over those of the strategy. `a/a`: the most by which two identical arms
differ there in TPOT, with that strategy or stepwise."""
COLD_TEXT = f"""\
One row is free; the others write {LONG_LIMIT} tokens each, and when a quarter of their time is over a request
comes. `warm`: its grammar was compiled before; `warm again` is the same once more, which is the noise.
`foreground`: the loop compiles and all wait; `thread`: a thread compiles beside it. Intervals are over the
repeats of one process."""
SHARE_TEXT = """\
Masks are filled in one thread beside the forward pass. `100% again` is the same once more, which is the
noise."""
KERNELS_TEXT = """\
Median of a call, and the share of a copy's bandwidth that its fastest call reaches; the last row is the copy.
`!`: its result is wrong; `~`: it was not captured as a graph, so launches are in it."""
MOVES_TEXT = """\
Median of a copy from the host to the device, by itself; behind the plus what it adds to the matmul that makes
the logits, where both are begun together on two streams."""
PROBES_TEXT = """\
The probes that did not pass (a refusal that says so passes); docs/kernels.md tells what each is."""
SHARE_SHOWN = 0.5
"""The share of allowed ids of which the table of kernels is; all shares are in the file."""


def floor(figures: Figures) -> Iterator[str]:
    """Yields the table of the floor: what a pass costs without a grammar."""
    rows = []
    begun = [where for where in figures.wheres() if figures.floor(where[0])]
    for where in begun:
        step, least = figures.step(where), figures.least_ns(where)
        if not step or not least:
            why = figures.floor(where[0]).get("steps", {}).get(str(where[1]), {}).get("error", NOT)
            rows.append([*map(str, where), why, "", "", "", "", ""])
            continue
        graph, eager = (statistics.median(step["step_ns"][which]) for which in ("graph", "eager"))
        memory = f"{step['peak_bytes'] / 1e9:.0f} GB" if step.get("peak_bytes") else ""
        rows.append(
            [
                *map(str, where),
                ms(least),
                f"{ms(graph)} ({graph / least:.2f}x)",
                f"{ms(eager)} ({eager / graph:.2f}x the graph)",
                ms(tpot(figures, where, strategy="none", workload=MIXED)),
                shown(figures.over_floor(where)),
                memory,
            ]
        )
    if begun:
        rates = [
            f"{shape} {rate * 1:.0f} GB/s"
            for shape in figures.plan.shapes
            if (rate := figures.bandwidth(shape))
        ]
        yield from titled(
            "The floor, without a grammar",
            FLOOR_TEXT.format(", ".join(rates)),
            [
                "shape",
                "batch",
                "floor",
                "bare step, graph",
                "bare step, eager",
                "TPOT",
                "TPOT over floor",
                "peak",
            ],
            rows,
        )


def cost(figures: Figures) -> Iterator[str]:
    """Yields the table of what a grammar costs, by way to fill."""
    rows = []
    for where in figures.wheres():
        for backend in figures.plan.backends:
            wanted: dict[str, Any] = {"backend": backend, "strategy": "stepwise", "workload": MIXED}
            for way in dict.fromkeys(row["way"] for row in figures.rows(where, **wanted)):
                found = figures.rows(where, **wanted, way=way)
                rows.append(
                    [
                        *map(str, where),
                        backend,
                        way,
                        ms(tpot(figures, where, **wanted, way=way)),
                        shown(figures.over_none(where, backend, way)),
                        noise(figures.noise(where, ["stepwise"], MIXED, overlap=way != NO_OVERLAP)),
                        us(middle([row["step_ns"]["exposed"] for row in found if row["step_ns"]])),
                        us(
                            middle(
                                [
                                    row["step_ns"]["move"] + row["step_ns"]["apply"]
                                    for row in found
                                    if row["step_ns"]
                                ]
                            )
                        ),
                        right(found),
                    ]
                )
    if rows:
        yield from titled(
            f"What a grammar costs ({MIXED}, one token a pass)",
            COST_TEXT,
            [
                "shape",
                "batch",
                "backend",
                "masks filled in",
                "TPOT",
                "x none",
                "a/a",
                "exposed",
                "move, apply",
                "valid",
            ],
            rows,
        )


def lost(figures: Figures) -> Iterator[str]:
    """Yields the settings of `decode` that could not be measured, and why."""
    known = {
        (one["arm"], one["setting"]): one["why"]
        for _, cell in figures.results("decode", "decode").values()
        for one in cell["lost"]
    }
    if known:
        yield "Not measured:"
        yield ""
        yield from (f"- {arm}, {setting}: {plain(why)}" for (arm, setting), why in known.items())
        yield ""


def strategies(figures: Figures) -> Iterator[str]:
    """Yields the table of what each strategy gains over one token a pass."""
    rows = []
    for where, workload, strategy, backend in product(
        figures.wheres(), (MIXED, FORCED), ("jump_forward", "speculative"), figures.plan.backends
    ):
        found = figures.rows(where, backend=backend, strategy=strategy, workload=workload)
        if not found:
            continue
        gain, share, ceiling = figures.speed_up(where, backend, strategy, workload)
        apart = noise(figures.noise(where, ["stepwise", strategy], workload))
        cells = [shown(gain), apart, f"{ceiling:.2f}" if ceiling else "saves no pass", shown(share)]
        rows.append([*map(str, where), workload, strategy, backend, *cells, right(found)])
    if rows:
        yield from titled(
            "What strategies gain over one token a pass",
            GAIN_TEXT,
            [
                "shape",
                "batch",
                "workload",
                "strategy",
                "backend",
                "speed-up",
                "a/a",
                "ceiling",
                "share of it",
                "valid",
            ],
            rows,
        )


def cold(figures: Figures) -> Iterator[str]:
    """Yields the table of cold grammars."""
    rows = []
    for cell, row in figures.results("cold", "cold").values():
        for newcomer in dict.fromkeys(run["newcomer"] for run in row["runs"]):
            for mode in dict.fromkeys(run["mode"] for run in row["runs"]):
                known = figures.cold(row, newcomer, mode)
                rows.append(
                    [
                        cell.shape,
                        str(cell.batch),
                        cell.backend,
                        newcomer,
                        mode,
                        shown(known["others"]) if mode != "warm" else "1 (base)",
                        ms(known["gap_ns"]),
                        ms(known["ttft_ns"]) or plain(known["why"]),
                        ms(known["compile_ns"]),
                    ]
                )
    if rows:
        yield from titled(
            "A cold grammar comes into a warm batch",
            COLD_TEXT,
            [
                "shape", "batch", "backend", "newcomer's grammar", "compiled", "the others' TPOT",
                "their longest gap", "its TTFT", "compile",
            ],
            rows,
        )  # fmt: skip


def share(figures: Figures) -> Iterator[str]:
    """Yields the table of shares."""
    rows = []
    for cell, row in figures.results("share", "share").values():
        for at, again in dict.fromkeys(
            (run["share"], run["again"]) for run in sorted(row["runs"], key=by_share)
        ):
            known = figures.share(row, at, again=again)
            rate = known["tokens_per_s"]
            rows.append(
                [
                    cell.shape,
                    str(cell.batch),
                    cell.backend,
                    f"{at:.0%}{' again' if again else ''} ({known['structured']:.0f} rows)",
                    f"{rate:,.0f}" if rate else NOT,
                    shown(known["throughput"]) if at or again else "1 (base)",
                    ms(known["tpot_structured_ns"]),
                    ms(known["tpot_free_ns"]),
                ]
            )
    if rows:
        yield from titled(
            "Share of requests with a grammar",
            SHARE_TEXT,
            ["shape", "batch", "backend", "with a grammar", "tok/s", "over 0%", "TPOT with", "TPOT without"],
            rows,
        )


def by_share(run: dict[str, Any]) -> tuple[float, bool]:
    """Returns what a run is sorted by."""
    return run["share"], run["again"]


def kernels(figures: Figures) -> Iterator[str]:
    """Yields a table of kernels for each size of vocabulary and type of logits."""
    results = figures.results("kernels", "times").values()
    missing = {name: why for _, row in results for name, why in row["unusable"].items()}
    for cell, row in results:
        shown_rows = [time for time in row["times"] if time["share"] == SHARE_SHOWN]
        batches = sorted({time["batch"] for time in shown_rows})
        found = {(time["kernel"], time["batch"]): time for time in shown_rows}
        rows = [
            [f"`{kernel}`", *(kernel_text(found.get((kernel, batch))) for batch in batches)]
            for kernel in dict.fromkeys(time["kernel"] for time in shown_rows)
        ]
        yield from titled(
            f"Mask kernels: {cell.vocabulary:,} ids, {cell.dtype}, {SHARE_SHOWN:.0%} allowed",
            KERNELS_TEXT,
            ["kernel", *(f"batch {batch}" for batch in batches)],
            rows,
        )
    if missing:
        yield "Kernels that could not be asked here:"
        yield ""
        yield from (f"- `{name}`: {plain(why)}" for name, why in missing.items())
        yield ""


def kernel_text(row: dict[str, Any] | None) -> str:
    """Returns one cell of the table of kernels."""
    if row is None:
        return ""
    if "median_ns" not in row:
        return row["outcome"]  # type: ignore[no-any-return]
    marks = f"{'!' if row['outcome'] == 'wrong' else ''}{'~' if row.get('no_graph') else ''}"
    rate = (
        f"{row['gb_per_s']:.0f} GB/s"
        if row["kernel"] == "copy"
        else f"{row['of_copy']:.0%}"
        if "of_copy" in row
        else ""
    )
    return f"{marks}{us(row['median_ns'])} {rate}".strip()


def moves(figures: Figures) -> Iterator[str]:
    """Yields a table of what it takes to bring masks to the device, for each size of vocabulary."""
    by_size = {cell.vocabulary: row["moves"] for cell, row in figures.results("kernels", "times").values()}
    for vocabulary, found in by_size.items():
        took = {
            (move.get("form"), move.get("memory"), move["company"], move["batch"]): move["median_ns"]
            for move in found
            if "median_ns" in move
        }
        batches = sorted({move["batch"] for move in found})
        kinds = dict.fromkeys((move["form"], move["memory"]) for move in found if "form" in move)
        rows = [
            [form, memory, *(move_text(took, form, memory, batch) for batch in batches)]
            for form, memory in kinds
        ]
        yield from titled(
            f"Bringing masks to the device: {vocabulary:,} ids",
            MOVES_TEXT,
            ["mask", "host memory", *(f"batch {batch}" for batch in batches)],
            rows,
        )


def move_text(took: Mapping[tuple[Any, ...], float], form: str, memory: str, batch: int) -> str:
    """Returns one cell of the table of movement; empty where it was not measured, as pinned memory on a
    CPU."""
    alone = took.get((form, memory, "alone", batch))
    beside = took.get((form, memory, "matmul", batch))
    matmul = took.get((None, None, "matmul", batch))
    added = f" +{us(max(beside - matmul, 0.0))}" if beside and matmul else ""
    return f"{us(alone)}{added}"


def probes(figures: Figures) -> Iterator[str]:
    """Yields what kernels did wrong."""
    rows = [
        [f"`{row['kernel']}`", row["probe"], row["dtype"], row["outcome"], plain(row.get("text", ""))[:120]]
        for _, result in figures.results("kernels", "probes").values()
        for row in result["failed"]
    ]
    if figures.results("kernels", "probes"):
        yield from titled(
            "Are the kernels right?",
            PROBES_TEXT,
            ["kernel", "probe", "logits", "outcome", "what was seen"],
            rows,
        )


def tpot(figures: Figures, where: tuple[str, int], **wanted: Any) -> float | None:
    """Returns the median TPOT over the forks, nanoseconds."""
    return middle([row["tpot_ns"] for row in figures.rows(where, **wanted)])


def right(rows: Sequence[dict[str, Any]]) -> str:
    """Returns how many of the judged texts were valid, and how many requests were not answered."""
    valid = sum(row["right"].get("valid", 0) for row in rows)
    judged = valid + sum(row["right"].get("invalid", 0) for row in rows)
    lost = sum(row["requests"] - row["answered"] + row["fallback"] for row in rows)
    return (f"{valid}/{judged}" if judged else "cut short") + (f", {lost} not answered" if lost else "")
