"""What the stored parts say: ratios over the forks with their intervals, and what was asked of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpu_plan import FORCED, MIXED, NO_OVERLAP
from gpu_store import Store, middle

from harness.measure.statistics import interval

Row = dict[str, Any]
Where = tuple[str, int]
"""Shape and batch."""


@dataclass(frozen=True)
class Estimate:
    """A ratio over the forks or repeats; without an interval where there is only one."""

    value: float
    low: float | None
    high: float | None
    number: int


@dataclass(frozen=True)
class Asked:
    """What is asked of a figure."""

    what: str
    limit: float
    at_most: bool = True
    on_cpu: bool = False
    """Is it judged on a CPU too?"""

    def __str__(self) -> str:
        return f"{'at most' if self.at_most else 'at least'} {self.limit:g}"


FLOOR = Asked("unconstrained TPOT over the bandwidth floor, batch 1", 1.3)
CONSTRAINED = Asked("constrained TPOT over unconstrained, with overlap", 1.05)
JUMPS = Asked("jump-forward's speed-up where all is forced, share of its ceiling", 0.85, at_most=False)
LOGITS = Asked("relative distance of the logits, graph and eager", 0.1, on_cpu=True)
LOGITS32 = Asked("relative distance of the logits, graph and eager", 1e-3, on_cpu=True)
"""The distances are those beyond which `load_model` refuses a model, in bfloat16 and in float32."""
WIDE = Asked(
    "relative distance of the logits, one pass of 96 tokens and passes of 32 and 16", 0.1, on_cpu=True
)
WIDE32 = replace(WIDE, limit=1e-3)


@dataclass(frozen=True)
class Figure:
    """One figure of which something is asked."""

    asked: Asked
    where: str
    estimate: Estimate | None
    """None: not measured."""
    verdict: str
    noise: Estimate | None = None
    """The most by which two identical arms differ in what the figure is made of (`Figures.noise`)."""


def over(logs: Iterable[float | None]) -> Estimate | None:
    """Returns the ratio of natural logarithms, one for each fork or repeat; None without one."""
    known = [log for log in logs if log is not None]
    if not known:
        return None
    estimate = interval(known)
    if not math.isfinite(estimate.high):
        return Estimate(estimate.ratio, None, None, len(known))
    return Estimate(estimate.ratio, estimate.low, estimate.high, len(known))


def verdict(asked: Asked, value: float | None, device: str, noise: Estimate | None = None) -> str:
    """Returns `kept`, `NOT KEPT`, `undecided` where the value is nearer to the limit than two identical arms
    are to each other, or why it is not judged. The estimate is judged, not its interval."""
    if value is None:
        return "not measured"
    if device == "cpu" and not asked.on_cpu:
        return "not judged on a CPU"
    if noise and abs(math.log(value / asked.limit)) < math.log(noise.value):
        return "undecided"
    kept = value <= asked.limit if asked.at_most else value >= asked.limit
    return "kept" if kept else "NOT KEPT"


class Figures:
    """The figures of all stored parts. Nothing is cached: a page is made once."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self.stores = stores
        first = next(iter(stores.values()))
        self.device, self.plan = first.device, first.plan

    def results(self, part: str, kind: str) -> dict[str, tuple[Any, Row]]:
        """Returns the results of the part's cells of a kind, by name, each with its cell."""
        if part not in self.stores:
            return {}
        known = self.stores[part].results()
        return {
            cell.name: (cell, known[cell.name])
            for cell in self.plan.cells(part)
            if cell.kind == kind and cell.name in known
        }

    # ------------------------------------------------------------------------------------------------ decode

    def bandwidth(self, shape: str) -> float | None:
        """Returns the bytes a nanosecond of the median copy, of the shape's own process."""
        floor = self.floor(shape)
        return floor["copy_bytes"] / statistics.median(floor["copy_ns"]) if floor else None

    def floor(self, shape: str) -> Row:
        """Returns the result of the shape's cell `floor`; empty without one."""
        return next(
            (row for cell, row in self.results("decode", "floor").values() if cell.shape == shape), {}
        )

    def step(self, where: Where) -> Row:
        """Returns the bare steps; empty if there are none."""
        step: Row = self.floor(where[0]).get("steps", {}).get(str(where[1]), {})
        return {} if "error" in step else step

    def least_ns(self, where: Where) -> float | None:
        """Returns the floor of a bare step, nanoseconds: weights and cache once, at the copy's bandwidth."""
        step, rate = self.step(where), self.bandwidth(where[0])
        if not step or not rate:
            return None
        model = step["model"]
        return float(
            (model["read_bytes"] + model["cache_bytes_per_token"] * step["length"] * where[1]) / rate
        )

    def models(self) -> dict[str, Row]:
        """Returns what each model was (`Model.describe`), by the name of its cell, in every part; of a floor
        that of each batch."""
        found: dict[str, Row] = {}
        for store in self.stores.values():
            for name, row in store.results().items():
                steps = {f"{name}, batch {batch}": step for batch, step in row.get("steps", {}).items()}
                for label, one in {name: row, **steps}.items():
                    if one.get("model"):
                        found[label] = one["model"]
        return found

    def decoded(self, where: Where) -> list[Row]:
        """Returns the results of the cells `decode` at that shape and batch, one a fork."""
        cells = self.results("decode", "decode").values()
        return [row for cell, row in cells if (cell.shape, cell.batch) == where]

    def wheres(self) -> list[Where]:
        """Returns the shapes and batches of `decode`, ascending."""
        return [(shape, batch) for shape in sorted(self.plan.shapes) for batch in sorted(self.plan.batches)]

    def rows(self, where: Where, *, again: bool = False, **wanted: Any) -> list[Row]:
        """Returns the rows of all forks with those values; without the A/A arm's, unless they are wanted."""
        return [
            row
            for fork in self.decoded(where)
            for row in fork["rows"]
            if (again or not row["again"]) and all(row[name] == value for name, value in wanted.items())
        ]

    def over_floor(self, where: Where) -> Estimate | None:
        """Returns unconstrained TPOT over the floor: by fork the mean over all arms, whose unconstrained runs
        are alike."""
        rate = self.bandwidth(where[0])
        logs = []
        for fork in self.decoded(where):
            known = [row["per_byte"] for row in fork["rows"] if row["strategy"] == "none" and row["per_byte"]]
            if rate and known:
                logs.append(statistics.mean(known) + math.log(rate))
        return over(logs)

    def over_none(self, where: Where, backend: str, way: str) -> Estimate | None:
        """Returns constrained TPOT over that of the unconstrained run beside it."""
        rows = self.rows(where, backend=backend, way=way, strategy="stepwise", workload=MIXED)
        return over(row["over_none"] for row in rows)

    def best_way(self, where: Where, backend: str) -> tuple[str, Estimate | None]:
        """Returns the way to fill with overlap that costs the least TPOT, and that cost."""
        ways = dict.fromkeys(
            row["way"] for row in self.rows(where, backend=backend, strategy="stepwise", workload=MIXED)
        )
        known = {way: self.over_none(where, backend, way) for way in ways if way != NO_OVERLAP}
        costs = {way: estimate for way, estimate in known.items() if estimate is not None}
        if not costs:
            return "", None
        best = min(costs, key=lambda way: costs[way].value)
        return best, costs[best]

    def ways_apart(self, where: Where, backend: str, head: str, base: str) -> Estimate | None:
        """Returns constrained TPOT of one way to fill over that of another, by fork."""
        logs = []
        for fork in self.decoded(where):
            found = {
                row["way"]: row["over_none"]
                for row in fork["rows"]
                if not row["again"]
                and (row["backend"], row["strategy"], row["workload"]) == (backend, "stepwise", MIXED)
            }
            if found.get(head) is not None and found.get(base) is not None:
                logs.append(found[head] - found[base])
        return over(logs)

    def speed_up(
        self, where: Where, backend: str, strategy: str, workload: str
    ) -> tuple[Estimate | None, Estimate | None, float | None]:
        """Returns the speed-up over stepwise, its share of the ceiling, and the ceiling. Where no pass was
        saved there is no ceiling to reach, and no share."""
        rows = [
            row
            for row in self.rows(where, backend=backend, strategy=strategy, workload=workload)
            if row["speed_up"] is not None
        ]
        ceilings = [row["ceiling"] for row in rows if row["ceiling"] and row["saved"] and row["saved"] > 0]
        share = [
            row["speed_up"] - math.log(row["ceiling"])
            for row in rows
            if row["ceiling"] and row["saved"] and row["saved"] > 0
        ]
        return (
            over(row["speed_up"] for row in rows),
            over(share),
            statistics.median(ceilings) if ceilings else None,
        )

    def noise(
        self, where: Where, strategies: Collection[str], workload: str, *, overlap: bool = True
    ) -> Estimate | None:
        """Returns the largest ratio of TPOT between the two identical arms, over the settings of those
        strategies and that workload, with or without overlap, in all forks: as far above 1 as the farthest is
        above or below."""
        apart = [
            abs(twin["x"])
            for fork in self.decoded(where)
            for twin in fork["again"]
            if twin["x"] is not None
            and (twin["strategy"] in strategies and twin["workload"] == workload)
            and (twin["way"] != NO_OVERLAP) == overlap
        ]
        return Estimate(math.exp(max(apart)), None, None, len(apart)) if apart else None

    # ---------------------------------------------------------------------------------------- cold and share

    def cold(self, cell: Row, newcomer: str, mode: str) -> Row:
        """Returns how the others' TPOT compares with a warm newcomer's run of the same repeat, their longest
        gap, and the newcomer's own TTFT and compile (medians, nanoseconds). A run in which the newcomer came
        when some of the others were done already does not count."""
        runs = {
            (run["newcomer"], run["mode"], run["repeat"]): run
            for run in cell["runs"]
            if run["beside"] == len(run["others_tpot_ns"])
        }
        mine = [run for (name, how, _), run in runs.items() if (name, how) == (newcomer, mode)]
        logs = []
        for run in mine:
            base = runs.get((newcomer, "warm", run["repeat"]))
            pairs = zip(run["others_tpot_ns"], base["others_tpot_ns"], strict=True) if base else ()
            known = [math.log(ours / theirs) for ours, theirs in pairs if ours and theirs]
            logs.append(statistics.mean(known) if known else None)
        return {
            "others": over(logs),
            "gap_ns": middle(run["others_gap_ns"] for run in mine),
            "ttft_ns": middle(run["ttft_ns"] for run in mine),
            "compile_ns": middle(run["compile_ns"] for run in mine),
            "how": sorted({run["how"] for run in mine}),
            "why": next((run["why"] for run in mine if run["why"]), ""),
        }

    def share(self, cell: Row, share: float, *, again: bool = False) -> Row:
        """Returns the throughput at that share over the one without a grammar, by repeat; and medians."""
        runs = {(run["share"], run["again"], run["repeat"]): run for run in cell["runs"]}
        mine = [run for (at, twice, _), run in runs.items() if (at, twice) == (share, again)]
        logs = [
            math.log(run["tokens_per_s"] / base["tokens_per_s"])
            for run in mine
            if (base := runs.get((0.0, False, run["repeat"])))
            and run["tokens_per_s"]
            and base["tokens_per_s"]
        ]
        names = ("structured", "tokens_per_s", "tpot_ns", "tpot_structured_ns", "tpot_free_ns")
        return {"throughput": over(logs)} | {name: middle(run[name] for run in mine) for name in names}

    # ------------------------------------------------------------------------------------------------- asked

    def asked(self) -> list[Figure]:
        """Returns the figures of which something is asked; one that is not measured says so."""
        if "decode" not in self.stores:
            return []
        figures = []
        for shape in sorted(self.plan.shapes):
            alone = (shape, 1)
            apart = self.noise(alone, ["none"], MIXED)
            figures.append(self._figure(FLOOR, shape, self.over_floor(alone), apart))
            for backend in self.plan.backends:
                where = (shape, self.plan.judged_batch)
                way, cost = self.best_way(where, backend)
                label = f"{shape}, batch {where[1]}, {backend}{f', {way}' if way else ''}"
                apart = self.noise(where, ["stepwise"], MIXED)
                figures.append(self._figure(CONSTRAINED, label, cost, apart))
                _, share, _ = self.speed_up(alone, backend, "jump_forward", FORCED)
                apart = self.noise(alone, ["stepwise", "jump_forward"], FORCED)
                figures.append(self._figure(JUMPS, f"{shape}, batch 1, {backend}", share, apart))
            figures += [self._logits(shape), *self._wide(shape)]
        return sorted(figures, key=lambda figure: list(ORDER).index(figure.asked.what))

    def _logits(self, shape: str) -> Figure:
        """Returns how far the logits of both ways to run a pass are apart, at the batch where they are
        farthest."""
        steps = {batch: self.step((shape, batch)) for batch in sorted(self.plan.batches)}
        known = {batch: step for batch, step in steps.items() if step}
        apart = max((step["logits_apart"] for step in known.values()), default=None)
        single = any(step["model"]["dtype"] == "float32" for step in known.values())
        label = f"{shape}, batch {', '.join(map(str, known))}" if known else shape
        return self._figure(
            LOGITS32 if single else LOGITS,
            label,
            None if apart is None else Estimate(apart, None, None, len(known)),
        )

    def _wide(self, shape: str) -> list[Figure]:
        """Returns how far the logits of a wide pass and of narrow ones are apart; nothing for a record from
        before that was asked."""
        steps = [self.step((shape, batch)) for batch in sorted(self.plan.batches)]
        known = [step for step in steps if step.get("wide_apart") is not None]
        if not known:
            return []
        single = any(step["model"]["dtype"] == "float32" for step in known)
        apart = Estimate(max(step["wide_apart"] for step in known), None, None, len(known))
        return [self._figure(WIDE32 if single else WIDE, shape, apart)]

    def _figure(
        self, asked: Asked, label: str, estimate: Estimate | None, noise: Estimate | None = None
    ) -> Figure:
        judged = verdict(asked, estimate.value if estimate else None, self.device, noise)
        return Figure(asked, label, estimate, judged, noise)


ORDER = dict.fromkeys(asked.what for asked in (FLOOR, CONSTRAINED, JUMPS, LOGITS, WIDE))
