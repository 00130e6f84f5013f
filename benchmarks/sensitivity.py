"""Does the engine stay silent where nothing changed, and speak where something did? On this machine, now.

    python benchmarks/sensitivity.py same [RUNS]      two arms of identical code (beside the A/A arm)
    python benchmarks/sensitivity.py hog [RUNS]       the same, with a busy loop bound to the processor that is measured on
    python benchmarks/sensitivity.py slower [RUNS]    one arm takes 8 % longer for every fill

Each run is `grammarbench measure` with the quick set (suite `speed`) on tekken, in the adapter
`tests/support/miniatures/slowed.py`. Printed are the verdicts of the head arm and of the A/A arm, and what a
ratio of means over the same passes would have said.
"""  # noqa: E501

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.cli.values import positive
from harness.errors import OK
from harness.measure.estimate import Comparison, conclude
from harness.measure.figures import Figures
from harness.measure.record import read_measurement

SUPPORT = Path(__file__).parents[1] / "tests" / "support"
BASE = "miniatures.slowed:Slowed"
HEADS = {"same": f"{BASE}:percent=0", "hog": f"{BASE}:percent=0", "slower": f"{BASE}:percent=8"}
BAND = 0.05
"""What a reader of means takes for a change."""


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kind", choices=HEADS)
    parser.add_argument("runs", type=positive, nargs="?", default=10, metavar="RUNS")
    options = parser.parse_args(arguments)
    kind, runs = options.kind, options.runs
    verdicts, controls = Counter[str](), Counter[str]()
    right = misled = intervals = 0
    for number in range(1, runs + 1):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch, hog() if kind == "hog" else nothing():
            comparisons = one_run(Path(scratch) / "run", HEADS[kind])
        head = [comparison for comparison in comparisons if comparison.head == HEADS[kind]]
        fills = [comparison for comparison in head if comparison.metric == "fill"]
        verdicts.update(comparison.verdict for comparison in head)
        controls.update(
            comparison.verdict for comparison in comparisons if comparison.head.endswith("(again)")
        )
        if kind == "slower":
            good = any(fill.verdict == "regressed" for fill in fills) and not any(
                comparison.verdict == "improved" for comparison in head
            )
        else:
            good = all(comparison.verdict in ("equivalent", "unproven") for comparison in head)
        right += good
        intervals += len(fills)
        misled += sum((abs(fill.mean_ratio - 1) > BAND) != (kind == "slower") for fill in fills)
        shown = "; ".join(
            f"{fill.family} {fill.found.ratio:.3f} [{fill.found.low:.3f}, {fill.found.high:.3f}] margin "
            f"{fill.margin:.1%} {fill.verdict},"
            f" means {fill.mean_ratio:.3f}"
            for fill in fills
        )
        print(
            f"run {number}: {'ok ' if good else 'NOT'} {time.monotonic() - began:.0f} s, fill: {shown}",
            flush=True,
        )
        for comparison in head:
            if comparison.verdict == "inconclusive":
                interval = comparison.found
                print(
                    f"  open: {comparison.metric} {comparison.family} {interval.ratio:.3f} "
                    f"[{interval.low:.3f}, {interval.high:.3f}]"
                )
    print(
        f"{kind}: {right} of {runs} runs as they should be; verdicts of the head arm {dict(verdicts)}, of "
        f"the A/A arm {dict(controls)}"
    )
    print(
        f"ratios of means over the same passes, read with a band of {BAND:.0%}: {misled} of {intervals} wrong"
    )
    return OK


def one_run(folder: Path, head: str) -> list[Comparison]:
    """Measures the two arms; returns what was concluded."""
    command = [
        sys.executable,
        "-m",
        "harness",
        "measure",
        "--backends",
        f"{BASE},{head}",
        "--out",
        str(folder),
    ]
    path = os.pathsep.join(filter(None, (str(SUPPORT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode not in (0, 4):
        sys.exit(done.stdout)
    return conclude(Figures(read_measurement(folder)))


@contextmanager
def hog() -> Iterator[None]:
    """A busy loop on the last processor, where the arms are measured."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        os.sched_setaffinity(busy.pid, {max(os.sched_getaffinity(0))})
        try:
            yield
        finally:
            busy.kill()


@contextmanager
def nothing() -> Iterator[None]:
    yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
