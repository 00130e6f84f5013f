"""A sweep on a Ray cluster of our own: two workers against one, and the coordinator's memory while many rows stream in.

    python benchmarks/ray_sweep.py speed [CASES]        default: 300 cases of ../shared/corpora/maskbench
    python benchmarks/ray_sweep.py memory [ROWS]        default: 50,000 rows

Speed is the whole command's, the start of Ray and the table at the end included, and means something on a calm machine with two free
cores only; the rows of both must be the same. Memory is the coordinator's resident set, looked up while it runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.row import Row, identity, untimed
from harness.store import read_rows

MASKBENCH = Path(__file__).parents[2] / "shared" / "corpora" / "maskbench"
BACKENDS = "llguidance,lm-format-enforcer"
INSTANCES = 10


def main() -> None:
    what, *more = sys.argv[1:] or ["speed"]
    with tempfile.TemporaryDirectory() as scratch:
        if what == "speed":
            speed(Path(scratch), int(more[0]) if more else 300)
        else:
            memory(Path(scratch), int(more[0]) if more else 50_000)


def speed(folder: Path, count: int) -> None:
    """Seconds with one worker and with two."""
    (folder / "cases").mkdir()
    chosen = sorted(MASKBENCH.rglob("*.json"))[:count]
    if len(chosen) < count:
        sys.exit(f"{MASKBENCH} has {len(chosen)} cases, fewer than {count}")
    for path in chosen:
        (folder / "cases" / path.name).write_bytes(path.read_bytes())
    command = ["run", str(folder / "cases"), "--backends", BACKENDS, "--vocabularies", "tekken", "--effort", "0"]
    seconds, rows = {}, {}
    for jobs in (1, 2):
        out = folder / f"run{jobs}"
        begun = time.monotonic()
        grammarbench([*command, "--executor", "ray", "--jobs", str(jobs), "--out", str(out)])
        seconds[jobs] = time.monotonic() - begun
        rows[jobs] = seen(out)
        print(f"{jobs} worker(s): {len(rows[jobs])} rows in {seconds[jobs]:.1f} s", flush=True)
    differing = [key for key in rows[1] if rows[1][key] != rows[2].get(key)]
    print(f"two workers are {seconds[1] / seconds[2]:.2f} times as fast as one (promised: 1.7); {len(differing)} rows differ")


def seen(run: Path) -> dict[tuple[object, ...], Row]:
    """The rows by identity, without what differs from run to run."""
    return {identity(row): untimed(row) for row in read_rows(run)}


def memory(folder: Path, rows: int) -> None:
    """The coordinator's resident set over the rows that have come."""
    with open(folder / "many.jsonl", "w") as file:
        for number in range(rows // INSTANCES):
            tests = [{"text": f"a{number}" + "b" * each, "valid": each == 0} for each in range(INSTANCES)]
            file.write(json.dumps({"description": f"case {number}", "regex": f"a{number}", "tests": tests}) + "\n")
    out = folder / "run"
    command = ["run", str(folder / "many.jsonl"), "--backends", "unconstrained", "--vocabularies", "bytes", "--effort", "0"]
    found: list[tuple[int, int]] = []

    def look(pid: int) -> None:
        path = out / "rows.jsonl"
        if path.exists():
            found.append((path.stat().st_size, resident(pid)))

    begun = time.monotonic()
    grammarbench([*command, "--executor", "ray", "--jobs", "2", "--out", str(out)], look)
    elapsed = time.monotonic() - begun
    size = (out / "rows.jsonl").stat().st_size
    shares = (0.02, 0.1, 0.25, 0.5, 0.75, 0.98)
    marks = [next(rss for at, rss in found if at >= share * size) for share in shares]
    for share, rss in zip(shares, marks, strict=True):
        print(f"after {share:4.0%} of {rows} rows: {rss / 1e6:6.1f} MB")
    print(f"{elapsed:.0f} s; {(marks[-1] - marks[0]) / rows:.0f} bytes for each further row")


def grammarbench(arguments: list[str], look: Callable[[int], None] = lambda _: None) -> None:
    """The command, looked at while it runs."""
    with subprocess.Popen([sys.executable, "-m", "harness", *arguments], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            look(process.pid)
            time.sleep(0.05)
    if process.returncode:
        sys.exit(f"the run failed with status {process.returncode}")


def resident(pid: int) -> int:
    """The process's resident set in bytes; 0 once it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main()
