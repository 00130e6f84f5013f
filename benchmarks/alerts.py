"""What the alert rule finds and what it makes up, on simulated series: `python benchmarks/alerts.py`.

The table of docs/history.md.
"""

from __future__ import annotations

import random

from harness.outcomes.history.alert_rule import Event, events

SERIES, RUNS = 400, 64
AT, DRIFTS_FROM = 32, 16
"""The runs at which a step comes, and from which on a drift goes."""
OUTLIERS, BY = 0.05, 0.15
"""One run in twenty is so much too slow."""


def simulated(share: float, kind: str, seed: int) -> list[Event]:
    """Returns the events of one series with this scatter that has nothing, a step of ten percent, or a drift
    of 0.4 percent a run."""
    chance = random.Random(f"{seed} {kind} {share}")
    ratios = []
    for number in range(RUNS):
        level = (
            1.1
            if kind == "step" and number >= AT
            else 1 + 0.004 * max(0, number - DRIFTS_FROM)
            if kind == "drift"
            else 1.0
        )
        ratios.append(level * (1 + chance.gauss(0, share) + (BY if chance.random() < OUTLIERS else 0)))
    return events(ratios)


def main() -> None:
    print(
        "| scatter | false alarm in 64 runs | step found within 20 runs | runs until then | drift found "
        "|\n|---|---|---|---|---|"
    )
    for share in (0.01, 0.02, 0.03, 0.04):
        alerts: dict[str, list[list[int]]] = {}
        for kind in ("nothing", "step", "drift"):
            every = (simulated(share, kind, seed) for seed in range(SERIES))
            alerts[kind] = [[event.at for event in one if event.kind == "alert"] for one in every]
        delays = [
            next(at - AT for at in one if at >= AT)
            for one in alerts["step"]
            if any(AT <= at <= AT + 20 for at in one)
        ]
        false = sum(map(bool, alerts["nothing"]))
        drift = sum(any(at >= DRIFTS_FROM for at in one) for one in alerts["drift"])
        cells = [f"{100 * count / SERIES:.0f} %" for count in (false, len(delays), drift)]
        print(
            f"| {share:.0%} | {cells[0]} | {cells[1]} | {sum(delays) / len(delays):.1f} | {cells[2]} |".replace(  # noqa: E501
                "%", " %", 1
            )
        )


if __name__ == "__main__":
    main()
