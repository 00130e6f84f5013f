"""A sweep on a Ray cluster of our own: two workers against one, and the coordinator's memory while many rows
stream in.

    python benchmarks/ray_sweep.py speed [CASES] [ROUNDS]   default: 300 cases of ../shared/corpora/maskbench, each number of workers once
    python benchmarks/ray_sweep.py memory [ROWS]            default: 50,000 rows, and then a resume that finds nine tenths of them there

Speed means something on a calm machine with two free cores only. The sweep is from the first case that is
sent to the last row; loading vocabulary and backends is in it, the start of Ray and the table at the end are
not, and both are told. All rows must be the same. Memory is the coordinator's, looked up while it runs: what
is its own, and all that is resident (pages shared with Ray's store too).
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.process.system import descendants
from harness.cli.values import positive
from harness.errors import OK, BadInput
from harness.rows.row import Row, identity, untimed
from harness.rows.store import read_rows

MASKBENCH = Path(__file__).parents[2] / "shared" / "corpora" / "maskbench"
SWEEP = ("--backends", "llguidance", "--vocabularies", "tekken,probe", "--effort", "2", "--timeout", "60")
"""A backend without a case that comes near its deadline: on which side of it a case falls would hang on the
machine's other work."""
INSTANCES = 10
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.98)
LOOK_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["speed", "memory"])
    parser.add_argument("numbers", type=positive, nargs="*", metavar="N")
    options = parser.parse_args(arguments)
    if len(options.numbers) > (2 if options.what == "speed" else 1):
        parser.error("speed has CASES and ROUNDS, and memory has ROWS")
    with tempfile.TemporaryDirectory() as scratch:
        (speed if options.what == "speed" else memory)(Path(scratch), *options.numbers)
    return OK


# ------------------------------------------------------------------------------------------------------ speed


def speed(folder: Path, count: int = 300, rounds: int = 1) -> None:
    """Seconds with one worker and with two."""
    (folder / "cases").mkdir()
    chosen = sorted(MASKBENCH.rglob("*.json"))[:count]
    if len(chosen) < count:
        raise BadInput(f"{MASKBENCH} has {len(chosen)} cases, fewer than {count}")
    for path in chosen:
        (folder / "cases" / path.name).write_bytes(path.read_bytes())
    whole: dict[int, list[float]] = {1: [], 2: []}
    sweep: dict[int, list[float]] = {1: [], 2: []}
    rows = []
    for number in range(2 * rounds):
        jobs = (1, 2, 2, 1)[number % 4]
        out = folder / f"run{number}"
        run = Run(
            [
                "run",
                str(folder / "cases"),
                *SWEEP,
                "--executor",
                "ray",
                "--jobs",
                str(jobs),
                "--out",
                str(out),
            ]
        )
        rows.append(rows_by_identity(out))
        whole[jobs].append(run.ended - run.begun)
        sweep[jobs].append(run.swept - run.sent)
        print(f"{jobs} worker(s), {len(rows[-1])} rows: {run.summary()}", flush=True)
    differing = {key for row in rows for key in {*rows[0], *row} if rows[0].get(key) != row.get(key)}
    of_sweep, of_whole = (median(seconds[1]) / median(seconds[2]) for seconds in (sweep, whole))
    print(
        f"two workers are {of_sweep:.2f} times as fast as one in the sweep (promised: 1.7), "
        f"{of_whole:.2f} times in the whole command"
    )
    print(f"{len(differing)} rows differ" + "".join(f"\n  {key}" for key in sorted(differing, key=str)[:10]))


def rows_by_identity(run: Path) -> dict[tuple[object, ...], Row]:
    """Returns the rows by identity, without what differs from run to run."""
    return {identity(row): untimed(row) for row in read_rows(run)}


