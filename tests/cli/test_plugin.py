"""The pytest plug-in, in a scratch repository of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import synthetic
from places import SUPPORT

from harness.cli.plugin.items import CaseItem, collected, short_names
from harness.cli.plugin.walks import Walks, Wrong
from harness.errors import BadInput
from harness.outcomes.expected import Recorded, arm_of_row, compare_faults, faults_of_rows
from harness.rows.row import CHECKS_MODE, Finding, Row
from harness.rows.store import read_info
from harness.running.session import Request

pytest_plugins = ["pytester"]


CASES = [
    {
        "description": "letters",
        "regex": "[a-c]+",
        "tags": ["letters"],
        "tests": [{"text": "abc", "valid": True}, {"text": "x", "valid": False}],
    },
    {
        "description": "digits </script>",
        "regex": "[0-9]{2}",
        "tags": ["utf8", "two-digits"],
        "tests": [
            {"text": "12", "valid": True},
            {"text": "1", "valid": False},
            {"text": "123", "valid": False},
        ],
    },
    {"description": "no schema for it", "ebnf": 'root ::= "a"', "tests": [{"text": "a", "valid": True}]},
]


LOOSE = """
from miniatures.reference import Reference
from miniatures.wrong import EndsAnywhere

class Loose(Reference):
    object_class = EndsAnywhere
"""

DIGIT_ENDS_TWO = {"regex": "[0-9]{2}", "tests": [{"text": "1", "valid": False}]}
"""A case that `Loose` fails: it lets the output end behind one digit."""

SLOW = """
import time

from miniatures.reference import Reference, ReferenceObject

class Sleeps(ReferenceObject):
    def accept_token(self, token):
        time.sleep(60 if self.vocabulary.tokens[token] == b"1" else 0)
        return super().accept_token(token)

class Sleepy(Reference):
    object_class = Sleeps
