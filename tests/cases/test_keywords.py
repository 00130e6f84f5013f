"""The suite of keywords: what its cases promise, that it is what the generator writes, and the truth table
that is read from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from places import ROOT
from synthetic import HOSTILE, row, slow_and_quick

from harness.backend.grammar import Grammar
from harness.cases.case import Case, json_text
from harness.cases.keywords.generate import NoInstance, case_of, suite_text
from harness.cases.keywords.spec import Spec, last, without
from harness.cases.suite import find_suite, read_cases
from harness.oracle.judge import check_schema, is_valid
from harness.outcomes.keywords import (
    STATES,
    Decision,
    KeywordCell,
    Section,
    State,
    TruthTable,
    table_of,
    truth_table,
)
from harness.report.tables.keywords import keywords_json, keywords_markdown, keywords_text
from harness.rows.row import CHECKS_MODE, Row

PATH = ROOT / "suites" / "keywords.jsonl"
HEADER, *LINES = [json.loads(line) for line in PATH.read_text(encoding="utf-8").split("\n") if line]
CASES = list(read_cases(find_suite("keywords")))

NO_ASSERTION = {
    "$schema",
    "$vocabulary",
    "$comment",
    "title",
    "description",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "examples",
}
NO_ASSERTION |= {"contentEncoding", "contentMediaType", "contentSchema", "$dynamicAnchor"}
"""Keywords that forbid nothing, and the anchor that the cases of `$dynamicRef` have."""


def tag(case: Case, name: str) -> str:
    """The value of the case's tag of that name; empty if it has none."""
    return next((each.removeprefix(f"{name}:") for each in case.tags if each.startswith(f"{name}:")), "")


def verdict(case: Case, schema: Any, content: bytes) -> bool:
    grammar = Grammar("json_schema", json_text(schema))
    return is_valid(
        grammar,
        content,
        draft=case.options.get("draft"),
        assert_formats=case.options.get("format") == "assert",
    )


def relieved(schema: Any, keyword: str) -> Iterator[Any]:
    """The schema without the keyword, once for each node that has it."""
    if isinstance(schema, dict):
        if keyword in schema:
            yield {name: value for name, value in schema.items() if name != keyword}
        for name, value in schema.items():
            for each in relieved(value, keyword):
                yield {**schema, name: each}
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            for each in relieved(value, keyword):
                yield [*schema[:number], each, *schema[number + 1 :]]


# -------------------------------------------------------------------------------------------------- the suite


@pytest.mark.long
def test_the_committed_file_is_what_the_generator_writes() -> None:
    assert suite_text() == PATH.read_text(encoding="utf-8")


def test_header_names_the_suite_and_its_version() -> None:
    assert HEADER.keys() == {"suite", "version", "description"} and HEADER["suite"] == "keywords"


def test_verdicts_are_the_judges_and_the_forbidden_is_allowed_without_the_keyword_that_decides() -> None:
    for case in CASES:
        schema = json.loads(case.grammar.text)
        assert check_schema(case.grammar.text, case.options.get("draft")) is None, case.name
        others = list(relieved(schema, tag(case, "decides")))
        assert others, case.name
        assert {each.valid for each in case.instances} == {True, False}, case.name
        for each in case.instances:
            assert verdict(case, schema, each.content) == each.valid, (case.name, each.name)
            if not each.valid:
                assert any(verdict(case, other, each.content) for other in others), (case.name, each.name)


def test_a_second_validator_agrees() -> None:
    """But on formats, which it reads in its own way here and there."""
    for case in CASES:
        if "format" not in case.options:
            validator = jsonschema_rs.validator_for(json.loads(case.grammar.text))
            judged = {each.name: validator.is_valid(json.loads(each.content)) for each in case.instances}
            assert judged == {each.name: each.valid for each in case.instances}, case.name


def test_an_instance_says_what_forbids_it() -> None:
    for case in CASES:
        for each in case.instances:
            assert each.name.startswith(f"only {tag(case, 'decides')} forbids ") is (each.valid is False), (
                case.name,
                each.name,
            )


