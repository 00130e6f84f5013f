"""`list` and `fetch`: what there is to name, and the public corpora."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.command import Command, Verbs, add_command
from harness.cli.output import emit
from harness.errors import OK
from harness.text import one_line


def add(verbs: Verbs) -> None:
    """Adds the commands of this file and their options."""
    _add_list(verbs)
    _add_fetch(verbs)


def _add_list(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "list",
        list_what,
        help="list what there is: backends, suites, vocabularies or public corpora",
        examples=["list backends", "list suites", "list corpora"],
    )
    parser.add_argument(
        "what",
        choices=list(LISTS),
        help="backends: their versions, dialects and options; suites: ours and their sizes; vocabularies: "
        "the built-in ones, and how to name others; corpora: the public ones that fetch brings",
    )


def _add_fetch(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "fetch",
        fetch,
        examples=["fetch maskbench", "fetch json-schema-test-suite --out corpora"],
        help="clone a public corpus at a pinned commit",
    )
    parser.add_argument(
        "corpus", choices=["maskbench", "json-schema-test-suite"], help="the corpus, as in list corpora"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("corpora"),
        metavar="DIR",
        help="the folder to put it in (default: corpora)",
    )


def _backends(options: argparse.Namespace) -> int:
    """Lists every adapter that can be found."""
    from harness.backend.describe import catalogue

    backends = catalogue()

    def text() -> str:
        lines = []
        for backend in backends:
            version = (
                f"{backend['distribution']} {backend['version']}"
                if backend["version"]
                else backend["problem"] or "no distribution"
            )
            lines.append(f"{backend['name']:20} {one_line(version)}")
            if backend["dialects"]:
                lines.append(f"{'':20} {', '.join(backend['dialects'])}")
            lines += [f"{'':20} {option}" for option in backend["options"]]
        return "\n".join(
            [*lines, "", "others: an entry point in the group harness.adapters, or module:Class"]
        )

    emit(options, lambda: backends, text)
    return OK


def _suites(options: argparse.Namespace) -> int:
    """Lists our suites."""
    from harness.cases.suite import find_suite, read_cases, suite_names

    suites = []
    for name in suite_names():
        suite = find_suite(name)
        sizes = [len(case.instances) for case in read_cases(suite)]
        size = {"cases": len(sizes), "instances": sum(sizes)}
        suites.append({"name": name, "version": suite.version, **size, "description": suite.description})
    lines = [
        "{name:18} version {version}, {cases} cases, {instances} instances: {description}".format(**suite)
        for suite in suites
    ]
    own = (
        "\n\nyour own: a folder or a file of cases, MaskBench files, JSON-Schema-Test-Suite files, or "
        "bare JSON Schemas"
    )
    emit(options, lambda: suites, lambda: "\n".join(lines) + own)
    return OK


def _vocabularies(options: argparse.Namespace) -> int:
    """Lists the built-in vocabularies, and how to name others."""
    from harness.backend.vocabulary import load_vocabulary, vocabulary_names

    vocabularies = []
    for name in vocabulary_names():
        vocabulary = load_vocabulary(name)
        special, padding = len(vocabulary.special_tokens), len(vocabulary.padding_tokens)
        vocabularies.append(
            {
                "name": name,
                "size": vocabulary.size,
                "special": special,
                "padding": padding,
                "sha256": vocabulary.sha256,
            }
        )
    lines = [
        "{name:12} {size:>7} ids, {special} special, {padding} padding, sha256 {sha256:.12}".format(**entry)
        for entry in vocabularies
    ]
    others = "\n\nothers: hf:NAME or hf:FOLDER (a Hugging Face tokenizer), tiktoken:NAME or tiktoken:FILE"
    emit(options, lambda: vocabularies, lambda: "\n".join(lines) + others)
    return OK


def fetch(options: argparse.Namespace) -> int:
    """Brings a public corpus at its pinned commit. Raises BadInput."""
    from harness.cases.corpora import fetch_corpus

    folder = fetch_corpus(options.corpus, options.out)
    emit(
        options,
        lambda: {"corpus": options.corpus, "folder": folder},
        lambda: f"{options.corpus} is in {folder}",
    )
    return OK


def list_what(options: argparse.Namespace) -> int:
    """Lists what there is of one kind. Raises BadInput."""
    return LISTS[options.what](options)


def _corpora(options: argparse.Namespace) -> int:
    """Lists the public corpora that `fetch` brings."""
    from harness.cases.corpora import CORPORA

    corpora = [{"name": name, **vars(corpus)} for name, corpus in CORPORA.items()]
    lines = ["{name:24} {url} at {commit:.12}, cases in {cases}".format(**corpus) for corpus in corpora]
    emit(options, lambda: corpora, lambda: "\n".join(lines) + "\n\ngrammarbench fetch NAME brings one here")
    return OK


LISTS: dict[str, Command] = {
    "backends": _backends,
    "suites": _suites,
    "vocabularies": _vocabularies,
    "corpora": _corpora,
}
"""What can be listed, and the function that lists it."""
