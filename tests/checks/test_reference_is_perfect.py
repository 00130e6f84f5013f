"""The perfect backend, through the command line: on all vocabularies, over our suites, no check finds
anything. And what it says where a vocabulary cannot spell the grammar."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import Vocabulary
from harness.cli.main import main
from harness.oracle.reference import Reference
from harness.rows.row import CHECKS_MODE, verdict
from harness.rows.store import read_rows


@pytest.mark.long
def test_no_check_finds_anything_in_the_reference(tmp_path: Path) -> None:
    suites = ["regex", "ebnf", "utf8", "choice_and_tags", "tag_formats", "known_bugs"]
    vocabularies = "tekken,mistral-v3,probe"
    assert (
        main(
            [
                "run",
                *suites,
                "--backends",
                "reference",
                "--vocabularies",
                vocabularies,
                "--jobs",
                "2",
                "--out",
                str(tmp_path / "r"),
            ]
        )
        == 0
    )
    said: Counter[str] = Counter()
    for row in read_rows(tmp_path / "r"):
        assert row.findings == (), (row.case, row.vocabulary, row.findings)
        if row.mode == CHECKS_MODE:
            said.update(outcome.partition(":")[0] for outcome in row.checks.values())
        else:
            said[verdict(row.status, row.valid, row.accepted)] += 1
    assert (
        set(said) == {"passed", "skipped", "pass", "declined"}
        and said["passed"] > 2000
        and said["pass"] > 600
    )


def test_forced_text_that_the_vocabulary_cannot_spell_has_no_tokens() -> None:
    vocabulary = Vocabulary("of a and b", (b"a", b"b", b""), (2,), {2: "</s>"})
    grammar_object = Reference(vocabulary).compile(Grammar("regex", "a{2}c")).start()
    assert (grammar_object.jump_forward(), grammar_object.fast_forward_tokens()) == (b"aac", [])
