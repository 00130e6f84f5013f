"""Cases with much forced text, for the checks that jump."""

from __future__ import annotations

import json
from typing import Any

from harness.backend.grammar import Dialect, Grammar
from harness.cases.case import Case, Instance, case_id


def case(dialect: Dialect, grammar: Any, *texts: str) -> Case:
    value = Grammar(dialect, grammar if isinstance(grammar, str) else json.dumps(grammar))
    return Case(case_id(value), "", value, tuple(Instance(text, text.encode(), True) for text in texts))


BRANCHES = case("choice", ["yes, please", "yes, thanks", "yes"], "yes, please", "yes")


EMOJI = case("choice", ["x😀a", "x😁a"], "x😁a")


KANJI = case("choice", ["日本語ぁ", "日本語ん"], "日本語ん")


ONE = case("choice", ["日本語abcd"], "日本語abcd")


CASES = (BRANCHES, EMOJI, KANJI, ONE)
