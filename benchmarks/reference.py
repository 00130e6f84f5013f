"""The published reference: MaskBench, JSON-Schema-Test-Suite (every draft) and our suites, through all backends.

    python benchmarks/reference.py --out DIR [--corpora PATH] [--only PART] [--backends A,B] [--vocabularies V] [--jobs N]
    python benchmarks/reference.py --out DIR ... --most 400             a stratified sample of each part
    python benchmarks/reference.py --out DIR ... --take-over PUBLISHED  the cases that a published sample left out
    python benchmarks/reference.py --out DIR ... --shard 1/8            one of eight equal shares; --executor ray for a cluster
    python benchmarks/reference.py --out DIR ... --again                verdicts that met the deadline, with 60 s
    python benchmarks/reference.py --out DIR ... --times 300            times of 300 schemas, by `measure`, on a quiet machine
    python benchmarks/reference.py --out DIR --page
    python benchmarks/reference.py --verify PUBLISHED
    python benchmarks/reference.py --renew PUBLISHED                    its tables and checksums anew, from its rows

PATH is where `grammarbench fetch` has put the corpora, or any folder that holds `maskbench` and
`json-schema-test-suite/tests`. First a sample of the cases goes through each backend, and what the whole will
take is told. Then each part is walked as `grammarbench run` walks it: a verdict on every instance, with a
deadline for every compile and every walk (DEADLINES, or --timeout), and the exact masks of every case that
has a reference, at --effort places. The runs lie in DIR/runs; after an interruption the same command goes on
where it stopped, and what is done is not done again. Shares lie beside each other in DIR/runs, each as
PART.I-of-N with all its files, and the page puts them together once all are complete: those of other machines
are copied there first, and the lines of their DIR/sessions.jsonl, which say how long they took, are appended
to the one here. --most walks a sample that is spread over keywords and sizes
(`stratified`). With --take-over, the cases that a published folder has are taken from there, and only the others
are walked: so a sample becomes the whole, or with --most a larger one, in which its cases stay. Schemas of MaskBench that come without documents get
none, as there, so that each machine walks the same. --again walks the cases of a
complete run whose verdicts met the deadline once more, for verdicts alone and with AGAIN_SECONDS
(DIR/runs/NAME-again; the run stays as it is, and the README has a table of the two beside each
other); what the published folder of --take-over has of it is not walked anew. At the end, and with --page
at any time, DIR/published is written: a page for each, tables, the outcomes of every case, every row, and
a README that says what was run, on what, in what time. What is written by hand at the README's top stays
there whenever it is made anew.
--verify computes the tables of a published folder anew from its published rows, compares every file with
SHA256SUMS, and ends with 1 if one differs. --renew writes these tables anew, as today's code words them, and
the checksums: after notes were written at the README's top, too. Verdicts and times are kept apart: those of a run are of workers
side by side and are not to be quoted, those of --times are.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import ended, script
from reference_estimate import estimate, estimates_text
from reference_page import publish
from reference_renew import renew
from reference_runs import PARTS, stored
from reference_sums import SUMS
from reference_verify import verified
from reference_walk import (
    DEADLINES,
    chosen_of,
    folder_of,
    is_there,
    left_out,
    lie_where,
    sampled_in,
    suites_of,
    taken_from,
    walk,
    walk_again,
)
from stratified import no_schemas, strata_of, stratified

from harness.backend.registry import installed_version
from harness.cases.suite import find_suite, read_cases
from harness.cli.main import main as grammarbench
from harness.cli.values import effort, positive, positive_number, shard, whole
from harness.errors import GATE_FAILED, INCOMPLETE, OK, BadInput
from harness.rows.store import has_begun, read_end

BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer", "llama-cpp-python")
"""The distributions of the backends; the default is those of them that are installed."""
NAMES = {"llama-cpp-python": "llama-cpp"}
"""The backends whose name is not that of their distribution."""

TIMES = "times"
"""The folder of the measurement."""


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
    parsed.add_argument(
        "--jobs", type=positive, default=2, metavar="N", help="workers at a time (default: 2)"
    )
    parsed.add_argument(
        "--timeout",
        type=positive_number,
        metavar="S",
        help=f"seconds for a compile and each walk (default: {DEADLINES})",
    )
    parsed.add_argument(
        "--effort",
        type=effort,
        default=2,
        metavar="N",
        help="places of a case where whole masks are compared; 0: none (default: 2)",
    )
    parsed.add_argument(
        "--most", type=positive, metavar="N", help="a stratified sample of N cases of each part"
    )
    parsed.add_argument("--take-over", type=Path, metavar="PUBLISHED", help="take over the cases that it has")
    parsed.add_argument("--shard", type=shard, metavar="I/N", help="walk one of N equal shares of the cases")
    parsed.add_argument("--executor", default="", metavar="ray[:ADDRESS]", help="as in grammarbench run")
    parsed.add_argument(
        "--times", type=positive, metavar="N", help="measure N schemas of MaskBench and do nothing else"
    )
    parsed.add_argument("--verify", type=Path, metavar="PUBLISHED", help="compute published tables anew")
    parsed.add_argument(
        "--renew", type=Path, metavar="PUBLISHED", help=f"write its tables and its {SUMS} anew from its rows"
    )
    parsed.add_argument(
        "--sample",
        type=whole,
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


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, 1 where what is published does not follow or is damaged, 2 for bad input, 3 where a run
    is incomplete."""
    parsed = parser()
    options = parsed.parse_args(argv)
    options.argv = tuple(sys.argv[1:] if argv is None else argv)
    if [options.out, options.verify, options.renew].count(None) != 2:
        parsed.error("give one of --out DIR, --verify PUBLISHED and --renew PUBLISHED")
    if options.verify:
        return OK if verified(options.verify, print) else GATE_FAILED
    if options.renew:
        renew(options.renew, print)
        return OK
    parts = [options.only] if options.only else list(PARTS)
    if options.times:
        return measured(options)
    if not options.page:
        work(options, parts)
        if options.estimate:
            return OK
        if options.shard and (waiting := lie_where(options, parts)):
            print(waiting, flush=True)
            return OK
    there = [part for part in PARTS if is_there(options.out, part)]
    if not there:
        raise BadInput(f"{options.out}: no run here; leave --page out to begin one")
    print(f"written: {publish(options.out, there)}", flush=True)
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
        if options.most or options.sample
        else {}
        for part in parts
    }
    sampled = {part: sampled_in(taken_from(options, part)) if options.most else set() for part in parts}
    options.chosen = {part: chosen_of(options.most, strata[part], sampled[part]) for part in parts}
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


def measured(options: argparse.Namespace) -> int:
    """Measures a stratified sample of MaskBench's schemas, without those that are none, with all backends,
    into DIR/times; returns the exit code of `grammarbench measure`. Three forks, for times of hundreds of
    schemas take hours otherwise."""
    (corpus,) = suites_of("maskbench", options.corpora)
    none = no_schemas([corpus])
    strata = {case: stratum for case, stratum in strata_of([corpus]).items() if case not in none}
    chosen = set(stratified(strata, options.times))
    schemas = options.out / TIMES / "schemas"
    shutil.rmtree(schemas, ignore_errors=True)  # those of another --times
    schemas.mkdir(parents=True)
    for case in read_cases(find_suite(corpus)):  # of the folder: read alone, copies of a file have one id
        if case.id in chosen:
            shutil.copyfile(Path(corpus) / f"{case.name}.json", schemas / f"{case.name}.json")
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


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(main())
