"""The published reference: the whole of MaskBench and of JSON-Schema-Test-Suite (draft 2020-12 and 7) through
all backends.

    python benchmarks/reference.py --out DIR [--corpora PATH] [--only maskbench|jsts] [--backends A,B] [--vocabularies V] [--jobs N]
    python benchmarks/reference.py --out DIR ... --again
    python benchmarks/reference.py --out DIR --page

PATH is where `grammarbench fetch` has put the corpora, or any folder that holds `maskbench` and
`json-schema-test-suite/tests`. First a sample of the cases goes through each backend, and what the whole will
take is told. Then each corpus is walked as `grammarbench run` walks it, with a deadline for every compile and
every walk (DEADLINES, or --timeout), without further checks. The runs lie in DIR/runs; after an interruption
the same command goes on where it stopped, and what is done is not done again. --again, with the same options,
is for a busy machine, whose timeouts a calm one would not have: of a run that is complete it walks the cases
that met a deadline once more, one worker at a time, in a copy of the run (DIR/runs/NAME-again; the first
stays as it is). At the end, and with --page at any time, DIR/published is written: a page for each, tables,
the outcomes of every case, and a README that says what was run, on what, in what time. What is written by
hand at the README's top stays there whenever it is made anew. The raw rows come along packed where they are
small; the samples of times never do. Times are those of --jobs workers side by side: outcomes are to be
quoted, times are not. `grammarbench measure` is for times.
"""  # noqa: E501

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from reference_page import again, case_of, minutes, publish, stored, timeouts

from harness.backend.registry import parse_specs
from harness.cases.suite import find_suite, read_cases
from harness.cli.progress import progress_line
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.rows.folder import now
from harness.rows.row import Row
from harness.rows.store import Samples, Writer, has_begun, read_end, read_info, read_rows, read_samples
from harness.running.limits import Progress
from harness.running.session import Request, run

BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer", "formatron")
"""Names that are also those of the distributions; the default is those of them that are installed."""

DEADLINES = {"maskbench": 10.0, "jsts": 5.0}
"""Seconds for a compile and for each walk."""

FOLDERS = {
    "maskbench": (("maskbench/maskbench/data", "maskbench"),),
    "jsts": (("json-schema-test-suite/tests/draft2020-12",), ("json-schema-test-suite/tests/draft7",)),
}
"""For each part the folders in which each of its suites may lie: as fetched, or as a copy of the cases
alone."""

MEMORY_GB = 4.0

# ----------------------------------------------------------------------------------------------- the estimate


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
    """Returns how many cases the suites have, and the ids of `size` of them: always the same ones."""
    ids = [case.id for suite in suites for case in read_cases(find_suite(suite))]
    return len(ids), tuple(
        sorted(ids, key=lambda case_id: hashlib.sha256(case_id.encode()).hexdigest())[:size]
    )


def estimate(options: argparse.Namespace, part: str, suites: Sequence[str]) -> Iterator[Estimate]:
    """Walks the sample through each backend by itself, in a folder that is thrown away."""
    cases, chosen = sample(suites, options.sample)
    for spec in parse_specs(options.backends):
        clock = Clock()
        with tempfile.TemporaryDirectory() as scratch:
            run(
                request(options, part, suites, Path(scratch) / "run", str(spec), chosen),
                lambda _: None,
                clock,
            )
        yield Estimate(part, str(spec), cases, len(chosen), cases * clock.seconds_per_case())


def estimates_text(estimates: Sequence[Estimate]) -> str:
    """Returns a line for each backend and part, and the sum."""
    lines = [
        f"{estimate.part:10} {estimate.backend:20} about {minutes(estimate.seconds)} "
        f"for {estimate.cases} cases"
        for estimate in estimates
    ]
    total = minutes(sum(estimate.seconds for estimate in estimates))
    size = max(estimate.sampled for estimate in estimates)
    return "\n".join(
        [
            *lines,
            f"in all about {total}; so says a sample of {size} cases, and a few that meet "
            "the deadline change it much",
        ]
    )


# --------------------------------------------------------------------------------------------------- the runs


def suites_of(part: str, corpora: Path) -> list[str]:
    """Returns the folders of the part's cases. Raises BadInput, with the command that fetches them."""
    folders = []
    for candidates in FOLDERS[part]:
        folder = next(
            (corpora / candidate for candidate in candidates if (corpora / candidate).is_dir()), None
        )
        if folder is None:
            name = candidates[0].partition("/")[0]
            raise BadInput(
                f"{corpora / candidates[-1]}: no such folder; `grammarbench fetch {name} --out "
                f"{corpora}` brings it"
            )
        folders.append(str(folder))
    return folders


def request(
    options: argparse.Namespace,
    part: str,
    suites: Sequence[str],
    out: Path,
    backends: str,
    only: tuple[str, ...] = (),
) -> Request:
    """Returns the request that `grammarbench run` would make of such options."""
    return Request(
        suites=tuple(suites),
        backends=backends,
        vocabularies=tuple(options.vocabularies.split(",")),
        out=out,
        resume=has_begun(out),
        jobs=options.jobs,
        timeout_s=options.timeout or DEADLINES[part],
        memory_gb=MEMORY_GB,
        effort=0,
        argv=options.argv,
        only=only,
    )


