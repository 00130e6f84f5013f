"""Other spellings of a document: the same value each time, one thing different, and what becomes of them in a
run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
import synthetic
from miniatures.wrong_walks import (
    READING,
    Compact,
    CompactInOrder,
    InOrder,
    Reading,
    RefusesEscapes,
    RefusesExponents,
)
from out_of_time import without_its_last_call

from harness.backend.grammar import Adapter, Grammar
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.cases.spelled_json import COMPACT, DEEPEST, MOST_BYTES, document_text, read_document
from harness.cases.spellings import (
    FAMILY,
    LAYOUTS,
    Family,
    SpelledName,
    layout_of,
    layouts,
    respelled,
    spelled,
)
from harness.checks import NotApplicable, Subject
from harness.checks.spellings import check_spellings_are_accepted
from harness.cli.main import main
from harness.report.tables.spelling import spelling_frame, spelling_table
from harness.rows.row import Finding

BYTES = byte_vocabulary()
SCHEMA = Grammar("json_schema", json.dumps(READING))
RICH = (
    '{"name": 1, "é/a": ["x😀\\n", 0, -1.5, 2e3, true, null, {}], "\\\\u00e9": "\\ud800", "b": [[], {"c": '
    "100}]}"
).encode()


def spellings(content: bytes) -> dict[str, bytes]:
    """Returns the other texts of the same document by name; all but those of whitespace keep its layout."""
    value = read_document(content)
    texts = layouts(value) | respelled(value, layout_of(content, value))
    return {name: text for name, text in texts.items() if text != content}


def same(text: bytes) -> Any:
    """The value, compared as JSON Schema does: exact numbers, objects without order."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


@pytest.mark.parametrize(
    "content",
    [
        RICH,
        b"[]",
        b"-0.0",
        b'"\\u00e9\\/"',
        b'{"b": {"z": 1, "y": [2]}, "a": 1E+2}',
        b"1e999999",
        b" [1 ,2]",
        b"[1.5e50, -1.0E40, 2.50e-100, 10e50, 1.0e39]",
    ],
)
def test_a_spelling_is_another_text_of_the_same_value(content: bytes) -> None:
    found = spellings(content)
    assert content not in found.values() and len(set(found.values())) == len(found)
    assert all(same(text) == same(content) for text in found.values())
    assert found.keys() <= FAMILY.keys()


def test_every_spelling_occurs() -> None:
    compact = document_text(read_document(RICH), COMPACT)
    assert (
        spellings(RICH).keys() | spellings(compact).keys() | spellings(b'["\\u0041", 1.50]').keys()
        == FAMILY.keys()
    )
    assert set(FAMILY.values()) == set(get_args(Family))


def test_what_each_spelling_looks_like() -> None:
    found = spellings('{"n": 10, "é/": "a\\n😀", "z": [0, 1.5]}'.encode())
    assert found["compact"] == '{"n":10,"é/":"a\\n😀","z":[0,1.5]}'.encode()
    assert (
        found["indented_tab"]
        == '{\n\t"n": 10,\n\t"é/": "a\\n😀",\n\t"z": [\n\t\t0,\n\t\t1.5\n\t]\n}'.encode()
    )
    assert found["padded"] == '{ "n" : 10 , "é/" : "a\\n😀" , "z" : [ 0 , 1.5 ] }'.encode()
    assert found["reversed_names"] == '{"z": [0, 1.5], "é/": "a\\n😀", "n": 10}'.encode()
    assert found["sorted_names"] == '{"n": 10, "z": [0, 1.5], "é/": "a\\n😀"}'.encode()
    assert found["escaped_non_ascii"] == b'{"n": 10, "\\u00e9/": "a\\n\\ud83d\\ude00", "z": [0, 1.5]}'
    assert found["escaped_upper_hex"] == b'{"n": 10, "\\u00E9/": "a\\n\\uD83D\\uDE00", "z": [0, 1.5]}'
    assert found["escaped_slash"] == '{"n": 10, "é\\/": "a\\n😀", "z": [0, 1.5]}'.encode()
    assert found["escaped_name"] == '{"\\u006e": 10, "é/": "a\\n😀", "\\u007a": [0, 1.5]}'.encode()
    assert found["escaped_value"] == '{"n": 10, "é/": "\\u0061\\n😀", "z": [0, 1.5]}'.encode()
    assert found["long_escapes"] == '{"n": 10, "é/": "a\\u000a😀", "z": [0, 1.5]}'.encode()
    assert found["fraction_zero"] == '{"n": 10.0, "é/": "a\\n😀", "z": [0.0, 1.5]}'.encode()
    assert found["trailing_zero"] == '{"n": 10, "é/": "a\\n😀", "z": [0, 1.50]}'.encode()
    assert found["exponent_negative"] == '{"n": 100e-1, "é/": "a\\n😀", "z": [0, 1.5]}'.encode()
    assert found["negative_zero"] == '{"n": 10, "é/": "a\\n😀", "z": [-0, 1.5]}'.encode()
    assert "spaced" not in found and "plain_number" not in found and "raw" not in found


