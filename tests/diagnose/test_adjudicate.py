"""Adjudication names the guilty arm, with a document that shows it, and nobody else."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest
import synthetic
from adjudicated import GOOD, SCHEMA, a_run, guilty, judged
from miniatures.wrong_walks import OPEN, READING
from places import SUPPORT

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id
from harness.cli import progress
from harness.cli.main import main
from harness.cli.progress import Ticker
from harness.diagnose.adjudicate import WITNESSES, Settings, Summary, adjudicate
from harness.diagnose.adjudicate.causes import experiments, names_alone, place
from harness.errors import BadInput

pytestmark = pytest.mark.usefixtures("importable_miniatures")

BYTES = {"bytes": {"size": 257, "sha256": ""}}


def is_valid(document: str) -> bool:
    try:
        return bool(jsonschema.Draft202012Validator(READING).is_valid(json.loads(bytes.fromhex(document))))
    except ValueError:
        return False


def test_right_arms_are_not_blamed(tmp_path: Path) -> None:
    summary, witnesses = judged(a_run(tmp_path, "Reading", "Twin"))
    assert witnesses == [] and not summary.lost
    assert summary.cases == 1 and summary.positions > 0 and summary.documents > 3
    assert summary.tokens == 0


GUILTY = {
    "ForgetsRequired": ("under_constrained", {"required"}),
    "TakesUndefined": ("under_constrained", {"no_json"}),
    "RefusesNegative": ("over_constrained", {"at_number", "number_forms"}),  # -0 is 0
    "RefusesExponents": ("over_constrained", {"number_forms"}),
    "RefusesEscapes": ("over_constrained", {"escapes"}),
    "InOrder": ("over_constrained", {"property_order"}),
    "Compact": ("over_constrained", {"whitespace"}),
}


@pytest.fixture(scope="module")
def trial_of_many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, list[dict[str, object]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SUPPORT))
        return judged(a_run(tmp_path_factory.mktemp("many"), "Reading", *GUILTY), tries=1)


@pytest.mark.parametrize("name", GUILTY)
def test_the_guilty_one_is_named_with_a_true_witness(
    name: str, trial_of_many: tuple[Summary, list[dict[str, object]]]
) -> None:
    summary, witnesses = trial_of_many
    kind, causes = GUILTY[name]
    mine = [each for each in witnesses if str(each["arm"]).endswith(f":{name}")]
    assert mine and {each["kind"] for each in mine} == {kind}
    # What two wrong things in one document do to it may be named together.
    assert causes & {part for each in mine for part in str(each["cause"]).split("+")}
    for each in mine:
        valid = kind == "over_constrained"
        assert is_valid(str(each["document"])) is valid is each["judge"] is each["second"]
        assert (each["refused_at"] is not None) is valid
        assert each["decided_by"] == "both"
    assert {kind for arm, kind, _, _ in summary.blamed if arm.endswith(f":{name}")} == {kind}


def test_the_right_one_among_many_wrong_ones_is_not_blamed(
    trial_of_many: tuple[Summary, list[dict[str, object]]],
) -> None:
    summary, witnesses = trial_of_many
    assert not summary.lost and summary.cases == 1
    assert summary.decided["both"] > 0 and summary.decided.total() == summary.tokens
    assert not summary.decided["open"] and not summary.decided["documents"]
    assert "Reading" not in {name for name, _, _ in guilty(witnesses)}
    assert all(each["other"] and each["other"] != each["arm"] for each in witnesses)


def test_two_guilty_ones_do_not_hide_each_other(tmp_path: Path) -> None:
    _, witnesses = judged(a_run(tmp_path, "ForgetsRequired", "Compact"))
    assert guilty(witnesses) == {
        ("ForgetsRequired", "under_constrained", "required"),
        ("Compact", "over_constrained", "whitespace"),
    }


def test_one_arm_alone_is_judged_by_what_it_writes(tmp_path: Path) -> None:
    summary, witnesses = judged(a_run(tmp_path, "ForgetsRequired"))
    assert guilty(witnesses) == {("ForgetsRequired", "under_constrained", "required")}
    assert summary.positions == 0


def test_an_instance_that_the_run_decided_wrongly_is_looked_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though there are more valid ones than are looked at."""
    monkeypatch.setattr("harness.diagnose.adjudicate.trial.ALONE", ())
    valid = tuple(Instance(f"{n}", f'{{"n": {n}, "s": "x"}}'.encode(), True) for n in range(7))
    instances = (*valid, Instance("without s", b'{"n": 1}', False))
    folder = a_run(tmp_path / "before", "ForgetsRequired", instances=instances)
    assert judged(folder)[1] == [], "six others come before it"
    folder = a_run(tmp_path / "after", "ForgetsRequired", instances=instances, accepted_invalid=(7,))
    assert guilty(judged(folder)[1]) == {("ForgetsRequired", "under_constrained", "required")}


