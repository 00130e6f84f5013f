"""`advise`: which backend for my schemas, on my engine, with my tokenizer; and what will go wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_backends, add_number, add_resume, add_run_folder
from harness.cli.output import emit, say
from harness.cli.progress import progress_line
from harness.cli.values import positive
from harness.errors import GATE_FAILED, OK
from harness.text import console

if TYPE_CHECKING:
    from harness.diagnose.advise import Advice


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "advise",
        advise,
        examples=[
            "advise my_schemas/",
            "advise tools.json --engine vllm --tokenizer path/to/tokenizer",
            "advise my_package.models:Order --backends xgrammar,llguidance --require works",
        ],
        help="which backend for my schemas, on my engine, with my tokenizer, and what will go wrong?",
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a folder or file of JSON Schemas, a tool list (OpenAI, Anthropic, Gemini, MCP), a log of "
        "requests, a pydantic model as MODULE:MODEL, or cases with regexes, grammars or structural tags",
    )
    parser.add_argument(
        "--engine",
        default="",
        metavar="ENGINE",
        help="the serving engine: vllm, sglang or llama.cpp, whose backends are compared (default: all "
        "backends that are installed)",
    )
    parser.add_argument(
        "--tokenizer",
        default="",
        metavar="NAME|PATH",
        help="the folder of a Hugging Face tokenizer or its tokenizer.json, a file that ends with .tiktoken "
        "or .gguf, or a name as in list vocabularies (default: tekken)",
    )
    add_backends(parser)
    parser.add_argument(
        "--require",
        choices=["works"],
        help="exit with 1 if a schema does not work with the backend that the answer names",
    )
    add_run_folder(parser)
    add_resume(parser)
    add_number(parser, "--jobs", positive, "workers at a time (default: one for each processor)")


def advise(options: argparse.Namespace) -> int:
    """Walks the cases, and prints the advice. Raises BadInput."""
    from harness.report.advice import advice_json, advice_text
    from harness.report.page.page import write_report

    advice = advised(options, sys.argv[1:])
    page = advice.folder / "report" / "report.html"
    try:  # the answer first: minutes of walking are not lost with a page that cannot be written
        emit(options, lambda: advice_json(advice, page), lambda: advice_text(advice, str(page), console()))
    finally:  # and the page is there though nobody reads the answer to its end
        write_report([advice.folder], page.parent)
    return GATE_FAILED if options.require and not advice.works else OK


def advised(options: argparse.Namespace, argv: Sequence[str]) -> Advice:
    """Walks the cases with its progress on stderr, and returns the advice; `argv` is the command that the run
    notes. Raises BadInput."""
    from harness.backend.registry import parse_specs
    from harness.diagnose.advise import advise as advise_on

    if options.backends is not None:
        parse_specs(options.backends)
    with progress_line(sys.stderr) as report:
        return advise_on(
            options.sources,
            say,
            report,
            engine=options.engine,
            backends=options.backends,
            tokenizer=options.tokenizer,
            out=options.out,
            resume=options.resume,
            jobs=options.jobs,
            argv=tuple(argv),
        )
