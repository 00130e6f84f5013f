"""The coordinator's peak memory for few and for many cases: it must not grow with their number.

    python benchmarks/memory.py [MANY]         default: 40,000 cases

Runs `grammarbench run` over 1,000 and over MANY tiny cases (two instances each) with the unconstrained baseline, table at the end included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FEW = 1_000


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    peaks = {}
    for count in (FEW, many):
        with tempfile.TemporaryDirectory() as scratch:
            seconds, peaks[count] = measure(Path(scratch), count)
            print(f"{count:7} cases: peak {peaks[count] / 1e6:6.1f} MB, {seconds:6.1f} s")
    growth = (peaks[many] - peaks[FEW]) / (many - FEW)
    print(f"{growth:.0f} bytes for each further case; ratio {peaks[many] / peaks[FEW]:.2f} (promised: under 400 MB however many)")


def measure(folder: Path, count: int) -> tuple[float, int]:
    """Seconds and peak resident bytes of the coordinator."""
    with open(folder / "many.jsonl", "w") as file:
        for number in range(count):
            tests = [{"text": f"a{number}", "valid": True}, {"text": "b", "valid": False}]
            file.write(json.dumps({"description": f"case {number}", "regex": f"a{number}", "tests": tests}) + "\n")
    command = [sys.executable, "-m", "harness", "run", str(folder / "many.jsonl"), "--backends", "unconstrained"]
    start = time.monotonic()
    process = subprocess.Popen([*command, "--vocabularies", "bytes", "--out", str(folder / "run")], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"the run failed with status {status}")
    # ru_maxrss of a child counts its own children only once it has waited for them; ours are killed, so this is the coordinator.
    return time.monotonic() - start, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
