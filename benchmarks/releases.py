"""What every release of the last year makes of the same schemas: works, refused, silently wrong, and so on.

    python benchmarks/releases.py --out DIR [--corpora PATH] [--since 2025-06-01] [--most 300] [--vocabulary mistral-v3]
    python benchmarks/releases.py --out DIR --arms A,B==1.2          these arms, and no releases of an index
    python benchmarks/releases.py --out DIR --take-over PUBLISHED         take over what a published folder has, walk the others
    python benchmarks/releases.py --out DIR --page                   run nothing, write DIR/published of what is there

The schemas are a sample of those of MaskBench that have outputs of their own, spread over keywords and sizes as
`benchmarks/reference.py --most` draws it, or with --take-over those of the published folder; they lie in DIR/schemas. A schema without any is left out, because
how many documents are made for it depends on how busy the machine is, and a run goes on with the same alone.
The vocabulary is one that is served and not large; `probe` will not do, because llguidance of 2025 panics on a
token as long as its longest. The releases are those that the package index offers of each of
DISTRIBUTIONS since that day, with the last one before it: of a version 0.X.Y each, because Y counts there what
X counts later; from 1.0 on the last of each X.Y. Pre-releases and yanked ones are left out. Each release is
installed as an arm of its own, as `grammarbench run --backends xgrammar==0.2.7` does, and all of them are arms
of one run, DIR/run, --jobs workers at a time: a verdict on every instance, no checks, no times, with the deadline
that MaskBench's own runner has. The newest and the oldest come first, then those between, so that what is
there at any time is spread over the year. The same command again goes on where it stopped; a release that
cannot be installed or loaded here is noted with its reason (DIR/refused.json) and passed over.

At the end, and with --page at any time, DIR/published is written: the table, a figure, every case's state
under every release, every row, and a README that answers first.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from http.client import HTTPException
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import ended, script
from reference_walk import sampled_in, suites_of
from releases_page import REFUSED, RUN, Release, arm_of, publish
from stratified import strata_of, stratified

from harness.backend.describe import Description, describe
from harness.backend.environments.build import environment_of
from harness.backend.environments.releases import INDEX, released
from harness.backend.environments.source import is_path
from harness.backend.registry import parse_spec
from harness.backend.vocabulary import prepare_vocabulary
from harness.cases.suite import find_suite, read_cases
from harness.cli.progress import progress_line
from harness.cli.values import positive
from harness.errors import INCOMPLETE, OK, BadInput
from harness.rows.store import has_begun, read_end, read_info
from harness.running.session import Request, run

DISTRIBUTIONS = ("xgrammar", "llguidance", "outlines-core")

DEADLINE = 10.0
"""Seconds for a compile and for each walk, as MaskBench's own runner gives them."""

MEMORY_GB = 4.0

SECONDS = 30.0
"""The most seconds that the index may take to tell the days of a distribution's releases."""


def chosen(versions: Iterable[tuple[str, str]], since: str) -> list[tuple[str, str]]:
    """Returns the releases to walk, out of pairs of version and day (`2025-06-30`), the oldest first: by the
    rule that the module's docstring tells."""
    final = sorted(
        (pair for pair in versions if not Version(pair[0]).is_prerelease), key=lambda pair: Version(pair[0])
    )

    def series(pair: tuple[str, str]) -> tuple[int, ...]:
        numbers = Version(pair[0]).release
        return numbers[:3] if numbers[0] == 0 else numbers[:2]

    last = [list(group)[-1] for _, group in groupby(final, series)]
    before = [pair for pair in last if pair[1] < since]
    return [*before[-1:], *(pair for pair in last if pair[1] >= since)]


def days(page: dict[str, Any]) -> dict[str, str]:
    """Returns the day on which each version's first file came, out of an index's page (PEP 700)."""
    first: dict[str, str] = {}
    for version in page["versions"]:
        dated = [
            file["upload-time"][:10]
            for file in page["files"]
            if file.get("upload-time") and f"-{version}-" in file["filename"].replace(".tar.gz", "-")
        ]
        if dated:
            first[version] = min(dated)
    return first


