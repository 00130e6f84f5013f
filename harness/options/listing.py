"""The options of check, fetch, and of what lists what is there."""

from __future__ import annotations

from pathlib import Path

from harness.options.kinds import Verbs, positive_number


def add(verbs: Verbs) -> None:
    """Each command and its options."""
    check = verbs.add_parser("check", help="does an adapter keep the contract?")
    check.add_argument("backend", metavar="BACKEND", help="a backend, as in run --backends")
    check.add_argument("--vocabulary", default="probe", metavar="V", help="the vocabulary to check it with (default: probe)")
    check.add_argument("--timeout", type=positive_number, default=60.0, metavar="S", help="seconds for each check (default: 60)")

    verbs.add_parser("backends", help="what is there: versions, dialects, options")

    verbs.add_parser("suites", help="what is there: our suites and their sizes")

    verbs.add_parser("vocabularies", help="what is there: built-in vocabularies, and how to name others")

    fetch = verbs.add_parser("fetch", help="clone a public corpus at a pinned commit")
    fetch.add_argument("corpus", choices=["maskbench", "json-schema-test-suite"])
    fetch.add_argument("--out", type=Path, default=Path("corpora"), metavar="DIR", help="where to put it (default: corpora)")
