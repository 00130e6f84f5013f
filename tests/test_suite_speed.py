"""The suite that is made to be measured: every verdict is the judge's, and every text is long enough to be worth a measurement."""

from __future__ import annotations

import pytest
from test_suite_known_bugs import allows

from harness.case import Case
from harness.judge import check_schema
from harness.suite import find_suite, read_cases, walked_by_default

CASES = list(read_cases(find_suite("speed")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_verdict_is_the_judges(case: Case) -> None:
    assert [(each.name, allows(case, each.content)) for each in case.instances] == [(each.name, each.valid) for each in case.instances]
    assert [each.valid for each in case.instances] == [True, False]
    assert len(case.instances[0].content) > 12


def test_schemas_are_right_by_their_meta_schema() -> None:
    assert not [each.name for each in CASES if each.grammar.dialect == "json_schema" and check_schema(each.grammar.text)]


def test_a_run_walks_it_only_when_it_is_named() -> None:
    assert "speed" not in walked_by_default() and "json_schema" in walked_by_default()
