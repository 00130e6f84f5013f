"""A record, indexed: runs by arm and setting, and the figures of each (defined in
`harness.serve.requests.titles`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from harness.serve.decode import goodness, overhead, right
from harness.serve.decode.goodness import Goodness
from harness.serve.decode.record import DecodedBatch, Decoding, Judged
from harness.serve.decode.setting import Setting, without_idle_drafts
from harness.serve.requests import latency
from harness.serve.requests.latency import Objectives
from harness.serve.requests.words import Role
from harness.walk.loop import accounting
from harness.walk.loop.outcome import Completed, steps

Key = tuple[str, Role, int]
"""Arm, role, and the setting's place; an unconstrained run has the place of the first setting of its load."""

Levels = dict[str, float | None]
Values = dict[str, "Levels | float | None"]

UNASKED = Objectives()


@dataclass(frozen=True)
class DecodeCell:
    """All runs of one arm in one setting."""

    arm: str
    role: Role
    place: int
    setting: Setting
    """The setting; for an unconstrained run that of its load (`Setting.plain`), whatever is at its place."""
    warm: tuple[DecodedBatch, ...]
    cold: tuple[DecodedBatch, ...]
    goodness: Goodness | None
    """The scores of its texts; None where nothing was scored."""

    @property
    def judged(self) -> list[Judged]:
        """Returns the requests of the warm runs."""
        return [request for batch in self.warm for request in batch.completed]

    @property
    def completed(self) -> list[Completed]:
        return [request.completed for request in self.judged]

    @property
    def strategy(self) -> str:
        """Returns the strategy's name; `none` for the unconstrained run."""
        return "none" if self.role == "none" else self.setting.strategy


