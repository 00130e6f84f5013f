"""The published reference: MaskBench, JSON-Schema-Test-Suite (every draft) and our suites, through all backends.

    python benchmarks/reference.py --out DIR [--corpora PATH] [--only PART] [--backends A,B] [--vocabularies V] [--jobs N]
    python benchmarks/reference.py --out DIR ... --most 400             a stratified sample of each part
    python benchmarks/reference.py --out DIR ... --take-over PUBLISHED  the cases that a published sample left out
    python benchmarks/reference.py --out DIR ... --shard 1/8            one of eight equal shares; --executor ray for a cluster
    python benchmarks/reference.py --out DIR ... --again                verdicts that met the deadline, with 60 s
    python benchmarks/reference.py --out DIR ... --times 300            times of 300 schemas, by `measure`, on a quiet machine
    python benchmarks/reference.py --out DIR --page
    python benchmarks/reference.py --verify PUBLISHED

PATH is where `grammarbench fetch` has put the corpora, or any folder that holds `maskbench` and
`json-schema-test-suite/tests`. First a sample of the cases goes through each backend, and what the whole will
take is told. Then each part is walked as `grammarbench run` walks it: a verdict on every instance, with a
deadline for every compile and every walk (DEADLINES, or --timeout), and the exact masks of every case that
has a reference, at --effort places. The runs lie in DIR/runs; after an interruption the same command goes on
where it stopped, and what is done is not done again. Shares lie beside each other, and the page puts them
together once all are complete. --most walks a sample that is spread over keywords and sizes
(`stratified`). With --take-over, the cases that a published folder has are taken from there, and only the others
are walked: so a sample becomes a larger one, or the whole. Schemas of MaskBench that come without documents get
none, as there, so that each machine walks the same. --again walks the cases of a
complete run whose verdicts met the deadline once more, for verdicts alone and with AGAIN_SECONDS
(DIR/runs/NAME-again; the run stays as it is, and the README has a table of the two beside each
other). At the end, and with --page at any time, DIR/published is
written: a page for each, tables, the outcomes of every case, every row, and a README that says what was run,
on what, in what time. What is written by hand at the README's top stays there whenever it is made anew.
--verify computes the figures of a published folder anew from its published rows, and ends with 1 if one
differs. Verdicts and times are kept apart: those of a run are of workers side by side and are not to be
quoted, those of --times are.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from reference_page import LEFT_OUT, again, minutes, problem_of, publish, stored, timeouts
from stratified import Stratum, no_schemas, strata_of, stratified

from harness.backend.registry import installed_version, parse_specs
from harness.cases.suite import find_suite, read_cases, walked_by_default
from harness.cli.main import main as grammarbench
from harness.cli.progress import progress_line
from harness.cli.values import shard
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.oracle.judge.drafts import DRAFTS
from harness.rows.folder import now
from harness.rows.row import CHECKS_MODE
from harness.rows.store import Writer, case_identity, has_begun, has_rows, read_end, read_info, read_rows
from harness.running.limits import Progress
from harness.running.merge import merge
from harness.running.session import Request, run
from harness.running.shard import Shard

BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer", "llama-cpp-python")
"""The distributions of the backends; the default is those of them that are installed."""
NAMES = {"llama-cpp-python": "llama-cpp"}
"""The backends whose name is not that of their distribution."""

DEADLINES = {"maskbench": 10.0, "jsts": 5.0, "ours": 10.0}
"""Seconds for a compile and for each walk; of MaskBench those that its own runner gives."""

AGAIN_SECONDS = 60.0
"""Seconds for what met the first deadline, walked once more."""

MASKS = (
    "every_allowed_token_leads_to_a_document",
    "the_mask_is_exact",
    "every_document_of_its_layout_can_be_written",
)
"""The checks that hold masks against an exact reference; a run makes no others."""

TIMES = "times"
"""The folder of the measurement."""

FOLDERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "maskbench": (("maskbench/maskbench/data", "maskbench"),),
    "jsts": tuple((f"json-schema-test-suite/tests/{draft}",) for draft in reversed(DRAFTS[1:])),
}
"""For each part the folders in which each of its suites may lie: as fetched, or as a copy of the cases alone.
Draft 3 is left out: the second validator does not know it."""

PARTS = (*FOLDERS, "ours")

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


def estimate(
    options: argparse.Namespace, part: str, suites: Sequence[str], strata: Mapping[str, Stratum]
) -> Iterator[Estimate]:
    """Walks a sample through each backend by itself, in a folder that is thrown away. It tells what is to be
    walked: the cases of a sample if one is walked, and a share of them if a share is."""
    chosen = stratified(strata, options.sample)
    cases = min(options.most or len(strata), len(strata)) // (options.shard.of if options.shard else 1)
    here = changed(options, shard=None, executor="", take_over=None)
    for spec in parse_specs(options.backends):
        clock = Clock()
        with tempfile.TemporaryDirectory() as scratch:
            run(
                request(here, part, suites, Path(scratch) / "run", str(spec), chosen),
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
    """Returns the folders of the part's cases, or the names of our suites. Raises BadInput, with the command
    that fetches them."""
    if part == "ours":
        return list(walked_by_default())
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
        effort=options.effort,
        checks=MASKS if options.effort else (),
        argv=options.argv,
        only=only,
        bare=part == "maskbench",
        taken_from=taken_from(options, part),
        shard=options.shard,
        executor=options.executor,
    )


def taken_from(options: argparse.Namespace, part: str) -> Path | None:
    """Returns the published run of the part whose rows are taken over; None where there is none."""
    if options.take_over is None or not has_rows(options.take_over / part):
        return None
    return Path(options.take_over / part)


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
                request(options, part, suites, folder, options.backends, options.chosen[part]),
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
    """Walks the cases of which a verdict met the deadline once more, for verdicts alone.

    Raises BadInput unless the run is complete.
    """
    whole, second = options.out / "runs" / part, again(options.out, part)
    if not (has_begun(whole) and read_end(whole)):
        raise BadInput(f"{whole}: not complete; leave --again out to go on with it")
    vocabularies = options.vocabularies.split(",")
    backends = {spec.name for spec in parse_specs(options.backends)}
    late = {case for case in timeouts(whole) if case[0] in backends and case[3] in vocabularies}
    print(f"{part}: {len(late)} cases met a deadline", flush=True)
    if late:
        seconds = max(AGAIN_SECONDS, read_info(whole).timeout_s)
        with tempfile.TemporaryDirectory(dir=options.out) as scratch:
            in_time = Path(scratch)
            copy_without(late, whole, in_time / part, seconds)
            changes = {"shard": None, "executor": "", "timeout": seconds, "effort": 0}
            ids = {part: tuple(sorted({case[-1] for case in late}))}
            walk(changed(options, **changes, take_over=in_time, chosen=ids), suites, part, second)


def copy_without(late: Set[tuple[str, ...]], whole: Path, into: Path, seconds: float) -> None:
    """Writes the verdicts of the run but for those cases, by `case_identity`, as a run for verdicts alone
    with the second deadline: what was done in less is done in it too."""
    info = replace(read_info(whole), timeout_s=seconds, effort=0, checks=())
    into.mkdir()
    shutil.copyfile(whole / "cases.jsonl", into / "cases.jsonl")
    with Writer(into, info) as writer:
        for case, rows in groupby(read_rows(whole), case_identity):
            if case not in late:
                verdicts = (row for row in rows if row.mode != CHECKS_MODE)
                writer.append([(replace(row, samples=None), b"") for row in verdicts])


# ---------------------------------------------------------------------------------------------------- command


def parser() -> argparse.ArgumentParser:
    parsed = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parsed.add_argument("--out", type=Path, metavar="DIR", help="runs, page and all; the same again to go on")
    corpora = Path(__file__).resolve().parents[2] / "shared" / "corpora"
    parsed.add_argument(
        "--corpora",
        type=Path,
        default=Path(os.path.relpath(corpora)),
        metavar="PATH",
        help="default: %(default)s",
    )
    parsed.add_argument("--only", choices=PARTS, help="one of the parts (default: all)")
    parsed.add_argument(
        "--backends",
        default=",".join(NAMES.get(name, name) for name in BACKENDS if installed_version(name)),
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
        "--effort",
        type=int,
        default=2,
        metavar="N",
        help="places of a case where whole masks are compared; 0: none (default: 2)",
    )
    parsed.add_argument("--most", type=int, metavar="N", help="a stratified sample of N cases of each part")
    parsed.add_argument("--take-over", type=Path, metavar="PUBLISHED", help="take over the cases that it has")
    parsed.add_argument("--shard", type=shard, metavar="I/N", help="walk one of N equal shares of the cases")
    parsed.add_argument("--executor", default="", metavar="ray[:ADDRESS]", help="as in grammarbench run")
    parsed.add_argument(
        "--times", type=int, metavar="N", help="measure N schemas of MaskBench and do nothing else"
    )
    parsed.add_argument("--verify", type=Path, metavar="PUBLISHED", help="compute published figures anew")
    parsed.add_argument(
        "--sample",
        type=int,
        default=16,
        metavar="N",
        help="cases of the estimate; 0: no estimate (default: 16)",
    )
    parsed.add_argument("--estimate", action="store_true", help="stop after the estimate")
    parsed.add_argument(
        "--again", action="store_true", help="walk what met a deadline once more, for verdicts alone"
    )
    parsed.add_argument(
        "--page", action="store_true", help="run nothing, write DIR/published of what is there"
    )
    return parsed


def changed(options: argparse.Namespace, **values: object) -> argparse.Namespace:
    """Returns a copy of the options with other values."""
    return argparse.Namespace(**{**vars(options), **values})


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, 1 where a published figure does not follow, 2 for bad input, 3 where a run is
    incomplete."""
    parsed = parser()
    options = parsed.parse_args(argv)
    options.argv = tuple(sys.argv[1:] if argv is None else argv)
    if (options.out is None) == (options.verify is None):
        parsed.error("give --out DIR, or --verify PUBLISHED")
    try:
        if options.verify:
            return verified(options.verify)
        parts = [options.only] if options.only else list(PARTS)
        if options.times:
            return measured(options)
        if not options.page:
            work(options, parts)
            if options.estimate:
                return OK
        there = [part for part in PARTS if is_there(options.out, part)]
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
    out_of = {part: left_out(options.out, part, suites[part]) for part in parts}
    strata = {
        part: {case: stratum for case, stratum in strata_of(suites[part]).items() if case not in out_of[part]}
        if options.most or options.sample or out_of[part]
        else {}
        for part in parts
    }
    options.chosen = {part: chosen_of(options.most, strata[part], out_of[part]) for part in parts}
    options.out.mkdir(parents=True, exist_ok=True)
    folders = {part: folder_of(options.out, part, options.shard) for part in parts}
    fresh = [part for part in parts if not has_begun(folders[part])]
    if fresh and options.sample:
        estimates = [line for part in fresh for line in estimate(options, part, suites[part], strata[part])]
        kept = [line for line in stored(options.out / "estimate.jsonl") if line["part"] not in fresh]
        lines = [json.dumps(line) + "\n" for line in [*kept, *map(asdict, estimates)]]
        (options.out / "estimate.jsonl").write_text("".join(lines))
        print(estimates_text(estimates), flush=True)
    for part in [] if options.estimate else parts:
        walk(options, suites[part], part, folders[part])


