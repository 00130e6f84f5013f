"""What a run will walk: chosen, checked and judged before anything starts."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest
from synthetic import info

from harness.cases import plan as plans
from harness.cases.case import Case
from harness.cases.case_line import case_from_line
from harness.cases.generated.generator import Generator
from harness.cases.plan import PROFILES, Profile, check_named, made_documents, write_plan
from harness.cases.suite import find_suite
from harness.cli.main import main
from harness.errors import BadInput
from harness.oracle.judge.drafts import DRAFT_URIS
from harness.rows.store import read_rows
from harness.rows.writer import Writer

SOME = Profile(5, 1.0, ("bytes",))
SOME_MORE = Profile(10, 1.0, ("bytes",))


def suite_file(folder: Path, name: str, cases: list[dict[str, object]]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def planned(path: Path) -> list[tuple[str, Case]]:
    return [
        (suite, case) for suite, _, case in map(case_from_line, path.read_bytes().splitlines(keepends=True))
    ]


MANY: list[dict[str, object]] = [
    {"description": str(n), "regex": f"a{n}", "tests": [{"text": f"a{n}", "valid": True}]} for n in range(50)
]


def test_a_profile_takes_the_same_sample_wherever_the_cases_stand(tmp_path: Path) -> None:
    shuffled = random.Random(3).sample(MANY, len(MANY))
    chosen = []
    for name, cases in (("first", MANY), ("second", shuffled)):
        plan = write_plan(
            [find_suite(str(suite_file(tmp_path, f"{name}.jsonl", cases)))], SOME, 0, tmp_path / "plan"
        )
        assert len(plan.offsets) == 5 and plan.suites[name]["cases"] == plan.suites[name]["instances"] == 5
        chosen.append({case.id for _, case in planned(tmp_path / "plan")})
    assert chosen[0] == chosen[1]
    write_plan([find_suite(str(tmp_path / "first.jsonl"))], SOME, 1, tmp_path / "plan")
    assert {case.id for _, case in planned(tmp_path / "plan")} != chosen[0], (
        "another seed takes another sample"
    )


def test_a_sample_is_the_same_where_a_grammar_repeats(tmp_path: Path) -> None:
    chosen = []
    for folder, order in (("a", range(6)), ("b", reversed(range(6)))):
        for place, number in enumerate(order):
            case = {"schema": {"type": "integer"}, "tests": [{"data": number, "valid": True}]}
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{place}.json").write_text(json.dumps(case))
        write_plan([find_suite(str(tmp_path / folder))], Profile(3, 1.0, ("bytes",)), 0, tmp_path / "plan")
        chosen.append({case.instances[0].content for _, case in planned(tmp_path / "plan")})
    assert chosen[0] == chosen[1] and len(chosen[0]) == 3


def test_documents_made_before_go_to_the_case_of_their_suite(tmp_path: Path) -> None:
    """Two suites hold the same schema, which has one id in both, and one of them asserts formats."""
    schema = {"type": "string", "format": "date"}
    suites = [
        find_suite(str(suite_file(tmp_path, "plain.jsonl", [{"schema": schema}]))),
        find_suite(
            str(suite_file(tmp_path, "x.jsonl", [{"schema": schema, "options": {"format": "assert"}}]))
        ),
    ]
    first = write_plan(suites, SOME, 0, tmp_path / "first")
    again = write_plan(suites, SOME, 0, tmp_path / "again", made=made_documents(tmp_path / "first"))
    assert again == first and planned(tmp_path / "again") == planned(tmp_path / "first")
    plain, asserting = (case for _, case in planned(tmp_path / "first"))
    assert plain.id == asserting.id and plain.instances != asserting.instances


def test_a_plan_is_the_same_however_many_work_on_it(tmp_path: Path) -> None:
    """Schemas that are slow to make documents for stand before quick ones; the order stays."""
    slow: dict[str, object] = {
        "type": "array",
        "items": {"type": "string", "pattern": "^[a-z]{3}[0-9]{3}$"},
        "minItems": 3,
    }
    quick: dict[str, object] = {"const": 1}
    cases: list[dict[str, object]] = [
        {"description": str(number), "schema": {**schema, "title": str(number)}}
        for number, schema in enumerate([slow, quick, quick, slow, quick])
    ]
    suites = [find_suite(str(suite_file(tmp_path, "x.jsonl", [*cases, *MANY[:5]])))]
    written = [
        write_plan(suites, SOME_MORE, 0, tmp_path / str(workers), workers=workers) for workers in (1, 3)
    ]
    assert written[0] == written[1] and written[0].suites["x"]["generated"] > 5
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


def test_a_run_of_bare_schemas_goes_on_with_the_documents_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busier machine fewer documents are made in time; the run would be refused as another one."""
    suite = suite_file(tmp_path, "bare.jsonl", [{"description": "small", "schema": {"type": "integer"}}])
    given = ["run", str(suite), "--backends", "reference", "--vocabularies", "bytes", "--effort", "0"]
    assert main([*given, "--out", str(tmp_path / "run")]) == 0
    rows = tmp_path / "run" / "rows.jsonl"
    whole = rows.read_text().splitlines(keepends=True)
    assert len(whole) > 3
    rows.write_text("".join(whole[:1]))
    (tmp_path / "run" / "samples.i64").unlink()
    monkeypatch.setattr(Generator, "with_instances", lambda self, case: case)
    assert main([*given, "--out", str(tmp_path / "run"), "--resume"]) == 0
    assert len(rows.read_text().splitlines()) == len(whole)