def test_every_keyword_that_constrains_has_cases() -> None:
    registry: Any = import_module("jsonschema_specifications").REGISTRY
    known: set[str] = set()
    for name in ("core", "applicator", "validation", "unevaluated", "format-annotation"):
        contents = registry.contents(f"https://json-schema.org/draft/2020-12/meta/{name}")
        known |= set(contents["properties"])
    alone = {tag(case, "keyword") for case in CASES if not tag(case, "pair") and not tag(case, "at")}
    assert known - NO_ASSERTION - alone == set()
    assert {"additionalItems", "dependencies", "definitions"} <= alone


def test_every_type_has_a_case_and_so_have_types_together() -> None:
    values = {
        json.dumps(line["schema"]["type"])
        for line in LINES
        if line["tags"][0] == "keyword:type" and line["schema"].keys() == {"type"}
    }
    assert {
        f'"{name}"' for name in ("null", "boolean", "integer", "number", "string", "array", "object")
    } <= values
    assert sum(value.startswith("[") for value in values) >= 2


def test_pairs_are_many_and_most_are_tried_in_both_roles() -> None:
    roles: dict[str, set[str]] = {}
    for case in CASES:
        if pair := tag(case, "pair"):
            roles.setdefault(pair, set()).add(tag(case, "decides"))
            assert tag(case, "decides") in pair.partition(" ")[0].split("+"), case.name
            assert set(pair.partition(" ")[0].split("+")) <= json.loads(case.grammar.text).keys(), case.name
    assert len(roles) >= 150
    assert sum(len(each) == 2 for each in roles.values()) >= 0.9 * len(roles)


def test_in_a_pair_the_keyword_that_decides_is_written_last() -> None:
    for case in CASES:
        if tag(case, "pair"):
            assert list(json.loads(case.grammar.text))[-1] == tag(case, "decides"), case.name


def test_a_dozen_keywords_stand_in_every_place() -> None:
    seen = {(tag(case, "decides"), tag(case, "at")) for case in CASES}
    places = {"properties", "items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref"}
    keywords = {keyword for keyword, place in seen if place == "items"}
    assert len(keywords) >= 12
    assert set(product(keywords, places)) <= seen


def test_instances_keep_the_order_of_the_properties() -> None:
    """Backends that fix the order document it; here it would only hide what they make of a keyword."""
    for line in LINES:
        declared = list(line["schema"].get("properties", {}))
        for test in line["tests"]:
            if isinstance(test["data"], dict):
                present = [name for name in test["data"] if name in declared]
                assert list(test["data"])[: len(present)] == [name for name in declared if name in present], (
                    line["description"]
                )


def test_a_keyword_that_decides_nothing_is_no_case() -> None:
    with pytest.raises(NoInstance, match="minLength"):
        case_of(Spec({"type": "integer", "minLength": 3}, "minLength"))


def test_a_keyword_is_taken_from_its_node_only() -> None:
    schema = {"anyOf": [{"minLength": 1}, {"minLength": 2}], "minLength": 3}
    assert without(schema, (), "minLength") == {"anyOf": [{"minLength": 1}, {"minLength": 2}]}
    assert without(schema, ("anyOf", 1), "minLength") == {"anyOf": [{"minLength": 1}, {}], "minLength": 3}
    assert list(last({"a": 1, "b": 2}, "a")) == ["b", "a"]


# ------------------------------------------------------------------------------- the table, by whole backends


@cache
def schemas() -> dict[str, Any]:
    return {case.name: json.loads(case.grammar.text) for case in CASES}


def walks_of(cases: Iterable[Case]) -> list[tuple[Case, int]]:
    return [(case, number) for case in cases for number in range(len(case.instances))]


def rows_of(
    accepts: Callable[[Case, bytes, bool], bool], cases: Iterable[Case] = CASES, **fields: Any
) -> Iterator[Row]:
    """The rows of a backend that accepts an instance if the function says so."""
    for case, number in walks_of(cases):
        each = case.instances[number]
        assert each.valid is not None
        known = {
            "suite": "keywords",
            "case": case.name,
            "case_id": case.id,
            "tags": case.tags,
            "instance": number,
            "valid": each.valid,
        }
        yield row(**(known | {"accepted": accepts(case, each.content, each.valid)} | fields))


def states(table: TruthTable, section: Section) -> dict[str, State]:
    return {key: cell.state for key, line in table.cells[section].items() for cell in line.values()}


