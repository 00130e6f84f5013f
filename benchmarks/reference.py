"""The published reference: the whole of MaskBench and of JSON-Schema-Test-Suite (draft 2020-12 and 7) through all backends.

    python benchmarks/reference.py --out DIR [--corpora PATH] [--only maskbench|jsts] [--backends A,B] [--vocabularies V] [--jobs N]

PATH is where `grammarbench fetch` has put the corpora, or any folder that holds `maskbench` and `json-schema-test-suite/tests`.
First a sample of the cases goes through each backend, and what the whole will take is told. Then each corpus is walked as
`grammarbench run` walks it, with a deadline for every compile and every walk (DEADLINES, or --timeout), without further checks.
The runs lie in DIR/runs; after an interruption the same command goes on where it stopped, and what is done is not done again.
At the end, and with --page at any time, DIR/published is written: the page, tables, the outcomes of every case, and a README that
says what was run, on what, in what time. The raw rows come along packed where they are small; the samples of times never do.
Times are those of --jobs workers side by side: outcomes are to be quoted, times are not. `grammarbench measure` is for times.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.commands.running import progress_line
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.export import markdown, write
from harness.ratchet import record
from harness.registry import parse_specs
from harness.report import write_report
from harness.result import result_of
from harness.row import RunInfo, arm
from harness.run import Progress
from harness.session import Request, now, run
from harness.store import has_begun, read_end, read_info
from harness.suite import find_suite, read_cases

BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer", "formatron")
"""Names that are also those of the distributions; the default is those of them that are installed."""

DEADLINES = {"maskbench": 10.0, "jsts": 5.0}
"""Seconds for a compile and for each walk."""

FOLDERS = {
    "maskbench": (("maskbench/maskbench/data", "maskbench"),),
    "jsts": (("json-schema-test-suite/tests/draft2020-12",), ("json-schema-test-suite/tests/draft7",)),
}
"""Of each part, for each of its suites where it may be: as fetched, or as a copy of the cases alone."""

TITLES = {"maskbench": "MaskBench", "jsts": "JSON-Schema-Test-Suite, draft 2020-12 and draft 7"}

MEMORY_GB = 4.0
MOST_BYTES = 2_000_000
"""A packed file of more than this is not published."""

# ------------------------------------------------------------------------------------------------------------- the estimate


@dataclass(frozen=True)
class Estimate:
    """What one backend will take for one part, as a sample of `sampled` of its `cases` says."""

    part: str
    backend: str
    cases: int
    sampled: int
    seconds: float


class Clock:
    """Takes the time from the first case that is done to the last, so that loading is not in it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.marks: list[tuple[int, float]] = []

    def __call__(self, progress: Progress) -> None:
        if progress.done and (not self.marks or progress.done > self.marks[-1][0]):
            self.marks.append((progress.done, self.clock()))

    def seconds_per_case(self) -> float:
        """0 where fewer than two cases were seen."""
        if len(self.marks) < 2:
            return 0.0
        (first, started), (last, ended) = self.marks[0], self.marks[-1]
        return (ended - started) / (last - first)


def sample(suites: Sequence[str], size: int) -> tuple[int, tuple[str, ...]]:
    """How many cases the suites have, and the ids of `size` of them: always the same ones."""
    ids = [case.id for suite in suites for case in read_cases(find_suite(suite))]
    return len(ids), tuple(sorted(ids, key=lambda each: hashlib.sha256(each.encode()).hexdigest())[:size])


def estimate(options: argparse.Namespace, part: str, suites: Sequence[str]) -> Iterator[Estimate]:
    """Walks the sample through each backend by itself, in a folder that is thrown away."""
    cases, chosen = sample(suites, options.sample)
    for spec in parse_specs(options.backends):
        clock = Clock()
        with tempfile.TemporaryDirectory() as scratch:
            run(request(options, part, suites, Path(scratch) / "run", str(spec), chosen), lambda _: None, clock)
        yield Estimate(part, str(spec), cases, len(chosen), cases * clock.seconds_per_case())


def told(estimates: Sequence[Estimate]) -> str:
    """A line for each backend and part, and the sum."""
    lines = [f"{each.part:10} {each.backend:20} about {minutes(each.seconds)} for {each.cases} cases" for each in estimates]
    total = minutes(sum(each.seconds for each in estimates))
    size = max(each.sampled for each in estimates)
    return "\n".join([*lines, f"in all about {total}; so says a sample of {size} cases, and a few that meet the deadline change it much"])


def minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ------------------------------------------------------------------------------------------------------------------ the runs