def walk(options: argparse.Namespace, suites: Sequence[str], part: str, folder: Path) -> None:
    """Begins the run or goes on with it; the time it took is noted under the folder's name, however it
    ends."""
    if has_begun(folder) and read_end(folder):
        print(f"{folder.name}: done already", flush=True)
        return
    started, begun = now(), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with progress_line(sys.stdout) as report:
            run(
                request(options, part, suites, folder, options.backends),
                lambda text: print(text, flush=True),
                report,
            )
    finally:
        session = {
            "part": folder.name,
            "started": started,
            "seconds": round(time.monotonic() - begun),
            "jobs": options.jobs,
        }
        with open(options.out / "sessions.jsonl", "a") as file:
            file.write(json.dumps(session) + "\n")


def walk_again(options: argparse.Namespace, suites: Sequence[str], part: str) -> None:
    """Walks what met a deadline once more, one worker at a time.

    Raises BadInput unless the run is complete.
    """
    whole, second = options.out / "runs" / part, again(options.out, part)
    if not (has_begun(whole) and read_end(whole)):
        raise BadInput(f"{whole}: not complete; leave --again out to go on with it")
    late = timeouts(whole)
    print(f"{part}: {len(late)} cases met a deadline", flush=True)
    if late:
        if not has_begun(second):
            copy_without(late, whole, second)
        options.jobs = 1
        walk(options, suites, part, second)


def copy_without(late: Set[tuple[str, ...]], whole: Path, into: Path) -> None:
    """A run to be gone on with: the whole one but for the rows of those cases, by `case_of`."""
    samples = read_samples(whole)
    with tempfile.TemporaryDirectory(dir=into.parent) as scratch:
        folder = Path(scratch) / into.name
        folder.mkdir()
        shutil.copyfile(whole / "cases.jsonl", folder / "cases.jsonl")
        with Writer(folder, read_info(whole)) as writer:
            for case, rows in groupby(read_rows(whole), case_of):
                if case not in late:
                    writer.append([(replace(row, samples=None), values_of(samples, row)) for row in rows])
        os.rename(folder, into)  # in one piece, or a copy that was interrupted would be taken for one


def values_of(samples: Samples, row: Row) -> bytes:
    """Returns the row's own, as a run's file has them."""
    start, count = row.samples or (0, 0)
    return samples[start : start + count].tobytes()


# ---------------------------------------------------------------------------------------------------- command


def parser() -> argparse.ArgumentParser:
    parsed = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parsed.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="runs, page and all; the same again to go on"
    )
    corpora = Path(__file__).resolve().parents[2] / "shared" / "corpora"
    parsed.add_argument(
        "--corpora",
        type=Path,
        default=Path(os.path.relpath(corpora)),
        metavar="PATH",
        help="default: %(default)s",
    )
    parsed.add_argument("--only", choices=list(FOLDERS), help="one of the two")
    parsed.add_argument(
        "--backends",
        default=",".join(filter(installed, BACKENDS)),
        metavar="A,B",
        help="default: %(default)s",
    )
    parsed.add_argument(
        "--vocabularies", default="tekken", metavar="V", help="as in grammarbench run (default: tekken)"
    )
    parsed.add_argument("--jobs", type=int, default=2, metavar="N", help="workers at a time (default: 2)")
    parsed.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help=f"seconds for a compile and each walk (default: {DEADLINES})",
    )
    parsed.add_argument(
        "--sample",
        type=int,
        default=16,
        metavar="N",
        help="cases of the estimate; 0: no estimate (default: 16)",
    )
    parsed.add_argument("--estimate", action="store_true", help="stop after the estimate")
    parsed.add_argument(
        "--again", action="store_true", help="walk what met a deadline once more, one worker at a time"
    )
    parsed.add_argument(
        "--page", action="store_true", help="run nothing, write DIR/published of what is there"
    )
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
    """Estimate what has not begun, then walk all of it; with --again what met a deadline."""
    suites = {part: suites_of(part, options.corpora) for part in parts}
    if options.again:
        for part in parts:
            walk_again(options, suites[part], part)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    fresh = [part for part in parts if not has_begun(options.out / "runs" / part)]
    if fresh and options.sample:
        estimates = [line for part in fresh for line in estimate(options, part, suites[part])]
        kept = [line for line in stored(options.out / "estimate.jsonl") if line["part"] not in fresh]
        lines = [json.dumps(line) + "\n" for line in [*kept, *map(asdict, estimates)]]
        (options.out / "estimate.jsonl").write_text("".join(lines))
        print(estimates_text(estimates), flush=True)
    for part in [] if options.estimate else parts:
        walk(options, suites[part], part, options.out / "runs" / part)


def ended(*_: object) -> None:
    """Told to end: leave as after an interruption, with the time noted."""
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(main())