def test_another_tokenization_is_no_blame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.diagnose.adjudicate.trial.ALONE", ())
    folder = a_run(tmp_path, "Reading", "TakesOneTokenization", vocabulary="probe")
    summary, witnesses = judged(folder, tries=1, positions=2)
    assert witnesses == [] and summary.tokens > 0
    assert summary.tokenization_only > 0


def test_an_arm_that_hangs_is_killed_and_the_others_go_on(tmp_path: Path) -> None:
    boom = (*GOOD, Instance("boom", b'{"n": 1, "s": "boom"}', True))
    summary, witnesses = judged(
        a_run(tmp_path, "Reading", "ForgetsRequired", "HangsAtBoom", instances=boom), timeout_s=1.0
    )
    assert guilty(witnesses) == {("ForgetsRequired", "under_constrained", "required")}
    assert summary.lost == {"miniatures.wrong_walks:HangsAtBoom": 1}
    assert summary.positions > 0 and "killed after 1 s" in summary.troubles[0]


def test_the_same_twice(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "Reading", "InOrder")
    assert judged(folder, tries=1, positions=2) == judged(folder, tries=1, positions=2)


def test_an_arm_that_did_not_compile_the_case_is_left_out(tmp_path: Path) -> None:
    case = Case(case_id(SCHEMA), "the case", SCHEMA, GOOD)
    names = ("Reading", "ForgetsRequired", "TakesUndefined")
    arms = [f"miniatures.wrong_walks:{name}" for name in names]
    rows = [
        synthetic.row(backend=arms[0], backend_version="", vocabulary="bytes", case_id=case.id),
        synthetic.row(
            backend=arms[1],
            backend_version="",
            vocabulary="bytes",
            case_id=case.id,
            status="unsupported",
            phase="compile",
        ),
        synthetic.row(
            backend=arms[2],
            backend_version="",
            vocabulary="bytes",
            case_id=case.id,
            status="timeout",
            phase="compile",
        ),
    ]
    header = synthetic.info(
        [Arm(each, "", "", "", ("json_schema",), "bitmask") for each in arms], vocabularies=BYTES
    )
    synthetic.write_run(tmp_path, [[(row, b"")] for row in rows], header, [("first", case)])
    summary, witnesses = judged(tmp_path)
    assert summary.cases == 1 and summary.positions == 0 and witnesses == []


HARMS = {
    "Segfaults": "killed by SIGSEGV",
    "EatsMemory": "GB of resident memory",
    "Raises": "it raised RuntimeError",
    "ExitsSilently": "exit code 0",
    "WritesIntoPipes": "it wrote into the pipe",
    "ClosesDescriptors": "it closed the pipes",
}


def test_harm_costs_an_arm_its_case_and_no_more(tmp_path: Path) -> None:
    grammars = [Grammar("json_schema", json.dumps({"enum": words})) for words in (["one"], ["boom"], ["two"])]
    cases = [Case(case_id(each), f"case {number}", each, ()) for number, each in enumerate(grammars)]
    arms = [
        Arm(f"miniatures:{name}", "", "", "", ("json_schema",), "bitmask") for name in ("Reference", *HARMS)
    ]
    rows = [
        synthetic.row(backend=arm.backend, backend_version="", vocabulary="bytes", case_id=case.id)
        for case in cases
        for arm in arms
    ]
    header = synthetic.info(arms, vocabularies=BYTES, memory_bytes=10**9, timeout_s=60.0)
    synthetic.write_run(tmp_path, [[(row, b"")] for row in rows], header, [("first", case) for case in cases])
    summary, witnesses = judged(tmp_path, timeout_s=60.0)
    assert summary.lost == {f"miniatures:{name}": 1 for name in HARMS}
    assert all(each.startswith("case 1: ") for each in summary.troubles)
    for name, how in HARMS.items():
        assert any(f"miniatures:{name} " in each and how in each for each in summary.troubles), (
            name,
            summary.troubles,
        )
    assert (
        summary.cases == 3
        and summary.documents >= 3
        and guilty(witnesses) <= {("Reference", "over_constrained", "whitespace")}
    )


def test_an_arm_that_cannot_load_is_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    folder = a_run(tmp_path, "Reading", "NoSuchAdapter")
    with pytest.raises(BadInput, match="NoSuchAdapter"):
        adjudicate(folder, Settings(), said.append)
    assert not (folder / WITNESSES).exists()


