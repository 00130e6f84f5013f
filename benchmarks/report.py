"""How long a report of a large run takes, and how much memory.

    python benchmarks/report.py [CASES [SAMPLES]]         default: 12,000 cases, 10 million times

Writes a synthetic run of so many cases on 4 arms with so many times into a temporary folder, renders its
report in a fresh process, and prints seconds, peak resident memory and the size of the page. Promised are
30 s, 2 GB and 5 MB.
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
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "parts"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import synthetic
from endings import script

from harness.cases.case_line import case_to_line
from harness.cli.values import positive
from harness.rows.row import row_to_json
from harness.rows.writer import Writer

TAGS = [f"keyword{number}" for number in range(40)]
RENDER = """
import resource, sys, time
from pathlib import Path
started = time.perf_counter()
from harness.report.page.page import write_report
page = write_report([Path(sys.argv[1])], Path(sys.argv[2]))
wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
cpu = used.ru_utime + used.ru_stime
print(f"{wall:.1f} s ({cpu:.1f} s of processors), {used.ru_maxrss / 2**20:.2f} GB, {page.stat().st_size / 1e6:.2f} MB")
"""  # noqa: E501


def write(folder: Path, cases: int, samples: int) -> None:
    """Writes the run, its lines without the writer's own check of each, which takes longer than the
    report."""
    random = np.random.default_rng(0)
    steps = max(1, samples // (cases * len(synthetic.ARMS) * 2))
    folder.mkdir(parents=True)
    suites = {
        f"suite{number}": {"version": "1", "sha256": "00", "cases": cases // 6, "instances": cases // 6}
        for number in range(6)
    }
    with Writer(folder, synthetic.info(suites=suites)) as writer, open(folder / "cases.jsonl", "wb") as lines:
        place = 0
        for number in range(cases):
            tags = tuple(dict.fromkeys(TAGS[integer] for integer in random.integers(0, len(TAGS), 4)))
            schema = json.dumps(
                {"type": "object", "properties": {f"p{key}": {"const": number} for key in range(6)}}
            )
            case = synthetic.case(number, [("valid", b'{"p1": 1}' * 20, True)], schema=schema, tags=tags)
            suite = f"suite{number % 6}"
            lines.write(case_to_line(suite, "1", case))
            out = []
            for position, arm in enumerate(synthetic.ARMS):
                fate = random.random() + 0.02 * position
                fields: dict[str, Any] = {"accepted": fate < 0.95}
                if fate >= 0.97:
                    fields = {
                        "status": "unsupported",
                        "phase": "compile",
                        "text": f"no {tags[0]}",
                        "accepted": None,
                    }
                    fields |= {"first_fill_ns": None, "matcher_new_ns": None}
                times = random.lognormal(9 + 0.4 * position, 1.0, 2 * steps).astype("<i8")
                row = synthetic.row(
                    **fields
                    | {
                        "backend": arm.backend, "backend_version": arm.version, "options": arm.options,
                        "suite": suite, "case": case.name,
                        "case_id": case.id, "tags": tags, "tokens": steps - 1,
                        "compile_ns": None if fate >= 0.97 else int(random.lognormal(13 + position, 1.5)),
                        "samples": (place, 2 * steps),
                    },
                )  # fmt: skip
                writer.samples.write(times.tobytes())
                place += 2 * steps
                out.append(json.dumps(row_to_json(row), separators=(",", ":")).encode() + b"\n")
                writer.statuses[row.status] = writer.statuses.get(row.status, 0) + 1
            writer.rows.write(b"".join(out))
        writer.finish("2026-11-21T09:10:00Z")


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Prints the figures. Exit code: 0, what the process that renders ends with, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="?", type=positive, default=12_000, metavar="CASES")
    parser.add_argument("samples", nargs="?", type=positive, default=10_000_000, metavar="SAMPLES")
    wanted = parser.parse_args(argv)
    cases, samples = wanted.cases, wanted.samples
    with tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        write(Path(place) / "run", cases, samples)
        print(
            f"written in {time.perf_counter() - started:.1f} s: {cases:,} cases, {samples:,} times",
            flush=True,
        )
        done = subprocess.run(
            [sys.executable, "-c", RENDER, str(Path(place) / "run"), place], capture_output=True, text=True
        )
        print(done.stdout + done.stderr[-2000:], end="")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