def suites_of(part: str, corpora: Path) -> list[str]:
    """The folders of the part's cases. Raises BadInput, with the command that fetches them."""
    found = []
    for candidates in FOLDERS[part]:
        folder = next((corpora / each for each in candidates if (corpora / each).is_dir()), None)
        if folder is None:
            name = candidates[0].partition("/")[0]
            raise BadInput(f"{corpora / candidates[-1]}: no such folder; `grammarbench fetch {name} --out {corpora}` brings it")
        found.append(str(folder))
    return found


def request(options: argparse.Namespace, part: str, suites: Sequence[str], out: Path, backends: str, only: tuple[str, ...] = ()) -> Request:
    """As `grammarbench run` would be told."""
    return Request(
        suites=tuple(suites),
        backends=backends,
        vocabularies=tuple(options.vocabularies.split(",")),
        profile="full",
        out=out,
        resume=has_begun(out),
        jobs=options.jobs,
        timeout_s=options.timeout or DEADLINES[part],
        memory_gb=MEMORY_GB,
        effort=0,
        spellings=False,
        argv=options.argv,
        only=only,
    )


def walk(options: argparse.Namespace, part: str, suites: Sequence[str]) -> None:
    """Begin the part's run or go on with it; the time it took is noted, however it ends."""
    folder = options.out / "runs" / part
    if has_begun(folder) and read_end(folder):
        print(f"{part}: done already", flush=True)
        return
    started, begun = now(), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with progress_line(sys.stdout) as report:
            run(request(options, part, suites, folder, options.backends), lambda text: print(text, flush=True), report)
    finally:
        session = {"part": part, "started": started, "seconds": round(time.monotonic() - begun), "jobs": options.jobs}
        with open(options.out / "sessions.jsonl", "a") as file:
            file.write(json.dumps(session) + "\n")


# ------------------------------------------------------------------------------------------------------------------ the page


def publish(out: Path, parts: Sequence[str]) -> Path:
    """The page, the tables, the outcomes and the README of what was run, complete or not; the folder."""
    folder = out / "published"
    shutil.rmtree(folder, ignore_errors=True)
    runs = {part: out / "runs" / part for part in parts}
    page = write_report(list(runs.values()), folder / "report.html")
    left_out = [] if (size := page.stat().st_size) < 5_000_000 else [f"{page.name} has {size / 1e6:.1f} MB"]
    tables = []
    for part, where in runs.items():
        result = result_of(where)
        write(result, ["markdown", "csv"], folder / part)
        tables.append(f"## {TITLES[part]}\n\n{markdown.counts(result)}\n")
        if read_end(where):
            record(where, folder / part / "outcomes.json")
        left_out += pack(folder / part / "failing.csv") + pack(folder / part / "outcomes.json")
        shutil.copyfile(where / "rows.jsonl", folder / part / "rows.jsonl")
        left_out += pack(folder / part / "rows.jsonl")
    (folder / "README.md").write_text(about(out, runs, left_out) + "\n".join(["", *tables]), "utf-8")
    return folder


def pack(path: Path) -> list[str]:
    """Replace the file by a packed one that is the same whenever it is made; what is said where that is too large, and left out."""
    if not path.exists():
        return []
    packed = gzip.compress(path.read_bytes(), 9, mtime=0)
    path.unlink()
    if len(packed) > MOST_BYTES:
        return [f"{path.parent.name}/{path.name} ({len(packed) / 1e6:.1f} MB packed)"]
    path.with_name(path.name + ".gz").write_bytes(packed)
    return []


def about(out: Path, runs: dict[str, Path], left_out: Sequence[str]) -> str:
    """The README: what, on what machine, with which versions and deadlines, in what time, and what is missing."""
    infos = {part: read_info(where) for part, where in runs.items()}
    first = next(iter(infos.values()))
    machine, packages = first.machine, first.machine.get("packages", {})
    versions = [f"{arm(each)} {each.version}" for each in first.arms] + [f"{name} {packages[name]}" for name in sorted(packages)]
    lines = [
        f"# MaskBench and JSON-Schema-Test-Suite, {first.started[:10]}",
        "",
        f"    python benchmarks/reference.py {' '.join(first.argv)}",
        "",
        f"- Machine: {machine.get('cpu_model_name', 'unknown processor')}, {machine.get('cpus_usable')} processors, "
        f"{int(machine.get('memory_bytes', 0)) / 1e9:.0f} GB, {machine.get('platform', '')}, Python {machine.get('python')}; "
        f"load when it began {machine.get('load_avg_1min', 'unknown')}.",
        f"- Versions: {', '.join(versions)}; harness {first.harness}.",
        f"- Vocabularies: {', '.join(first.vocabularies)}. {first.jobs} workers at a time, {first.memory_bytes / 1e9:g} GB each, no checks "
        "beyond the verdict on every instance.",
        *(f"- {TITLES[part]}: {run_line(out, part, runs[part], info)}" for part, info in infos.items()),
        "- **Quote outcomes, not times.** Workers ran side by side, and whatever else the machine did is in the times. A `timeout` depends "
        "on the machine too: on a quieter one there are fewer.",
        f"- Not here: the samples of times (`samples.i64`){''.join(f', {each}' for each in left_out)}.",
        "- `report.html` is the page. In each folder: `tables.md` and `figures.csv`, `failing.csv.gz` (every failing or declined case and "
        "what was said), `outcomes.json.gz` (a record for `grammarbench expect`, once unpacked), `rows.jsonl.gz` (every walk).",
    ]
    return "\n".join(lines) + "\n"


