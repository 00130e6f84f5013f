"""The perfect backend, through the command line: on all vocabularies, over our suites, no check finds
anything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.cli.main import main
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
