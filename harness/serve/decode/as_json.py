"""A record as JSON: every figure of every cell, for a page or another tool."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from typing import Any

from harness.serve.decode import conclude, right
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.overhead import Paired, SpeedUp
from harness.serve.decode.record import Decoding
from harness.serve.requests.latency import Objectives, e2e
from harness.serve.requests.titles import FIGURES

NOT_OF_SETUP = ("settings", "mechanisms", "objectives")
"""The fields of a record's first line that the document has elsewhere."""


def to_json(decoding: Decoding, objectives: Objectives | None = None) -> dict[str, Any]:
    """Returns every figure of every cell, with units and definitions, for a page or another tool. Times are
    nanoseconds. Without `objectives` goodput is by those that were asked for."""
    decoded = Decoded(decoding)
    objectives = objectives or decoding.setup.objectives
    return {
        "run": decoding.setup.run,
        "is_complete": decoding.is_complete,
        "setup": {name: value for name, value in asdict(decoding.setup).items() if name not in NOT_OF_SETUP},
        "model": decoding.model,
        "objectives": asdict(objectives),
        "figures": {name: asdict(figure) for name, figure in FIGURES.items()},
        "goodness": f"not measured: {why}" if (why := decoded.why_not_scored()) else "measured",
        "cells": [_cell(decoded, cell, objectives) for cell in decoded.cells],
        "mechanisms": [_advice(advice) for advice in conclude.advise(conclude.switched(decoded))],
        "losses": [
            asdict(loss) | {"setting": decoding.setup.settings[loss.setting].name} for loss in decoding.losses
        ],
        "findings": [
            {
                "arm": batch.arm,
                "setting": decoding.setting(batch).name,
                "fork": batch.fork,
                "round": batch.round,
                "says": str(finding),
            }
            for batch, finding in decoded.findings()
        ],
    }


def _cell(decoded: Decoded, cell: DecodeCell, objectives: Objectives) -> dict[str, Any]:
    gain = decoded.speed_up(cell)
    return {
        "arm": cell.arm,
        "strategy": cell.strategy,
        "setting": cell.setting.to_json(),
        "figures": decoded.values(cell, objectives),
        "overhead": _paired(decoded.over_none(cell)),
        "overhead_e2e": _paired(decoded.over_none(cell, e2e)),
        "speed_up": _gain(gain),
        "scored": _scored(cell),
        "counts": dict(sum((Counter(batch.counts) for batch in cell.warm), Counter())),
        "ends": right.ends(cell.judged),
        "refusals": right.refusals(cell.judged),
    }


def _scored(cell: DecodeCell) -> dict[str, Any] | None:
    """Returns how many texts were scored and which were not, as JSON; None where this was not tried."""
    if cell.goodness is None:
        return None
    good = cell.goodness
    places = sum(len(text.places) for text in good.texts)
    return {"texts": len(good.texts), "places": places, "left_out": good.left_out, "why_not": good.why}


def _gain(gain: SpeedUp | None) -> dict[str, Any] | None:
    if gain is None:
        return None
    return {
        "found": _paired(gain.ratio),
        "ceiling": gain.ceiling,
        "of_ceiling": gain.of_ceiling,
        "passes_saved": gain.saved,
    }


def _paired(of: Paired | None) -> dict[str, Any] | None:
    """Returns the ratio and its interval as JSON. With one fork there is no interval, and `low` and `high`
    are null, because JSON has no infinity."""
    if of is None or of.interval is None:
        return None
    is_known = math.isfinite(of.interval.high)
    bounds = {"low": of.interval.low if is_known else None, "high": of.interval.high if is_known else None}
    return {
        "ratio": of.interval.ratio,
        **bounds,
        "forks": of.interval.forks,
        "requests": of.requests,
        "left_out": of.left_out,
    }


def _advice(advice: conclude.DefaultAdvice) -> dict[str, Any]:
    tried = [
        {
            "load": switch.load,
            "effect": switch.effect,
            "why": switch.why,
            **{
                name: _paired(of)
                for name, of in (("e2e", switch.e2e), ("ttft", switch.ttft), ("tpot", switch.tpot))
            },
            "passes_saved": switch.saved,
            "ceiling": switch.ceiling,
        }
        for switch in advice.switched
    ]
    return {"mechanism": advice.mechanism, "arm": advice.arm, "default": advice.default, "tried": tried}