def run_line(out: Path, part: str, folder: Path, info: RunInfo) -> str:
    """Size, deadline and time of one run."""
    cases, instances = (sum(each[name] for each in info.suites.values()) for name in ("cases", "instances"))
    sizes = ", ".join(f"{name} {each['cases']}" for name, each in info.suites.items())
    end = read_end(folder)
    said = f"{end.rows} rows" if end else "**interrupted, not all of it was run**"
    seconds = [each["seconds"] for each in stored(out / "sessions.jsonl") if each["part"] == part]
    guess = sum(each["seconds"] for each in stored(out / "estimate.jsonl") if each["part"] == part)
    text = (
        f"{cases} cases ({sizes}), {instances} instances; {info.timeout_s:g} s for a compile and for each walk; {said} "
        f"in {minutes(sum(seconds))}"
    )
    if len(seconds) > 1:
        text += f" ({len(seconds)} sessions)"
    return text + (f"; a sample had said {minutes(guess)}" if guess else "") + "."


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# ------------------------------------------------------------------------------------------------------------------- command


def parser() -> argparse.ArgumentParser:
    parsed = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parsed.add_argument("--out", type=Path, required=True, metavar="DIR", help="runs, page and all; the same again to go on")
    corpora = Path(__file__).resolve().parents[2] / "shared" / "corpora"
    parsed.add_argument("--corpora", type=Path, default=Path(os.path.relpath(corpora)), metavar="PATH", help="default: %(default)s")
    parsed.add_argument("--only", choices=list(FOLDERS), help="one of the two")
    parsed.add_argument("--backends", default=",".join(filter(installed, BACKENDS)), metavar="A,B", help="default: %(default)s")
    parsed.add_argument("--vocabularies", default="tekken", metavar="V", help="as in grammarbench run (default: tekken)")
    parsed.add_argument("--jobs", type=int, default=2, metavar="N", help="workers at a time (default: 2)")
    parsed.add_argument("--timeout", type=float, metavar="S", help=f"seconds for a compile and each walk (default: {DEADLINES})")
    parsed.add_argument("--sample", type=int, default=16, metavar="N", help="cases of the estimate; 0: no estimate (default: 16)")
    parsed.add_argument("--estimate", action="store_true", help="stop after the estimate")
    parsed.add_argument("--page", action="store_true", help="run nothing, write DIR/published of what is there")
    return parsed


def installed(distribution: str) -> bool:
    try:
        return bool(version(distribution))
    except PackageNotFoundError:
        return False


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, 2 for bad input, 3 where a run is incomplete."""
    options = parser().parse_args(argv)
    options.argv = tuple(sys.argv[1:] if argv is None else argv)
    try:
        parts = [options.only] if options.only else list(FOLDERS)
        if not options.page:
            work(options, parts)
            if options.estimate:
                return OK
        there = [part for part in parts if has_begun(options.out / "runs" / part)]
        if not there:
            raise BadInput(f"{options.out}: no run here; leave --page out to begin one")
        print(f"written: {publish(options.out, there)}", flush=True)
    except BadInput as error:
        print(f"reference: {error}", file=sys.stderr)
        return BAD_INPUT
    return OK if all(read_end(options.out / "runs" / part) for part in there) else INCOMPLETE


def work(options: argparse.Namespace, parts: Sequence[str]) -> None:
    """Estimate what has not begun, then walk all of it."""
    suites = {part: suites_of(part, options.corpora) for part in parts}
    options.out.mkdir(parents=True, exist_ok=True)
    fresh = [part for part in parts if not has_begun(options.out / "runs" / part)]
    if fresh and options.sample:
        found = [each for part in fresh for each in estimate(options, part, suites[part])]
        kept = [each for each in stored(options.out / "estimate.jsonl") if each["part"] not in fresh]
        lines = [json.dumps(each) + "\n" for each in [*kept, *map(asdict, found)]]
        (options.out / "estimate.jsonl").write_text("".join(lines))
        print(told(found), flush=True)
    for part in [] if options.estimate else parts:
        walk(options, part, suites[part])


def ended(*_: object) -> None:
    """Told to end: leave as after an interruption, with the time noted."""
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(main())
