"""The command line. Each command imports what it needs when it runs: `--help` must be quick, and the coordinator light."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import commands
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput, one_line

if TYPE_CHECKING:
    from harness.shard import Shard

DESCRIPTION = "Is a grammar backend right, fast and unchanged? Conformance and benchmarks for constrained LLM decoding."

TIMED = ("measure", "decode", "doctor", "kernels")
ELSEWHERE = ("--executor", "--shards", "--shard")
"""What measures times, and the options of a run that it must refuse: they would spread it over several machines."""


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    top = argparse.ArgumentParser(prog="grammarbench", description=DESCRIPTION)
    top.add_argument("--version", action="store_true", help="print the version")
    verbs = top.add_subparsers(dest="command", metavar="COMMAND")

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

    report = verbs.add_parser("report", help="write one HTML page of one or more runs, or a site of a history")
    report.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a run's folder")
    report.add_argument(
        "--history", type=Path, metavar="DIR", help="a history (grammarbench history) instead: trends, releases, badges, a feed"
    )
    report.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write report.html (default: RUN/report), or the site (default: DIR/dashboard)"
    )
    report.add_argument("--trend", type=Path, metavar="DIR", help="a history, whose last runs stand beside what was measured as sparklines")
    report.add_argument("--split", action="store_true", help="script, style and data beside the page, for hosts that forbid inline ones")

    export = verbs.add_parser("export", help="the result of a run in the forms that CI tools read, and whether a gate holds")
    export.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    export.add_argument("base", type=Path, nargs="?", metavar="BASE", help="another run's folder to hold it against")
    export.add_argument("--format", action="append", metavar="FORM", help="one of them, or all; may be repeated (default: all)")
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    export.add_argument("--expect", type=Path, metavar="FILE", help="a record of outcomes to hold it against")
    export.add_argument(
        "--gate", action="store_true", help="exit code 1 if it is worse, 3 if the run is incomplete, 4 if nothing can be said"
    )
    export.add_argument("--time", action="store_true", help="the gate fails on a proven slowdown too")

    table = verbs.add_parser("table", help="one line per instance, or the table per backend")
    table.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    table.add_argument(
        "--format", choices=["csv", "json", "markdown"], help="one line per instance in this form (default: the table per backend)"
    )

    table.add_argument("--summary", action="store_true", help="what a run ends with: the figures in short, and what to do next")
    table.add_argument("--times", action="store_true", help="every figure of a measurement, with percentiles")
    table.add_argument("--ceilings", action="store_true", help="what jumping over forced text could save at most, per suite")
    table.add_argument("--spellings", action="store_true", help="which spellings each backend accepts (of a run with --spellings)")
    table.add_argument("--faults", action="store_true", help="the faults by category and cause, in how many cases of each backend")
    table.add_argument(
        "--keywords", action="store_true", help="what becomes of each JSON Schema keyword and pair (of a run of the suite keywords)"
    )

    repro = verbs.add_parser("repro", help="show one failing case step by step, and a script that shows it without us")
    repro.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    repro.add_argument("case", metavar="CASE", help="a case's name or id")
    repro.add_argument("--backend", required=True, metavar="B", help="a backend of the run, with its options if it has several")
    repro.add_argument("--vocabulary", metavar="V", help="which vocabulary of the run (default: the first one that fails)")
    repro.add_argument("--instance", type=int, metavar="N", help="which instance, from 0 (default: the first one that fails)")

    repro.add_argument("--check", metavar="CHECK", help="the failing check of the case to show, by its name in the report")
    repro.add_argument("--shrink", action="store_true", help="make grammar and instance small first (up to a minute or two)")
    repro.add_argument("--script", type=Path, metavar="FILE", help="write the stand-alone script to this file too")

    measure = verbs.add_parser("measure", help="times that survive a noisy machine: arms interleaved, in several processes, with intervals")
    measure.add_argument("suites", nargs="*", metavar="SUITE", help="as in run (default: the profile's)")
    measure.add_argument("--backends", required=True, metavar="A,B==1.2,...", help="as in run; two versions of one backend are two arms")
    measure.add_argument("--reference", metavar="ARM", help="the arm that all others are held against (default: the first)")
    measure.add_argument("--vocabulary", default="tekken", metavar="V", help="as in run, one (default: tekken)")
    measure.add_argument("--profile", choices=["quick", "default", "full"], default="quick", help="how much (default: quick)")
    measure.add_argument(
        "--forks",
        type=positive,
        metavar="N",
        help="fresh processes of every arm, exactly so many (default: the profile's, and more while undecided)",
    )
    measure.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")
    measure.add_argument("--timeout", type=positive_number, metavar="S", help="seconds for a compile and a walk (default: the profile's)")
    measure.add_argument("--memory", type=positive_number, default=4.0, metavar="GB", help="resident memory of a child (default: 4)")
    measure.add_argument("--means", action="store_true", help="show what a ratio of means would say, too")

    decoding(verbs.add_parser("decode", help="TTFT, TPOT and throughput with a real model loop, beside the same loop without a grammar"))
    living(verbs.add_parser("live", help="cases against a live OpenAI-compatible server: every output judged, TTFT, TPOT, goodput"))

    doctor = verbs.add_parser("doctor", help="what can be concluded from times on this machine: its settings and its noise")
    doctor.add_argument("--backend", metavar="B", help="the backend that is measured against itself (default: the first that is installed)")
    doctor.add_argument("--vocabulary", default="tekken", metavar="V", help="as in run, one (default: tekken)")
    doctor.add_argument("--forks", type=positive, metavar="N", help="fresh processes of both arms (default: 5 to 8)")
    doctor.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")

    compare = verbs.add_parser("compare", help="what came out differently and what takes another time: two arms of a run, or two runs")
    compare.add_argument("base", type=Path, metavar="BASE", help="a run's folder")
    compare.add_argument("head", type=Path, nargs="?", metavar="HEAD", help="another one (default: the versions within BASE)")
    compare.add_argument("--gate", action="store_true", help="exit code 1 if an outcome or a count is worse, 4 if nothing can be said")
    compare.add_argument("--time", action="store_true", help="the gate fails on a proven slowdown too, and with 4 where none can be proven")
    compare.add_argument("--means", action="store_true", help="show what a ratio of means would say, too")
    compare.add_argument("--html", type=Path, metavar="FILE", help="write a page with the forest plot")

    history = verbs.add_parser("history", help="measurements over time, and the alert rule")
    history.add_argument("history", type=Path, metavar="DIR", help="the folder that holds them")
    history.add_argument("--add", type=Path, metavar="RUN", help="append a run: its measurement, and how many cases of each kind passed")
    history.add_argument("--gate", action="store_true", help="exit code 1 if a series is in alert")

    adjudicate = verbs.add_parser(
        "adjudicate", help="where backends disagree on a JSON Schema: whose fault, and the document that shows it"
    )
    adjudicate.add_argument("run", type=Path, metavar="RUN", help="a run's folder; the findings go to its witnesses.jsonl")
    adjudicate.add_argument(
        "--effort", type=effort, default=8, metavar="N", help="places of a text at which masks are compared, or all (default: 8)"
    )
    adjudicate.add_argument(
        "--tries", type=positive, default=3, metavar="N", help="documents finished from one disputed token (default: 3)"
    )
    adjudicate.add_argument("--timeout", type=positive_number, default=10.0, metavar="S", help="seconds for each answer (default: 10)")
    adjudicate.add_argument("--formats", action="store_true", help="formats are assertions (default: annotations, as JSON Schema has it)")

    check = verbs.add_parser("check", help="does an adapter keep the contract?")
    check.add_argument("backend", metavar="BACKEND", help="a backend, as in run --backends")
    check.add_argument("--vocabulary", default="probe", metavar="V", help="the vocabulary to check it with (default: probe)")
    check.add_argument("--timeout", type=positive_number, default=60.0, metavar="S", help="seconds for each check (default: 60)")

    bisect = verbs.add_parser("bisect", help="which release of a backend was the first to show an outcome?")
    bisect.add_argument("backend", metavar="BACKEND", help="a backend with its options, without a version")
    bisect.add_argument("versions", metavar="GOOD..BAD", help="the last version known not to show it, and one that does")
    bisect.add_argument("--case", required=True, metavar="CASE", help="a case's name or id")
    bisect.add_argument("--suite", action="append", metavar="SUITE", help="where the case is; may be repeated (default: all our suites)")
    bisect.add_argument("--vocabulary", default="probe", metavar="V", help="the vocabulary to walk it with (default: probe)")
    bisect.add_argument(
        "--effort", type=effort, default=2, metavar="N", help="places of the case that each check looks at; 0: no checks (default: 2)"
    )
    bisect.add_argument(
        "--timeout", type=positive_number, default=10.0, metavar="S", help="seconds for a compile and for each walk (default: 10)"
    )
    bisect.add_argument(
        "--slower", metavar="METRIC", help="search for a slowdown instead: compile, ttfm, cold_fill, fill, accept or matcher_new"
    )

    kernels = verbs.add_parser("kernels", help="apply masks to logits with each backend's own kernels: right or wrong, then how fast")
    kernels.add_argument("--backends", metavar="A,B", help="whose kernels (default: those of all that are installed)")
    kernels.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the logits are (default: cpu)")
    kernels.add_argument("--quick", action="store_true", help="fewer sizes and repetitions, one thread")
    where = kernels.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="the folder in which kernels.jsonl is written")
    where.add_argument("--show", type=Path, metavar="DIR", help="measure nothing; print what is stored in this folder")
    kernels.add_argument("--format", choices=["csv", "json", "markdown"], help="print it in this form (default: tables)")

    verbs.add_parser("backends", help="what is there: versions, dialects, options")
    verbs.add_parser("suites", help="what is there: our suites and their sizes")
    verbs.add_parser("vocabularies", help="what is there: built-in vocabularies, and how to name others")

    fetch = verbs.add_parser("fetch", help="clone a public corpus at a pinned commit")
    fetch.add_argument("corpus", choices=["maskbench", "json-schema-test-suite"])
    fetch.add_argument("--out", type=Path, default=Path("corpora"), metavar="DIR", help="where to put it (default: corpora)")

    for name in TIMED:
        for option in ELSEWHERE:
            verbs.choices[name].add_argument(option, dest="elsewhere", help=argparse.SUPPRESS)
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout; progress and notes go to stderr")
    return top


def decoding(decode: argparse.ArgumentParser) -> None:
    """The options of `decode`."""
    switch = ["on", "off"]
    decode.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help="a workload's name, a suite, a folder or a file (default: the profile's)"
    )
    decode.add_argument("--backends", required=True, metavar="A,B==1.2,C:OPTION=VALUE", help="as in run")
    decode.add_argument("--profile", choices=["quick", "default", "full"], default="quick", help="how much (default: quick)")
    decode.add_argument("--out", type=Path, metavar="DIR", help="the record's folder (default: results/runs/<run>)")
    decode.add_argument(
        "--timeout", type=positive_number, default=120.0, metavar="S", help="seconds for one run of a setting (default: 120)"
    )
    decode.add_argument("--memory", type=positive_number, default=16.0, metavar="GB", help="resident memory of a child (default: 16)")
    decode.add_argument("--forks", type=positive, default=3, metavar="N", help="fresh processes of every arm (default: 3)")
    decode.add_argument("--rounds", type=positive, metavar="R", help="of each fork, after a cold one (default: the profile's)")

    model = decode.add_argument_group("the model")
    model.add_argument(
        "--model",
        default="tiny",
        metavar="M",
        help="a shape with random weights (tiny, 0.5b, 1b, 8b), a folder, or a hub name (default: tiny)",
    )
    model.add_argument("--vocabulary", metavar="V", help="as in run, one (default: tekken for a shape, a real model's own)")
    model.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto: a GPU where there is one (default)")
    model.add_argument(
        "--dtype", choices=["float32", "bfloat16", "float16"], help="of the weights (default: float32 on a CPU, else bfloat16)"
    )

    load = decode.add_argument_group("the load")
    load.add_argument("--strategies", metavar="A,B", help="of stepwise, jump_forward, interleaved, speculative (default: the profile's)")
    load.add_argument("--batch", metavar="N,N", help="rows of the batch (default: the profile's)")
    load.add_argument("--texts", type=positive, metavar="N", help="requests of a run; never fewer than rows (default: the profile's)")
    load.add_argument("--prompt-tokens", type=positive, metavar="N", help="of each request (default: the profile's)")
    load.add_argument("--limit", type=positive, metavar="N", help="output tokens at most (default: as many as the text to replay has)")
    load.add_argument(
        "--mode",
        choices=["replay", "greedy", "seeded"],
        default="replay",
        help="write the workload's text, or what the model says (default: replay)",
    )
    load.add_argument("--objectives", metavar="O", help="of goodput, milliseconds: 'ttft:500 tpot:50 e2e:2000' (default: ttft:500 tpot:50)")
    load.add_argument("--rate", type=positive_number, metavar="R", help="requests a second, as an open loop (default: all at once)")
    load.add_argument("--arrivals", choices=["poisson", "gamma", "fixed"], default="poisson", help="with --rate (default: poisson)")

    masks = decode.add_argument_group("masks")
    masks.add_argument("--overlap", choices=switch, default="on", help="fill them while the model computes (default: on)")
    masks.add_argument("--fill-threads", type=positive, default=1, metavar="N", help="that fill (default: 1)")
    masks.add_argument(
        "--batch-fill", choices=switch, default="off", help="one call for all rows, with the backend's threads (default: off)"
    )
    masks.add_argument(
        "--kernel", default="", metavar="K", help="what applies them: a kernel of the backend, or own: its first (default: torch)"
    )

    compiling = decode.add_argument_group("compiling")
    compiling.add_argument("--cache", choices=switch, default="on", help="keep compiled grammars (default: on)")
    compiling.add_argument(
        "--compile-workers", type=whole, default=1, metavar="N", help="threads; 0: the loop compiles and waits (default: 1)"
    )
    compiling.add_argument(
        "--compile-timeout", type=positive_number, default=60.0, metavar="S", help="seconds until a compile is given up (default: 60)"
    )
    compiling.add_argument("--poll-interval", type=not_negative, default=0.0, metavar="S", help="how long a poll waits (default: 0)")
    compiling.add_argument("--most-polls", type=positive, metavar="N", help="until a compile is given up (default: no limit)")
    compiling.add_argument(
        "--fallback",
        choices=["unconstrained", "abort"],
        default="unconstrained",
        help="of a request whose compile is given up (default: unconstrained)",
    )

    drafts = decode.add_argument_group("drafts")
    drafts.add_argument(
        "--draft-tokens", type=positive, default=4, metavar="N", help="proposed at once by the strategy speculative (default: 4)"
    )


def living(live: argparse.ArgumentParser) -> None:
    """The options of `live`."""
    live.add_argument("url", nargs="?", metavar="URL", help="http(s)://HOST:PORT of the server")
    live.add_argument("suites", nargs="*", metavar="SUITE", help="as in run (default: speed)")
    live.add_argument("--show", type=Path, metavar="RUN", help="ask nothing; print what is stored in this folder")
    live.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")
    live.add_argument(
        "--gate", action="store_true", help="exit code 1 if an output is invalid or a request failed, 4 if nothing could be judged"
    )

    server = live.add_argument_group("the server")
    server.add_argument(
        "--dialect",
        metavar="D",
        help="openai, vllm, vllm-guided, sglang, llama.cpp or llama-cpp-python (default: what the server says it is)",
    )
    server.add_argument("--model", metavar="M", help="the model's name (default: the first that the server lists)")
    server.add_argument("--endpoint", choices=["chat", "completions"], default="chat", help="which of the interfaces (default: chat)")
    server.add_argument(
        "--key-variable", metavar="NAME", help="the environment variable that holds the API key (default: GRAMMARBENCH_API_KEY)"
    )

    load = live.add_argument_group("the load, one after the other where several are named (default: --concurrency 1)")
    load.add_argument("--requests", type=positive, metavar="N", help="of each load (default: 100, or a trace's length)")
    load.add_argument("--rate", metavar="R,R", help="requests a second, whether or not the server is ready for them (an open loop)")
    load.add_argument("--arrivals", choices=["poisson", "gamma", "fixed"], default="poisson", help="with --rate (default: poisson)")
    load.add_argument("--burstiness", type=positive_number, metavar="B", help="of gamma: below 1 bursts, above it evener (default: 1)")
    load.add_argument("--trace", type=Path, metavar="FILE", help="arrivals that were recorded: seconds after the start, one a line")
    load.add_argument("--concurrency", metavar="N,N", help="so many requests always under way (a closed loop)")
    load.add_argument(
        "--grammars",
        choices=["warm", "cold", "mixed"],
        default="warm",
        help="warm: each was sent once before; cold: each request's is made unique, where that is possible (default: warm)",
    )
    load.add_argument(
        "--pairs", choices=["on", "off"], default="on", help="send every request without a grammar too, in a load of its own (default: on)"
    )

    asked = live.add_argument_group("what is asked")
    asked.add_argument("--cases", type=positive, metavar="N", help="of each suite at most (default: all)")
    asked.add_argument("--limit", type=positive, default=256, metavar="N", help="output tokens at most (default: 256)")
    asked.add_argument("--temperature", type=not_negative, default=0.0, metavar="T", help="of sampling (default: 0)")
    asked.add_argument("--prompt", metavar="TEXT", help="with {grammar}, {kind} and {name} for the case's (default: shows the grammar)")
    asked.add_argument("--seed", type=whole, default=0, metavar="N", help="of arrivals, order and sampling (default: 0)")
    asked.add_argument(
        "--objectives", metavar="O", help="of goodput, milliseconds: 'ttft:500 tpot:50 e2e:2000' (default: ttft:500 tpot:50)"
    )

    deadlines = live.add_argument_group("deadlines, seconds")
    deadlines.add_argument("--connect-timeout", type=positive_number, default=5.0, metavar="S", help="of a connection (default: 5)")
    deadlines.add_argument("--first-timeout", type=positive_number, default=60.0, metavar="S", help="until the first text (default: 60)")
    deadlines.add_argument("--stall-timeout", type=positive_number, default=30.0, metavar="S", help="between messages (default: 30)")
    deadlines.add_argument("--timeout", type=positive_number, default=120.0, metavar="S", help="of a whole request (default: 120)")


def whole(text: str) -> int:
    """A whole number from 0."""
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def not_negative(text: str) -> float:
    """A number from 0."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def positive(text: str) -> int:
    """A whole number above 0."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def effort(text: str) -> int:
    """A whole number from 0, or `all`."""
    value = -1 if text == "all" else int(text)
    if value < 0 and text != "all":
        raise ValueError
    return value


def shard(text: str) -> Shard:
    """Number and count, as `2/4`."""
    from harness.shard import parse

    return parse(text)


def positive_number(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


shard.__name__ = "share, as 2/4"
effort.__name__ = "whole number from 0, or all"
positive.__name__ = "whole number above 0"
whole.__name__ = "whole number from 0"
not_negative.__name__ = "number from 0"
positive_number.__name__ = "number above 0"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code: 0 ok, 1 a gate failed, 2 bad input, 3 incomplete run, 4 unproven."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files and cases need not be what the terminal can show
            stream.reconfigure(errors="backslashreplace")
    top = parser()
    options = top.parse_args(arguments)
    if options.version:
        from harness import __version__

        print(f"grammarbench {__version__}")
        return OK
    if options.command is None:
        top.print_help()
        return BAD_INPUT
    try:
        if getattr(options, "elsewhere", None) is not None:
            raise BadInput(f"{options.command} measures times, on one machine and in one go: leave {', '.join(ELSEWHERE)} out")
        return commands.COMMANDS[options.command](options)
    except BadInput as error:
        print(f"grammarbench: {one_line(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output (head, say) has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        print(f"grammarbench: {one_line(str(error))}; what was measured is stored", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("grammarbench: interrupted; what was measured is stored", file=sys.stderr)
        return INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
