"""The checks that decode: silent on the automaton itself, each wrong backend found under the strategies that
it spoils, and whole runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from check_cases import CASES, case
from miniatures.wrong_decoding import DECODERS
from miniatures.wrong_jumps import Exact, jumping_vocabulary

from harness.backend.grammar import Adapter
from harness.backend.registry import load
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance
from harness.checks import OurFailure, Subject, decoding, made, run_check
from harness.cli.decode import usual_setting
from harness.cli.main import main, parser
from harness.errors import BAD_INPUT
from harness.rows.row import CHECKS_MODE, Row, identity, untimed
from harness.rows.store import read_info, read_rows
from harness.serve.decode.setting import Setting
from harness.walk.loop import accounting
from harness.walk.loop.accounting import emitted
from harness.walk.loop.outcome import Account
from harness.walk.loop.strategies import strategies
from harness.walk.loop.strategies.base import Strategy

ENUM = case("json_schema", {"enum": ["abcd"]}, '"abcd"')
PAIRS = case("regex", "(ab|cd|x)+y", "abcdabcdabcdabxabcdy", "xxxxy", "abcdabcdabcdxy", "aby", "xy")
AGAIN = case(
    "regex", "[x][m][n][o][p][q][y][m][n]([o][p][z]|[r][s][t])", "xmnopqymnrst"
)  # drafts come from the output alone
SPOILED = (*CASES, ENUM, PAIRS, AGAIN)
CHECKS = made(0, True)


def checked(adapter: Adapter, each: Case) -> tuple[Subject, dict[str, tuple[str, list[Any]]]]:
    subject = Subject(adapter, each, adapter.compile(each.grammar))
    return subject, {
        name.removesuffix("_writes_the_instance"): run_check(name, check, subject)
        for name, check in CHECKS.items()
    }


def spoiled(adapter: Adapter) -> dict[str, set[str]]:
    """By strategy, the causes found in any of the cases."""
    found: dict[str, set[str]] = {}
    for each in SPOILED:
        for strategy, (_, findings) in checked(adapter, each)[1].items():
            for finding in findings:
                found.setdefault(strategy, set()).add(finding.cause)
    return found


def test_every_strategy_has_its_check_which_a_run_makes_only_if_told_to() -> None:
    assert set(CHECKS) == {f"{name}_writes_the_instance" for name in strategies()}
    assert (
        not set(CHECKS) & set(made(2, False))
        and set(made(2, True)) == set(CHECKS) | set(made(2, False))
        and made(0, False) == {}
    )


@pytest.mark.parametrize("vocabulary", [jumping_vocabulary, byte_vocabulary])
def test_the_automaton_itself_passes(vocabulary: Any) -> None:
    assert spoiled(Exact(vocabulary())) == {}


def test_every_check_has_something_to_check() -> None:
    outcomes = {
        name: {checked(Exact(jumping_vocabulary()), each)[1][name][0] for each in SPOILED}
        for name in strategies()
    }
    assert all("passed" in each for each in outcomes.values()), outcomes


@pytest.mark.parametrize("mutant", DECODERS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_backend_is_found_under_the_strategies_that_it_spoils(mutant: type[Adapter]) -> None:
    assert spoiled(mutant(jumping_vocabulary())) == DECODERS[mutant]


def test_every_strategy_finds_some_wrong_backend() -> None:
    assert set(strategies()) == {name for causes in DECODERS.values() for name in causes}


def test_what_every_walk_is_refused_is_not_found_again() -> None:
    wrong = case("choice", ["ab"], "ab", "abc", "x")
    subject, outcomes = checked(Exact(jumping_vocabulary()), wrong)
    assert not any(findings for _, findings in outcomes.values())
    assert {(each["texts"], each["written"]) for each in subject.counted.values()} == {(3, 1)}


@pytest.mark.parametrize("each", SPOILED, ids=lambda each: each.grammar.text[:20])
def test_what_is_counted_adds_up(each: Case) -> None:
    subject, _ = checked(Exact(jumping_vocabulary()), each)
    alone = subject.counted["stepwise_writes_the_instance"]
    assert alone["texts"] == alone["written"] == len(each.instances) and alone["passes"] == alone["ids"] > 0
    for name, counted in subject.counted.items():
        parts = {
            part: counted[part]
            for part in ("forced", "retokenized", "rolled_back", "drafted", "accepted_drafts", "passes")
        }
        sampled = counted["ids"] - counted["forced"] - counted["retokenized"] + counted["rolled_back"]
        assert counted["ids"] == emitted(Account(sampled=sampled, **parts)), name
        assert sampled - counted["accepted_drafts"] <= counted["passes"] <= counted["ids"], name


def test_how_many_passes_are_saved() -> None:
    only = case("choice", ["abcdabcd"], "abcdabcd")
    counted = checked(Exact(byte_vocabulary()), only)[0].counted
    assert counted["stepwise_writes_the_instance"]["passes"] == 9
    assert counted["jump_forward_writes_the_instance"]["passes"] == 1  # for the end
    assert counted["jump_forward_writes_the_instance"]["forced"] == 8


def test_long_and_many_outputs_are_cut_and_each_call_is_told_of() -> None:
    texts = tuple(
        Instance(f"{length}", b"a" * length, True) for length in (70, 60, 50, 300, 200, 10, 9, 8, 7, 6)
    )
    many = Case("0" * 12, "many", case("regex", "a+").grammar, texts)
    adapter = Exact(byte_vocabulary())
    subject = Subject(adapter, many, adapter.compile(many.grammar))
    assert run_check("stepwise_writes_the_instance", CHECKS["stepwise_writes_the_instance"], subject) == (
        "passed",
        [],
    )
    counted = subject.counted["stepwise_writes_the_instance"]
    assert counted["ids"] == decoding.MOST_TOKENS and subject.progress[4] > decoding.MOST_TOKENS


def test_nothing_to_decode_is_no_fault() -> None:
    none = Case(
        "0" * 12,
        "none",
        case("regex", "a").grammar,
        (Instance("no", b"b", False), Instance("nobody knows", b"a", None)),
    )
    assert {said for said, _ in checked(Exact(byte_vocabulary()), none)[1].values()} == {
        "skipped: no valid instance that the vocabulary can spell"
    }


def test_an_account_that_does_not_add_up_is_our_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "of_run", lambda *_: [accounting.Finding("a rule", "0", 1, 2)])
    with pytest.raises(OurFailure, match="stepwise: a rule"):
        checked(Exact(byte_vocabulary()), ENUM)


def ends_before(xgrammar: Adapter) -> bool:
    """Does the release say that forced text ends before a character of which not all is forced?"""
    return xgrammar.documents("inside_a_character")


def test_a_real_backend_that_forces_half_a_character_raises_or_ends_before_it() -> None:
    adapter = load("xgrammar")(load_vocabulary("probe"))
    emoji = case("choice", ["x😀a", "x😁a"], "x😁a")
    outcomes = checked(adapter, emoji)[1]
    assert outcomes["stepwise"] == ("passed", [])
    if ends_before(adapter):
        assert outcomes["jump_forward"] == ("passed", [])
        return
    said, (finding,) = outcomes["jump_forward"]
    assert said == "failed" and finding.cause == "jump_forward" and "UnicodeDecodeError" in finding.text


@pytest.mark.long
def test_what_a_strategy_breaks_is_shown_by_a_script_small_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if ends_before(load("xgrammar")(byte_vocabulary())):
        pytest.skip("no strategy is known to break what this xgrammar does")
    (tmp_path / "emoji.json").write_text(
        json.dumps([{"description": "emoji", "choice": ["x😀a", "x😁a"], "tests": [{"text": "x😁a"}]}])
    )
    common = ["--vocabularies", "probe", "--effort", "0", "--decode", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "emoji.json"), "--backends", "xgrammar", *common]) == 0
    case_id = next(read_rows(tmp_path / "run")).case_id
    shown = [
        "repro",
        str(tmp_path / "run"),
        case_id,
        "--backends",
        "xgrammar",
        "--check",
        "jump forward writes the instance",
    ]
    for smaller in ([], ["--shrink"]):
        script = tmp_path / f"fault{len(smaller)}.py"
        assert main([*shown, *smaller, "--script", str(script)]) == 0
        assert "jump_forward: fault, UnicodeDecodeError" in capsys.readouterr().out
        alone = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        assert alone.returncode == 1, alone.stdout
        assert alone.stderr.strip().splitlines()[-1].startswith("UnicodeDecodeError")


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
SUITE: list[dict[str, Any]] = [
    {
        "description": "call",
        "schema": SCHEMA,
        "tests": [{"data": {"city": "Oslo", "days": 3}, "valid": True}],
    },
    {
        "description": "word",
        "regex": "(yes|no), please",
        "tests": [{"text": text, "valid": text != "yes"} for text in ("yes, please", "yes")],
    },
]


def run(
    tmp_path: Path,
    out: str,
    *options: str,
    backends: str = "llguidance,outlines-core",
    vocabulary: str = "probe",
    cases: list[dict[str, Any]] = SUITE,
    effort: int = 0,
) -> list[Row]:
    suite = tmp_path / "suite.json"
    suite.write_text(json.dumps(cases))
    arguments = [
        "run",
        str(suite),
        "--backends",
        backends,
        "--vocabularies",
        vocabulary,
        "--out",
        str(tmp_path / out),
        *options,
    ]
    assert main([*arguments, "--effort", str(effort), "--decode"]) == 0
    return list(read_rows(tmp_path / out))


def test_a_run_tells_what_each_strategy_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = run(tmp_path, "run")
    of_cases = {(row.backend, row.case.rpartition(" ")[2]): row for row in rows if row.mode == CHECKS_MODE}
    assert read_info(tmp_path / "run").decode and len(of_cases) == 4 and len(rows) == 10
    for (backend, name), row in of_cases.items():
        assert row.status == "ok" and set(row.checks) == set(CHECKS) == set(row.counted), (backend, name, row)
        assert (
            {each["texts"] for each in row.counted.values()}
            == {each["written"] for each in row.counted.values()}
            == {1}
        )
    assert of_cases["llguidance", "call"].counted["jump_forward_writes_the_instance"]["forced"] >= 3
    assert of_cases["outlines-core", "call"].counted["jump_forward_writes_the_instance"]["forced"] == 0
    assert of_cases["outlines-core", "call"].counted["interleaved_writes_the_instance"]["forced"] > 3
    capsys.readouterr()
    assert main(["table", str(tmp_path / "run"), "passes", "--format", "json"]) == 0
    told = capsys.readouterr().out
    with monkeypatch.context() as later:  # a strategy that is new does not change the table of an old run
        later.setitem(strategies(), "novel", Strategy)
        assert main(["table", str(tmp_path / "run"), "passes", "--format", "json"]) == 0
        assert capsys.readouterr().out == told
    lines = {(each["cases"], each["arm"], each["strategy"]): each for each in json.loads(told)}
    assert len(lines) == 2 * 2 * len(strategies()) and {each["of"] for each in lines.values()} == {2}
    jumped = lines["common", "llguidance", "jump_forward"]
    assert jumped["texts"] == jumped["written"] == 2 and jumped["passes"] < jumped["ids"]
    assert (
        jumped["ids_per_pass"] == f"{jumped['ids'] / jumped['passes']:.3f}"
        and lines["own", "llguidance", "stepwise"]["saved"] == "0.0%"
    )
    for number in (1, 2):
        run(tmp_path, f"share-{number}", "--shard", f"{number}/2", backends="llguidance")
    assert main(["merge", str(tmp_path / "whole"), str(tmp_path / "share-1"), str(tmp_path / "share-2")]) == 0
    whole = {identity(row): untimed(row) for row in read_rows(tmp_path / "whole")}
    assert whole == {identity(row): untimed(row) for row in rows if row.backend == "llguidance"}
    capsys.readouterr()


def test_more_passes_for_the_same_texts_fail_a_gate_and_the_page_tells_what_is_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # With other checks beside, of which some count too, but no passes.
    run(tmp_path, "before", vocabulary="bytes", backends="reference", cases=SUITE[1:], effort=1)
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    (row,) = [row for row in read_rows(tmp_path / "before") if row.counted]
    jumped = row.counted["jump_forward_writes_the_instance"]
    compact = json.JSONEncoder(separators=(",", ":")).encode
    worse = {**jumped, "forced": jumped["forced"] - 2, "passes": jumped["passes"] + 2}
    lines = (tmp_path / "after" / "rows.jsonl").read_text()
    assert lines.count(compact(jumped)) == 1
    (tmp_path / "after" / "rows.jsonl").write_text(lines.replace(compact(jumped), compact(worse)))
    folders = [str(tmp_path / "before"), str(tmp_path / "after")]
    assert main(["compare", *folders]) == 0
    said = capsys.readouterr().out
    assert (
        f"passes: {jumped['passes']} -> {worse['passes']}" in said
        and "jump_forward" in said
        and ("more passes in 1 case") in said
    )
    assert main(["compare", *folders, "--gate"]) == 1 and main(["compare", *reversed(folders), "--gate"]) == 0
    assert main(["report", folders[0]]) == 0
    page = (tmp_path / "before" / "report" / "report.html").read_text()
    assert (
        f"saves {100 * (1 - jumped['passes'] / jumped['ids']):.1f} %" in page and "up to 0 places" not in page
    )


def test_a_run_goes_on_only_as_what_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "run", backends="llguidance")
    arguments = [
        "run",
        str(tmp_path / "suite.json"),
        "--backends",
        "llguidance",
        "--vocabularies",
        "probe",
        "--effort",
        "0",
    ]
    assert main([*arguments, "--out", str(tmp_path / "run"), "--resume"]) == BAD_INPUT
    assert "decode" in capsys.readouterr().err


def test_a_table_of_what_was_not_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "word.json").write_text(json.dumps(SUITE[1:]))
    common = ["--vocabularies", "bytes", "--effort", "0", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "word.json"), "--backends", "reference", *common]) == 0
    assert main(["table", str(tmp_path / "run"), "passes"]) == BAD_INPUT
    assert "grammarbench run --decode" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        "--strategies stepwise",
        "--batch 8",
        "--compile-timeout 5",
        "--overlap off",
        "--rate 2",
        "--mode greedy",
    ],
)
def test_the_closing_experiment_refuses_what_it_sets_itself(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["decode", "--profile", "mechanisms", "--backends", "reference", *option.split()]
    assert main(words) == BAD_INPUT
    assert f"{option.split()[0]}: --profile mechanisms sets it itself" in capsys.readouterr().err


def test_the_closing_experiment_takes_an_option_that_it_does_not_set() -> None:
    options = parser().parse_args(["decode", "--profile", "mechanisms", "--backends", "a", "--forks", "2"])
    assert usual_setting(options) == Setting("") and options.forks == 2


def test_without_torch_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.running.session.find_spec", lambda _: None)
    assert main(["run", "--backends", "llguidance", "--decode", "--out", str(tmp_path / "run")]) == BAD_INPUT
    assert 'pip install "grammarbench[decode]"' in capsys.readouterr().err and not (tmp_path / "run").exists()