def test_each_offset_is_where_its_case_begins(tmp_path: Path) -> None:
    plan = write_plan(
        [find_suite(str(suite_file(tmp_path, "x.jsonl", MANY)))], PROFILES["default"], 0, tmp_path / "plan"
    )
    content = (tmp_path / "plan").read_bytes()
    names = [case_from_line(content[offset:].splitlines(keepends=True)[0])[2].name for offset in plan.offsets]
    assert names == [str(n) for n in range(50)] and set(plan.dialects) == {"regex"}


def test_two_suites_of_one_name_stay_two(tmp_path: Path) -> None:
    suites = [
        find_suite(str(suite_file(tmp_path, f"{folder}/tests.jsonl", MANY[:2]))) for folder in ("a", "b")
    ]
    plan = write_plan(suites, SOME, 0, tmp_path / "plan")
    assert list(plan.suites) == ["tests", "tests-2"]
    assert {suite for suite, _ in planned(tmp_path / "plan")} == {"tests", "tests-2"}


def test_a_folder_whose_name_is_no_text_has_a_name_that_a_run_can_hold(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"odd\xffname")
    suites = [
        find_suite(str(each))
        for each in (
            suite_file(folder, "x.jsonl", MANY[:1]).parent,
            suite_file(tmp_path, "y.jsonl", [{"suite": "\udfff"}]),
        )
    ]
    assert [suite.name for suite in suites] == [r"odd\udcffname", r"\udfff"]
    plan = write_plan(suites[:1], SOME, 0, tmp_path / "plan")
    with Writer(tmp_path, info(suites=plan.suites)) as run:
        run.finish("now")
    assert list(read_rows(tmp_path)) == []


def test_an_instance_without_verdict_is_judged(tmp_path: Path) -> None:
    cases: list[dict[str, object]] = [
        {
            "schema": {"type": "integer"},
            "tests": [{"data": 1}, {"data": "x"}, {"text": "1.0"}, {"data": 2, "valid": False}],
        },
        {"regex": "a+", "tests": [{"text": "aa"}, {"text": "ab"}]},
        {"ebnf": 'root ::= "a"', "tests": [{"text": "a"}]},
        {"lark": 'start: "a"', "tests": [{"text": "a"}, {"text": "b"}]},
        {"lark": "start: <[1]>", "tests": [{"text": "a"}]},
    ]
    write_plan(
        [find_suite(str(suite_file(tmp_path, "x.jsonl", cases)))], PROFILES["default"], 0, tmp_path / "plan"
    )
    verdicts = [[each.valid for each in case.instances] for _, case in planned(tmp_path / "plan")]
    assert verdicts == [[True, False, True, None], [True, False], [True], [True, False], [None]], (
        "the wrong flag is questioned, and tokens have no reference"
    )


