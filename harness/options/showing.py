"""The options of report, export, table, repro and adjudicate."""

from __future__ import annotations

from pathlib import Path

from harness.options.kinds import Verbs, effort, positive, positive_number


def add(verbs: Verbs) -> None:
    """Each command and its options."""
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
    table.add_argument("--passes", action="store_true", help="what each strategy wrote, with how many passes (of a run with --decode)")
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
