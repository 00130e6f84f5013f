"""The coordinator's peak memory for few and for many cases: it must not grow with their number.

    python benchmarks/memory.py [MANY]         default: 40,000 cases

Runs `grammarbench run` over 1,000 and over MANY (more than 1,000) tiny cases (two instances each) with the
unconstrained baseline, table at the end included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.cli.values import positive
from harness.errors import OK

FEW = 1_000


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Prints peaks and their ratio. Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("many", nargs="?", type=positive, default=40_000, metavar="MANY")
    many = parser.parse_args(argv).many
    if many <= FEW:
        parser.error(f"MANY is {many}: give more than {FEW:,}, with which it is compared")
    peaks = {}
    for count in (FEW, many):
        with tempfile.TemporaryDirectory() as scratch:
            seconds, peaks[count] = measure(Path(scratch), count)
            print(f"{count:7} cases: peak {peaks[count] / 1e6:6.1f} MB, {seconds:6.1f} s")
    growth = (peaks[many] - peaks[FEW]) / (many - FEW)
    print(
        f"{growth:.0f} bytes for each further case; ratio {peaks[many] / peaks[FEW]:.2f} (promised: under "
        "400 MB however many)"
    )
    return OK


def measure(folder: Path, count: int) -> tuple[float, int]:
    """Returns the seconds of a run of so many cases, and the coordinator's peak of resident bytes."""
    with open(folder / "many.jsonl", "w") as file:
        for number in range(count):
            tests = [{"text": f"a{number}", "valid": True}, {"text": "b", "valid": False}]
            file.write(
                json.dumps({"description": f"case {number}", "regex": f"a{number}", "tests": tests}) + "\n"
            )
    command = [
        sys.executable,
        "-m",
        "harness",
        "run",
        str(folder / "many.jsonl"),
        "--backends",
        "unconstrained",
    ]
    start = time.monotonic()
    peak = 0
    with subprocess.Popen(
        [*command, "--vocabularies", "bytes", "--out", str(folder / "run")], stdout=subprocess.DEVNULL
    ) as process:
        # Looked up while it runs: what wait4 tells of an ended process counts those that it has waited for,
        # workers and table, too.
        while process.poll() is None:
            peak = max(peak, peak_of(process.pid))
            time.sleep(0.02)
    if process.returncode:
        sys.exit(f"the run failed with status {process.returncode}")
    return time.monotonic() - start, peak


def peak_of(pid: int) -> int:
    """Returns the process's own peak so far; 0 once it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
