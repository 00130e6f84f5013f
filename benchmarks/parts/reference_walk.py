"""The runs of benchmarks/reference.py: which cases of which part are walked, as what request, into which
folder."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from reference_runs import LEFT_OUT, SESSIONS, again, again_name, shares_of, timeouts
from stratified import Stratum, no_schemas, stratified

from harness.backend.registry import parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.backend.vocabulary.fetched import with_all
from harness.cases.suite import walked_by_default
from harness.cli.progress import progress_line
from harness.errors import BadInput
from harness.oracle.judge.drafts import DRAFTS
from harness.rows.folder import now
from harness.rows.row import CHECKS_MODE
from harness.rows.store import case_identity, has_begun, has_rows, read_end, read_info, read_rows
from harness.rows.writer import Writer
from harness.running.merge import merge
from harness.running.session import Request, run
from harness.running.shard import Shard
from harness.text import our_command

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

FOLDERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "maskbench": (("maskbench/maskbench/data", "maskbench/data", "maskbench"),),
    "jsts": tuple((f"json-schema-test-suite/tests/{draft}",) for draft in reversed(DRAFTS[1:])),
}
"""For each part the folders in which each of its suites may lie: as fetched, as a copy of
MaskBench's own folder, or as a copy of the cases alone. Draft 3 is left out: the second validator does not
know it."""

MEMORY_GB = 4.0


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
                f"{corpora / candidates[-1]}: no such folder; "
                f"{our_command('fetch', name, '--out', str(corpora))} brings it"
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


def walk(
    options: argparse.Namespace,
    suites: Sequence[str],
    part: str,
    folder: Path,
    known: dict[str, object] | None = None,
) -> None:
    """Begins the run or goes on with it; the time it took is noted under the folder's name, however it
    ends, and once it is complete how many cases were taken over, which is `known` of a second walk."""
    if has_begun(folder) and read_end(folder):
        print(f"{folder.name}: done already", flush=True)
        return
    started, begun = now(), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    if options.shard and (options.out / LEFT_OUT).exists():
        shutil.copyfile(options.out / LEFT_OUT, folder / LEFT_OUT)  # goes where the share is put together
    asked = request(options, part, suites, folder, options.backends, options.chosen[part])
    noted: dict[str, object] = {}
    try:
        with progress_line(sys.stdout) as report:
            run(asked, lambda text: print(text, flush=True), report)
        noted = known or (taken_over(folder, asked.taken_from) if asked.taken_from else {})
    finally:
        session = {
            "part": folder.name,
            "started": started,
            "seconds": round(time.monotonic() - begun),
            "jobs": options.jobs,
            **noted,
        }
        with open(options.out / SESSIONS, "a") as file:
            file.write(json.dumps(session) + "\n")


def taken_over(folder: Path, earlier: Path) -> dict[str, object]:
    """Returns what is noted of the cases of a run, each of one backend and vocabulary, that have the earlier
    one's very rows."""

    def seen(run: Path) -> set[tuple[object, ...]]:
        return {
            (case, *((row.instance, row.mode, row.status, row.compile_ns, row.wall_ns) for row in rows))
            for case, rows in groupby(read_rows(run), case_identity)
        }

    return {"taken_over": len(seen(folder) & seen(earlier)), "from": str(earlier)}


def walk_again(options: argparse.Namespace, suites: Sequence[str], part: str) -> None:
    """Walks the cases of which a verdict met the deadline once more, for verdicts alone.

    Raises BadInput unless the run is complete.
    """
    whole, second = options.out / "runs" / part, again(options.out, part)
    if not (has_begun(whole) and read_end(whole)):
        raise BadInput(f"{whole}: not complete; leave --again out to go on with it")
    vocabularies = set(map(prepare_vocabulary, with_all(options.vocabularies.split(","))))
    backends = {spec.name for spec in parse_specs(options.backends)}
    late = {case for case in timeouts(whole) if case[0] in backends and case[3] in vocabularies}
    print(f"{part}: {len(late)} cases met a deadline", flush=True)
    if late:
        seconds = max(AGAIN_SECONDS, read_info(whole).timeout_s)
        with tempfile.TemporaryDirectory(dir=options.out) as scratch:
            in_time, earlier = Path(scratch), taken_from(options, again_name(part))
            count = copy_known(late, whole, earlier, in_time / part, seconds)
            changes = {"shard": None, "executor": "", "timeout": seconds, "effort": 0}
            ids = {part: tuple(sorted({case[-1] for case in late}))}
            known = {"taken_over": count, "from": str(earlier)}
            walk(changed(options, **changes, take_over=in_time, chosen=ids), suites, part, second, known)


