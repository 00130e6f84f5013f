"""A record as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure.statistics import LEVEL
from harness.serve.decode import conclude, right
from harness.serve.decode.conclude import ratio
from harness.serve.decode.figures import DecodeCell, Decoded, Values
from harness.serve.decode.record import Decoding
from harness.serve.requests.latency import Objectives
from harness.serve.requests.titles import say
from harness.text import MOST_FOLDED, PIPE, Console, counted, one_line

SHORT = {
    "none": "none",
    "stepwise": "step",
    "jump_forward": "jump",
    "interleaved": "inter",
    "speculative": "spec",
}


def decoding_text(decoding: Decoding, objectives: Objectives | None = None, on: Console = PIPE) -> str:
    """Returns the record for a terminal. For the closing experiment it shows the mechanisms alone, because
    its settings are many; `--json` has them all. Without `objectives` goodput is by those that were asked
    for."""
    decoded = Decoded(decoding)
    objectives = objectives or decoding.setup.objectives
    switched = conclude.switched(decoded)
    tables = [_mechanisms(decoding)] if switched else _loads(decoded, objectives)
    parts = [
        _head(decoding, objectives),
        *tables,
        _losses(decoding),
        _findings(decoded),
        conclude.conclusion(switched),
    ]
    lines = [line for part in parts if part for line in ("", *part)][1:]
    return "\n".join(folded for line in lines for folded in on.fold(line, MOST_FOLDED))


def _loads(decoded: Decoded, objectives: Objectives) -> list[list[str]]:
    """Returns the lines of every cell, by load."""
    loads: dict[str, list[DecodeCell]] = {}
    for cell in decoded.cells:
        loads.setdefault(_load(cell), []).append(cell)
    parts = []
    for title, cells in loads.items():
        values = [decoded.values(cell, objectives) for cell in cells]
        parts.append(
            [
                title,
                *_times(decoded, cells, values),
                "",
                *_outcomes(decoded, cells, values),
                "",
                *_inside(cells, values),
                *_goodness(decoded, cells, values),
            ]
        )
    return parts


def _mechanisms(decoding: Decoding) -> list[str]:
    count = len(decoding.setup.settings)
    return [f"{counted(count, 'setting')}; for every figure of each add --json"]


def _head(decoding: Decoding, objectives: Objectives) -> list[str]:
    setup = decoding.setup
    lines = [
        _model(decoding),
        f"vocabulary {setup.vocabulary}; {decoding.often}; intervals at {LEVEL:.0%}",
        f"medians over the requests of the warm rounds, rates over its runs; goodput: {objectives}",
    ]
    why_not = Decoded(decoding).why_not_scored()
    lines.append(
        f"what the grammar takes from the model's probability: not measured: {why_not}"
        if why_not
        else "last table of each load: the model's probability that masks remove (mean over places), places "
        "whose top id is masked, and in nats the tax of a text (median) and of an id"
    )
    if not decoding.is_complete:
        lines.append("INCOMPLETE: the record has no end; no gate can pass it")
    return lines


def _model(decoding: Decoding) -> str:
    """Says which model it is, that a shape has random weights, and where it runs."""
    setup, model = decoding.setup, decoding.model
    parts = [f"model {setup.model}" + (" (a shape: random weights)" if model.get("kind") == "shape" else "")]
    parts += [f"{model['parameters'] / 1e6:.0f} M parameters"] if "parameters" in model else []
    parts += [
        f"{model.get('dtype', setup.dtype or 'its own dtype')} on "
        f"{model.get('device_name', model.get('device', setup.device))}"
    ]
    threads = {child.threads for child in decoding.children}
    parts += (
        [f"threads of the model: {', '.join(map(str, sorted(threads)))}"]
        if threads and model.get("device", "cpu") == "cpu"
        else []
    )
    return ", ".join([*parts, *(name for name in ("graphs", "kernels") if model.get(name))])


def _load(cell: DecodeCell) -> str:
    setting = cell.setting
    arriving = (
        "all there at the start"
        if setting.rate is None
        else (f"{setting.rate:g} requests/s ({setting.arrivals})")
    )
    if setting.queues:
        arriving += f" for {counted(setting.batch, 'row')}: TTFT, E2E and goodput have the queue in them"
    return (
        f"{setting.workload}, batch {setting.batch}: {counted(setting.texts, 'request')}, {arriving}; "
        f"{setting.mode}, {setting.prompt_tokens} prompt tokens, "
        + ("as long as the text" if setting.limit is None else f"at most {setting.limit} tokens out")
    )


def _name(cell: DecodeCell) -> str:
    strategy = one_line(SHORT.get(cell.strategy, cell.strategy), spelled=True)
    return f"{one_line(cell.arm, spelled=True)[:17]:17} {strategy[:5]:5}"


def _knobs(cell: DecodeCell) -> list[str]:
    """Returns the knobs that differ from their defaults, on a line below the cell's."""
    return (
        []
        if cell.role == "none" or not cell.setting.unusual
        else [f"    with {' '.join(cell.setting.unusual)}"[:80]]
    )