def test_an_order_that_changes_nothing_is_no_spelling() -> None:
    assert not {"sorted_names", "reversed_names"} & spellings(b'{"a": 1}').keys()
    assert "sorted_names" not in spellings(b'{"a": 1, "b": 2}')


NOT_ONE = (b"", b"[1,]", b"NaN", b'"\xff"', b'"\n"', b'"\\x"', b'"', b"1 2", b'{"a": 1, "\\u0061": 2}')
TOO_MUCH = (b"[" * 100_000, b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), b'"' + b"a" * MOST_BYTES + b'"')


@pytest.mark.parametrize("content", [*NOT_ONE, *TOO_MUCH], ids=range(len(NOT_ONE + TOO_MUCH)))
def test_what_is_no_document_is_not_read(content: bytes) -> None:
    with pytest.raises(ValueError):
        read_document(content)


def subject(adapter: Adapter, *texts: str, grammar: Grammar = SCHEMA, effort: int | None = None) -> Subject:
    instances = tuple(Instance(text, text.encode(), True) for text in texts)
    return Subject(
        adapter, Case(case_id(grammar), "a case", grammar, instances), adapter.compile(SCHEMA), effort
    )


def findings(adapter: Adapter) -> dict[str, Finding]:
    found = list(
        check_spellings_are_accepted(subject(adapter, '{"n": 0, "s": "aé/"}', '{"s": "", "n": -1.5}'))
    )
    assert len({each.cause for each in found}) == len(found)
    return {each.cause: each for each in found}


def of(*families: str) -> set[str]:
    return {name for name, family in FAMILY.items() if family in families}


def test_a_right_backend_takes_every_spelling() -> None:
    assert findings(Reading(BYTES)) == {}


@pytest.mark.parametrize(
    ("wrong", "causes"),
    [
        (Compact, of("whitespace") - {"compact"}),
        (InOrder, {"reversed_names"}),
        (RefusesEscapes, of("escapes") - {"raw", "long_escapes"}),
        (RefusesExponents, {"exponent_zero", "exponent_upper"}),
        (CompactInOrder, (of("whitespace") | {"reversed_names"}) - {"compact"}),
    ],
)
def test_what_a_wrong_backend_refuses_is_named(wrong: type[Reading], causes: set[str]) -> None:
    found = findings(wrong(BYTES))
    assert found.keys() == causes
    for each in found.values():
        document = bytes.fromhex(each.examples[0])
        assert not each.documented and each.position is not None
        assert each.walk == (*BYTES.encode(document), BYTES.eos_token)[: each.position + 1]
        refusing = wrong(BYTES).compile(SCHEMA).start()
        assert refusing.accept_tokens(each.walk) == each.position


class Documents(CompactInOrder):
    documented: ClassVar[Mapping[str, str]] = {
        "whitespace": "compact only, as its manual says",
        "spelling:reversed_names": "in the schema's order",
    }


