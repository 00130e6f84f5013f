"""Cases from every form of file that the field has, and one clear line for what is none."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import CORPORA

from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id, json_text
from harness.cases.case_line import case_from_line, case_to_line
from harness.cases.subschemas import ASSERTIONS
from harness.cases.suite import find_suite, read_cases, suite_names, unread_lines
from harness.errors import BadInput
from harness.shape import LONGEST_LINE


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def cases(path: Path) -> list[Case]:
    return list(read_cases(find_suite(str(path))))


def test_a_maskbench_file_is_one_case_named_by_its_stem(tmp_path: Path) -> None:
    meta = {"features": ["enum"]}
    tests = [
        {"description": "good", "valid": True, "data": {"a": 1}},
        {"valid": False, "data": [], "python_error": "no"},
    ]
    path = write(
        tmp_path,
        "Github---o1.json",
        {"description": "x", "meta": meta, "schema": {"type": "object"}, "tests": tests},
    )
    (case,) = cases(path)
    assert case.name == "Github---o1"
    assert case.grammar == Grammar("json_schema", '{"type": "object"}')
    assert case.tags == ("enum",)
    assert case.instances == (Instance("good", b'{"a": 1}', True), Instance("test 2", b"[]", False))


def test_a_test_suite_file_is_a_case_per_group_and_the_folder_says_the_draft(tmp_path: Path) -> None:
    group = {
        "description": "const",
        "schema": {"const": 2},
        "tests": [{"description": "same", "data": 2, "valid": True}],
    }
    write(tmp_path, "draft7/const.json", [group, {**group, "description": "again"}])
    first, second = cases(tmp_path)
    assert (first.name, second.name) == ("const: const", "const: again")
    assert first.options == {"draft": "draft7"}
    assert second.id == f"{first.id}-2", "the same grammar twice in one suite stays two cases"


def test_a_folder_named_after_a_draft_says_it_of_tools_and_lines_too(tmp_path: Path) -> None:
    schema = {"definitions": {"i": {"type": "integer"}}, "type": "object"}
    write(tmp_path, "draft7/a.json", {"schema": schema})
    write(tmp_path, "draft7/b.jsonl", json.dumps({"schema": schema}))
    write(tmp_path, "draft7/c.json", [{"name": "tool", "input_schema": schema}])
    write(tmp_path, "draft7/d.jsonl", json.dumps({"name": "tool_2", "input_schema": schema}))
    wanted = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    found = cases(tmp_path)
    assert [json.loads(case.grammar.text) for case in found] == [wanted] * 4
    assert [case.options for case in found] == [{"draft": "draft7"}] * 4


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"$ref": "#"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "title": "any"},
        {},
        True,
        False,
        {"swagger": "2.0", "type": "object"},
        {"openapi": "3.0.0", "properties": {"a": {}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "openapi": "3.1.0", "definitions": {}},
    ],
)
def test_a_bare_schema_is_a_case_without_instances(tmp_path: Path, schema: object) -> None:
    (case,) = cases(write(tmp_path, "mine.json", schema))
    assert case.grammar.text == json.dumps(schema)
    assert (case.name, case.instances) == ("mine", ())


@pytest.mark.parametrize("keyword", sorted(ASSERTIONS | {"extends", "disallow", "divisibleBy"}))
def test_a_bare_schema_may_have_any_one_keyword_that_asks_something(keyword: str, tmp_path: Path) -> None:
    schema: dict[str, Any] = {keyword: {"type": "string", "format": "date"}.get(keyword, {})}
    assert json.loads(cases(write(tmp_path, "a.json", schema))[0].grammar.text) == schema


@pytest.mark.parametrize("value", [{"type": "session.update"}, {"type": {}}, {"format": {"a": 1}}])
def test_a_type_and_a_format_that_no_schema_has_make_none(value: object, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="neither a case nor a JSON Schema"):
        cases(write(tmp_path, "a.json", value))


def test_a_folder_is_read_in_order_and_hidden_forms_are_left(tmp_path: Path) -> None:
    write(tmp_path, "b/two.json", {"regex": "b"})
    write(tmp_path, "a/one.json", {"ebnf": 'root ::= "a"'})
    write(tmp_path, "c/three.lark", 'start: "a"\n')
    write(tmp_path, "notes.txt", "no case")
    assert [case.name for case in cases(tmp_path)] == ["one", "two", "three"]


def test_files_of_one_name_are_told_apart_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("order/schema.json", "user/new/schema.json", "user/new/schema.lark", "user.json"):
        write(tmp_path, name, 'start: "a"' if name.endswith("lark") else {"title": name, "type": "object"})
    first, second, third = (
        {"name": "schema", "input_schema": {"type": "object", "minProperties": least}} for least in range(3)
    )
    write(tmp_path, "tools.json", [first, second])
    write(tmp_path, "user/user_2.json", {"tools": [third]})
    names = ["order/schema", "schema", "tools.json: schema", "user/new/schema", "user/new/schema.lark"]
    names += ["user/user_2.json: schema", "user"]
    assert sorted(case.name for case in cases(tmp_path)) == sorted(names)
    monkeypatch.chdir(tmp_path)
    assert sorted(case.name for case in cases(Path("."))) == sorted(names)


def test_a_group_of_tests_keeps_its_name(tmp_path: Path) -> None:
    for draft in ("draft6", "draft7"):
        write(tmp_path, f"{draft}/const.json", [{"description": "const", "schema": {"const": 2}}])
    assert [case.name for case in cases(tmp_path)] == ["const: const"] * 2


def test_the_case_of_an_ending_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path, "a.JSON", {"regex": "a"})
    lines = write(tmp_path, "b.JSONL", '{"suite": "mine"}\n{"regex": "b"}\n{"regex": "c"}')
    write(tmp_path, "d.Lark", 'start: "d"')
    assert [case.grammar.text for case in cases(tmp_path)] == ["a", "b", "c", 'start: "d"']
    assert len(cases(lines)) == 2 and find_suite(str(lines)).name == "mine"


def test_what_is_not_read_in_a_folder_is_told_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write(folder, "a.json", {"regex": "a"})
    assert unread_lines([find_suite(str(folder))]) == []
    for name in ("._a.json", ".git/x.json", ".ipynb_checkpoints/a.json", "node_modules/p/package.json"):
        write(folder, name, "{{")
    write(folder, "notes.txt", "no case")
    (folder / "lost.json").symlink_to("nowhere.json")
    write(tmp_path, "other/b.json", {"regex": "b"})
    (folder / "linked").symlink_to("../other")
    os.mkfifo(folder / "fifo.json")
    suite = find_suite(str(folder))
    assert [case.name for case in read_cases(suite)] == ["a"]
    assert unread_lines([suite]) == [
        f"mine: not read: 3 other files, 1 linked folder ({folder}/linked), "
        f"1 link to nothing ({folder}/lost.json)"
    ]
    write(folder, "empty.jsonl", "\n")
    (folder / "list.json").write_text("[\n]\n")
    told = find_suite(str(folder)).unread
    assert told.endswith(f"lost.json), 2 files without a case ({folder}/empty.jsonl)")
    for name in ("a.json", "empty.jsonl", "list.json"):
        (folder / name).unlink()
    with pytest.raises(BadInput, match=r"no \.json, .* file in this folder \(but 3 other files, 1 linked"):
        find_suite(str(folder))


def test_the_folders_of_our_own_results_are_not_read_again(tmp_path: Path) -> None:
    write(tmp_path, "a.json", {"regex": "a"})
    for run in ("results/runs/20261127T204127Z-d911", "out"):
        for name in ("rows.jsonl", "cases.jsonl", "advice.json", "report/report.json"):
            write(tmp_path, f"{run}/{name}", "{}")
    write(tmp_path, "results/runs/20261127T204127Z-d912/kernels.jsonl", "{}")
    write(tmp_path, "published/rows.jsonl.xz", "")
    write(tmp_path, "published/outcomes.json", "{}")
    suite = find_suite(str(tmp_path))
    assert ([case.name for case in read_cases(suite)], suite.unread) == (["a"], "")
    with pytest.raises(BadInput, match="holds the results of a command"):
        find_suite(str(tmp_path / "out"))


def test_a_folder_or_a_file_that_may_not_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so what the system says is put in its mouth."""
    write(tmp_path, "a.json", {"regex": "a"})
    write(tmp_path, "sub/b.json", {"regex": "b"})
    scandir, is_dir, stat = os.scandir, Path.is_dir, Path.stat

    def refusing(real: Any) -> Any:
        def ask(path: Any, *arguments: Any, **options: Any) -> Any:
            if "sub" in str(path):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *arguments, **options)

        return ask

    for owner, name, real, wanted in (
        (os, "scandir", scandir, tmp_path),
        (Path, "stat", stat, tmp_path),
        (Path, "is_dir", is_dir, tmp_path / "sub" / "b.json"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, refusing(real))
            with pytest.raises(BadInput, match=r"sub[^:]*: cannot be read: Permission denied"):
                find_suite(str(wanted))


def test_a_suite_needs_a_name() -> None:
    with pytest.raises(BadInput, match=r"a SUITE without a name; write \. for the folder"):
        find_suite("")


def test_a_file_of_lark_is_a_case_without_instances(tmp_path: Path) -> None:
    (case,) = cases(write(tmp_path, "mine.lark", 'start: "a"\r\n// é\n'))
    assert (case.name, case.instances, case.grammar) == ("mine", (), Grammar("lark", 'start: "a"\r\n// é\n'))


@pytest.mark.parametrize("name", ["mine.gbnf", "MINE.EBNF"])
def test_a_file_of_gbnf_is_a_case_without_instances(name: str, tmp_path: Path) -> None:
    text = '# A comment\nws ::= " "\n  root ::= "a" ws | "b"\n'
    write(tmp_path, f"folder/{name}", text)
    for where in (tmp_path / "folder" / name, tmp_path / "folder"):
        (case,) = cases(where)
        assert (case.name, case.instances, case.grammar) == (name[:4], (), Grammar("ebnf", text))


def test_ebnf_of_another_form_is_refused(tmp_path: Path) -> None:
    for text in ("root = { 'a' };", 'start ::= "a"', '# root ::= "a"'):
        with pytest.raises(
            BadInput, match=r'mine\.ebnf: no line begins with "root ::="; EBNF is read as GBNF'
        ):
            cases(write(tmp_path, "mine.ebnf", text))


def test_ebnf_of_another_form_in_a_folder_is_told_and_not_read(tmp_path: Path) -> None:
    """The description of a language has such files."""
    folder = tmp_path / "mine"
    write(folder, "a.json", {"regex": "a"})
    for name, text in (("doc.EBNF", 'digit = "0" | "1" ;'), ("old.ebnf", "start ::= 'a'")):
        write(folder, name, text)
        with pytest.raises(BadInput, match=r'no line begins with "root ::=".* call the first one root$'):
            cases(folder / name)
    (folder / "latin.ebnf").write_bytes(b"letter = '\xe4' ;")
    write(folder, "b.ebnf", '\ufeffroot ::= "b"')
    suite = find_suite(str(folder))
    assert [case.name for case in read_cases(suite)] == ["a", "b"]
    assert unread_lines([suite]) == [
        f'mine: not read: 3 files of EBNF without "root ::=" ({folder}/doc.EBNF)'
    ]
    write(folder, "c.gbnf", 'start ::= "c"')
    with pytest.raises(BadInput, match=r'c\.gbnf: no line begins with "root ::="'):
        cases(folder)


def test_text_and_bytes_are_taken_as_they_are(tmp_path: Path) -> None:
    tests = [{"text": ' {"a":1}', "valid": True}, {"bytes": "c080", "valid": False}, {"data": "é\ud800"}]
    (case,) = cases(write(tmp_path, "x.json", {"choice": ["a"], "tests": tests}))
    assert [each.content for each in case.instances] == [b' {"a":1}', b"\xc0\x80", b'"\\u00e9\\ud800"']
    assert case.instances[2].valid is None


def test_a_number_that_no_double_holds_stays_as_it_is_written(tmp_path: Path) -> None:
    long, whole = "0.12345678901234567891", "1234567890123456789012.5e1"
    text = (
        f'{{"schema": {{"const": {long}, "title": "é"}}, "tests": [{{"data": [{whole}, 1.50, 1e5, "é"]}}]}}'
    )
    (case,) = cases(write(tmp_path, "x.json", text))
    assert case.grammar.text == f'{{"const": {long}, "title": "é"}}'
    assert case.instances[0].content.decode() == f'[{whole}, 1.5, 100000.0, "é"]'


def test_thousands_of_levels_are_read(tmp_path: Path) -> None:
    levels = 10_000 if sys.version_info < (3, 12) else 1_000
    deep = (
        '{"schema":'
        + '{"items":' * levels
        + "{}"
        + "}" * levels
        + ',"tests":[{"data":'
        + "[" * levels
        + "]" * levels
        + "}]}"
    )
    (case,) = cases(write(tmp_path, "deep.json", deep))
    assert len(case.instances[0].content) == 2 * levels


def test_a_case_may_have_a_key_called_suite(tmp_path: Path) -> None:
    lines = ['{"suite": "mine", "version": "3"}', '{"regex": "a", "suite": "x"}', "", '{"regex": "b"}']
    suite = find_suite(str(write(tmp_path, "mine.jsonl", "\n".join(lines))))
    assert (suite.name, suite.version) == ("mine", "3")
    assert [case.grammar.text for case in read_cases(suite)] == ["a", "b"]
    headless = write(tmp_path, "headless.jsonl", '{"regex": "a", "suite": "x"}\n')
    assert len(cases(headless)) == 1 and find_suite(str(headless)).name == "headless"


def test_our_suites_are_read_and_have_a_version() -> None:
    assert {"json_schema", "regex", "ebnf", "utf8", "choice_and_tags"} <= set(suite_names())
    for name in suite_names():
        suite = find_suite(name.replace("_", "-"))
        assert suite.version and suite.description
        assert all(each.valid is not None for case in read_cases(suite) for each in case.instances)


BAD: dict[str, tuple[Any, str]] = {
    "malformed.json": ('{"schema": {},\n "tests": [}', "malformed.json:2:12: malformed JSON"),
    "malformed.jsonl": (
        '{"suite": "x"}\n{"regex": "a"}\n{"regex": }',
        "malformed.jsonl:3:11: malformed JSON",
    ),
    "lines.json": (
        '{"regex": "a"}\n{"regex": "b"}\n',
        "lines.json:2:1: malformed JSON: Extra data; one JSON value per line belongs in a .jsonl file",
    ),
    "nan.json": ('{"schema": {"const": NaN}}', "NaN is no JSON number"),
    "huge.json": ('{"schema": {"const": 1e999}}', "beyond a double's range"),
    "tiny.json": ('{"schema": {"multipleOf": 1e-400}}', "1e-400 is beyond a double's range"),
    "fraction.json": (
        '{"schema": {"const": 0.' + "1" * 5000 + "}}",
        "a number of more than 4,300 digits is not read",
    ),
    "digits.json": (
        '{"schema": {"const": ' + "1" * 5000 + "}}",
        "a number of more than 4,300 digits is not read",
    ),
    "no_grammar.json": ({"description": "x", "tests": []}, "a case without grammar"),
    "typo.json": ({"shema": {}, "tests": []}, 'is "shema" misspelt?'),
    "type.json": ({"schemaType": "Log", "tests": []}, "a case without grammar; give it one of"),
    "bare.jsonl": (
        '{"properties": {"a": {}}}',
        '(a bare schema stands alone in its file; here write {"schema": ...})',
    ),
    "bare_list.json": ([{"$schema": "x", "type": "object"}], "a bare schema stands alone in its file"),
    "near_no_grammar.json": ({"descriptions": "x", "testing": 1, "tests": []}, "grammar; give it one of"),
    "late.jsonl": (
        '{"regex": "a"}\n{"suite": "x"}',
        "late.jsonl:2: a suite's header, which must be the first",
    ),
    "data.json": ({"id": 5, "title": "thing", "price": 3}, "neither a case nor a JSON Schema"),
    "answer.json": (
        {"type": "json_schema", "json_schema": {"name": "x"}},
        '"response_format" has no schema; write {"type": "json_schema", "json_schema"',
    ),
    "two.json": ({"regex": "a", "choice": ["a"]}, "2 grammars"),
    "schema_is_text.json": ({"schema": "object"}, '"schema" is a string'),
    "neither.json": ({"name": "x", "value": 1}, "neither a case nor a JSON Schema"),
    "number.json": ("42", "neither a case nor a JSON Schema"),
    "package.json": ({"name": "x", "dependencies": {"y": "^1.0"}}, "neither a case nor a JSON Schema"),
    "tsconfig.json": ({"extends": "./base.json", "include": ["a"]}, "neither a case nor a JSON Schema"),
    "settings.json": ({"extends": ["airbnb"], "rules": {}}, "neither a case nor a JSON Schema"),
    "tests.json": ({"regex": "a", "tests": {}}, '"tests" is an object, not a list'),
    "test.json": ({"regex": "a", "tests": ["a"]}, "test 1 is a string"),
    "no_content.json": (
        {"regex": "a", "tests": [{"valid": True}]},
        'exactly one of "data", "text", "bytes"',
    ),
    "no_tokens.json": ({"regex": "a", "tests": [{"tokens": [], "valid": True}]}, '"tokens" must be a list'),
    "tokens.json": ({"regex": "a", "tests": [{"tokens": [True], "valid": True}]}, '"tokens" must be a list'),
    "token.json": (
        {"regex": "a", "tests": [{"tokens": [2**62 + 1], "valid": True}]},
        'token.json: test 1: "tokens" must be a list of ids (from 0 to 2^62)',
    ),
    "unsaid.json": ({"regex": "a", "tests": [{"tokens": ["a"]}]}, '"tokens" need a "valid"'),
    "valid.json": ({"regex": "a", "tests": [{"text": "a", "valid": "yes"}]}, '"valid" is a string'),
    "hex.json": ({"regex": "a", "tests": [{"bytes": "xyz"}]}, '"bytes" is no hex'),
    "choice.json": ({"choice": []}, "non-empty list of strings"),
    "tags.json": ({"structural_tag": {"triggers": []}}, '"triggers" and "structures"'),
    "tag.json": (
        '{"structural_tag": {"format": {"type": "const_string", "value": 0.12345678901234567891}}}',
        "at /format/value: must be a string, not 0.12345678901234567891",
    ),
    "option.json": ({"regex": "a", "options": {"drafft": "x"}}, 'did you mean "draft"?'),
    "format.json": (
        {"regex": "a", "options": {"format": "yes"}},
        'the option "format" has no value "yes"; known: assert',
    ),
    "draft.json": (
        {"regex": "a", "options": {"draft": "draft07"}},
        'no value "draft07"; did you mean "draft7"?',
    ),
    "list.json": (["a"], "case 1 is a string"),
    "swagger.json": (
        {"swagger": "2.0", "info": {"title": "x"}, "definitions": {"A": {"type": "object"}}},
        "swagger.json is a file of OpenAPI, which is not read",
    ),
    "asyncapi.json": (
        {"asyncapi": "3.0.0", "info": {"title": "x"}, "components": {"schemas": {"A": {"type": "object"}}}},
        "asyncapi.json is a file of AsyncAPI, which is not read; take each schema out of it (comp",
    ),
    "openapi.json": (
        {"openapi": "3.1.0", "info": {"title": "x"}, "components": {"schemas": {"A": {"type": "object"}}}},
        "openapi.json is a file of OpenAPI, which is not read; take each schema out of it (comp",
    ),
    "schema.yaml": ("type: object\nproperties: {}\n", "YAML is not read; convert it to JSON"),
    "json.yml": ('{"type": }', "json.yml:1:10: malformed JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(tmp_path: Path, name: str) -> None:
    content, said = BAD[name]
    with pytest.raises(BadInput) as caught:
        cases(write(tmp_path, name, content))
    assert said in str(caught.value) and str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_is_read_in_a_file_of_any_name(tmp_path: Path) -> None:
    (case,) = cases(write(tmp_path, "schema.yaml", {"type": "object"}))
    assert json.loads(case.grammar.text) == {"type": "object"}


def test_a_file_that_is_no_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"schema":\n {"const": "\xe9"}}')
    with pytest.raises(BadInput, match=r"latin.json:2: not UTF-8 \(byte 0xe9\)"):
        cases(path)


def test_an_unknown_suite_is_told_with_a_guess() -> None:
    with pytest.raises(BadInput, match='did you mean "json_schema"'):
        find_suite("json-shema")


def test_a_key_that_a_case_has_twice_is_told(tmp_path: Path) -> None:
    twice = '{"regex": "a", "tests": [{"text": "a"}], "tests": []}'
    for name, text, where in (
        ("a.json", twice, "a.json: a case"),
        ("b.json", f"[{twice}]", "b.json: a case"),
        ("c.jsonl", f'{{"regex": "b"}}\n{twice}', "c.jsonl:2: a case"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(BadInput, match=f'{where} has "tests" 2 times; keep one'):
            cases(tmp_path / name)
    (tmp_path / "a.json").write_text('{"schema": {"const": {"a": 1, "a": 2}}, "mine": 1, "mine": 2}')
    assert [case.grammar.text for case in cases(tmp_path / "a.json")] == ['{"const": {"a": 2}}']


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no \.json, \.jsonl, \.lark, \.gbnf, \.ebnf file"):
        find_suite(str(tmp_path))


names = st.text(max_size=30)
instances = st.builds(Instance, names, st.binary(max_size=50), st.none() | st.booleans())
dialects = st.sampled_from(("json_schema", "regex", "ebnf", "choice", "structural_tag"))


@given(
    names,
    dialects,
    st.text(st.characters(), max_size=50),
    st.lists(instances, max_size=3),
    st.lists(names, max_size=3),
)
def test_a_case_survives_its_line(
    name: str, dialect: Any, text: str, some: list[Instance], tags: list[str]
) -> None:
    grammar = Grammar(dialect, text)
    case = Case(case_id(grammar), name, grammar, tuple(some), tuple(tags), {"draft": "draft4"})
    line = case_to_line("suite", "1", case)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert case_from_line(line) == ("suite", "1", case)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(json_values)
def test_json_text_is_utf8_and_says_the_same(value: object) -> None:
    assert json.loads(json_text(value).encode("utf-8")) == value


@pytest.mark.skipif(not CORPORA.is_dir(), reason=f"{CORPORA} is not here")
def test_the_corpora_load_as_they_are() -> None:
    maskbench = cases(CORPORA / "maskbench")
    assert len(maskbench) == len(list((CORPORA / "maskbench").glob("*.json")))
    suite = cases(CORPORA / "json-schema-test-suite" / "tests" / "draft2020-12")
    assert sum(len(case.instances) for case in suite) == 2225  # counted in research/peers.md, finding 7
    assert {case.options["draft"] for case in suite} == {"draft2020-12"}


def test_a_line_of_a_suite_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"regex": "a"}\n' + b'{"regex": "b"}' + b" " * (LONGEST_LINE + 1))
    with pytest.raises(BadInput, match=r"long\.jsonl:2: a line of more than 32 MiB"):
        cases(path)
    path.write_bytes(b'{"regex": "a"}\n' + b'{"regex": "b"}' + b" " * (1 << 20) + b"\n")
    assert [case.grammar.text for case in cases(path)] == ["a", "b"]