def _times(decoded: Decoded, cells: Sequence[DecodeCell], values: Sequence[Values]) -> list[str]:
    """Returns one line for each cell: what a request waits for, the rate, and the ratio to the unconstrained
    run."""
    lines = [
        f"{'arm':17} {'':5} {'TTFT':>7} {'TPOT':>7} {'E2E':>7} {'tok/s':>6} {'good/s':>6} {'TPOT x none':>17}"
    ]
    for cell, cell_values in zip(cells, values, strict=True):
        times = " ".join(f"{say(name, median(cell_values, name)):>7}" for name in ("ttft", "tpot", "e2e"))
        paired = decoded.over_none(cell)
        over = "" if paired is None else ratio(paired)
        rates = (
            f"{say('output_throughput', number(cell_values, 'output_throughput')):>6} "
            f"{say('goodput', number(cell_values, 'goodput')):>6}"
        )
        lines += [f"{_name(cell)} {times} {rates} {over:>17}".rstrip(), *_knobs(cell)]
        if cell.setting.queues:
            first = say("ttft_from_row", median(cell_values, "ttft_from_row"))
            lines.append(f"    TTFT from row, without the waits for row and grammar: {first}")
        if paired is not None and paired.left_out:
            of = f"{paired.left_out} of {paired.left_out + paired.requests}"
            lines.append(f"    TPOT of {of} requests not compared: other length, no gap, or no grammar")
    return lines


def _outcomes(decoded: Decoded, cells: Sequence[DecodeCell], values: Sequence[Values]) -> list[str]:
    """Returns one line for each cell: passes, and whether the texts came out right."""
    lines = [
        f"{'arm':17} {'':5} {'saved':>6} {'t/pass':>6} {'speed':>5} {'ceil.':>5} {'valid':>7} {'solved':>6} "
        f"{'fallb.':>6} {'peak':>8}"
    ]
    for cell, cell_values in zip(cells, values, strict=True):
        gain = decoded.speed_up(cell)
        speed = "" if gain is None or gain.ratio.interval is None else f"{gain.ratio.interval.ratio:.2f}"
        ceiling = "" if gain is None or gain.ceiling is None else f"{gain.ceiling:.2f}"
        shares = (
            f"{say('saved_share', number(cell_values, 'saved_share')):>6} "
            f"{say('tokens_per_pass', number(cell_values, 'tokens_per_pass')):>6}"
        )
        outcome = f"{right.valid(cell.judged)!s:>7} " + " ".join(
            f"{say(name, number(cell_values, name)):>{width}}"
            for name, width in (("solved", 6), ("fallback", 6), ("peak", 8))
        )
        lines += [f"{_name(cell)} {shares} {speed:>5} {ceiling:>5} {outcome}", *_knobs(cell)]
        if gain is not None and gain.ratio.left_out:
            of = f"{gain.ratio.requests} of {gain.ratio.requests + gain.ratio.left_out}"
            lines.append(f"    speed-up and ceiling are of {of} requests, those with equal texts")
        lines += [f"    {count} {why}"[:80] for why, count in right.refusals(cell.judged).items()]
        if (cut := right.cut(cell.judged)).part and cell.role != "none":
            lines.append(f"    {cut} cut at the limit: they count as not solved")
    return lines


