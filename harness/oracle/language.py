"""The reference automaton of a grammar, for the dialects that have one."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.backend.adapter_parts import format_of
from harness.backend.grammar import Grammar, InvalidGrammar
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.json_schema.budget import SECONDS
from harness.oracle.judge.strict_json import exact_double

if TYPE_CHECKING:
    from harness.backend.layout import Layout
    from harness.backend.vocabulary import Vocabulary
    from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
    from harness.oracle.structural_tag import StructuralTagAutomaton
    from harness.oracle.tag_formats.automaton import FormatAutomaton

# The automata are imported where they are asked for: a walk without checks needs none.


@lru_cache(maxsize=8)
def language_of(grammar: Grammar) -> Automaton[Any]:
    """The reference automaton of a regex (Python's dialect, matching the whole output), of an EBNF grammar
    (docs/ebnf.md), of a Lark grammar whose texts may be split into lexemes in any way (docs/lark.md) or of a
    choice. Raises NoOracle for a grammar that has none, and for every JSON Schema and
    structural tag: their documents may be spelled in more ways than a backend must allow (`outputs_of`)."""
    if grammar.dialect == "regex":
        from harness.oracle.regex.automaton import regex_automaton

        return regex_automaton(grammar.text, "python")
    if grammar.dialect == "ebnf":
        from harness.oracle.ebnf.automaton import ebnf_automaton

        return ebnf_automaton(grammar.text)
    if grammar.dialect == "lark":
        from harness.oracle.lark.automaton import lark_automaton

        return lark_automaton(grammar.text)
    if grammar.dialect == "choice":
        from harness.oracle.choice import choice_automaton

        return choice_automaton(grammar.text)
    raise NoOracle(
        "documents may be spelled in more ways than a backend must allow; other checks hold their masks"
    )


@lru_cache(maxsize=32)
def documents_of(
    schema: str,
    draft: str | None = None,
    asserts_formats: bool = False,
    without: frozenset[str] = frozenset(),
    repeats_names: bool = False,
    seconds: float = SECONDS,
    layout: Layout | None = None,
) -> JsonSchemaAutomaton:
    """The automaton of the documents of a JSON Schema in every spelling, or in those of a layout. Raises
    NoOracle where there is none.

    `draft` is that of a schema without `$schema`. For counter-experiments: the keywords of `without` are left
    out wherever they stand, but for the values that `uniqueItems` follows, and `repeats_names` lets a listed
    name be written again, whatever the layout.
    `seconds` is the processor time that the automaton may take in all.
    """
    from harness.oracle.json_schema.automaton import json_schema_automaton

    return json_schema_automaton(schema, draft, asserts_formats, without, repeats_names, seconds, layout)


@lru_cache(maxsize=8)
def outputs_of(
    grammar: Grammar,
    draft: str | None = None,
    asserts_formats: bool = False,
    without: frozenset[str] = frozenset(),
    repeats_names: bool = False,
    seconds: float = SECONDS,
    layout: Layout | None = None,
    vocabulary: Vocabulary | None = None,
) -> JsonSchemaAutomaton | StructuralTagAutomaton | FormatAutomaton:
    """The automaton of the outputs of a JSON Schema or of a structural tag (docs/structural_tags.md), with
    documents in every spelling, or in those of a layout. The rest is said of `documents_of`.

    A tag that names tokens has one for a vocabulary only. Raises NoOracle where there is none, and for the
    other dialects.
    """

    def of_schema(schema: str, layout: Layout | None = layout) -> JsonSchemaAutomaton:
        return documents_of(schema, draft, asserts_formats, without, repeats_names, seconds, layout)

    if grammar.dialect == "json_schema":
        return of_schema(grammar.text)
    if grammar.dialect == "structural_tag":
        from harness.oracle.structural_tag import structural_tag_automaton
        from harness.oracle.tag_formats.load import format_automaton

        try:
            format = format_of(grammar.text)
            _refuse_rounded_numbers(grammar.text)
        except (InvalidGrammar, RecursionError) as error:
            raise NoOracle(f"no structural tag: {error}"[:400]) from error
        if format is not None:
            return format_automaton(format, of_schema, layout, seconds, vocabulary)
        return structural_tag_automaton(grammar.text, of_schema, seconds)
    raise NoOracle("neither a JSON Schema nor a structural tag")


def _refuse_rounded_numbers(tag: str) -> None:
    """Raises NoOracle where a number of a structural tag is another one as a double: its schemas are read
    with doubles, for the backends as for the automaton, and were then others than the case says."""

    try:
        json.loads(tag, parse_float=exact_double)
    except ValueError as error:
        raise NoOracle(f"a structural tag with {error}") from error
