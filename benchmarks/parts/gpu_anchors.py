"""Published figures of other people's GPUs, and where ours stand beside them. They are anchors, not
baselines: models, engines and machines differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_figures import Estimate, Figures
from gpu_plan import FORCED, LIMIT, MIXED, NO_OVERLAP

NOT = "not measured"


@dataclass(frozen=True)
class Anchor:
    """One published figure."""

    what: str
    published: str
    setup: str
    """Who measured it, and on what."""
    source: str
    ours: Callable[[Figures], str]
    """Returns our figures for the same question."""


def percent(estimate: Estimate | None) -> str:
    """Returns a ratio as a difference, `+0.7 %`."""
    return f"{(estimate.value - 1) * 100:+.1f} %" if estimate else NOT


def times(estimate: Estimate | None) -> str:
    """Returns a ratio as `1.24x`."""
    return f"{estimate.value:.2f}x" if estimate else NOT


def each(figures: Figures, text: Callable[[str], str]) -> str:
    """Returns the text of every backend, by name; NOT where none has a figure."""
    texts = {backend: text(backend) for backend in figures.plan.backends}
    if all(set(known.split(" / ")) == {NOT} for known in texts.values()):
        return NOT
    return "; ".join(f"{backend} {known}" for backend, known in texts.items())


def overheads(figures: Figures) -> str:
    return each(
        figures,
        lambda backend: " / ".join(
            percent(figures.best_way(("8b", batch), backend)[1]) for batch in (1, 8, 32)
        ),
    )


def cold_batch(figures: Figures) -> str:
    found = []
    for cell, row in figures.results("cold", "cold").values():
        if (cell.shape, cell.batch) == ("8b", 32):
            modes = [
                f"{percent(figures.cold(row, 'bounded strings', mode)['others'])} ({mode})"
                for mode in ("foreground", "thread")
            ]
            found.append(f"{cell.backend} {', '.join(modes)}")
    return "; ".join(found) or NOT


def shares(figures: Figures) -> str:
    found = []
    for cell, row in figures.results("share", "share").values():
        if (cell.shape, cell.batch) == ("1b", 512):
            ratios = [figures.share(row, share)["throughput"] for share in (0.0, 0.2, 0.8, 1.0)]
            found.append(
                f"{cell.backend} " + " / ".join(f"{known.value:.2f}" if known else NOT for known in ratios)
            )
    return "; ".join(found) or NOT


def many_rows(figures: Figures) -> str:
    return each(figures, lambda backend: percent(figures.best_way(("1b", 512), backend)[1]))


def one_call(figures: Figures) -> str:
    return each(
        figures, lambda backend: percent(figures.ways_apart(("1b", 512), backend, "one call", "one thread"))
    )


def more_threads(figures: Figures) -> str:
    return each(
        figures,
        lambda backend: " / ".join(
            percent(figures.ways_apart(("1b", batch), backend, "8 threads", "one thread"))
            for batch in (32, 128, 512)
        ),
    )


def jumps(figures: Figures) -> str:
    return each(
        figures, lambda backend: times(figures.speed_up(("1b", 1), backend, "jump_forward", MIXED)[0])
    )


def all_forced(figures: Figures) -> str:
    def text(backend: str) -> str:
        gain, _, ceiling = figures.speed_up(("1b", 1), backend, "jump_forward", FORCED)
        return f"{times(gain)}{f' of {ceiling:.2f}x' if ceiling else ''}"

    return each(figures, text)


def drafts(figures: Figures) -> str:
    return each(figures, lambda backend: times(figures.speed_up(("8b", 1), backend, "speculative", MIXED)[0]))


def fills(figures: Figures) -> str:
    def text(backend: str) -> str:
        rows = figures.rows(("8b", 1), backend=backend, strategy="stepwise", way=NO_OVERLAP, workload=MIXED)
        known = [row["step_ns"]["fill"] / 1e3 for row in rows if row["step_ns"]]
        return f"{sorted(known)[len(known) // 2]:.0f} us" if known else NOT

    return each(figures, text)


ANCHORS = (
    Anchor(
        "TPOT constrained over not, batch 1 / 8 / 32 (8b)",
        "+0.0 / +0.21 / +0.71 %",
        "GRID, Qwen2.5-7B, vLLM 0.26, 1 x H100 SXM; vendor",
        "grid bench/RESULTS-serving-v0.4.0.md",
        overheads,
    ),
    Anchor(
        "a cold schema in a warm batch of 32: the others' TPOT (8b)",
        "+23.8 %, step 17.3 ms",
        "GRID, Qwen2.5-7B, vLLM 0.26, 1 x H100 SXM; vendor",
        "grid bench/RESULTS-serving-v0.4.0.md",
        cold_batch,
    ),
    Anchor(
        "throughput at a share of 0 / 0.2 / 0.8 / 1 with a grammar, over that at 0 (1b, batch 512)",
        "1 / 0.90 / 0.69 / 0.67; with the change 1 / 0.97 / 0.85 / 0.83",
        "Qwen3-1.7B, rate 200, concurrency 800, 128 tokens",
        "vllm#26866",
        shares,
    ),
    Anchor(
        "loss at 500 rows and more of a model of at most 2B (1b, batch 512)",
        "10 % or more is expected",
        "a reading of the two threads",
        "vllm#26866, vllm#51331",
        many_rows,
    ),
    Anchor(
        "one call for all masks in place of one a row: TPOT (1b, batch 512)",
        "-13 % (109 to 125 steps/s)",
        "500 concurrent, B200",
        "vllm#51331",
        one_call,
    ),
    Anchor(
        "eight fill threads in place of one: TPOT (1b, batch 32 / 128 / 512)",
        "pays from more than 128 rows",
        "vLLM",
        "vllm#21862",
        more_threads,
    ),
    Anchor(
        "jump-forward's speed-up, function calls (1b, batch 1)",
        "1.24x to 1.44x in TPOT",
        "llguidance through the speculative worker, JSONSchemaBench, Llama-3.2-1B, RTX 3090",
        "sglang#17062",
        jumps,
    ),
    Anchor(
        "jump-forward where all is forced (1b, batch 1)",
        "6x",
        "a wholly forced sequence, mistral.rs fork",
        "mistral.rs#2422",
        all_forced,
    ),
    Anchor(
        "drafts under masks (8b, batch 1)",
        "1.89x (589.5 to 1,115 tok/s/GPU, with kernel tuning)",
        "MTP of one token, Qwen3.6-35B-A3B, H100",
        "vllm-plugin-FL#414",
        drafts,
    ),
    Anchor(
        "one mask of 131,072 ids, filled alone: median of a step (8b, batch 1)",
        "about 50 us on average; medians of 10 to 26 us",
        f"llguidance README; grid docs/choosing-a-backend.md; ours over texts of up to {LIMIT} ids",
        "llguidance README",
        fills,
    ),
)
