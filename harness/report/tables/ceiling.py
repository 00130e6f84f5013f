"""How much jumping over forced text can gain at most, per suite and vocabulary: the three ceilings over a
run's valid instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from harness.backend.layout import LAYOUTS
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case
from harness.checks.subject import LONGEST_WALK
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.forced_text.ceilings import Ceilings, ceilings
from harness.oracle.language import language_of, outputs_of
from harness.oracle.trie import TokenTrie, trie_of
from harness.rows.store import read_cases, read_info


def ceiling_frame(run: Path) -> pd.DataFrame:
    """Returns one line per suite and vocabulary, over the cases that have a reference automaton: how many
    outputs and steps, and the shares.

    `singleton_steps`: of the steps, those whose mask holds one token. `forced_bytes`: of the bytes, those
    without alternative. `fast_forward_tokens`: of the steps, those that jumping saves such that the ids stay
    canonical. Raises BadInput.
    """
    lines = []
    for name in read_info(run).vocabularies:
        trie = trie_of(load_vocabulary(name))
        sums: dict[str, tuple[int, Ceilings]] = {}
        for suite, _, case in read_cases(run):
            outputs, total = sums.get(suite, (0, Ceilings()))
            more, counted = _of_case(case, trie)
            sums[suite] = outputs + more, total + counted
        for suite, (outputs, total) in sums.items():
            shares = (total.singleton_share, total.forced_byte_share, total.fast_forward_share)
            lines.append(
                [
                    suite,
                    name,
                    outputs,
                    total.steps,
                    *(None if share is None else f"{share:.1%}" for share in shares),
                ]
            )
    columns = [
        "suite",
        "vocabulary",
        "outputs",
        "steps",
        "singleton_steps",
        "forced_bytes",
        "fast_forward_tokens",
    ]
    return pd.DataFrame([line for line in lines if line[2]], columns=columns, dtype=object)


def _of_case(case: Case, trie: TokenTrie) -> tuple[int, Ceilings]:
    """Returns how many valid instances of the case were walked, and their ceilings in all; nothing where
    there is no automaton, or where the vocabulary cannot spell one."""
    outputs, total = 0, Ceilings()
    try:
        for instance in case.instances:
            is_text = instance.valid and not instance.tokens
            language = _language(case, instance.content) if is_text else None
            if language is not None:
                total += ceilings(language, trie, trie.vocabulary.encode(instance.content)[:LONGEST_WALK])
                outputs += 1
    except (NoOracle, ValueError):
        pass
    return outputs, total


def _language(case: Case, content: bytes) -> Automaton[Any] | None:
    """Returns the reference automaton by which text of an output is forced: of JSON Schema and structural
    tags that of the layout, `compact` or `spaced`, in which the output is written; None if it is written in
    neither. Raises NoOracle where there is none."""
    if case.grammar.dialect not in ("json_schema", "structural_tag"):
        return language_of(case.grammar)
    for name in ("compact", "spaced"):
        language = outputs_of(case.grammar, case.draft, case.asserts_formats, layout=LAYOUTS[name])
        if language.accepts(content):
            return language
    return None