@dataclass(eq=False)
class Decoded:
    """A record, and what is asked of it."""

    decoding: Decoding

    @cached_property
    def batches(self) -> dict[Key, dict[tuple[int, int], DecodedBatch]]:
        """Returns the runs by arm, role and setting, and within these by fork and round. Of a run that was
        made again, it has the last one."""
        batches: dict[Key, dict[tuple[int, int], DecodedBatch]] = {}
        for batch in self.decoding.batches:
            batches.setdefault((batch.arm, batch.role, batch.setting), {})[batch.fork, batch.round] = batch
        return batches

    @cached_property
    def cells(self) -> list[DecodeCell]:
        """Returns the cells in the order of settings; in each setting the arms in their order, the
        unconstrained run first."""
        arms = {arm.name: number for number, arm in enumerate(self.decoding.setup.arms)}
        settings = self.decoding.setup.settings
        first = {setting.plain: place for place, setting in reversed(list(enumerate(settings)))}

        def order(key: Key) -> tuple[int, int, bool, int]:
            return first[settings[key[2]].plain], arms.get(key[0], len(arms)), key[1] != "none", key[2]

        scored = {(good.arm, good.setting): good for good in self.decoding.goodness}
        cells = []
        for key in sorted(self.batches, key=order):
            runs = [run for _, run in sorted(self.batches[key].items(), key=lambda item: item[0])]
            warm, cold = (
                tuple(run for run in runs if not run.is_cold),
                tuple(run for run in runs if run.is_cold),
            )
            constrained = key[1] == "constrained"
            good = scored.get((key[0], key[2])) if constrained else None
            setting = settings[key[2]] if constrained else settings[key[2]].plain
            cells.append(DecodeCell(key[0], key[1], key[2], setting, warm, cold, good))
        return cells

    def first_runs(self, cell: DecodeCell) -> tuple[DecodedBatch, ...]:
        """Returns the cell's cold runs where their TTFT is that of a cold grammar. On CUDA there are none: in
        a first run passes are captured and kernels compiled, which takes longer than most grammars do."""
        on_cuda = str(self.decoding.model.get("device", "")).startswith("cuda")
        return () if on_cuda else cell.cold

    def key_of(self, cell: DecodeCell) -> Key:
        return cell.arm, cell.role, cell.place

    def runs(self, head: Key, base: Key) -> list[tuple[DecodedBatch, DecodedBatch]]:
        """Returns the pairs of warm runs of both keys with the same fork and round."""
        ours, theirs = self.batches.get(head, {}), self.batches.get(base, {})
        return [
            (ours[fork_round], theirs[fork_round])
            for fork_round in sorted(ours.keys() & theirs.keys())
            if not ours[fork_round].is_cold
        ]

    def unconstrained(self, cell: DecodeCell) -> Key | None:
        """Returns the key of the unconstrained run of the same load on the same arm; None if there is
        none."""
        for arm, role, place in self.batches:
            if (
                arm == cell.arm
                and role == "none"
                and self.decoding.setup.settings[place].plain == cell.setting.plain
            ):
                return arm, role, place
        return None

    def stepwise(self, cell: DecodeCell) -> Key | None:
        """Returns the key of the same setting with one token a pass. None for stepwise itself, and if it was
        not run."""
        if cell.role == "none" or cell.strategy == "stepwise":
            return None
        settings, wanted = self.decoding.setup.settings, stepwise_of(cell.setting)
        for arm, role, place in self.batches:
            if arm == cell.arm and role == "constrained" and settings[place] == wanted:
                return arm, role, place
        return None

    def over_none(self, cell: DecodeCell, figure: overhead.Figure = latency.tpot) -> overhead.Paired | None:
        """Returns the ratio to the unconstrained run of equal length; None if there is none."""
        base = self.unconstrained(cell)
        return (
            None
            if base is None or cell.role == "none"
            else overhead.paired(self.runs(self.key_of(cell), base), figure)
        )

    def speed_up(self, cell: DecodeCell) -> overhead.SpeedUp | None:
        """Returns the speed-up of a strategy over stepwise on the same arm; None if there is no stepwise
        run."""
        base = self.stepwise(cell)
        return None if base is None else overhead.speed_up(self.runs(self.key_of(cell), base))

    def values(self, cell: DecodeCell, objectives: Objectives = UNASKED) -> Values:
        """Returns the figures of `titles.FIGURES` without the ratios of two runs: times with percentiles, the
        others as one number each."""
        done, judged = latency.answered(cell.completed), cell.judged
        values: Values = {
            "ttft": _levels(done, latency.ttft),
            "ttft_from_row": _levels(done, latency.ttft_from_row),
            "ttft_cold": _levels(
                latency.answered(
                    request.completed for run in self.first_runs(cell) for request in run.completed
                ),
                latency.ttft,
            ),
            "tpot": _levels(done, latency.tpot),
            "itl": latency.percentiles([gap for request in done for gap in latency.itl_per_message(request)]),
            "itl_token": latency.percentiles(
                [gap for request in done for gap in latency.itl_per_token(request)]
            ),
            "e2e": _levels(done, latency.e2e),
            "service": _levels(done, overhead.service),
        }
        values |= self._rates(cell, objectives) | _of_steps(cell.warm) | _of_scores(cell.goodness)
        values |= {
            "tokens_per_pass": latency.tokens_per_pass(done),
            "saved_share": overhead.saved_share(done),
            "valid": right.valid(judged).share,
            "as_replayed": right.as_replayed(judged).share,
            "canonical": right.canonical(judged).share,
            "drift": right.drift(judged, self.own_spelling(cell)),
            "fallback": right.fallback(judged).share,
            "solved": right.solved(judged).share,
            "cut": right.cut(judged).share,
            "compile": _levels(
                [request.completed for run in (*cell.cold, *cell.warm) for request in run.completed], _compile
            ),
            "waited": _levels(
                [request for request in cell.completed if request.compile_state],
                lambda request: float(request.waited_ns),
            ),
            "grammar": _levels(
                [request for request in done if request.compile_state],
                lambda request: sum(request.grammar_ns) / len(request.ids),
            ),
            "peak": float(max((batch.peak_bytes for batch in (*cell.cold, *cell.warm)), default=0)) or None,
        }
        return values

    def _rates(self, cell: DecodeCell, objectives: Objectives) -> Values:
        """Returns the medians over the warm runs of the figures that belong to a run and not to a request."""
        per_run: dict[str, list[float]] = {
            name: [] for name in ("output_throughput", "total_throughput", "request_throughput", "goodput")
        }
        for run in cell.warm:
            completed = [request.completed for request in run.completed]
            rates, good = latency.rates(completed), latency.goodput(completed, objectives)
            if rates is not None and good is not None:
                for name, value in (
                    ("output_throughput", rates.output_throughput),
                    ("total_throughput", rates.total_throughput),
                    ("request_throughput", rates.request_throughput),
                    ("goodput", good),
                ):
                    per_run[name].append(value)
        return {name: float(np.median(values)) if values else None for name, values in per_run.items()}

    def own_spelling(self, cell: DecodeCell) -> dict[str, int]:
        """Returns the number of ids of each text's own spelling."""
        return {
            text["name"]: text["tokens"] for text in self.decoding.workloads.get(cell.setting.workload, [])
        }

    def why_not_scored(self) -> str:
        """Returns why nothing is known of how good the texts are; empty if something is."""
        if self.decoding.goodness:
            return ""
        random = self.decoding.model.get("kind") == "shape"
        return "random weights" if random else "this record has no scores of its texts"

    def findings(self) -> list[tuple[DecodedBatch, accounting.Finding]]:
        """Returns everything that does not add up, in any run, cold ones included."""
        findings: list[tuple[DecodedBatch, accounting.Finding]] = []
        for cell in self.cells:
            beside = self.batches.get(self.stepwise(cell) or ("", "none", -1), {})
            for run in (*cell.cold, *cell.warm):
                completed = [request.completed for request in run.completed]
                broken = accounting.of_run(completed, run.steps, run.passes, run.wall_ns)
                if cell.strategy in ("none", "stepwise"):
                    broken += accounting.of_stepwise(completed, run.steps)
                elif (other := beside.get((run.fork, run.round))) is not None:
                    broken += accounting.against_stepwise(
                        completed, [request.completed for request in other.completed]
                    )
                findings += [(run, request) for request in broken]
        return findings