def _inside(cells: Sequence[DecodeCell], values: Sequence[Values]) -> list[str]:
    """Returns one line for each cell: medians of the parts of the times above."""
    columns = {
        "ttft_cold": "cold",
        "compile": "compile",
        "waited": "waited",
        "grammar": "masks/t",
        "exposed": "exposed",
        "own": "own",
        "itl": "ITL",
    }
    lines = [f"{'arm':17} {'':5} " + " ".join(f"{column:>7}" for column in columns.values())]
    for cell, cell_values in zip(cells, values, strict=True):
        lines += [
            f"{_name(cell)} " + " ".join(f"{say(name, median(cell_values, name)):>7}" for name in columns),
            *_knobs(cell),
        ]
    return lines


def _goodness(decoded: Decoded, cells: Sequence[DecodeCell], values: Sequence[Values]) -> list[str]:
    """Returns one line for each cell under a grammar: what the grammar takes from the model. Nothing where
    no text was scored."""
    if decoded.why_not_scored():
        return []
    columns = {
        "removed": ("removed", 7),
        "favourite_masked": ("masked", 7),
        "tax": ("tax", 6),
        "tax_per_id": ("tax/id", 6),
        "imposed": ("imposed", 7),
        "canonical": ("canon.", 6),
        "canonical_ids": ("own ids", 7),
    }
    lines = ["", f"{'arm':17} {'':5} " + " ".join(f"{title:>{width}}" for title, width in columns.values())]
    for cell, cell_values in zip(cells, values, strict=True):
        if cell.role == "none":
            continue
        shown = {name: central(cell_values, name) for name in columns}
        lines += [
            f"{_name(cell)} "
            + " ".join(f"{say(name, shown[name]):>{width}}" for name, (_, width) in columns.items()),
            *_knobs(cell),
        ]
        why = cell.goodness.why if cell.goodness else "the setting was lost before"
        lines += [f"    not scored: {why}"[:80]] if why else []
        left_out = cell.goodness.left_out if cell.goodness else {}
        lines += [f"    {count} not scored: {reason}"[:80] for reason, count in left_out.items()]
    return lines


def central(values: Values, name: str) -> float | None:
    """Returns the value that stands for a figure in the table: the mean over places of what masks remove,
    whose median is nearly always 0, and the median of others with percentiles."""
    value = values[name]
    return value["mean"] if name == "removed" and isinstance(value, dict) else median(values, name)


def _losses(decoding: Decoding) -> list[str]:
    losses = dict.fromkeys(
        f"  {loss.arm}, {decoding.setup.settings[loss.setting].name}: {loss.whose.replace('_', ' ')}: "
        f"{loss.why}"
        for loss in decoding.losses
    )
    return ["not measured:", *losses] if losses else []


def _findings(decoded: Decoded) -> list[str]:
    runs = [run for of_setting in decoded.batches.values() for run in of_setting.values()]
    findings, count = decoded.findings(), sum(len(run.completed) for run in runs)
    if not findings:
        return [f"accounting: {counted(count, 'request')} {'adds' if count == 1 else 'add'} up to the token"]
    lines = [f"ACCOUNTING does not add up: {counted(len(findings), 'finding')}, the first of them:"]
    for batch, finding in findings[:5]:
        where = f"{batch.arm}, {decoded.decoding.setting(batch).name}, fork {batch.fork}, round {batch.round}"
        lines.append(f"  {where}: {finding}")
    return lines


def median(values: Values, name: str) -> float | None:
    """Returns the median of a figure with percentiles; None if the figure is missing."""
    value = values[name]
    return value["p50"] if isinstance(value, dict) else value


def number(values: Values, name: str) -> float | None:
    """Returns the value of a figure that is one number; None if it is missing."""
    value = values[name]
    return None if isinstance(value, dict) else value
