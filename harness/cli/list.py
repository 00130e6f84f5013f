"""`check`, `fetch`, and the lists of what is there."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.output import emit, teller
from harness.cli.values import (
    Command,
    Verbs,
    add_command,
    one_vocabulary,
    positive_number,
)
from harness.errors import GATE_FAILED, OK
from harness.text import one_line


def add(verbs: Verbs) -> None:
    """Add the commands of this file and their options."""
    _add_check(verbs)
    _add_list(verbs)
    _add_fetch(verbs)


def _add_check(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "check",
        check,
        examples=["check xgrammar", "check my_module:MyAdapter --vocabularies bytes"],
        help="does an adapter keep the contract?",
    )
    parser.add_argument("backend", metavar="BACKEND", help="a backend, as in run --backends")
    parser.add_argument(
        "--vocabularies",
        dest="vocabulary",
        type=one_vocabulary,
        default="probe",
        metavar="NAME",
        help="the vocabulary to check it with (default: probe)",
    )
    parser.add_argument(
        "--timeout",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="seconds for each check (default: 60)",
    )


def _add_list(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "list",
        list_what,
        help="what is there: backends, suites, vocabularies or public corpora",
        examples=["list backends", "list suites", "list corpora"],
    )
    parser.add_argument(
        "what",
        choices=list(LISTS),
        help="backends with their versions, dialects and options; our suites and their sizes; built-in "
        "vocabularies, and how to name others; the public corpora that fetch brings",
    )


def _add_fetch(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "fetch",
        fetch,
        examples=["fetch maskbench", "fetch json-schema-test-suite --out corpora"],
        help="clone a public corpus at a pinned commit",
    )
    parser.add_argument("corpus", choices=["maskbench", "json-schema-test-suite"])
    parser.add_argument(
        "--out", type=Path, default=Path("corpora"), metavar="DIR", help="where to put it (default: corpora)"
    )


def check(options: argparse.Namespace) -> int:
    """The contract checklist, each check in a process that may be lost."""
    from harness.backend.contract.checkup import run_checks
    from harness.backend.environments.build import environment_of
    from harness.backend.vocabulary import prepare_vocabulary

    say = teller(options)
    backend, python = environment_of(options.backend)
    results = []
    for result in run_checks(str(backend), prepare_vocabulary(options.vocabulary), options.timeout, python):
        say(f"{result.status:8} {result.check}" + (f": {result.text}" if result.text else ""))
        results.append(result)
    failed = sum(each.status not in ("passed", "skipped") for each in results)
    emit(
        options,
        lambda: {"backend": options.backend, "keeps_the_contract": not failed, "checks": results},
        lambda: (
            f"{options.backend} {'breaks' if failed else 'keeps'} the contract"
            + (f" in {failed} check(s)" if failed else "")
        ),
    )
    return GATE_FAILED if failed else OK


def _backends(options: argparse.Namespace) -> int:
    """Every adapter that can be found."""
    from harness.backend.describe import catalogue

    found = catalogue()

    def text() -> str:
        lines = []
        for each in found:
            version = (
                f"{each['distribution']} {each['version']}"
                if each["version"]
                else each["problem"] or "no distribution"
            )
            lines.append(f"{each['name']:20} {one_line(version)}")
            if each["dialects"]:
                lines.append(f"{'':20} {', '.join(each['dialects'])}")
            lines += [f"{'':20} {option}" for option in each["options"]]
        return "\n".join(
            [*lines, "", "others: an entry point in the group harness.adapters, or module:Class"]
        )

    emit(options, lambda: found, text)
    return OK


def _suites(options: argparse.Namespace) -> int:
    """Our suites."""
    from harness.cases.suite import find_suite, read_cases, suite_names

    found = []
    for name in suite_names():
        suite = find_suite(name)
        sizes = [len(case.instances) for case in read_cases(suite)]
        size = {"cases": len(sizes), "instances": sum(sizes)}
        found.append({"name": name, "version": suite.version, **size, "description": suite.description})
    lines = [
        "{name:18} version {version}, {cases} cases, {instances} instances: {description}".format(**each)
        for each in found
    ]
    own = (
        "\n\nyour own: a folder or a file of cases, MaskBench files, JSON-Schema-Test-Suite files, or "
        "bare JSON Schemas"
    )
    emit(options, lambda: found, lambda: "\n".join(lines) + own)
    return OK


def _vocabularies(options: argparse.Namespace) -> int:
    """Built-in vocabularies, and how to name others."""
    from harness.backend.vocabulary import load_vocabulary, vocabulary_names

    found = []
    for name in vocabulary_names():
        vocabulary = load_vocabulary(name)
        special, padding = len(vocabulary.special_tokens), len(vocabulary.padding_tokens)
        found.append(
            {
                "name": name,
                "size": vocabulary.size,
                "special": special,
                "padding": padding,
                "sha256": vocabulary.sha256,
            }
        )
    lines = [
        "{name:12} {size:>7} ids, {special} special, {padding} padding, sha256 {sha256:.12}".format(**each)
        for each in found
    ]
    others = "\n\nothers: hf:NAME or hf:FOLDER (a Hugging Face tokenizer), tiktoken:NAME or tiktoken:FILE"
    emit(options, lambda: found, lambda: "\n".join(lines) + others)
    return OK


def fetch(options: argparse.Namespace) -> int:
    """A public corpus at its pinned commit."""
    from harness.cases.corpora import fetch_corpus

    folder = fetch_corpus(options.corpus, options.out)
    emit(
        options,
        lambda: {"corpus": options.corpus, "folder": folder},
        lambda: f"{options.corpus} is in {folder}",
    )
    return OK


def list_what(options: argparse.Namespace) -> int:
    """Lists what there is of one kind."""
    return LISTS[options.what](options)


def _corpora(options: argparse.Namespace) -> int:
    from harness.cases.corpora import CORPORA

    found = [{"name": name, **vars(corpus)} for name, corpus in CORPORA.items()]
    lines = ["{name:24} {url} at {commit:.12}, cases in {cases}".format(**each) for each in found]
    emit(options, lambda: found, lambda: "\n".join(lines) + "\n\ngrammarbench fetch NAME brings one here")
    return OK


LISTS: dict[str, Command] = {
    "backends": _backends,
    "suites": _suites,
    "vocabularies": _vocabularies,
    "corpora": _corpora,
}
"""What can be listed, and the function that lists it."""