def test_what_is_documented_is_labelled() -> None:
    found = findings(Documents(BYTES))
    assert found.keys() == (of("whitespace") | {"reversed_names"}) - {"compact"}
    assert all(each.documented for each in found.values())


def test_only_what_the_judge_calls_valid_is_asked_for() -> None:
    integer = {
        **READING,
        "properties": {"n": {"type": "integer"}, "s": {}},
        "$schema": "http://json-schema.org/draft-04/schema",
    }
    strict = Grammar("json_schema", json.dumps(integer))  # in draft 4 1.0 is no integer, and 1e0 is none
    assert (
        list(
            check_spellings_are_accepted(
                subject(RefusesExponents(BYTES), '{"n": 1, "s": ""}', grammar=strict)
            )
        )
        == []
    )
    assert list(check_spellings_are_accepted(subject(RefusesExponents(BYTES), '{"n": 1, "s": ""}'))) != []


def test_an_effort_bounds_the_documents() -> None:
    seen: list[str] = []
    counted = subject(Compact(BYTES), '{"n": 1, "s": ""}', '{"n": 2, "s": "x"}', effort=3)
    seen = [each.text for each in check_spellings_are_accepted(counted)]
    assert sum(int(text.rpartition("(")[2].split()[2]) for text in seen) <= 3


def test_what_was_refused_before_the_time_was_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, case = Compact(BYTES), subject(Compact(BYTES), '{"n": 1, "s": ""}').case
    outcome, found = without_its_last_call(monkeypatch, "spellings_are_accepted", adapter, case)
    assert outcome == "failed" and found


def test_where_no_layout_is_accepted_nothing_is_said() -> None:
    with pytest.raises(NotApplicable):
        list(check_spellings_are_accepted(subject(InOrder(BYTES), '{"s": "", "n": 1}', "{}")))


@pytest.mark.parametrize(
    "name", ["", "one", "compact plain", "compact plain one", "a plain 0", "compact b 0"]
)
def test_the_name_of_another_instance_names_no_spelling(name: str) -> None:
    with pytest.raises(ValueError):
        SpelledName.parse(name)


def test_the_table_of_a_run() -> None:
    case = Case(
        "0" * 12,
        "a case",
        SCHEMA,
        (Instance("one", b'{"n": 1, "s": "x"}', True), Instance("two", b"1", False)),
    )
    derived = spelled(case)
    assert {each.valid for each in derived.instances} == {None} and len(derived.instances) > 20
    names = [SpelledName.parse(instance.name) for instance in derived.instances]
    assert list(map(str, names)) == [instance.name for instance in derived.instances]
    assert SpelledName("compact", "plain", 0) in names
    rows = []
    for adapter in (Reading(BYTES), Compact(BYTES), RefusesExponents(BYTES)):
        compiled = adapter.compile(SCHEMA)
        for number, instance in enumerate(derived.instances):
            tokens = [*BYTES.encode(instance.content), BYTES.eos_token]
            accepted = compiled.start().accept_tokens(tokens) == len(tokens)
            name = type(adapter).__name__
            rows.append(
                synthetic.row(
                    backend=name, instance=number, instance_name=instance.name, valid=True, accepted=accepted
                )
            )
    table = {backend: counts for (backend, *_), counts in spelling_table(rows).items()}
    assert set(table) == {"Reading", "Compact", "RefusesExponents"}
    assert all(count.refused == 0 for count in table["Reading"].values())
    refused = {name for name, count in table["RefusesExponents"].items() if count.refused}
    assert refused == {"exponent_zero", "exponent_upper", "exponent_negative"}
    assert {name for name, count in table["Compact"].items() if count.refused} == of("whitespace") - {
        "compact"
    }
    assert all(count.accepted + count.refused <= 1 for counts in table.values() for count in counts.values())
    assert table["Compact"]["fraction_zero"].accepted == 1