def releases(distribution: str, since: str) -> list[Release]:
    """Returns the releases of a distribution to walk, the oldest first. Raises BadInput without an index."""
    page = f"{(os.environ.get('PIP_INDEX_URL') or INDEX).rstrip('/')}/{distribution}/"
    try:
        request = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            dated = days(json.load(answer))
    except (OSError, ValueError, KeyError, TypeError, HTTPException) as error:
        # What the others say may hold the address, and that a password.
        why = str(error) if isinstance(error, OSError) else type(error).__name__
        raise BadInput(
            f"the index does not tell when {distribution} was released ({why}); name releases by --arms"
        ) from error
    offered = [(version, dated[version]) for version in released(distribution) if version in dated]
    return [
        Release(f"{distribution}=={version}", distribution, version, day)
        for version, day in chosen(offered, since)
    ]


def spread(count: int) -> list[int]:
    """Returns the places 0 to count - 1 in an order in which every beginning is spread over all of them: the
    last, the first, then always the middle of the widest gap."""
    order = list(dict.fromkeys((count - 1, 0))) if count else []
    while len(order) < count:
        known = sorted(order)
        low, high = max(pairwise(known), key=lambda gap: gap[1] - gap[0])
        order.append((low + high) // 2)
    return order


def in_turn(arms: Sequence[Release]) -> Iterator[Release]:
    """Yields the arms in the order in which they are walked: by turns of the distributions, each spread."""
    queues = []
    for _, group in groupby(arms, lambda arm: arm.distribution):
        of_one = list(group)
        queues.append([of_one[place] for place in spread(len(of_one))])
    for turn in range(max(map(len, queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def schemas(options: argparse.Namespace) -> Path:
    """Returns the folder of the sample, which is made once. Raises BadInput."""
    folder: Path = options.out / "schemas"
    if not folder.is_dir():
        (corpus,) = suites_of("maskbench", options.corpora)
        ids = sampled_in(options.take_over)
        if not ids:
            judged = {case.id for case in read_cases(find_suite(corpus)) if case.instances}
            strata = {case: stratum for case, stratum in strata_of([corpus]).items() if case in judged}
            ids = set(stratified(strata, options.most))
        making = options.out / "schemas.part"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        for file in sorted(Path(corpus).glob("*.json")):
            if any(case.id in ids for case in read_cases(find_suite(str(file)))):
                shutil.copyfile(file, making / file.name)
        making.rename(folder)
    return folder


def named(arm: str) -> Release:
    """Returns an arm of --arms. Raises BadInput."""
    version = parse_spec(arm).version
    if version is not None and is_path(version):
        raise BadInput(f'--arms: "{arm}" names a path, but arms are told apart by versions; give a version')
    name, _, version = arm.partition("==")
    return Release(arm, name, version, "")


def plan(options: argparse.Namespace) -> list[Release]:
    """Returns the arms, the same ones whenever the command is given again. Raises BadInput."""
    kept: Path = options.out / "releases.json"
    if kept.is_file():
        return [Release(**arm) for arm in json.loads(kept.read_text())]
    arms = (
        [named(arm) for arm in options.arms.split(",")]
        if options.arms
        else [arm for distribution in DISTRIBUTIONS for arm in releases(distribution, options.since)]
    )
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps([asdict(arm) for arm in arms], indent=1) + "\n")
    return arms


def placed(arms: Sequence[Release], vocabulary: str, refused: dict[str, str]) -> Description:
    """Returns what those of the arms are that can be installed and loaded here; why others cannot is put into
    `refused`, by arm. Raises BadInput if none can."""
    found: dict[str, tuple[str, str]] = {}
    for arm in arms:
        print(f"{arm.arm} ({arm.day or 'no day'})", flush=True)
        try:
            spec, python = environment_of(arm.arm, lambda line: print(f"  {line}", flush=True))
            found[arm.arm] = str(spec), python
        except BadInput as error:
            refused[arm.arm] = str(error)
    try:
        if found:
            return _described(list(found.values()), vocabulary)
    except BadInput:
        for name, place in list(found.items()):
            try:
                _described([place], vocabulary)
            except BadInput as error:
                refused[name] = str(error)
                del found[name]
    if not found:
        raise BadInput(f"no release can be loaded here; the first says: {next(iter(refused.values()), '')}")
    return _described(list(found.values()), vocabulary)


def _described(places: Sequence[tuple[str, str]], vocabulary: str) -> Description:
    return describe(
        [spec for spec, _ in places],
        [prepare_vocabulary(vocabulary)],
        [python for _, python in places],
        reads=True,
    )


def walk(options: argparse.Namespace, arms: Sequence[Release], suite: Path) -> None:
    """Begins the run of all arms or goes on with it. Raises BadInput."""
    folder, notes = options.out / RUN, options.out / REFUSED
    if has_begun(folder) and read_end(folder):
        return
    noted: dict[str, str] = json.loads(notes.read_text()) if notes.is_file() else {}
    # An arm of a run that has begun is never passed over: without it, the run could not be gone on with.
    begun = read_info(folder) if has_begun(folder) else None
    kept = {arm.arm for arm in arms if begun and arm_of(arm, begun)}
    refused = {arm: why for arm, why in noted.items() if arm not in kept}
    told = placed([arm for arm in in_turn(arms) if arm.arm not in refused], options.vocabulary, refused)
    if lost := sorted(kept & refused.keys()):
        raise BadInput(
            f"{lost[0]} is in the run, and cannot be had now ({refused[lost[0]]}); go on once it can"
        )
    notes.write_text(json.dumps(refused, indent=1) + "\n")
    asked = Request(
        suites=(str(suite),),
        backends=",".join(arm.arm for arm in in_turn(arms) if arm.arm not in refused),
        vocabularies=(options.vocabulary,),
        out=folder,
        resume=has_begun(folder),
        jobs=options.jobs,
        timeout_s=DEADLINE,
        memory_gb=MEMORY_GB,
        effort=0,
        argv=options.argv,
        taken_from=options.take_over,
    )
    with progress_line(sys.stdout) as report:
        run(asked, lambda line: print(line, flush=True), report, told)


def parser() -> argparse.ArgumentParser:
    parsed = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parsed.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="runs and page; again to go on"
    )
    parsed.add_argument("--corpora", type=Path, default=Path("../shared/corpora"), metavar="PATH")
    parsed.add_argument("--since", default="2025-06-01", metavar="DAY", help="default: %(default)s")
    parsed.add_argument(
        "--most", type=positive, default=300, metavar="N", help="schemas (default: %(default)s)"
    )
    parsed.add_argument("--vocabulary", default="mistral-v3", metavar="V", help="default: %(default)s")
    parsed.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="workers at a time (default: 1)"
    )
    parsed.add_argument(
        "--arms", default="", metavar="A,B==1.2", help="these, in place of the index's releases"
    )
    parsed.add_argument(
        "--take-over",
        type=Path,
        metavar="PUBLISHED",
        help="take over its schemas, and the releases that it has",
    )
    parsed.add_argument(
        "--page", action="store_true", help="run nothing, write DIR/published of what is there"
    )
    return parsed


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, 2 for bad input, 3 where a release was not walked."""
    options = parser().parse_args(argv)
    options.argv = tuple(sys.argv[1:] if argv is None else argv)
    arms = plan(options)
    suite = schemas(options)
    if not options.page:
        walk(options, arms, suite)
    notes = options.out / REFUSED
    refused: dict[str, str] = json.loads(notes.read_text()) if notes.is_file() else {}
    complete = publish(options.out, arms, refused)
    print(f"written: {options.out / 'published'}", flush=True)
    return OK if complete else INCOMPLETE


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    sys.exit(main())
