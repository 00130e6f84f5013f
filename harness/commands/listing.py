"""Commands about what there is, and whether it keeps the contract."""

from __future__ import annotations

import argparse

from harness.errors import GATE_FAILED, OK, one_line


def check(options: argparse.Namespace) -> int:
    """The contract checklist, each check in a process that may be lost."""
    from harness.checkup import run_checks
    from harness.environments import environment_of
    from harness.vocabulary import prepare_vocabulary

    failed = 0
    backend, python = environment_of(options.backend)
    for result in run_checks(str(backend), prepare_vocabulary(options.vocabulary), options.timeout, python):
        print(f"{result.status:8} {result.check}" + (f": {one_line(result.text)}" if result.text else ""), flush=True)
        failed += result.status not in ("passed", "skipped")
    print(f"{options.backend} {'breaks' if failed else 'keeps'} the contract" + (f" in {failed} check(s)" if failed else ""))
    return GATE_FAILED if failed else OK


def backends(options: argparse.Namespace) -> int:
    """Every adapter that can be found."""
    from harness.describe import catalogue

    for each in catalogue():
        version = f"{each['distribution']} {each['version']}" if each["version"] else each["problem"] or "no distribution"
        print(f"{each['name']:20} {one_line(version)}")
        if each["dialects"]:
            print(f"{'':20} {', '.join(each['dialects'])}")
        for option in each["options"]:
            print(f"{'':20} {option}")
    print("\nothers: an entry point in the group harness.adapters, or module:Class")
    return OK


def suites(options: argparse.Namespace) -> int:
    """Our suites."""
    from harness.suite import find_suite, read_cases, suite_names

    for name in suite_names():
        suite = find_suite(name)
        sizes = [len(case.instances) for case in read_cases(suite)]
        print(f"{name:18} version {suite.version}, {len(sizes)} cases, {sum(sizes)} instances: {suite.description}")
    print("\nyour own: a folder or a file of cases, MaskBench files, JSON-Schema-Test-Suite files, or bare JSON Schemas")
    return OK


def vocabularies(options: argparse.Namespace) -> int:
    """Built-in vocabularies, and how to name others."""
    from harness.vocabulary import load_vocabulary, vocabulary_names

    for name in vocabulary_names():
        vocabulary = load_vocabulary(name)
        specials, padding = len(vocabulary.special_tokens), len(vocabulary.padding_tokens)
        print(f"{name:12} {vocabulary.size:>7} ids, {specials} special, {padding} padding, sha256 {vocabulary.sha256[:12]}")
    print("\nothers: hf:NAME or hf:FOLDER (a Hugging Face tokenizer), tiktoken:NAME or tiktoken:FILE")
    return OK


def fetch(options: argparse.Namespace) -> int:
    """A public corpus at its pinned commit."""
    from harness.corpora import fetch_corpus

    print(f"{options.corpus} is in {fetch_corpus(options.corpus, options.out)}")
    return OK
