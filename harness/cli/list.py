"""`list`: what there is to name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from harness.cli.command import Command, Verbs, add_command
from harness.cli.output import emit
from harness.errors import OK
from harness.text import console, counted, one_line


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "list",
        list_what,
        help="list what there is: backends, suites, vocabularies, public corpora or axes of growth",
        examples=["list backends", "list suites", "list corpora"],
    )
    parser.add_argument(
        "what",
        choices=list(LISTS),
        help="backends: their versions, dialects and options; suites: ours and their sizes; vocabularies: "
        "the built-in ones, those that fetch brings, and how to name others; corpora: the public ones that "
        "fetch brings; axes: what `measure growth` lets grow",
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
            if backend["knows_one_end"]:
                lines.append(f"{'':20} knows one end-of-sequence: {backend['knows_one_end']}")
            lines += [f"{'':20} {option}" for option in backend["options"]]
        return "\n".join(
            [*lines, "", "others: an entry point in the group harness.adapters, or module:Class"]
        )

    emit(options, lambda: backends, text)
    return OK


def _suites(options: argparse.Namespace) -> int:
    """Lists our suites."""
    from harness.cases.suite import find_suite, read_cases, suite_names

    suites: list[dict[str, Any]] = []
    for name in suite_names():
        suite = find_suite(name)
        sizes = [len(case.instances) for case in read_cases(suite)]
        size = {"cases": len(sizes), "instances": sum(sizes)}
        about = {"version": suite.version, "by_default": suite.by_default, **size}
        suites.append({"name": name, **about, "description": suite.description})
    lines = [
        f"{suite['name']:18} version {suite['version']}, {counted(suite['cases'], 'case')}, "
        f"{counted(suite['instances'], 'instance')}: {suite['description']}"
        f"{'' if suite['by_default'] else ' (by name only)'}"
        for suite in suites
    ]
    own = (
        "\n\nyour own: a folder or a file of cases, MaskBench files, JSON-Schema-Test-Suite files, or "
        "bare JSON Schemas"
    )
    emit(options, lambda: suites, lambda: "\n".join(lines) + own)
    return OK


def _vocabularies(options: argparse.Namespace) -> int:
    """Lists the built-in vocabularies and those that can be fetched, and says how to name others."""
    built_in, families = _built_in(), _families()

    def text() -> str:
        lines = ["built in:"]
        lines += [
            "{name:12} {size:>7,} ids, {special} special, {padding} padding, sha256 {sha256:.12}".format(
                **one
            )
            for one in built_in
        ]
        for there, title in (
            (True, "fetched:"),
            (False, "to be fetched with grammarbench fetch vocabularies NAME:"),
        ):
            names = [family["name"] for family in families if family["fetched"] == there]
            lines += ["", title, *_family_lines(names)] if names else []
        others = (
            "hf:NAME, or a folder (a Hugging Face tokenizer); tiktoken:NAME, or a file of ranks; a GGUF file"
        )
        return "\n".join([*lines, "", f"others: {others}"])

    emit(options, lambda: built_in + families, text)
    return OK


def _built_in() -> list[dict[str, Any]]:
    """Returns an entry for each built-in vocabulary."""
    from harness.backend.vocabulary import load_vocabulary, vocabulary_names

    return [
        {
            "name": name,
            "size": vocabulary.size,
            "special": len(vocabulary.special_tokens),
            "padding": len(vocabulary.padding_tokens),
            "eos": {str(end): vocabulary.special_tokens[end] for end in vocabulary.eos_tokens},
            "sha256": vocabulary.sha256,
        }
        for name, vocabulary in ((name, load_vocabulary(name)) for name in vocabulary_names())
    ]


def _families() -> list[dict[str, Any]]:
    """Returns an entry for each vocabulary that can be fetched."""
    from harness.backend.vocabulary.families import FAMILIES
    from harness.backend.vocabulary.fetched import folder_of, is_fetched

    families = []
    for family in FAMILIES.values():
        is_here = is_fetched(family)
        families.append(
            {
                "name": family.name,
                "fetched": is_here,
                "models": family.models,
                "kind": family.kind,
                "size": family.width,
                "special": family.special,
                "eos": {str(token): name for token, name in family.eos.items()},
                "source": f"{family.package}: {family.member}",
                "licence": family.licence,
                "sha256": family.sha256,
                "folder": folder_of(family) if is_here else None,
            }
        )
    return families


def _family_lines(names: Sequence[str]) -> list[str]:
    """Returns the lines of text about the vocabularies of these names that can be fetched."""
    from harness.backend.vocabulary.families import FAMILIES

    lines = []
    for family in map(FAMILIES.__getitem__, names):
        ends = ", ".join(f"{name} ({token})" for token, name in family.eos.items())
        lines += [
            f"{family.name:12} {family.width:>7,} ids, {family.special:,} special, {family.kind}: "
            f"{family.models}",
            f"{'':12} ends with {ends}",
            f"{'':12} from {family.package}, {family.licence}",
        ]
    return lines


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


def _axes(options: argparse.Namespace) -> int:
    """Lists the axes of `measure growth`."""
    from harness.measure.growth.axes import SCHEMAS, axes

    entries = [
        {"name": axis.name, "dialect": axis.dialect, "largest": axis.largest, "about": axis.about}
        for axis in axes().values()
    ]
    many = "Different schemas, compiled one after another: how much memory the process keeps."
    entries.append({"name": SCHEMAS, "dialect": "json_schema", "largest": None, "about": many})
    lines = [
        f"{entry['name']:14} {entry['about']} ({entry['dialect']}"
        + (f", up to {entry['largest']})" if entry["largest"] else ")")
        for entry in entries
    ]
    emit(options, lambda: entries, lambda: console().fit("\n".join(lines)))
    return OK


LISTS: dict[str, Command] = {
    "backends": _backends,
    "suites": _suites,
    "vocabularies": _vocabularies,
    "corpora": _corpora,
    "axes": _axes,
}
"""What can be listed, and the function that lists it."""