class Run:
    """A command of ours that has run: when it said what, and what its processes took."""

    def __init__(self, arguments: list[str], look: Callable[[int], None] = lambda _: None) -> None:
        """Runs it; `look` is called with its process id now and then."""
        self.begun = self.started = self.sent = self.swept = time.monotonic()
        self.busy: list[tuple[float, float]] = []
        """Processor seconds of the whole machine, and when."""
        self.used: dict[int, tuple[str, float]] = {}
        command = [sys.executable, "-m", "harness", *arguments]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            reader = threading.Thread(target=self._read, args=(process,))
            reader.start()
            while process.poll() is None:
                self._look(process.pid)
                look(process.pid)
                time.sleep(LOOK_SECONDS)
            reader.join()
        self.ended = time.monotonic()
        if process.returncode:
            sys.exit(f"the run failed with status {process.returncode}")

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("starting Ray"):
                self.started = time.monotonic()
            elif " cases x " in line:
                self.sent = time.monotonic()
            elif " rows in " in line:
                self.swept = time.monotonic()

    def _look(self, pid: int) -> None:
        self.busy.append((time.monotonic(), machine_seconds()))
        for process in (pid, *descendants(pid)):
            if (seconds := process_seconds(process)) is not None:
                self.used[process] = (
                    kind(process, pid) if process not in self.used else self.used[process][0],
                    seconds,
                )

    def summary(self) -> str:
        """Returns the result in two lines."""
        took: dict[str, float] = {}
        for name, seconds in self.used.values():
            took[name] = took.get(name, 0.0) + seconds
        during = [moment for moment in self.busy if self.sent <= moment[0] <= self.swept]
        load = (
            (during[-1][1] - during[0][1]) / (during[-1][0] - during[0][0])
            if len(during) > 1
            else float("nan")
        )
        return (
            f"the sweep {self.swept - self.sent:.1f} s, the whole command {self.ended - self.begun:.1f} s"
            f" (before Ray {self.started - self.begun:.1f}, Ray's start and the plan "
            f"{self.sent - self.started:.1f},"
            f" the table {self.ended - self.swept:.1f})\n  processors busy during the sweep: {load:.2f} of "
            f"{os.cpu_count()};"
            f" seconds of processor: {', '.join(f'{name} {took[name]:.1f}' for name in sorted(took))}"
        )


def kind(pid: int, coordinator: int) -> str:
    """Returns what a process of a run is."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "others"
    if pid == coordinator:
        return "coordinator"
    if "harness.running.worker" in command:
        return "workers"
    return (
        "tasks"
        if command.startswith("ray::") or "default_worker.py" in command
        else "Ray itself"
        if "ray" in command
        else "others"
    )


def process_seconds(pid: int) -> float | None:
    """Returns the seconds of processor time that the process has used so far; None if it is gone."""
    try:
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(values[11]) + int(values[12])) / TICKS


def machine_seconds() -> float:
    """Returns the seconds of all processors so far, without those in which they idled or waited for a
    disk."""
    with open("/proc/stat") as file:
        values = list(map(int, file.readline().split()[1:9]))
    return (sum(values) - values[3] - values[4]) / TICKS


# ----------------------------------------------------------------------------------------------------- memory


def memory(folder: Path, rows: int = 50_000) -> None:
    """The coordinator's resident set over the rows that have come."""
    with open(folder / "many.jsonl", "w") as file:
        for number in range(rows // INSTANCES):
            tests = [
                {"text": f"a{number}" + "b" * length, "valid": length == 0} for length in range(INSTANCES)
            ]
            file.write(
                json.dumps({"description": f"case {number}", "regex": f"a{number}", "tests": tests}) + "\n"
            )
    out = folder / "run"
    command = [
        "run",
        str(folder / "many.jsonl"),
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    command = [*command, "--executor", "ray", "--jobs", "2", "--out", str(out)]
    samples: list[tuple[int, int, int]] = []

    def look(pid: int) -> None:
        path = out / "rows.jsonl"
        if path.exists():
            samples.append((path.stat().st_size, *resident(pid)))

    run = Run(command, look)
    size = (out / "rows.jsonl").stat().st_size
    if not samples or samples[0][0] > 0.1 * size or samples[-1][0] < SHARES[-1] * size:
        raise BadInput(f"{rows} rows have come before the coordinator could be looked at often; take more")
    marks = [next(sample for sample in samples if sample[0] >= share * size) for share in SHARES]
    for share, (_, own, all_of_it) in zip(SHARES, marks, strict=True):
        print(
            f"after {share:4.0%} of {rows} rows: {own / 1e6:6.1f} MB its own, {all_of_it / 1e6:6.1f} MB "
            "resident"
        )
    further = (SHARES[-1] - SHARES[1]) * rows
    print(
        f"from {SHARES[1]:.0%} on: {(marks[-1][1] - marks[1][1]) / further:.0f} bytes its own for each "
        "further row"
    )
    print(f"{rows / (run.swept - run.sent):.0f} rows a second; {run.summary()}")
    lines = (out / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (out / "rows.jsonl").write_bytes(b"".join(lines[: len(lines) * 9 // 10]))
    del lines
    before = max(own for at, own, _ in samples if at <= 0.1 * size)
    samples.clear()
    Run([*command, "--resume"], look)
    peak = max(own for _, own, _ in samples)
    bytes_per_row = (peak - before) / (0.9 * rows)
    print(
        f"resumed with nine tenths there: {peak / 1e6:.1f} MB its own at most, {bytes_per_row:.0f} bytes for "
        "each row there"
    )


def resident(pid: int) -> tuple[int, int]:
    """Bytes of the process that are its own, and all that are resident; zeros once it is gone."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return int(lines["RssAnon"].split()[0]) * 1024, int(lines["VmRSS"].split()[0]) * 1024
    except (OSError, KeyError):
        return 0, 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