def test_the_summary_names_an_arm_that_did_not_load(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "Reading", "ForgetsRequired", "unruly:DiesWhileLoading")
    summary, witnesses = judged(folder, tries=1, positions=2)
    (why,) = summary.left_out
    assert why.startswith("miniatures.unruly:DiesWhileLoading with bytes: ") and "while it loaded" in why
    assert f"\nleft out: {why}\n" in summary.text() and summary.to_json()["left_out"] == [why]
    assert guilty(witnesses) == {("ForgetsRequired", "under_constrained", "required")}
    assert not summary.lost


@pytest.mark.parametrize(("vocabularies", "said"), [(("bytes",), False), (("bytes", "probe"), True)])
def test_the_summary_says_that_a_case_counts_for_each_vocabulary(
    vocabularies: tuple[str, ...], said: bool, tmp_path: Path
) -> None:
    arm = Arm("miniatures.wrong_walks:ForgetsRequired", "", "", "", ("json_schema",), "bitmask")
    case = Case(case_id(SCHEMA), "the case", SCHEMA, GOOD)
    rows = [
        synthetic.row(backend=arm.backend, backend_version="", vocabulary=name, case_id=case.id)
        for name in vocabularies
    ]
    sizes = {name: {"size": 257, "sha256": ""} for name in vocabularies}
    header = synthetic.info([arm], vocabularies=sizes)
    synthetic.write_run(tmp_path, [[(row, b"")] for row in rows], header, [("first", case)])
    summary, _ = judged(tmp_path, tries=1, positions=2)
    assert summary.cases == summary.to_json()["vocabularies"] == len(vocabularies)
    assert set(summary.blamed.values()) == {len(vocabularies)}
    assert ("every case counts once for each of 2 vocabularies" in summary.text()) == said


def test_formats_blame_nobody_unless_they_are_assertions(tmp_path: Path) -> None:
    """`s` must be an address: the schema's arms do not care."""
    strict = Grammar("json_schema", json.dumps({**READING, "properties": {"n": {}, "s": {"format": "ipv4"}}}))
    assert json.loads(strict.text) != READING
    folder = a_run(tmp_path, "TakesFormats", grammar=strict)
    summary, witnesses = judged(folder)
    assert witnesses == [] and summary.formats_decide > 0
    summary, witnesses = judged(folder, formats=True)
    assert (
        guilty(witnesses) == {("TakesFormats", "under_constrained", "format")} and summary.formats_decide == 0
    )


def test_a_run_without_json_schema_has_nothing_to_adjudicate(tmp_path: Path) -> None:
    summary, witnesses = judged(a_run(tmp_path, "Reading", grammar=Grammar("regex", "a+")))
    assert (summary.cases, witnesses) == (0, [])


@pytest.mark.parametrize(
    ("document", "at", "where"),
    [
        (b'{"a": 1}', 0, "at_structure"),
        (b'{"a": 1}', 1, "at_name"),
        (b'{"a": 1}', 2, "at_name"),
        (b'{"a": 1}', 4, "at_structure"),
        (b'{"a": 1}', 5, "at_number"),
        (b'{"a": 1.5}', 7, "at_number"),
        (b'{"a": "\\""}', 8, "at_string"),
        (b'{"a": "x", "b": true}', 6, "at_string"),
        (b'{"a": "x", "b": true}', 10, "at_name"),
        (b'{"a": "x", "b": true}', 15, "at_literal"),
        (b'["x", "y"]', 5, "at_string"),
        (b'[{"x": [1]}, 2]', 11, "at_structure"),
        (b"1", 1, "at_end"),
    ],
)
def test_the_place_of_a_refusal(document: bytes, at: int, where: str) -> None:
    assert place(document, at) == where


def test_experiments_take_one_thing_away_after_another() -> None:
    schema = json.dumps({"properties": {"a": {}, "b": {"properties": {"c": {}, "d": {}}}}})
    document = b'{ "b" : {"d": 1e1, "c": "\\u0041"} , "x": 0, "a": 1 }'
    first, *others = experiments(schema, document)
    assert first.cause == "" and {b'{"a":1,"b":{"c":"A","d":10}}', b'{"a":1,"b":{"c":"A","d":10},"x":0}'} <= {
        *first.without
    }
    found = {each.cause: each for each in others}
    assert found["whitespace"].without[0] == b'{"b":{"d":1e1,"c":"\\u0041"},"x":0,"a":1}'
    assert found["unlisted_name"].without == (b'{"b":{"d":1e1,"c":"\\u0041"},"a":1}',)
    assert b'{"b":{"d":1e1,"c":"\\u0041"},"x":null,"a":1}' in found["unlisted_name"].bare
    assert {*found} >= {"property_order", "escapes", "number_forms", "whitespace+property_order+escapes"}
    assert [each.cause for each in experiments(schema, b'{"a":1}')] == ["", "whitespace"]
    assert list(experiments(schema, b"{")) == []