def copy_known(
    late: Set[tuple[str, ...]], whole: Path, earlier: Path | None, into: Path, seconds: float
) -> int:
    """Writes the verdicts that need no second walk, as a run for verdicts alone with the second deadline:
    those of the run that were done in less, and of the late cases, by `case_identity`, those that an earlier
    second walk has with the same deadline. Returns the number of these late cases."""
    count = 0
    info = replace(read_info(whole), timeout_s=seconds, effort=0, checks=())
    into.mkdir()
    shutil.copyfile(whole / "cases.jsonl", into / "cases.jsonl")
    with Writer(into, info) as writer:
        runs = [(whole, False)]
        if earlier and read_info(earlier).timeout_s == seconds:
            runs.append((earlier, True))
        for source, has_late in runs:
            for case, rows in groupby(read_rows(source), case_identity):
                if (case in late) == has_late:
                    count += has_late
                    verdicts = (row for row in rows if row.mode != CHECKS_MODE)
                    writer.append([(replace(row, samples=None), b"") for row in verdicts])
    return count


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


def chosen_of(most: int | None, strata: Mapping[str, Stratum], sampled: Set[str]) -> tuple[str, ...]:
    """Returns the ids of the cases that are walked; empty for all of the part's, of which a run leaves out by
    itself what is no schema. A sample that is smaller becomes a larger one: its cases stay, and what is
    wanting is a sample of the others. Of one that is as large, or larger, it is a sample."""
    if not most:
        return ()
    kept = sampled & strata.keys()
    if len(kept) >= most:
        return stratified({case: strata[case] for case in kept}, most)
    others = {case: stratum for case, stratum in strata.items() if case not in kept}
    return tuple(sorted({*kept, *stratified(others, most - len(kept))}))


def sampled_in(earlier: Path | None) -> set[str]:
    """Returns the ids of the cases of the run that is taken over; none of one that was not walked to its end,
    whose first cases are no sample."""
    if earlier is None or not read_end(earlier):
        return set()
    return {row.case_id for row in read_rows(earlier)}


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
    shares = shares_of(out, part)
    if not shares:
        return False
    if wanting := wanting_of(shares):
        raise BadInput(f"{part}: {wanting}")
    if (shares[0] / LEFT_OUT).exists():
        shutil.copyfile(shares[0] / LEFT_OUT, out / LEFT_OUT)
    made = whole.with_name(f"{part}.new")  # a merge that is ended leaves no half of a run under the name
    shutil.rmtree(made, ignore_errors=True)
    merged = merge(made, shares, without_share(read_info(shares[0]).argv))
    if merged.missing:
        shutil.rmtree(made)
        raise BadInput(f"{part}: of its shares {merged.missing} cases are missing")
    made.rename(whole)
    return True


def wanting_of(shares: Sequence[Path]) -> str:
    """Returns what is wanting until the shares can be put together, in words; empty if nothing is."""
    if unfinished := [share.name for share in shares if not (has_begun(share) and read_end(share))]:
        return f"a share is not complete ({', '.join(unfinished)}); give its command again"
    there = {share.name.rpartition(".")[2] for share in shares}
    of = int(shares[0].name.rpartition("-")[2])
    missing = [f"{number}/{of}" for number in range(1, of + 1) if f"{number}-of-{of}" not in there]
    return f"of its shares are missing: {', '.join(missing)}" if missing else ""


def lie_where(options: argparse.Namespace, parts: Sequence[str]) -> str:
    """Returns where the share that was walked lies, of each part, if the others are still wanting; empty if
    none is."""
    lines = []
    for part in parts:
        if has_begun(options.out / "runs" / part):
            continue
        if wanting := wanting_of(shares_of(options.out, part)):
            own = folder_of(options.out, part, options.shard)
            lines.append(f"{part}: the share {options.shard} lies in {own}; {wanting}")
    if lines:
        runs = options.out / "runs"
        lines.append(f"Copy the others, with all their files, to {runs}, and give the command with --page.")
    return "\n".join(lines)


def without_share(argv: Sequence[str]) -> tuple[str, ...]:
    """Returns the command of the whole from that of a share."""
    kept = [word for word in argv if not word.startswith("--shard=")]
    if "--shard" in kept:
        place = kept.index("--shard")
        del kept[place : place + 2]
    return tuple(kept)


def changed(options: argparse.Namespace, **values: object) -> argparse.Namespace:
    """Returns a copy of the options with other values."""
    return argparse.Namespace(**{**vars(options), **values})
