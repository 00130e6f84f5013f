"""Failures found in a run's files, shown, shrunk, and turned into scripts; the runs are written by hand, the
backends are real."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from failing import CASES, OUTLINES, QUOTE, failure_with, find_failure, finding, row

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.diagnose.repro import (
    Failure,
    replayed,
    show,
    show_shrunk,
    shrink_failure,
    shrunk_script,
    shrunk_to_json,
    to_json,
)
from harness.diagnose.repro.show import Replayed
from harness.diagnose.repro.shrunk import fault_of
from harness.diagnose.shrink import Outcome, Shrunk, outcome_of
from harness.errors import BadInput
from harness.rows.row import CHECKS_MODE, Finding
from harness.serve.live.judging import MODE as LIVE

pytestmark = pytest.mark.usefixtures("importable_miniatures")

HARMFUL = Arm("miniatures:SegfaultsInFill", "", "", "regex", ("regex",), "bitmask")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # As a run finds it: in `[^"]*`, outlines-core refuses tokens that end inside a character.
    partial = finding("the_mask_is_exact", "forbids 99 tokens", QUOTE, b"\xc2", cause="partial_utf8", over=99)
    documented = finding("spellings_are_accepted", "no spaces", b'"', cause="any", documented=True)
    crash = {
        "status": "crash",
        "phase": "fill",
        "signal": "SIGSEGV",
        "text": "killed by SIGSEGV in fill of token 0",
        "accepted": None,
    }
    checks = {
        "checks": {"the_mask_is_exact": "failed", "spellings_are_accepted": "failed"},
        "mode": CHECKS_MODE,
    }
    groups = [
        [(row(0, OUTLINES, 0), b""), (row(0, OUTLINES, 1, accepted=False, stopped_at=9, tokens=10), b"")],
        [(row(1, OUTLINES, 0), b""), (row(1, OUTLINES, None, findings=(documented, partial), **checks), b"")],
        [(row(2, HARMFUL, 0, **crash), b"")],
    ]
    header = synthetic.info((OUTLINES, HARMFUL))
    return synthetic.write_run(
        tmp_path_factory.mktemp("run") / "run", groups, header, [("mine", each) for each in CASES]
    )


def printed(text: str) -> list[list[str]]:
    """What the script prints, word by word."""
    assert "harness" not in text
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_the_first_failing_row_is_found_and_another_on_request(run: Path) -> None:
    first = find_failure(run, "star", "outlines-core", None, None)
    assert first.row.instance == 1 and first.finding is None and first.instance.content == b"hello:abab"
    assert first.memory_bytes == 4 << 30 and first.timeout_s == 10.0
    assert find_failure(run, "star", "outlines-core", None, 0).row.instance == 0
    noted = find_failure(run, "quoted", "outlines-core", "probe", None)
    assert noted.row.mode == CHECKS_MODE and noted.instance == CASES[1].instances[0]
    assert noted.finding is not None and noted.finding.check == "the_mask_is_exact", (
        "what is documented comes last"
    )
    asked = find_failure(run, "quoted", "outlines-core", None, None, "spellings_are_accepted")
    assert asked.finding is not None and asked.finding.documented
    with pytest.raises(BadInput, match='no finding "mask"; known: spellings_are_accepted, the_mask_is_exact'):
        find_failure(run, "quoted", "outlines-core", None, None, "mask")
    with pytest.raises(BadInput, match="there is no 7"):
        find_failure(run, "quoted", "outlines-core", None, 7)


def test_a_finding_of_no_instance_of_its_case_is_told(tmp_path: Path) -> None:
    stray = replace(finding("the_mask_is_exact", "forbids 99 tokens", QUOTE, b"\xc2"), instance=99)
    failed = {"checks": {"the_mask_is_exact": "failed"}, "mode": CHECKS_MODE, "findings": (stray,)}
    groups = [[(row(1, OUTLINES, 0), b""), (row(1, OUTLINES, None, **failed), b"")]]
    run = synthetic.write_run(tmp_path, groups, synthetic.info((OUTLINES,)), [("mine", CASES[1])])
    with pytest.raises(BadInput, match="is of instance 99, and the case has 1"):
        find_failure(run, "quoted", "outlines-core", None, None)


def test_a_verdict_is_shown_shrunk_and_shown_again(run: Path) -> None:
    failure = find_failure(run, "star", "outlines-core", None, None)
    shown = show(replayed(failure))
    assert "over_constrained" in shown and "zzz[0-9]+" in shown and "hello:abab" in shown
    assert "NO , NO : token" in shown and "allowed there: " in shown
    whole = shown.partition("without GrammarBench:")[2]
    assert printed(whole)[-1][-2:] == ["False", "False"]
    assert replayed(failure).script.strip() == whole.strip()
    small = shrink_failure(failure)
    text = show_shrunk(failure, small, shrunk_script(small))
    assert "grammar 29 -> 5 bytes" in text and "(ab)*" in text and "every byte, end-of-sequence" in text
    alone = shrunk_script(small)
    assert text.partition("without GrammarBench:")[2].strip() == alone.strip()
    assert printed(alone)[-1][-2:] == ["False", "False"]
    assert "expected: accepted to the end" in alone and "says regex.fullmatch" in alone


def test_a_finding_is_shown_by_the_walk_to_the_token_in_question(run: Path) -> None:
    failure = find_failure(run, "quoted", "outlines-core", None, None)
    shown = show(replayed(failure))
    assert "walked again to the_mask_is_exact" in shown and "forbids 99 tokens" in shown
    text = shown.partition("without GrammarBench:")[2]
    lines = printed(text)
    assert lines[-2][-2:] == ["True", "True"] and lines[-1][-2:] == ["False", "False"], lines
    assert "len(vocabulary) - 1]" not in text.partition("grammar =")[0], (
        "the end of the output is no part of this walk"
    )
    assert text.rstrip().splitlines()[-1].startswith("# expected: the last token is allowed and accepted")
    small = shrink_failure(failure)
    assert small.shown and len(small.grammar.text) <= 6 and not small.ends
    assert printed(shrunk_script(small))[-1][-2:] == ["False", "False"]


def test_a_crash_is_shown_and_shrunk(run: Path) -> None:
    failure = find_failure(run, "boom", "miniatures:SegfaultsInFill", None, None)
    shown = show(replayed(failure))
    assert "killed by SIGSEGV" in shown and "there is no script: the adapter brings none" in shown
    small = shrink_failure(failure)
    assert small.shown and small.grammar.text == "boom" and small.script == ""
    text = show_shrunk(failure, small, shrunk_script(small))
    assert "crash SIGSEGV in fill" in text and "there is no script: the adapter brings none\n" in text
    assert "instance, of unknown validity:" in text and shrunk_to_json(failure, small, "")["valid"] is None


def test_what_is_not_seen_again_is_told(run: Path) -> None:
    failure = find_failure(run, "star", "outlines-core", None, None)
    cured = replace(failure, instance=Instance("three", b"hello:", True))
    small = shrink_failure(cured)
    assert "not seen again" in show_shrunk(cured, small, "") and shrunk_script(small) == ""


def test_what_must_be_seen_again_follows_from_the_row() -> None:
    refused = row(0, OUTLINES, 0, accepted=False)
    assert outcome_of(refused) == Outcome("over_constrained")
    assert outcome_of(replace(refused, valid=False, accepted=True)) == Outcome("under_constrained")
    mismatch = Finding("mask_accept_mismatch", 2, "token 3")
    assert outcome_of(replace(refused, findings=(mismatch,))) == Outcome("over_constrained"), (
        "the verdict comes first"
    )
    assert outcome_of(replace(refused, findings=(mismatch,)), mismatch).check == "mask_accept_mismatch", (
        "unless the finding is meant"
    )
    noted = failure_with(row(0, OUTLINES, 0, findings=(mismatch,)))
    assert fault_of(noted).outcome.check == "mask_accept_mismatch" and fault_of(noted).check == "", (
        "the walk itself finds it"
    )
    checked = Finding("the_mask_is_exact", 1, "", "partial_utf8", over=3, walk=(4, 5))
    conformance = row(
        0, OUTLINES, None, mode=CHECKS_MODE, checks={"the_mask_is_exact": "failed"}, findings=(checked,)
    )
    fault = fault_of(failure_with(conformance, checked))
    assert (fault.check, fault.walk, fault.outcome.direction) == ("the_mask_is_exact", (4, 5), "over")
    lost = replace(
        conformance,
        findings=(),
        checks={},
        status="crash",
        phase="check",
        signal="SIGSEGV",
        text="killed by SIGSEGV",
        checking="the_mask_is_exact",
    )
    assert fault_of(failure_with(lost)).check == "the_mask_is_exact"
    assert fault_of(failure_with(lost)).outcome == Outcome("broken", "crash", "check", "SIGSEGV")


def test_no_text_of_others_gets_out_of_the_comments_of_a_script(run: Path) -> None:
    """A grammar, an instance or an error with line ends must not become a line of Python."""
    evil = 'x\nimport os\r\nos.abort()\u2028\x0cy\'"""\\'
    grammar = Grammar("json_schema", json.dumps({"const": evil}))
    content = json.dumps(evil).encode()
    hostile = Case(case_id(grammar), evil, grammar, (Instance(evil, content, True),))
    tokens = byte_vocabulary().encode(content)
    noted = Finding("a_check", 0, evil, walk=(*tokens, 256))
    one = row(0, OUTLINES, 0, vocabulary="bytes", dialect="json_schema", text=evil, findings=(noted,))
    text = replayed(Failure(one, hostile, hostile.instances[0], noted, 10.0, 4 << 30)).script
    assert "import os" not in [line.strip() for line in text.splitlines()]
    compile(text, "script", "exec")
    assert [
        line
        for line in text.split("\n")
        if "abort" in line and not line.startswith(("#", "grammar = ", "instance = ", "walk = "))
    ] == []