def stepwise_of(setting: Setting) -> Setting:
    """Returns the same setting, one token a pass."""
    return without_idle_drafts(replace(setting, strategy="stepwise"))


def _levels(requests: Iterable[Completed], figure: Callable[[Completed], float | None]) -> Levels:
    return latency.percentiles([value for request in requests if (value := figure(request)) is not None])


def _compile(request: Completed) -> float | None:
    return None if request.compile_ns is None else float(request.compile_ns)


def _of_scores(scores: Goodness | None) -> Values:
    """Figures of texts that were fed to the model again; None where there is none."""
    texts = scores.texts if scores is not None else ()
    constrained = goodness.with_places(texts)
    levels = {
        "removed": goodness.removed(texts),
        "tax": goodness.taxes(constrained),
        "imposed": goodness.imposed(constrained),
    }
    return {
        **{name: latency.percentiles(values) if values else None for name, values in levels.items()},
        "tax_per_id": goodness.tax_per_id(texts),
        "favourite_masked": goodness.favourite_masked(texts),
        "canonical_ids": goodness.canonical_ids(texts),
    }


def _of_steps(runs: Sequence[DecodedBatch]) -> Values:
    """Figures per step of the loop, with all runs pooled; the steps of a run's prefill are among them."""
    columns = [steps(run.steps) for run in runs]
    names = {
        "pass": "wall_ns",
        "forward": "forward_ns",
        "exposed": "exposed_ns",
        "fill": "fill_ns",
        "own": "own_ns",
    }
    return {
        name: latency.percentiles([float(value) for table in columns for value in table[column]])
        for name, column in names.items()
    }