def test_experiments_on_characters() -> None:
    found = {
        each.cause: each for each in experiments(json.dumps(OPEN), '{"s":"","\\u0061\x7fé":"q"}'.encode())
    }
    assert set(found["escapes"].without) == {'{"s":"","a\x7fé":"q"}'.encode()}
    escaped_only = next(
        each for each in experiments(json.dumps(OPEN), b'{"s":"\\n"}') if each.cause == "escapes"
    )
    assert b'{"s":"x"}' in escaped_only.without
    assert found["raw_delete_character"].without == (
        '{"s":"","\\u0061\\u007fé":"q"}'.encode(),
        '{"s":"","\\u0061xé":"q"}'.encode(),
    )
    assert found["name_characters"].without == (b'{"s":"","\\u0078xx":"q"}',)
    assert b'{"s":"","other1":"a"}' in found["unlisted_name"].bare
    assert names_alone(b'{"a": "b"}') == (b'{"\\u0061": "b"}', b'{"a": "\\u0062"}')
    assert names_alone(b'{"a": 1}') is None


OWN_CAUSE = {
    "Open": set(),
    "RefusesRawDelete": {"raw_delete_character"},
    "RefusesEscapesInNames": {"escapes_in_names"},
    "RefusesEscapesAnywhere": {"escapes"},
    "RefusesUnlistedNames": {"unlisted_name"},
    "RefusesNumbersAsWell": {"at_number"},
}
"""What a backend is wrong in, and nothing else, whatever else stands in the documents that it refuses."""


def test_each_arm_gets_its_own_cause_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.diagnose.adjudicate.trial.ALONE", ())
    documents = (
        '{"s": "x", "a\x7fb": 1}', '{"s": "x", "\\u0061": "y"}', '{"s": "\x7f"}',
        '{"s": "x\\n", "b": "\x7f"}',
        '{"s": "x", "c": 2, "d": []}',
    )  # fmt: skip
    instances = tuple(Instance(each, each.encode(), True) for each in documents)
    grammar = Grammar("json_schema", json.dumps(OPEN))
    summary, witnesses = judged(
        a_run(tmp_path, *OWN_CAUSE, instances=instances, grammar=grammar), tries=1, positions=0
    )
    assert not summary.lost and {kind for _, kind, _ in guilty(witnesses)} == {"over_constrained"}
    causes = {name: {cause for arm, _, cause in guilty(witnesses) if arm == name} for name in OWN_CAUSE}
    assert causes == OWN_CAUSE


@pytest.mark.parametrize("missing", ["nowhere", "cases.jsonl"])
def test_a_run_that_is_not_there_is_told_as_such(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "nowhere"
    if missing != "nowhere":
        a_run(folder, "Reading")
        (folder / missing).unlink()
    assert main(["adjudicate", str(folder)]) == 2
    told = capsys.readouterr().err
    assert f"{folder}: no run here (no " in told and "stored" not in told and "Errno" not in told
    assert not (folder / f"{WITNESSES}.part").exists()


def test_adjudicate_tells_on_stderr_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress is printed by the clock, so that a slow case is not silent; stdout holds the answer alone."""
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    folder = a_run(tmp_path, "Reading", "Twin")
    assert main(["adjudicate", str(folder), "--effort", "2", "--tries", "1", "--json"]) == 0
    told = capsys.readouterr()
    json.loads(told.out)
    assert (
        "0/1 cases (0 %)" in told.err
        and ("starting miniatures.wrong_walks:Reading, miniatures.wrong_walks:Twin with bytes") in told.err
    )
    assert "time left unknown; now the case (bytes)" in told.err and "bytes 1/1 the case: " in told.err


def test_the_time_left_is_estimated_from_what_is_done() -> None:
    now = [0.0]
    ticker = Ticker(io.StringIO(), lambda: now[0])
    with ticker:
        ticker.step(3, 12, "the fourth")
        now[0] = 100.0
        assert ticker.line() == "3/12 cases (25 %), 100 s so far, about 5 min left; now the fourth"


def test_the_summary_counts_one_as_one() -> None:
    summary = Summary(cases=1, positions=1, tokens=1, documents=1, unfinished=1, unjudged=1)
    summary.lost["a"] = summary.dead_ends["a"] = summary.blamed["a", "over_constrained", "escapes", False] = 1
    said = summary.text()
    assert said.startswith(
        "1 case, 1 position compared, 1 disputed token, 1 document put to the validators\n"
    )
    assert "1 walk unfinished, 1 document without a verdict of both validators" in said
    assert "a: lost in 1 case\n" in said and "a: 1 walk into a dead end" in said
    assert said.endswith("1 case  escapes")