def shrunk_to(outcome: Outcome, **more: Any) -> Shrunk:
    """A failure of the first case that was seen again and did not become smaller."""
    return Shrunk(
        **{
            "grammar": CASES[0].grammar, "content": b"hello:", "valid": True, "outcome": outcome,
            "vocabulary": "probe", "words": (), "walk": (), "ends": False, "steps": 0, "tried": 1,
            "is_minimal": False, "shown": True, "asserts_formats": False, "text": "", "script": "",
            "library": "", **more,
        }
    )  # fmt: skip


def test_what_a_row_says_makes_no_line_of_the_answer() -> None:
    evil = "x\nbackend   another, vocabulary tekken"
    noted = Finding(evil, 0, evil)
    lost = row(0, OUTLINES, 0, status="crash", phase=evil, signal=evil, text=evil, findings=(noted,))
    failure = failure_with(lost, noted)
    shrunk = shrunk_to(outcome_of(lost))
    answers = [
        show(Replayed(failure, [{"lost": evil}], "")),
        show_shrunk(failure, shrunk, ""),
        show_shrunk(failure, replace(shrunk, shown=False), ""),
    ]
    for answer in answers:
        assert [line.partition(" ")[0] for line in answer.splitlines()].count("backend") == 1, answer


def test_a_special_token_has_no_script(run: Path) -> None:
    vocabulary = load_vocabulary("probe")
    special = next(token for token in vocabulary.special_tokens if token != vocabulary.eos_token)
    noted = Finding("special", 0, "", walk=(special,))
    shown = show(replayed(failure_with(row(0, OUTLINES, 0, findings=(noted,)), noted)))
    assert "there is no script: the walk has a special token" in shown
    assert vocabulary.special_tokens[special] in shown