def left_out(out: Path, part: str, suites: Sequence[str]) -> dict[str, str]:
    """Returns the names of the schemas of MaskBench that are none by their own draft, by the case's id, and
    says so; they are noted in a file, from which the README names them."""
    if part != "maskbench":
        return {}
    found = no_schemas(suites)
    if found:
        out.mkdir(parents=True, exist_ok=True)
        (out / LEFT_OUT).write_text(json.dumps(sorted(found.values())) + "\n")
        print(f"{part}: left out, being no schema by its own draft: {', '.join(sorted(found.values()))}")
    return found


def chosen_of(most: int | None, strata: Mapping[str, Stratum], out_of: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the ids of the cases that are walked; empty for all of the part's."""
    if most:
        return stratified(strata, most)
    return tuple(strata) if out_of else ()


def folder_of(out: Path, part: str, shard: Shard | None) -> Path:
    """Returns where the run of a part lies, or of one share of it."""
    name = f"{part}.{shard.number}-of-{shard.of}" if shard else part
    return out / "runs" / name


def is_there(out: Path, part: str) -> bool:
    """Is there a run of the part? Shares are put together first, once none is missing. Raises BadInput for
    shares of which some are not there or not complete."""
    whole = out / "runs" / part
    if has_begun(whole):
        return True
    shares = sorted((out / "runs").glob(f"{part}.*-of-*"))
    if not shares:
        return False
    if any(not read_end(folder) for folder in shares):
        raise BadInput(f"{part}: a share is not complete; give its command again")
    merged = merge(whole, shares, sys.argv[1:])
    if merged.missing:
        shutil.rmtree(whole)
        raise BadInput(f"{part}: of its shares are missing: {', '.join(merged.missing_shards)}")
    return True


# -------------------------------------------------------------------------------------------- times and proof


def measured(options: argparse.Namespace) -> int:
    """Measures a stratified sample of MaskBench's schemas with all backends, into DIR/times; returns the exit
    code of `grammarbench measure`. Three forks, for times of hundreds of schemas take hours otherwise."""
    (corpus,) = suites_of("maskbench", options.corpora)
    chosen = set(stratified(strata_of([corpus]), options.times))
    schemas = options.out / TIMES / "schemas"
    schemas.mkdir(parents=True, exist_ok=True)
    for file in sorted(Path(corpus).iterdir()):
        if any(case.id in chosen for case in read_cases(find_suite(str(file)))):
            shutil.copyfile(file, schemas / file.name)
    vocabulary = options.vocabularies.partition(",")[0]
    words = [
        "--backends",
        options.backends,
        "--vocabularies",
        vocabulary,
        "--profile",
        "quick",
        "--forks",
        "3",
    ]
    return grammarbench(["measure", str(schemas), *words, "--out", str(options.out / TIMES / vocabulary)])


def verified(published: Path) -> int:
    """Prints, for each part of a published folder, whether its figures follow from its rows; returns 0 or
    1. Raises BadInput where there is nothing to verify."""
    parts = [part for part in PARTS if (published / part).is_dir()]
    if not parts:
        raise BadInput(f"{published}: none of {', '.join(PARTS)} is here; name a published folder")
    holds = True
    for part in parts:
        problem = problem_of(published / part)
        holds = holds and not problem
        print(f"{part}: {problem or 'every figure follows from the published rows'}")
    return OK if holds else 1


def ended(*_: object) -> None:
    """Told to end: leave as after an interruption, with the time noted."""
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(main())
