"""`bisect`: since which release a case comes to another end, or takes longer."""

from __future__ import annotations

import argparse
from typing import Any

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_number, add_suites, add_timeout, add_vocabulary
from harness.cli.output import emit, say
from harness.cli.values import effort, positive
from harness.errors import OK, UNPROVEN, BadInput
from harness.text import console, one_line


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "bisect",
        bisect,
        examples=[
            'bisect xgrammar 0.1.34..0.2.8 --case "pattern space"',
            "bisect xgrammar 0.1.34..0.2.8 speed --case CASE --slower compile",
            "bisect xgrammar 0.1.18..0.1.25 --growth tags=16 --slower compile",
        ],
        help="find the first release of a backend that shows an outcome, or the first without a fault; like "
        "git bisect, it assumes that the outcome changes only once between the two versions",
    )
    parser.add_argument("backend", metavar="BACKEND", help="a backend with its options, without a version")
    parser.add_argument(
        "versions",
        metavar="GOOD..BAD",
        help="two versions, the older one first, in which the case has different outcomes",
    )
    add_suites(parser, "seven of ours; with --slower: speed", "; the case is looked for there")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--case", metavar="CASE", help="a case's name or id")
    what.add_argument(
        "--growth",
        metavar="AXIS=SIZE",
        help="with --slower: instead of a case, one size of an axis of growth (grammarbench list axes); "
        "every release between the two is measured, and each at which the cost changes is named",
    )
    add_vocabulary(parser, "the vocabulary that the case is walked with", default="probe")
    add_number(
        parser,
        "--effort",
        effort,
        "positions of the case that each check looks at; 0: no checks, all: every one",
        default=2,
    )
    add_timeout(parser, "seconds for a compile and for each walk", default=10.0)
    parser.add_argument(
        "--slower",
        metavar="METRIC",
        help="search for a slowdown instead: compile, ttfm, cold_fill, fill, accept or matcher_new; with "
        "--growth compile, first_mask, mask, mask_max or memory",
    )


def bisect(options: argparse.Namespace) -> int:
    """Finds the release and prints it; 4 if it is one of several, which could not be tried, or, with
    --growth, if the cost of the first or the last release is not known. Raises BadInput."""
    from harness.backend.vocabulary import prepare_vocabulary
    from harness.diagnose.bisect.outcome import Question
    from harness.diagnose.bisect.outcome import bisect as search

    good, dots, bad = options.versions.partition("..")
    if not (good and dots and bad):
        raise BadInput(f'"{options.versions}" cannot be read; write GOOD..BAD, for example 1.2.0..1.4.1')
    options.vocabulary = prepare_vocabulary(options.vocabulary)
    if options.growth is not None:
        answer: Any = _over_releases(options, good, bad)
    else:
        question = Question(
            options.backend,
            options.case,
            tuple(options.suites),
            options.vocabulary,
            options.effort,
            options.timeout,
        )
        if options.slower:
            from harness.diagnose.bisect.slowdown import slowdown

            answer = slowdown(question, options.slower, good, bad, say)
        else:
            answer = search(question, good, bad, say)
    emit(options, answer.to_json, lambda: console().fit(answer.text(options.backend)))
    return OK if answer.is_proven else UNPROVEN


def _over_releases(options: argparse.Namespace, good: str, bad: str) -> Any:
    """Returns what a cost at one size of an axis does over releases. Raises BadInput."""
    from harness.diagnose.bisect.growth import GrowthQuestion, growth_over_releases

    axis, _, text = options.growth.partition("=")
    try:
        size = positive(text)
    except ValueError as error:
        raise BadInput(
            f'--growth "{one_line(options.growth, 80)}" cannot be read; write AXIS=SIZE, the size a '
            f"{positive.__name__}, for example tags=16"
        ) from error
    if not options.slower or options.suites:
        raise BadInput("--growth goes with --slower METRIC and with no suite")
    question = GrowthQuestion(
        options.backend, axis, size, options.slower, options.vocabulary, options.timeout
    )
    return growth_over_releases(question, good, bad, say)
