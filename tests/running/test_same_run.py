"""Why two runs are no parts of one: the true difference, and whether an option can undo it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import ARMS, info, row, write_run

from harness.errors import BadInput
from harness.rows.row import CHECKS_MODE
from harness.running.merge import _same_checks
from harness.running.same_run import first_difference, other_checks, refuse_changes, refuse_other_checks


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
        BadInput, match=rf"another GrammarBench or adapter \({told[0]}.*; now {told[1]}\); end it with"
    ) as refused:
        refuse_changes(then, now, Path("run"))
    assert "another --out: --take-over run keeps what the backends walked" in str(refused.value)
    with pytest.raises(BadInput) as alone:
        refuse_changes(info(ARMS[:1]), info([replace(ARMS[0], **changed)]), Path("run"))
    assert str(alone.value).endswith("begin anew, with another --out")


def test_of_a_suite_only_what_differs_is_told() -> None:
    about = {"version": "1", "cases": 3, "sha256": "1" * 64}
    different = first_difference(
        info(ARMS[:1], suites={"mine": about, "ours": about}),
        info(ARMS[:1], suites={"mine": about | {"sha256": "2" * 64}, "ours": about}),
    )
    assert different is not None
    assert different.was == f"suites {{'mine': {{'sha256': '{'1' * 64}'}}}}"
    assert different.is_now == f"{{'mine': {{'sha256': '{'2' * 64}'}}}}"


def test_another_version_or_option_is_named_as_before() -> None:
    then = info(ARMS[:1])
    other = first_difference(then, info([replace(ARMS[0], version="2")]))
    assert other == ("arms ['alpha 1.2.3']", "['alpha 2']", False)
    with pytest.raises(BadInput, match=r"with other options .*; repeat its command"):
        refuse_changes(then, info(ARMS[:1], timeout_s=1.0), Path("run"))
    harness = first_difference(then, info(ARMS[:1], harness="0.2.0"))
    assert harness is not None and harness.is_of_code
    assert first_difference(then, info([replace(ARMS[0], knows_one_end="two")])) is None


def run_of(folder: Path, *names: str) -> Path:
    """Returns a run of two cases without an end: the checks of the first one were lost, those of the second
    one came to their end."""
    fields: dict[str, Any] = {"mode": CHECKS_MODE, "instance": None, "valid": None, "accepted": None}
    lost = row(**fields, status="crash", checking=names[0] if names else "")
    whole = row(**fields, case_id="1" * 12, checks=dict.fromkeys(names, "passed"))
    return write_run(folder, [[(each, b"")] for each in (lost, whole)], info(ARMS[:1]), complete=False)


def test_a_run_of_other_checks_is_not_gone_on_with_and_not_merged(tmp_path: Path) -> None:
    old, new, none = (
        run_of(tmp_path / "a", "one"),
        run_of(tmp_path / "b", "one", "two"),
        run_of(tmp_path / "c"),
    )
    refuse_other_checks(old, {"one"})
    refuse_other_checks(new, {"one", "two"})
    refuse_other_checks(none, {"one"})
    assert other_checks(old, {"two"}) == "1 check only there: one; 1 check only here: two"
    assert not other_checks(old, {"one"}) and not other_checks(none, {"one"}) and not other_checks(old, ())
    with pytest.raises(
        BadInput, match=r"begun with another GrammarBench \(1 check only here: two\); end it .* --take-over "
    ):
        refuse_other_checks(old, {"one", "two"})
    _same_checks([none, old, none, old])
    with pytest.raises(
        BadInput, match=r"b does not belong to .*a \(1 check only here: two\); merge what one"
    ):
        _same_checks([old, new])
    with pytest.raises(BadInput, match=r"1 check only there: two"):
        _same_checks([none, new, old])