def test_a_layout_counts_only_where_the_document_is_written_otherwise_in_the_others() -> None:
    texts = (b"1", b"[]", b"[2]", b"[1, 2]")
    grammar = Grammar("json_schema", "{}")
    instances = tuple(Instance(repr(text), text, True) for text in texts)
    derived = spelled(Case(case_id(grammar), "a case", grammar, instances))
    of_document: dict[int, list[bytes]] = {}
    for instance in derived.instances:
        of_document.setdefault(SpelledName.parse(instance.name).document, []).append(instance.content)
    assert all(len(set(contents)) == len(contents) for contents in of_document.values())
    compact = {b"1", b"[]", b"[2]", b"[1,2]"}
    rows = [
        synthetic.row(
            instance=number,
            instance_name=instance.name,
            valid=True,
            accepted=instance.content in compact or b"." in instance.content,
        )
        for number, instance in enumerate(derived.instances)
    ]
    (table,) = spelling_table(rows).values()
    (of_two_suites,) = spelling_table([*rows, *(replace(row, suite="another") for row in rows)]).values()
    assert {name: count.accepted for name, count in of_two_suites.items()} == {
        name: 2 * count.accepted for name, count in table.items()
    }
    counts = {name: (count.accepted, count.refused) for name, count in table.items()}
    assert counts["compact"] == (1, 0) and counts["spaced"] == counts["blanks_16"] == (0, 1)
    assert counts["indented_2"] == counts["padded"] == (0, 2), "those are apart for a list of one item too"
    assert counts["fraction_zero"] == (3, 0), "what is spelled in no other layout counts all the same"


def test_layouts_and_respellings_keep_the_letters() -> None:
    value = read_document(b'{"a": "\\u0041"}')
    assert document_text(value, COMPACT) == b'{"a":"\\u0041"}'
    assert respelled(value, LAYOUTS["spaced"])["raw"] == b'{"a": "A"}'


def test_the_arms_stand_in_the_order_of_the_command(tmp_path: Path) -> None:
    grammar = Grammar("json_schema", "{}")
    derived = spelled(Case(case_id(grammar), "a case", grammar, (Instance("one", b"[1, 2]", True),)))
    walks = [{"instance": at, "instance_name": each.name} for at, each in enumerate(derived.instances)]
    run = synthetic.slow_and_quick(tmp_path, walks)
    assert list(spelling_frame(run).columns) == ["family", "spelling", "slow", "quick"]


def test_a_run_over_spellings_and_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("llguidance")
    schema = {
        "type": "object",
        "properties": {"n": {"type": "number"}, "s": {"type": "string"}},
        "required": ["n", "s"],
    }
    cases = [
        {
            "description": "one",
            "schema": schema,
            "tests": [{"data": {"n": 1, "s": "é/"}, "valid": True}, {"data": {}, "valid": False}],
        },
        {"description": "left out", "regex": "a", "tests": [{"text": "a", "valid": True}]},
    ]
    (tmp_path / "two.json").write_text(json.dumps(cases))
    run, plain = str(tmp_path / "run"), str(tmp_path / "plain")
    asked = ["run", str(tmp_path / "two.json"), "--backends", "llguidance", "--vocabularies", "probe"]
    assert main([*asked, "--spellings", "--out", run]) == 0
    assert main([*asked, "--effort", "0", "--out", plain]) == 0
    capsys.readouterr()
    assert main(["table", run, "spellings"]) == 0
    lines = {
        line.split(" | ")[1]: line.rstrip(" |").split(" | ")[2]
        for line in capsys.readouterr().out.splitlines()[2:]
    }
    assert lines["compact"] == lines["indented_2"] == "1/1"
    assert lines["reversed_names"] == lines["leading_space"] == lines["escaped_slash"] == "0/1\\*", (
        "its documentation says so"
    )
    assert main(["table", plain, "spellings"]) == 2
    assert "is no run over spellings" in capsys.readouterr().err