def test_every_schema_that_is_none_is_counted(tmp_path: Path) -> None:
    cases: list[dict[str, object]] = [
        {"description": "wrong type", "schema": {"type": "strin"}},
        {"description": "right", "schema": {"type": "string"}},
        {"description": "wrong bound", "schema": {"minimum": "1"}},
    ]
    path = suite_file(tmp_path, "x.jsonl", cases)
    with pytest.raises(
        BadInput, match=r"jsonl: wrong type: not a JSON Schema: .*\(and 1 more like it: wrong bo"
    ):
        write_plan([find_suite(str(path))], SOME, 0, tmp_path / "plan")


def test_a_file_of_maskbench_whose_schema_is_none_is_left_out(tmp_path: Path) -> None:
    """And no document is made where a case of somebody who can mend it is wrong."""
    twice = {"$schema": DRAFT_URIS["draft4"], "enum": ["a", "a"]}
    published = {"schema": twice, "meta": {"raw_features": ["enum"]}, "tests": [{"data": "a", "valid": True}]}
    cases: list[dict[str, object]] = [{**published, "description": "o66201"}, *MANY[:2]]
    path = suite_file(tmp_path, "x.jsonl", cases)
    plan = write_plan([find_suite(str(path))], SOME, 0, tmp_path / "plan")
    assert len(plan.offsets) == plan.suites["x"]["cases"] == plan.suites["x"]["cases_in_all"] == 2
    (line,) = plan.left_out
    said = r"x: 1 case of MaskBench left out, whose schema is none: o66201 \(the first: .*twice\)"
    assert re.fullmatch(said, line)
    suite_file(tmp_path, "x.jsonl", cases[:1])
    with pytest.raises(BadInput, match=said):
        write_plan([find_suite(str(path))], SOME, 0, tmp_path / "plan")
    suite_file(tmp_path, "x.jsonl", [*MANY[:2], {"schema": twice, "description": "mine"}])
    (tmp_path / "plan").unlink()
    with pytest.raises(BadInput, match="mine: not a JSON Schema"):
        write_plan([find_suite(str(path))], SOME, 0, tmp_path / "plan")
    assert not (tmp_path / "plan").exists()


NOWHERE = {"$ref": "#/nope"}
DRAFT_4, DRAFT_7 = DRAFT_URIS["draft4"], DRAFT_URIS["draft7"]


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/nope"}}}, "#/$defs/nope"),
        ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}}}, "#/$defs/b"),
        ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": True, "b": {"$ref": "#/$defs/c"}}}, ""),
        ({"items": {"$ref": "#/$defs/a~1b%20c"}, "$defs": {"a/b c": {"items": {"$ref": "#"}}}}, ""),
        (
            {"const": {"$ref": "#/nope"}, "items": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
            "",
        ),
        ({"$id": "x:y", "items": {"$ref": "x:y#/$defs/a"}, "$defs": {"a": {"$ref": "x:y"}}}, ""),
        ({"$id": "http://x.y/a", "items": {"$ref": "a#/$defs/a"}, "$defs": {"b": True}}, "#/$defs/a"),
        ({"items": {"$ref": "#a"}, "$defs": {"a": {"$anchor": "a", "items": {"$ref": "#b"}}}}, "#b"),
        ({"items": {"$ref": "#a"}, "$defs": {"a": {"$dynamicAnchor": "a", "items": {"$ref": "#"}}}}, ""),
        ({"items": {"$id": "x:y", "$ref": "#/$defs/a", "$defs": {"a": True}}}, ""),
        ({"$schema": DRAFT_7, "$ref": "#/definitions/a", "items": NOWHERE, "definitions": {"a": {}}}, ""),
        ({"$ref": "#/$defs/a", "items": NOWHERE, "$defs": {"a": {}}}, "#/nope"),
        ({"$ref": "#/allOf/-1", "allOf": [{}]}, "#/allOf/-1"),
        ({"$ref": "#/allOf/00", "allOf": [{}]}, "#/allOf/00"),
        ({"then": NOWHERE, "else": NOWHERE}, ""),
        ({"if": {}, "else": NOWHERE}, "#/nope"),
        ({"$schema": DRAFT_4, "if": NOWHERE, "then": NOWHERE, "contains": NOWHERE}, ""),
        ({"additionalItems": NOWHERE, "contentSchema": NOWHERE, "dependencies": {"a": NOWHERE}}, ""),
        ({"$schema": DRAFT_7, "additionalItems": NOWHERE, "unevaluatedProperties": NOWHERE}, ""),
        ({"$schema": DRAFT_7, "items": [True], "additionalItems": NOWHERE}, "#/nope"),
    ],
)
def test_a_reference_to_nowhere_is_the_schemas_fault_where_it_comes_alone(
    tmp_path: Path, schema: object, lost: str
) -> None:
    bare = [find_suite(str(suite_file(tmp_path, "bare.jsonl", [{"description": "s", "schema": schema}])))]
    if lost:
        with pytest.raises(BadInput, match=re.escape(f"bare.jsonl: s: its reference {lost} leads nowhere")):
            write_plan(bare, SOME, 0, tmp_path / "plan")
    else:
        write_plan(bare, SOME, 0, tmp_path / "plan")
    judged: dict[str, object] = {"schema": schema, "tests": [{"data": {}, "valid": True}]}
    write_plan([find_suite(str(suite_file(tmp_path, "x.jsonl", [judged])))], SOME, 0, tmp_path / "plan")


