"""A failure is walked again by the version that the run saw, within the run's limits, and nothing of our own
is told as the backend's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from failing import CASES, OUTLINES, find_failure, row
from miniatures.wrong_tokens import RefusesTheTokenName

from harness.backend.arm import Arm, pinned
from harness.backend.grammar import Grammar
from harness.backend.registry import library_of
from harness.cases.case import Case, Instance, case_id
from harness.cli.main import main
from harness.diagnose.repro import Failure, replayed, show, shrink_failure, to_json
from harness.diagnose.repro.standalone import Shown, stand_alone
from harness.diagnose.shrink import Outcome
from harness.errors import BadInput

pytestmark = pytest.mark.usefixtures("importable_miniatures")


def walked_by(
    backend: str, pattern: str, content: bytes, vocabulary: str = "bytes", options: str = ""
) -> Failure:
    """A walk of that backend, which the run saw pass within a second and half a gigabyte."""
    grammar = Grammar("regex", pattern)
    case = Case(case_id(grammar), "one", grammar, (Instance("one", content, True),))
    arm = Arm(f"miniatures{backend}", "", options, "", ("regex",), "bitmask")
    one = replace(row(0, arm, 0, vocabulary=vocabulary, options=options), case_id=case.id)
    return Failure(one, case, case.instances[0], None, 1.0, 500_000_000)


def an_old_run(folder: Path) -> Path:
    """A run of a version that is not installed."""
    arm = replace(OUTLINES, version="0.0.1")
    refused = row(0, arm, 1, accepted=False, stopped_at=9, tokens=10)
    return synthetic.write_run(folder, [[(refused, b"")]], synthetic.info((arm,)), [("mine", CASES[0])])


def test_another_version_than_the_runs_is_refused(tmp_path: Path) -> None:
    failure = find_failure(an_old_run(tmp_path), "star", "outlines-core", None, None)
    for asked in (replayed, shrink_failure):
        with pytest.raises(BadInput, match=r"is installed; pip install outlines-core==0\.0\.1"):
            asked(failure)


def test_the_command_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["repro", str(an_old_run(tmp_path)), "star", "--backends", "outlines-core"]
    assert main(words) == main([*words, "--shrink"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 2
    assert told.err.count("pip install outlines-core==0.0.1") == 2


def test_an_arm_is_pinned_to_its_version_if_it_has_one() -> None:
    assert pinned(OUTLINES, OUTLINES.version) == "outlines-core==0.2.14"
    assert pinned(replace(OUTLINES, options="a=1:b=2"), "3.1") == "outlines-core==3.1:a=1:b=2"
    assert pinned(Arm("mine:Own", "", "a=1", "", (), "bitmask"), "") == "mine:Own:a=1"


def test_memory_is_bounded_as_in_the_run() -> None:
    walk = walked_by(":EatsMemory", "boom", b"boom", options="gigabytes=1")
    shown = to_json(replayed(replace(walk, timeout_s=60.0)))  # a busy machine takes longer than a second
    assert shown["lost"] == "killed at 0.5 GB of resident memory"


def test_each_answer_has_the_runs_time_and_not_the_whole_walk() -> None:
    """Compiling takes 0.6 s and eleven masks as much, where an answer may take a second."""
    options = "compile_ms=60:fill_ms=55"
    again = replayed(walked_by(".slow:Slow", "abcdefghij", b"abcdefghij", options=options))
    shown = to_json(again)
    assert shown["lost"] is None and len(shown["walked"]) == 11
    assert any(message.get("few_suffice") for message in again.messages)


def test_a_walk_whose_calls_take_too_long_together_ends_as_in_the_run() -> None:
    """No mask takes half a second, and all together may take one and a half."""
    walk = walked_by(".slow:Slow", "a*", b"a" * 30, options="fill_ms=200")
    again = replayed(replace(walk, timeout_s=0.5))
    shown = to_json(again)
    assert shown["lost"].startswith("its calls had taken 1.") and shown["lost"].endswith(" of 30")
    assert len(shown["walked"]) <= 8 and not any("few_suffice" in message for message in again.messages)


def test_a_loss_with_the_few_tokens_of_a_script_is_none_of_the_failure() -> None:
    again = replayed(walked_by(".slow:HangsOnFewTokens", "ab", b"ab", "probe"))
    shown = to_json(again)
    assert shown["lost"] is None and shown["walked"][-1]["accepted"]
    assert not any("few_suffice" in message for message in again.messages)


def test_a_backend_without_a_version_is_named_without_a_gap() -> None:
    again = replayed(walked_by(".wrong_tokens:RefusesTheTokenName", "ab", b"ab"))
    assert "backend   miniatures.wrong_tokens:RefusesTheTokenName, vocabulary bytes" in show(again)
    assert again.script.startswith("# regex 2")


def test_a_script_names_a_library_as_far_as_it_is_known() -> None:
    class Mine(RefusesTheTokenName):
        distribution = "not-installed"

    class OfNoDistribution(RefusesTheTokenName):
        distribution = ""

    assert (library_of(Mine), library_of(OfNoDistribution)) == ("not-installed", "")
    grammar = Grammar("regex", "a")
    shown = Shown(
        library="", grammar=grammar, content=b"a", valid=None, walk=(b"a",), asserts_formats=False, ends=True,
        outcome=Outcome("declined"), text="", words=(), vocabulary="bytes",
    )  # fmt: skip
    assert stand_alone(shown, "print(walk)").startswith("vocabulary = ")