def test_a_backend_that_is_lost_before_the_walk_has_no_script() -> None:
    """The page had "walked again: it raised ..." and right below "it was not walked again"."""
    failure = failure_with(row(0, OUTLINES, 0, accepted=False))
    shown = show(Replayed(failure, [{"lost": "it raised RuntimeError: no such device"}], ""))
    assert "there is no script: the backend was lost before the walk" in shown
    assert "it was not walked again" not in shown


def test_what_a_live_server_wrote_is_not_here() -> None:
    """Neither step by step nor made smaller."""
    live = failure_with(row(0, OUTLINES, 0, mode=LIVE, accepted=False))
    shown = show(replayed(live))
    assert "  not here: a live server wrote it" in shown and "no script: it was not walked again" in shown
    with pytest.raises(BadInput, match="not here: a live server wrote it"):
        shrink_failure(live)


def test_the_second_of_two_equal_instances_is_called_the_second() -> None:
    twice = replace(CASES[0], instances=CASES[0].instances[:1] * 2)
    again = Replayed(replace(failure_with(row(0, OUTLINES, 1)), case=twice), [], "")
    assert "\ninstance 1 (one), valid:" in show(again) and to_json(again)["instance"] == 1


def test_why_it_is_no_smaller_is_told() -> None:
    failure = failure_with(row(0, OUTLINES, 0, accepted=False))
    ended = shrunk_to(Outcome("over_constrained"))
    assert "the budget ended" in show_shrunk(failure, ended, "")
    untried = show_shrunk(failure, replace(ended, untried="our judge disagrees"), "")
    assert "nothing smaller was tried, because our judge disagrees" in untried and "budget" not in untried
