"""The options of run, merge and expect."""

from __future__ import annotations

from pathlib import Path

from harness.options.kinds import Verbs, effort, positive, positive_number, shard


def add(verbs: Verbs) -> None:
    """Each command and its options."""
    run = verbs.add_parser("run", help="walk suites through backends and store what was seen")
    run.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's name, a folder or a file (default: all our suites)")
    run.add_argument("--backends", required=True, metavar="A,B==1.2,C:OPTION=VALUE", help="which backends, at which versions and options")
    run.add_argument(
        "--vocabularies", metavar="NAME,...", help="built-in names, hf:NAME_OR_FOLDER, tiktoken:NAME_OR_FILE (default: the profile's)"
    )
    run.add_argument(
        "--profile",
        choices=["quick", "default", "full", "decode"],
        default="default",
        help="how much, for how long (default: default); decode: switch one mechanism of decoding at a time, over workloads for suites",
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")
    run.add_argument("--resume", action="store_true", help="go on with the run in --out that was interrupted")
    run.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="workers at a time (default: 1, more disturb each other's timings; on Ray all processors)",
    )
    run.add_argument(
        "--executor",
        metavar="ray[:ADDRESS]",
        help="walk on Ray: one of our own on this machine, ray:auto, or ray:HOST:PORT (default: here)",
    )
    run.add_argument("--shards", type=positive, metavar="N", help="on Ray: cut the cases of each backend into N tasks (default: as is fit)")
    run.add_argument(
        "--timeout", type=positive_number, metavar="S", help="seconds for a compile and for each walk (default: the profile's)"
    )
    run.add_argument("--memory", type=positive_number, default=4.0, metavar="GB", help="resident memory of a child (default: 4)")

    run.add_argument(
        "--effort",
        type=effort,
        metavar="N",
        help="places of a case that each check looks at; 0: no checks, all: every one (default: the profile's)",
    )

    run.add_argument(
        "--decode",
        action="store_true",
        help="decode the valid instances too, by each strategy, without a model: what is written, and with how many passes",
    )

    run.add_argument(
        "--spellings",
        action="store_true",
        help="walk other spellings of each valid JSON text instead: whitespace, order, escapes, numbers",
    )

    run.add_argument("--shard", type=shard, metavar="I/N", help="walk the I-th of N equal shares of the cases; merge puts them together")

    run.add_argument("--expect", type=Path, metavar="FILE", help="compare the outcomes with this record; 1 if they differ")
    run.add_argument("--record", type=Path, metavar="FILE", help="write the outcomes to this record")

    merge = verbs.add_parser("merge", help="put the shards of a run together, or other runs of one plan")
    merge.add_argument("out", type=Path, metavar="OUT", help="the folder of the whole")
    merge.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")

    expect = verbs.add_parser("expect", help="compare a stored run with a record of outcomes, or write the record")
    expect.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    expect.add_argument("file", type=Path, metavar="FILE", help="the record, e.g. results/baseline/default.json")
    expect.add_argument("--record", action="store_true", help="write the record instead")
