"""`measure growth`: how cost grows with the size of a grammar."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_backends, add_memory, add_number, add_timeout, asked_backends
from harness.cli.output import emit, say
from harness.cli.values import names, positive
from harness.errors import INCOMPLETE, OK, BadInput
from harness.text import console

VOCABULARY = "probe"
FORKS = 3
TIMEOUT_S = 20.0
SCHEMAS = 10_000


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "measure growth",
        growth,
        examples=[
            "measure growth --out my_growth",
            "measure growth tools enum --backends xgrammar,llguidance --vocabularies tekken --out tools",
            "measure growth schemas --backends xgrammar,xgrammar:cache=true --out many",
            "measure growth --show my_growth",
        ],
        timed=True,
        help="say how compile time, masks and memory grow with tools, properties, nesting, counts and the "
        "output so far",
        notes="The axes and what the size of each counts: grammarbench list axes.",
    )
    parser.add_argument(
        "axes", nargs="*", metavar="AXIS", help="what grows (default: all; grammarbench list axes)"
    )
    add_backends(parser)
    parser.add_argument(
        "--vocabularies",
        type=names,
        default=(VOCABULARY,),
        metavar="NAME,...",
        help=f"the vocabularies (default: {VOCABULARY})",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder for growth.jsonl, the page and the charts"
    )
    where.add_argument(
        "--show",
        type=Path,
        metavar="DIR",
        help="measure nothing; conclude and draw from what is stored there",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="measure what is missing in --out, or failed in our own code; axes, vocabularies and forks may "
        "be added",
    )
    add_number(parser, "--most", positive, "the largest size (default: each axis's own, 1024 to 16384)")
    add_number(parser, "--schemas", positive, "different schemas of the axis schemas", default=SCHEMAS)
    add_number(parser, "--forks", positive, "fresh processes of every arm", default=FORKS)
    add_timeout(
        parser,
        "seconds of processor time for a compile and a walk at one size; sixty times as many of wall time",
        default=TIMEOUT_S,
    )
    add_memory(parser, 4.0)


def growth(options: argparse.Namespace) -> int:
    """Measures, stores, draws and prints how cost grows. Raises BadInput."""
    from harness.measure.growth import show
    from harness.measure.growth.axes import chosen_axes
    from harness.measure.growth.conclude import caching, conclusions, many_schemas
    from harness.measure.growth.record import read_growth
    from harness.measure.growth.session import GrowthRequest, measure_growth
    from harness.report.growth import refuse_to_replace_others, write_growth

    began = time.monotonic()
    if options.show and options.axes:
        raise BadInput("--show draws what is stored; leave the axes out")
    refuse_to_replace_others(options.out or options.show)
    if options.out:
        measure_growth(
            GrowthRequest(
                axes=tuple(chosen_axes(tuple(options.axes))),
                backends=asked_backends(options, say),
                vocabularies=options.vocabularies,
                out=options.out,
                resume=options.resume,
                most=options.most,
                forks=options.forks,
                timeout_s=options.timeout,
                memory_gb=options.memory,
                schemas=options.schemas,
                argv=tuple(sys.argv[1:]),
            ),
            say,
        )
    folder = options.out or options.show
    grown = read_growth(folder)
    page = write_growth(grown, folder)

    def text() -> str:
        on = console()
        end = f"{time.monotonic() - began:.0f} s; stored in {folder}; the page with its charts: {page}"
        return f"\n{show.text(grown, on)}\n\n{on.fit(end)}"

    emit(
        options,
        lambda: {
            "folder": folder,
            "finished": grown.finished,
            "conclusions": conclusions(grown),
            "schemas": many_schemas(grown),
            "caching": caching(grown),
        },
        text,
    )
    return OK if grown.finished else INCOMPLETE
