"""Why two runs are no parts of one: the true difference, and whether an option can undo it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import ARMS, info

from harness.errors import BadInput
from harness.running.same_run import first_difference
from harness.running.session import _refuse_changes


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"dialects": ("regex", "ebnf")}, ("dialects of alpha 1.2.3 with json_schema", "with ebnf")),
        ({"documented": ("spelling",)}, ("documented of alpha 1.2.3 without spelling", "with spelling")),
        ({"mask_format": "bool"}, ("mask_format of alpha 1.2.3 bitmask", "bool")),
    ],
)
def test_a_field_of_the_adapter_is_named_and_is_of_code(
    changed: dict[str, Any], told: tuple[str, str]
) -> None:
    then, now = info(ARMS[:2]), info([replace(ARMS[0], **changed), ARMS[1]])
    different = first_difference(then, now)
    assert different is not None and (*different,) == (*told, True)
    with pytest.raises(
        BadInput, match=rf"another GrammarBench or adapter \({told[0]}.*; now {told[1]}\); begin anew"
    ):
        _refuse_changes(then, now, Path("run"))


def test_another_version_or_option_is_named_as_before() -> None:
    then = info(ARMS[:1])
    other = first_difference(then, info([replace(ARMS[0], version="2")]))
    assert other == ("arms ['alpha 1.2.3']", "['alpha 2']", False)
    with pytest.raises(BadInput, match=r"with other options .*; repeat its command"):
        _refuse_changes(then, info(ARMS[:1], timeout_s=1.0), Path("run"))
    harness = first_difference(then, info(ARMS[:1], harness="0.2.0"))
    assert harness is not None and harness.is_of_code
    assert first_difference(then, info([replace(ARMS[0], knows_one_end="two")])) is None
