"""The suite that is made to be measured: every text is long enough to be worth a measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cases.case import Case
from harness.cases.suite import find_suite, read_cases, suite_names, walked_by_default

CASES = list(read_cases(find_suite("speed")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_a_long_valid_text_and_a_wrong_one(case: Case) -> None:
    assert [each.valid for each in case.instances] == [True, False]
    assert len(case.instances[0].content) > 12


def test_a_run_walks_it_only_when_it_is_named() -> None:
    """Its header says so, as those of the decode loop's workloads and of tags in the new form do."""
    assert set(suite_names()) - set(walked_by_default()) == {
        "speed",
        "decode",
        "lark",
        "tag_formats",
        "tools",
    }


def test_a_suite_says_in_its_header_that_it_must_be_named(tmp_path: Path) -> None:
    for header, by_default in (("", True), (', "default": true', True), (', "default": false', False)):
        (tmp_path / "mine.jsonl").write_text(f'{{"suite": "mine"{header}}}\n{{"regex": "a"}}\n')
        assert find_suite(str(tmp_path / "mine.jsonl")).by_default == by_default