"""


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A repository with a test of its own, and cases."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(SUPPORT), str(pytester.path), os.environ.get("PYTHONPATH", "")])
    )
    for name in (
        "PYTEST_ADDOPTS",
        "PYTEST_XDIST_WORKER",
        "PYTEST_XDIST_WORKER_COUNT",
        "PYTEST_XDIST_TESTRUNUID",
    ):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(test_own="def test_own() -> None:\n    pass\n")
    pytester.makepyfile(loose_backend=LOOSE)
    (pytester.path / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CASES))
    return pytester


def run(repository: pytest.Pytester, backend: str, *options: str, walks: bool = True) -> pytest.RunResult:
    ours = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",  # to import it takes longer than all that is walked here
        f"--grammarbench-backend={backend}",
        "--grammarbench-suite=cases.jsonl",
        *options,
    ]
    return (
        repository.runpytest_subprocess(*ours, timeout=100)
        if walks
        else repository.runpytest_inprocess(*ours)
    )


def test_nothing_is_collected_without_a_backend(repository: pytest.Pytester) -> None:
    result = repository.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_what_is_left_out_was_collected(repository: pytest.Pytester) -> None:
    for options in (["--collect-only"], ["--setup-plan"], ["-p", "no:terminal", "--collect-only"]):
        result = run(repository, "reference", "-kletters", *options, walks=False)
        assert result.ret == pytest.ExitCode.OK
        if "no:terminal" not in options:
            result.stdout.fnmatch_lines(["collected 4 items / 3 deselected / 1 selected"])


def test_a_plan_walks_nothing(repository: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Walks, "walk", lambda _: pytest.fail("it walks"))
    result = run(repository, "reference", "--setup-plan", walks=False)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*it walks*")


def test_as_many_workers_walk_as_are_asked_for(
    repository: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def note(request: Request, *_: Any) -> None:
        asked.append(request.jobs)
        raise BadInput("that is all that is asked for")

    monkeypatch.setattr("harness.cli.plugin.walks.run", note)
    for options in ([], ["--grammarbench-jobs=3"]):
        run(repository, "reference", *options, walks=False)
    assert asked == [1, 3]


def test_a_right_backend_passes_beside_the_repositorys_own_tests(repository: pytest.Pytester) -> None:
    run(repository, "reference").assert_outcomes(passed=4)


def test_what_is_wrong_is_told_with_the_command_that_shows_it(repository: pytest.Pytester) -> None:
    result = run(repository, "loose_backend:Loose", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = result.stdout.str()
    assert "to see it: grammarbench repro " in said
    assert "regex [0-9]{2}" in said and "Traceback" not in said and "harness/cli/plugin" not in said


def test_the_printed_command_shows_it_as_written(repository: pytest.Pytester) -> None:
    ours = ["--grammarbench-backend=loose_backend:Loose", "--grammarbench-suite=cases.jsonl"]
    result = repository.runpytest_subprocess(*ours, timeout=100)
    (printed, *_) = [line.partition("to see it: ")[2] for line in result.outlines if "to see it: " in line]
    program, *words = shlex.split(printed)
    assert program == "grammarbench"
    shown = repository.run(sys.executable, "-m", "harness", *words, timeout=100)
    assert shown.ret == 0 and "under_constrained" in shown.stdout.str()


RIGHT, OVER = synthetic.row(), synthetic.row(accepted=False)
UNDER = synthetic.row(instance=1, valid=False, accepted=True)
LATE = synthetic.row(instance=2, status="timeout", accepted=None)
OURS = synthetic.row(instance=3, status="harness_error", accepted=None)
UNKNOWN = synthetic.row(instance=4, valid=None, accepted=True)


@pytest.mark.parametrize(
    ("recorded", "rows", "said"),
    [
        ("", [RIGHT, LATE], "skip: differs from the record by a missed deadline"),
        ("over_constrained", [LATE], "skip: differs from the record by a missed deadline"),
        ("timeout", [UNDER], "skip: differs from the record by a missed deadline"),
        ("", [LATE, OURS], "skip: differs from the record by a missed deadline"),
        ("", [LATE, UNDER], "wrong: new: under_constrained; gone: -; recorded: no fault"),
        ("over_constrained", [RIGHT], "wrong: .*recorded as failing, and right: over_constrained"),
        ("over_constrained", [UNKNOWN], "skip: not judged"),
        ("over_constrained", [RIGHT, UNKNOWN], ""),
        ("over_constrained", [UNDER, UNKNOWN], "wrong: .*new: under_constrained; gone: -"),
        ("over_constrained under_constrained", [OVER], "wrong: .*new: -; gone: under_constrained"),
        ("over_constrained under_constrained", [OVER, OURS], "xfail: recorded: over_constrained$"),
        ("over_constrained", [UNDER, OURS], "wrong: .*new: under_constrained; gone: -"),
    ],
)
def test_an_outcome_is_held_against_the_record_as_in_a_gate(
    recorded: str, rows: list[Row], said: str, tmp_path: Path
) -> None:
    """A missed deadline, a failure of ours and an instance that nobody judges hide what is gone."""
    case = synthetic.case(0, [("good", b'"a"', True)])
    key = "first", case.id
    mine = [replace(row, case_id=case.id) for row in rows]
    arms = {arm_of_row(mine[0]): {"/".join(key): frozenset(recorded.split())}}
    of_record = Recorded(arms, effort=0, seed=0)
    walks = Walks("alpha", "alpha", ("first",), "tiny", 0, 10.0, 1, of_record, tmp_path, rows={key: mine})
    item = cast(CaseItem, SimpleNamespace(outcome=walks.outcome("first", case)))
    try:
        CaseItem.runtest(item)
        came_to = ""
    except pytest.skip.Exception as skipped:
        came_to = f"skip: {skipped}"
    except pytest.xfail.Exception as known:
        came_to = f"xfail: {known}"
    except Wrong as wrong:
        came_to = f"wrong: {' '.join(line for line in wrong.lines if 'record' in line)}"
    assert re.match(said, came_to) if said else not came_to
    gate = compare_faults(arms, faults_of_rows(mine))
    assert bool(gate.changes) == came_to.startswith("wrong")


def test_what_only_a_check_finds_that_the_record_has_not_is_skipped(tmp_path: Path) -> None:
    case = synthetic.case(0, [("good", b'"a"', True)])
    key, made = ("first", case.id), {"of_old": "passed", "of_new": "failed"}
    found = (Finding("of_new", None, "it is wrong"),)
    of_checks: dict[str, Any] = {"mode": CHECKS_MODE, "instance": None, "valid": None, "accepted": None}
    mine = [
        replace(row, case_id=case.id)
        for row in (RIGHT, replace(RIGHT, checks=made, findings=found, **of_checks))
    ]
    arms = {arm_of_row(mine[0]): {"/".join(key): frozenset[str]()}}
    for checks, raised in ((frozenset({"of_old"}), pytest.skip.Exception), (frozenset(made), Wrong)):
        of_record = Recorded(arms, effort=1, seed=0, checks=checks)
        walks = Walks("alpha", "alpha", ("first",), "tiny", 1, 10.0, 1, of_record, tmp_path, rows={key: mine})
        with pytest.raises(raised, match="of_new"):
            CaseItem.runtest(cast(CaseItem, SimpleNamespace(outcome=walks.outcome("first", case))))


def test_a_missed_deadline_is_the_backends_failure_and_no_error_of_ours(repository: pytest.Pytester) -> None:
    """Also where instances behind it were therefore not walked."""
    repository.makepyfile(slow_backend=SLOW)
    result = run(repository, "slow_backend:Sleepy", "--grammarbench-timeout=1")
    assert result.parseoutcomes() == {"passed": 2, "skipped": 1, "failed": 1}
    said = result.stdout.str()
    assert "killed after 1 s" in said and "harness error" not in said and "harness/cli/plugin" not in said


def test_a_failure_of_ours_is_one_line_without_our_internals(repository: pytest.Pytester) -> None:
    repository.makeconftest(
        "from harness.cli.plugin import walks\nwalks.read_rows = lambda folder: iter(())\n"
    )
    result = run(repository, "reference", "-kletters")
    assert result.parseoutcomes()["errors"] == 1
    said = result.stdout.str()
    assert (
        "harness error (ours): it was not walked" in said
        and "Traceback" not in said
        and "items.py" not in said
    )


def test_a_sample_is_said_before_the_first_test(repository: pytest.Pytester) -> None:
    assert (
        "a sample: 1 of 3 cases of cases"
        in run(repository, "reference", "-kletters", "--collect-only", walks=False).stdout.str()
    )
    assert "a sample" not in run(repository, "reference", "--collect-only", walks=False).stdout.str()


@pytest.mark.parametrize(
    ("option", "chosen"),
    [("-mutf8", 1), ("-mgrammarbench and not two_digits and not ebnf", 1), ("-kletters", 1)],
)
def test_cases_are_chosen_by_tag_dialect_and_name(
    repository: pytest.Pytester, option: str, chosen: int
) -> None:
    result = run(repository, "reference", option, "--collect-only", "-q", "--strict-markers", walks=False)
    assert len([line for line in result.outlines if "grammarbench[" in line]) == chosen


def test_two_suites_of_one_name_are_told_apart(repository: pytest.Pytester) -> None:
    """The run calls the second one `same-2`, and what it came to is that suite's, not the first one's."""
    right = DIGIT_ENDS_TWO | {"tests": [{"text": "12", "valid": True}]}
    folders = [repository.mkdir(name) / "same" for name in ("one", "two")]
    for folder, case in zip(folders, (right, DIGIT_ENDS_TWO), strict=True):
        folder.mkdir()
        (folder / "x.json").write_text(json.dumps(case))
    result = repository.runpytest_subprocess(
        *("-p", "no:cacheprovider", "-rA", "--grammarbench-backend=loose_backend:Loose"),
        *(f"--grammarbench-suite={folder}" for folder in folders),
        timeout=100,
    )
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines_random(["PASSED *-same-x-*", "FAILED *-same-2-x-*"])


@pytest.mark.parametrize("tag", ["xfail", "skip", "theirs"])
def test_a_tag_that_is_a_mark_of_others_is_none_of_the_case(repository: pytest.Pytester, tag: str) -> None:
    """The repository's own conftest reads an argument of its mark, which no tag has."""
    (repository.path / "cases.jsonl").write_text(json.dumps(DIGIT_ENDS_TWO | {"tags": [tag]}) + "\n")
    repository.makeconftest(
        """
        def pytest_configure(config):
            config.addinivalue_line("markers", "theirs(where): of the repository")

        def pytest_runtest_setup(item):
            for mark in item.iter_markers("theirs"):
                mark.args[0]
        """
    )
    result = run(repository, "loose_backend:Loose", "-k", f"{tag} and grammarbench")
    assert result.parseoutcomes() == {"failed": 1, "deselected": 1}
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_repository_may_skip_a_case_by_a_mark(repository: pytest.Pytester) -> None:
    repository.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.skip("not today"))
        """
    )
    assert run(repository, "reference").parseoutcomes() == {"skipped": 4}


@pytest.mark.parametrize("options", [("-n2",), ("--dist=each", "--tx=popen")])
def test_sharing_out_by_xdist_is_refused(repository: pytest.Pytester, options: tuple[str, ...]) -> None:
    refused = run(repository, "reference", *options)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = filter(None, refused.errlines)
    assert "leave -n out (or give -n0)" in line and not refused.outlines


def test_xdist_is_refused_only_where_it_shares_out_our_cases(repository: pytest.Pytester) -> None:
    run(repository, "reference", "-n2", "-n0", "-kletters").assert_outcomes(passed=1, deselected=3)
    repository.runpytest_subprocess("-n1", timeout=100).assert_outcomes(passed=1)


def test_what_failed_last_is_run_again(repository: pytest.Pytester) -> None:
    """Alone with `--lf`, and first with `--ff`."""
    ours = ["--grammarbench-backend=loose_backend:Loose", "--grammarbench-suite=cases.jsonl"]
    first = repository.runpytest_subprocess(*ours, timeout=100)
    assert first.parseoutcomes() == {"passed": 2, "failed": 1, "skipped": 1}
    again = repository.runpytest_subprocess(*ours, "--lf", timeout=100)
    assert again.parseoutcomes() == {"failed": 1, "deselected": 3}
    ordered = repository.runpytest_inprocess(*ours, "--ff", "--collect-only", "-q")
    assert ordered.outlines[0].startswith("::grammarbench[loose_backend:Loose-cases-digits_")


@pytest.mark.long
def test_recorded_failures_are_strict_xfails(repository: pytest.Pytester) -> None:
    wrong = "loose_backend:Loose"
    program = [
        "run",
        "cases.jsonl",
        "--backends",
        wrong,
        "--vocabularies",
        "probe",
        "--effort",
        "0",
        "--out",
        "recorded",
        "--record",
        "known.json",
    ]
    assert repository.run(sys.executable, "-m", "harness", *program, timeout=100).ret == 0
    known = run(repository, wrong, "--grammarbench-expect=known.json")
    outcomes = known.parseoutcomes()
    assert outcomes["xfailed"] >= 1 and "failed" not in outcomes and known.ret == 0
    record = json.loads((repository.path / "known.json").read_text())
    (arm,) = record["arms"]
    failing = [case for case, faults in arm["cases"].items() if faults]
    passing = [case for case, faults in arm["cases"].items() if not faults]
    arm["cases"] |= {failing[0]: "", **({passing[0]: "under_constrained"} if passing else {})}
    (repository.path / "known.json").write_text(json.dumps(record))
    changed = run(repository, wrong, "--grammarbench-expect=known.json")
    assert changed.parseoutcomes()["failed"] == 1 + bool(passing)
    assert not passing or "[XPASS(strict)]" in changed.stdout.str()


def test_documented_policy_is_no_failure(repository: pytest.Pytester) -> None:
    """The backend refuses a line end behind the value, which is a choice; nor is it one with a record."""
    case = {"schema": {"type": "boolean"}, "tests": [{"data": True, "valid": True}]}
    (repository.path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    backend = "reference:layout=compact"
    program = ["run", "cases.jsonl", "--backends", backend, "--vocabularies", "probe", "--effort", "1"]
    done = repository.run(
        sys.executable, "-m", "harness", *program, "--out", "recorded", "--record", "known.json", timeout=100
    )
    assert done.ret == 0
    findings = (repository.path / "recorded" / "rows.jsonl").read_text()
    assert '"spellings_are_accepted"' in findings and '"trailing_newline"' in findings
    (arm,) = json.loads((repository.path / "known.json").read_text())["arms"]
    assert list(arm["cases"].values()) == [""]
    for options in (["--grammarbench-effort=1"], ["--grammarbench-expect=known.json"]):
        assert run(repository, backend, *options).parseoutcomes() == {"passed": 2}


def test_what_fails_stands_first_and_what_costs_nothing_last_and_says_so(
    repository: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary of pytest has the first line of a failure, which on a CI is not cut."""
    monkeypatch.setenv("CI", "true")
    tests = [{"text": "true", "valid": True}, {"text": " true", "valid": True}]
    case = {"schema": {"type": "boolean"}, "tests": tests}
    (repository.path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    result = run(repository, "reference:layout=compact", "--grammarbench-effort=1")
    result.stdout.fnmatch_lines(
        [
            "over_constrained at token *, which is valid*",
            'json_schema {"type": "boolean"}',
            "no fault, its own choice: spellings_are_accepted:*",
            "to see it: *",
            "FAILED *] - over_constrained at token *",
        ]
    )


def test_what_is_not_asked_for_is_as_recorded(repository: pytest.Pytester) -> None:
    """Suites, effort, tokenizer and timeout; what is asked for otherwise ends pytest with one line."""
    program = ["run", "cases.jsonl", "--backends", "reference", "--vocabularies", "bytes", "--effort", "1"]
    program += ["--timeout", "20", "--out", "recorded", "--record", "known.json"]
    assert repository.run(sys.executable, "-m", "harness", *program, timeout=100).ret == 0
    ours = ["--grammarbench-backend=reference", "--grammarbench-expect=known.json"]
    result = repository.runpytest_subprocess(*ours, timeout=100)
    result.assert_outcomes(passed=4)
    (walked,) = repository.path.glob(".pytest_cache/d/grammarbench/*/1")
    then, now = read_info(repository.path / "recorded"), read_info(walked)
    for name in ("suites", "vocabularies", "effort", "timeout_s", "arms"):
        assert getattr(now, name) == getattr(then, name), name
    refused = repository.runpytest_subprocess(*ours, "--grammarbench-effort=0", timeout=100)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*known.json: recorded with effort 1, walked with 0; leave the option out"])


def test_every_recorded_tokenizer_is_walked(repository: pytest.Pytester) -> None:
    """What got worse on the second one alone is a failure of its own."""
    program = ["run", "cases.jsonl", "--backends", "loose_backend:Loose", "--vocabularies", "bytes,probe"]
    program += ["--effort", "0", "--out", "recorded", "--record", "known.json"]
    assert repository.run(sys.executable, "-m", "harness", *program, timeout=100).ret == 0
    record = json.loads((repository.path / "known.json").read_text())
    (second,) = (arm["cases"] for arm in record["arms"] if arm["vocabulary"] == "probe")
    second |= dict.fromkeys(second, "")
    (repository.path / "known.json").write_text(json.dumps(record))
    result = run(repository, "loose_backend:Loose", "--grammarbench-expect=known.json", "-rA", "-kdigits")
    assert result.parseoutcomes() == {"xfailed": 1, "failed": 1, "deselected": 5}
    result.stdout.fnmatch_lines_random(
        ["XFAIL ::*:Loose-bytes-cases-digits*", "FAILED ::*:Loose-probe-cases-digits*"]
    )
    ours = ["--grammarbench-vocabulary=probe", "--grammarbench-expect=known.json", "--collect-only", "-q"]
    alone = run(repository, "loose_backend:Loose", *ours, walks=False)
    assert alone.stdout.str().count("grammarbench[loose_backend:Loose-cases-") == len(CASES)


def test_tokenizers_of_one_name_are_told_apart() -> None:
    paths = ["hf:/one/qwen", "hf:/two/qwen", "bytes", "gguf:/a b.gguf"]
    assert list(short_names(paths).items()) == list(
        zip(paths, ["qwen", "qwen-2", "bytes", "a_b.gguf"], strict=True)
    )


@pytest.mark.long
def test_a_declined_case_is_skipped_and_a_failure_of_ours_is_an_error(repository: pytest.Pytester) -> None:
    declined = run(repository, "miniatures:JsonOnly")
    assert declined.parseoutcomes() == {"passed": 1, "skipped": 3}
    broken = "from harness.cli.plugin import walks\nwalks.read_rows = lambda folder: iter(())\n"
    repository.makeconftest(broken)
    ours = run(repository, "reference").parseoutcomes()
    assert ours == {"passed": 1, "errors": 3}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--grammarbench-backend=nosuch",), 'there is no backend "nosuch"'),
        (("--grammarbench-suite=nosuch",), 'unknown suite "nosuch"'),
        (("--grammarbench-suite=lark",), "lark is a suite of ours, and a folder of cases here"),
        (("--grammarbench-expect=nosuch.json",), "nosuch.json: cannot be read"),
    ],
)
def test_bad_input_ends_pytest_with_one_line(
    repository: pytest.Pytester, options: tuple[str, ...], said: str
) -> None:
    repository.mkdir("lark").joinpath("mine.json").write_text('{"type": "object"}')
    config = repository.parseconfig(
        "--grammarbench-backend=reference", "--grammarbench-suite=cases.jsonl", *options
    )
    with pytest.raises(pytest.UsageError) as raised:
        list(collected(cast(pytest.Session, None), config))
    assert said in str(raised.value) and "\n" not in str(raised.value)