def test_a_perfect_backend_enforces_everything() -> None:
    table = truth_table(rows_of(lambda case, content, valid: valid))
    for section in table.cells:
        assert set(states(table, section).values()) == {"enforced"}
    assert "minLength" in table.cells["keyword"] and "format: date" in table.cells["keyword"]
    assert "minLength in items" in table.cells["place"] and "pattern+minLength" in table.cells["pair"]


def test_a_backend_that_ignores_a_keyword_is_found_wherever_the_keyword_decides() -> None:
    """It drops `maxLength` from the schema, at every node, and is right otherwise."""

    def accepts(case: Case, content: bytes, valid: bool) -> bool:
        return valid or (
            tag(case, "decides") == "maxLength" and verdict(case, dropped(schemas()[case.name]), content)
        )

    def dropped(schema: Any) -> Any:
        if isinstance(schema, dict):
            return {name: dropped(value) for name, value in schema.items() if name != "maxLength"}
        return [dropped(each) for each in schema] if isinstance(schema, list) else schema

    table = truth_table(rows_of(accepts))
    ignored = {
        key for section in table.cells for key, state in states(table, section).items() if state != "enforced"
    }
    assert ignored == {key for section in table.cells for key in table.cells[section] if "maxLength" in key}
    assert {state for section in table.cells for state in states(table, section).values()} == {
        "enforced",
        "silently ignored",
    }
    pair = table.cells["pair"]["pattern+maxLength"][table.arms[0]]
    assert pair.counts == {"silently ignored": 1, "enforced": 1}
    assert not pair.interaction  # it is ignored by itself as well


def test_a_backend_that_ignores_a_keyword_only_beside_another_is_found_in_the_pair_only() -> None:
    """As converters do that return at the first keyword which they know."""
    table = truth_table(
        rows_of(lambda case, content, valid: valid or case.name == "pattern+minLength: minLength decides")
    )
    wrong = [
        key for section in table.cells for key, state in states(table, section).items() if state != "enforced"
    ]
    assert wrong == ["pattern+minLength"]
    (cell,) = table.cells["pair"]["pattern+minLength"].values()
    assert cell.interaction and [each.decides for each in cell.worst] == ["minLength"]
    assert "IGNORED* (minLength)" in keywords_markdown(table) and "IGNORED* 1/2" in keywords_text(table)


def test_a_backend_that_ignores_a_keyword_only_at_one_place_is_found_there_only() -> None:
    table = truth_table(
        rows_of(
            lambda case, content, valid: (
                valid or (tag(case, "at"), tag(case, "decides")) == ("anyOf", "minimum")
            )
        )
    )
    assert [
        key for section in table.cells for key, state in states(table, section).items() if state != "enforced"
    ] == ["minimum in anyOf"]


def test_a_fault_of_the_pair_is_told_from_one_that_the_keyword_has_by_itself() -> None:
    def interaction(alone: list[dict[str, Any]], pair: list[dict[str, Any]]) -> bool:
        rows = [row(case="alone", tags=("keyword:b", "decides:b"), **walk) for walk in alone]
        (cell,) = (
            truth_table([*rows, *(row(tags=PAIR, **walk) for walk in pair)]).cells["pair"]["a+b"].values()
        )
        return cell.interaction

    ignored, wrong = [RIGHT[0], LEAK], [*RIGHT, REFUSED]
    assert interaction(RIGHT, ignored) and interaction(RIGHT, wrong) and interaction(wrong, ignored)
    assert (
        not interaction(ignored, ignored)
        and not interaction(ignored, wrong)
        and not interaction(wrong, wrong)
    )
    assert (
        not interaction(RIGHT, RIGHT) and not interaction(DECLINED, ignored) and not interaction([], ignored)
    )


def test_a_pair_that_is_declined_is_no_fault() -> None:
    declined = "pattern+minLength: minLength decides"
    rows = [
        row(**{**vars(each), "status": "unsupported", "accepted": None}) if each.case == declined else each
        for each in rows_of(lambda case, content, valid: valid)
    ]
    (cell,) = truth_table(rows).cells["pair"]["pattern+minLength"].values()
    assert (cell.state, cell.interaction) == ("declined", False)


# --------------------------------------------------------------------------------------- the table, by states

