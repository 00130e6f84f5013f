"""Commands about what there is, and whether it keeps the contract."""

from __future__ import annotations

import argparse

from harness.errors import GATE_FAILED, OK, one_line


def check(options: argparse.Namespace) -> int:
    """The contract checklist, each check in a process that may be lost."""
    from harness.checkup import run_checks
    from harness.environments import environment_of
    from harness.terminal import emit, teller
    from harness.vocabulary import prepare_vocabulary

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
        lambda: f"{options.backend} {'breaks' if failed else 'keeps'} the contract" + (f" in {failed} check(s)" if failed else ""),
    )
    return GATE_FAILED if failed else OK


def backends(options: argparse.Namespace) -> int:
    """Every adapter that can be found."""
    from harness.describe import catalogue
    from harness.terminal import emit

    found = catalogue()

    def text() -> str:
        lines = []
        for each in found:
            version = f"{each['distribution']} {each['version']}" if each["version"] else each["problem"] or "no distribution"
            lines.append(f"{each['name']:20} {one_line(version)}")
            if each["dialects"]:
                lines.append(f"{'':20} {', '.join(each['dialects'])}")
            lines += [f"{'':20} {option}" for option in each["options"]]
        return "\n".join([*lines, "", "others: an entry point in the group harness.adapters, or module:Class"])

    emit(options, lambda: found, text)
    return OK


def suites(options: argparse.Namespace) -> int:
    """Our suites."""
    from harness.suite import find_suite, read_cases, suite_names
    from harness.terminal import emit

    found = []
    for name in suite_names():
        suite = find_suite(name)
        sizes = [len(case.instances) for case in read_cases(suite)]
        size = {"cases": len(sizes), "instances": sum(sizes)}
        found.append({"name": name, "version": suite.version, **size, "description": suite.description})
    lines = ["{name:18} version {version}, {cases} cases, {instances} instances: {description}".format(**each) for each in found]
    own = "\n\nyour own: a folder or a file of cases, MaskBench files, JSON-Schema-Test-Suite files, or bare JSON Schemas"
    emit(options, lambda: found, lambda: "\n".join(lines) + own)
    return OK


def vocabularies(options: argparse.Namespace) -> int:
    """Built-in vocabularies, and how to name others."""
    from harness.terminal import emit
    from harness.vocabulary import load_vocabulary, vocabulary_names

    found = []
    for name in vocabulary_names():
        vocabulary = load_vocabulary(name)
        special, padding = len(vocabulary.special_tokens), len(vocabulary.padding_tokens)
        found.append({"name": name, "size": vocabulary.size, "special": special, "padding": padding, "sha256": vocabulary.sha256})
    lines = ["{name:12} {size:>7} ids, {special} special, {padding} padding, sha256 {sha256:.12}".format(**each) for each in found]
    others = "\n\nothers: hf:NAME or hf:FOLDER (a Hugging Face tokenizer), tiktoken:NAME or tiktoken:FILE"
    emit(options, lambda: found, lambda: "\n".join(lines) + others)
    return OK


def fetch(options: argparse.Namespace) -> int:
    """A public corpus at its pinned commit."""
    from harness.corpora import fetch_corpus
    from harness.terminal import emit

    folder = fetch_corpus(options.corpus, options.out)
    emit(options, lambda: {"corpus": options.corpus, "folder": folder}, lambda: f"{options.corpus} is in {folder}")
    return OK