@pytest.mark.parametrize(
    "outside", ["./common.json#/$defs/A", "https://example.com/a.json", "b", "http://[/#/a"]
)
def test_a_reference_out_of_the_schema_is_told_before_a_backend_is_blamed(
    tmp_path: Path, outside: str
) -> None:
    schema = {"$id": "https://example.com/b.json", "properties": {"a": {"$ref": outside}}}
    bare = [find_suite(str(suite_file(tmp_path, "bare.jsonl", [{"description": "s", "schema": schema}])))]
    said = re.escape(
        f"bare.jsonl: s: its reference {outside} leads out of the schema, and nothing is fetched; put"
    )
    with pytest.raises(BadInput, match=said):
        write_plan(bare, SOME, 0, tmp_path / "plan")


@pytest.mark.parametrize(
    ("property_", "hint"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, ' (in draft 4 it is one; add "$schema": "http://json-sch'),
        ({"type": "string", "required": True}, ' (in draft 3 it is one; add "$schema": "http://json-schema'),
        ({"exclusiveMaximum": "x"}, ""),
        ({"required": "x"}, ""),
        ({"minLength": "x"}, ""),
    ],
)
def test_a_schema_of_an_older_draft_is_told_to_name_it(tmp_path: Path, property_: object, hint: str) -> None:
    schema = {"type": "object", "properties": {"a": property_}}
    line: dict[str, object] = {"description": "s", "schema": schema}
    with pytest.raises(BadInput, match="s: not a JSON Schema: ") as caught:
        write_plan([find_suite(str(suite_file(tmp_path, "x.jsonl", [line])))], SOME, 0, tmp_path / "plan")
    assert (hint in str(caught.value)) if hint else ("draft" not in str(caught.value))
    line["options"] = {"draft": "draft7"}
    with pytest.raises(BadInput, match="not a JSON Schema") as caught:
        write_plan([find_suite(str(suite_file(tmp_path, "y.jsonl", [line])))], SOME, 0, tmp_path / "plan")
    assert "it is one" not in str(caught.value)


def test_each_case_that_is_named_must_be_there(tmp_path: Path) -> None:
    suites = [find_suite(str(suite_file(tmp_path, "x.jsonl", MANY[:12])))]
    check_named(suites, ())
    check_named(suites, ("11", "10", "11"))
    for wanted, said in (
        (("1", "9a"), r'^no case "9a" in x; did you mean "9"\?$'),
        (("nope", "1", "nor"), r'^no case "nope" in x \(and 1 more that is not there\); known: 0, 1'),
    ):
        with pytest.raises(BadInput, match=said):
            check_named(suites, wanted)


def test_a_run_without_cases_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no case in empty"):
        write_plan([find_suite(str(suite_file(tmp_path, "empty.jsonl", [])))], SOME, 0, tmp_path / "plan")


def test_a_case_that_no_run_could_read_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = find_suite(str(suite_file(tmp_path, "x.jsonl", MANY[:3])))
    write_plan([suite], SOME, 0, tmp_path / "plan")
    monkeypatch.setattr(plans, "LONGEST_CASE", 100)
    with pytest.raises(BadInput, match=r"x: [012]: a case of 0 MiB as a run stores it"):
        write_plan([suite], SOME, 0, tmp_path / "plan")