PAIR = ("keyword:b", "pair:a+b", "decides:b")


def state_of(*walks: dict[str, Any]) -> State:
    """Of a case with these walks."""
    table = truth_table(row(tags=("keyword:k", "decides:k"), **each) for each in walks)
    return table.cells["keyword"]["k"][table.arms[0]].state


RIGHT = [{"valid": True, "accepted": True}, {"valid": False, "accepted": False}]
LEAK = {"valid": False, "accepted": True}
REFUSED = {"valid": True, "accepted": False}
DECLINED = [
    {"valid": valid, "accepted": None, "status": "unsupported", "phase": "compile"} for valid in (True, False)
]


def ended(status: str) -> dict[str, Any]:
    return {"valid": True, "accepted": None, "status": status}


def test_each_state_is_told_from_the_others() -> None:
    assert state_of(*RIGHT) == "enforced"
    assert (
        state_of(*DECLINED) == state_of(*({**each, "status": "invalid"} for each in DECLINED)) == "declined"
    )
    assert state_of(RIGHT[0], LEAK) == "silently ignored"
    assert state_of(*RIGHT, LEAK) == "partly enforced"
    assert state_of(*RIGHT, REFUSED) == "wrongly enforced"
    assert {state_of(*RIGHT, ended(each)) for each in ("crash", "timeout", "oom", "backend_error")} == {
        "broken"
    }
    assert {state_of(*RIGHT, ended(each)) for each in ("harness_error", "skipped")} == {"not measured"}
    assert state_of(RIGHT[0]) == state_of(RIGHT[1]) == "not measured"


def test_the_worst_of_a_case_is_its_state() -> None:
    assert state_of(RIGHT[0], LEAK, REFUSED) == "silently ignored"
    assert state_of(RIGHT[0], LEAK, REFUSED, ended("timeout")) == "broken"
    assert state_of(*RIGHT, REFUSED, ended("harness_error")) == "wrongly enforced"
    assert state_of(*DECLINED, *RIGHT) == "declined"  # on another vocabulary it compiled


def test_the_worst_of_several_cases_is_the_keys_state_with_counts() -> None:
    worst_first: list[list[dict[str, Any]]] = [
        [ended("crash")], [RIGHT[0], LEAK], [*RIGHT, LEAK], [*RIGHT, REFUSED], [RIGHT[0]], DECLINED, RIGHT,
    ]  # fmt: skip
    for start, state in enumerate(STATES):
        rows = [
            row(case=f"case {number}", case_id=f"{number:012x}", tags=PAIR, **walk)
            for number, walks in enumerate(worst_first)
            if number >= start
            for walk in walks
        ]
        table = truth_table(rows)
        cell = table.cells["pair"]["a+b"][table.arms[0]]
        assert cell.state == state
        assert list(cell.counts) == list(STATES)[start:] and set(cell.counts.values()) == {1}


@pytest.mark.parametrize("other", [{"case_id": f"{1:012x}"}, {"suite": "another"}])
def test_cases_of_one_name_are_told_apart(other: dict[str, str]) -> None:
    rows = [row(tags=PAIR, **walk) for walk in RIGHT]
    rows += [row(tags=("keyword:b", "pair:a+b", "decides:a"), **walk, **other) for walk in (RIGHT[0], LEAK)]
    table = truth_table(rows)
    assert table.cells["pair"]["a+b"][table.arms[0]].cases == (
        Decision("a case", "b", "enforced"),
        Decision("a case", "a", "silently ignored"),
    )


def test_a_key_that_an_arm_has_no_row_of_is_not_measured() -> None:
    rows = [row(tags=("keyword:one", "decides:one"), **walk) for walk in RIGHT]
    rows += [row(backend="beta", tags=("keyword:two", "decides:two"), **walk) for walk in RIGHT]
    table = truth_table(rows)
    alpha, beta = table.arms
    assert table.cells["keyword"]["one"] == {
        alpha: KeywordCell("enforced", (Decision("a case", "one", "enforced"),)),
        beta: KeywordCell("not measured"),
    }
    assert table.cells["keyword"]["two"][alpha] == KeywordCell("not measured")


def test_versions_and_options_are_arms_of_their_own_and_vocabularies_are_not() -> None:
    fields = [{"backend_version": "1"}, {"backend_version": "2"}, {"backend_version": "2", "options": "x=1"}]
    rows = [row(tags=("keyword:k", "decides:k"), **walk, **each) for each in fields for walk in RIGHT]
    rows += [row(tags=("keyword:k", "decides:k"), backend_version="1", vocabulary="other", **LEAK)]
    table = truth_table(rows)
    assert table.arms == (("alpha", "1", ""), ("alpha", "2", ""), ("alpha", "2", "x=1"))
    assert [table.cells["keyword"]["k"][arm].state for arm in table.arms] == [
        "partly enforced",
        "enforced",
        "enforced",
    ]


def test_rows_that_decide_nothing_are_passed_over() -> None:
    rows = [
        row(tags=("keyword:k",)),
        row(tags=("decides:k", "keyword:k"), valid=None, instance=None, mode=CHECKS_MODE),
    ]
    assert truth_table(rows) == TruthTable((), {"keyword": {}, "pair": {}, "place": {}})
    assert "declined" in keywords_text(truth_table(rows)) and "declined" in keywords_markdown(
        truth_table(rows)
    )


def test_what_the_backend_said_goes_into_the_json() -> None:
    table = truth_table(
        row(tags=("keyword:k", "decides:k"), **{**each, "text": "no such keyword"}) for each in DECLINED
    )
    value = json.loads(keywords_json(table))
    assert value["arms"] == [{"backend": "alpha", "version": "1.2.3", "options": ""}]
    decision = {"case": "a case", "decides": "k", "state": "declined"}
    assert value["keyword"] == {
        "k": [{"state": "declined", "cases": [decision], "interaction": False, "text": "no such keyword"}]
    }


def test_the_text_fits_a_terminal_and_names_every_state_that_occurs() -> None:
    arms = [
        ("lm-format-enforcer", "0.11.3"),
        ("outlines-core", "0.2.14"),
        ("xgrammar", "0.2.8"),
        ("llguidance", "1.9.1"),
        ("fifth", "1"),
    ]
    rows = [
        each
        for name, version in arms
        for each in rows_of(lambda case, content, valid: True, backend=name, backend_version=version)
    ]
    lines = keywords_text(truth_table(rows)).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("IGNORED" in line for line in lines) > 300
    assert [line for line in lines if line.strip() == "fifth"]  # below the other four


def test_markdown_has_a_cell_for_every_arm_in_every_line() -> None:
    rows = [
        each for name in ("one", "two") for each in rows_of(lambda case, content, valid: valid, backend=name)
    ]
    lines = [line for line in keywords_markdown(truth_table(rows)).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {4}
    assert len(lines) > 250


def test_a_keyword_with_several_values_counts_once() -> None:
    of_values = [("keyword:k", "value:one", "decides:k"), ("keyword:k", "value:two", "decides:k")]
    rows = [
        row(case=tags[1], case_id=f"{number:012x}", tags=tags, **walk)
        for number, tags in enumerate([*of_values, ("keyword:other", "decides:other")])
        for walk in RIGHT
    ]
    assert "| keyword: yes | 2 |" in keywords_markdown(truth_table(rows))


def test_the_arms_of_a_run_stand_in_the_order_of_its_command(tmp_path: Path) -> None:
    walks = [dict(instance=n, tags=("keyword:k", "decides:k"), **RIGHT[n]) for n in range(2)]
    run = slow_and_quick(tmp_path, walks)
    assert [backend for backend, *_ in table_of(run).arms] == ["slow", "quick"]


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_tags_break_no_form(words: str) -> None:
    fields = {
        "backend": words,
        "options": words,
        "case": words,
        "text": words,
        "tags": (f"keyword:{words}", f"value:{words}", "decides:k"),
    }
    table = truth_table(row(**fields, **walk) for walk in RIGHT)
    shown = keywords_markdown(table) + keywords_text(table)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert "<" not in keywords_markdown(table).replace("&lt;", "")
    assert {
        line.replace("\\|", "").count("|")
        for line in keywords_markdown(table).splitlines()
        if line.startswith("|")
    } == {3}
    assert max(map(len, keywords_text(table).splitlines())) <= 80
    assert len(json.loads(keywords_json(table))["keyword"]) >= 1
