"""Regular expressions in other dialects and with older tables of Unicode: what is right by them is told, and
by whom."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
import regex
from miniatures import wrong_readings
from miniatures.wrong_readings import NoNewLetters, OldTables, OldTablesForgetfulToo

from harness.backend.grammar import Adapter, Grammar, are_documented
from harness.backend.registry import make, parse_specs
from harness.backend.unicode_age import VERSIONS, newer_than, unicode_version, version_of
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.cases.case_line import case_from_line, case_to_line
from harness.checks import Subject, run_check
from harness.checks.exact_mask import check_the_mask_is_exact
from harness.checks.walks import check_walks_end_and_validate
from harness.cli.main import main
from harness.oracle.readings import Reading, other_readings, readings_against
from harness.oracle.reference import Reference
from harness.oracle.regex.automaton import regex_automaton
from harness.oracle.regex.char_classes import own_version
from harness.outcomes.outcome import outcome
from harness.rows.row import CHECKS_MODE, VERDICT, Finding, Row
from harness.rows.store import read_info, read_rows

BYTES = byte_vocabulary()
NEW = "\ua7dd"
"""A letter since Unicode 18.0."""


def within(points: tuple[tuple[int, int], ...], point: int) -> bool:
    return any(first <= point <= last for first, last in points)


# Versions of Unicode


def test_what_is_newer_is_unassigned_in_the_older_version() -> None:
    """Held against this Python's own tables, whichever they are."""
    version = ".".join(unicodedata.unidata_version.split(".")[:2])
    newer = newer_than(version)
    assert all(
        unicodedata.category(chr(point)) == "Cn" for first, last in newer for point in range(first, last + 1)
    )
    older = VERSIONS[VERSIONS.index(version) - 1]
    assert {
        unicodedata.category(chr(point)) == "Cn"
        for first, last in newer_than(older)
        for point in range(first, last + 1)
        if not within(newer, point)
    } == {False}


def test_the_version_of_a_library_is_told_by_the_letters_that_it_knows() -> None:
    assert version_of(str.isalpha) == ".".join(unicodedata.unidata_version.split(".")[:2])
    assert version_of(lambda letter: bool(regex.fullmatch(r"\w", letter))) == own_version()
    assert version_of(str.isascii) == "" == version_of(lambda letter: letter == NEW)


@pytest.mark.parametrize(
    "name", [("llguidance", "16.0"), ("outlines-core", "16.0"), ("xgrammar", ""), ("lm-format-enforcer", "")]
)
def test_the_version_of_a_backend(name: tuple[str, str]) -> None:
    """Theirs at the versions that constraints.txt pins; `regex-syntax` 0.8.5 to 0.8.8 has the tables
    of 16.0.
    """
    (spec,) = parse_specs(name[0])
    assert unicode_version(make(spec, BYTES)) == name[1]


@pytest.mark.parametrize(
    ("pattern", "text", "old", "new"),
    [
        (r"\w", NEW, False, True), (r"\W", NEW, True, False), (r"[^\W\d]", NEW, False, True), (r"\p{Cn}", NEW,
        True, False),
        (r"\w", "é", True, True),
        ("[\ua7d0-\ua7e0]", NEW, True, True), (NEW, NEW, True, True), (".", NEW, True, True), (f"(?i){NEW}",
        NEW, True, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["python", "rust"])
def test_a_class_has_the_members_that_it_had_in_a_version(
    pattern: str, text: str, old: bool, new: bool, dialect: str
) -> None:
    assert own_version() == "18.0"
    found = [regex_automaton(pattern, dialect, version).accepts(text.encode()) for version in ("16.0", "")]  # type: ignore[arg-type]
    assert found == [old, new]


# Readings


def test_readings_that_a_backend_documents_come_first() -> None:
    assert [each.cause for each in other_readings(Grammar("regex", "a"), ["16.0"])] == [
        "regex_dialect_ecma",
        "regex_dialect_javascript",
        "regex_dialect_rust",
    ]
    first, second, *_ = other_readings(Grammar("regex", r"\w"), ["16.0", "", "99.0"], ["regex_dialect_rust"])
    assert (first, second) == (Reading("rust"), Reading("python", "16.0"))
    assert second.cause == "unicode_version" and are_documented("unicode_version", ())
    assert Reading("rust", "16.0").cause == "regex_dialect_rust+unicode_version"
    assert not are_documented(
        "regex_dialect_rust+possible_end", ["regex_dialect_rust"]
    ) and not are_documented("", ["x"])


@pytest.mark.parametrize(
    ("pattern", "text", "valid", "against"),
    [
        ("[a-z&&[^aeiou]]", "b", False, {"rust"}),
        (r"\d", "٣", True, {"ecma", "javascript"}),
        (r"\Aa", "Aa", False, {"javascript"}),
        (r"\((?:[^()]|(?R))*\)", "(a)", True, set()),
        (r"\((?:[^()]|(?R))*\)", "(a(b))", True, {"rust"}),
        (r"\w", NEW, True, {"python", "rust", "ecma", "javascript"}),
        ("a{2}", "aa", True, set()),
    ],
)
def test_the_readings_that_say_otherwise(pattern: str, text: str, valid: bool, against: set[str]) -> None:
    """Their dialects; by Rust's crate and by Python a class has other members in Unicode 16.0."""
    assert {
        name.split()[0]
        for name in readings_against(Grammar("regex", pattern), text.encode(), valid, ["16.0"])
    } == against


def test_contrary_readings_survive_the_file_of_cases() -> None:
    grammar = Grammar("regex", "a")
    case = Case(
        case_id(grammar),
        "a",
        grammar,
        (Instance("a", b"a", True, contrary=("rust", "ecma")), Instance("b", b"b", False)),
    )
    assert case_from_line(case_to_line("s", "1", case)) == ("s", "1", case)


# Masks and walks


def findings(adapter: Adapter, pattern: str, *texts: str) -> list[Finding]:
    grammar = Grammar("regex", pattern)
    instances = tuple(Instance(text, text.encode(), True) for text in texts)
    subject = Subject(adapter, Case(case_id(grammar), "a case", grammar, instances), adapter.compile(grammar))
    return [
        finding
        for check in (check_the_mask_is_exact, check_walks_end_and_validate)
        for finding in run_check(check.__name__.removeprefix("check_"), check, subject)[1]
    ]


@pytest.fixture(scope="module")
def letters() -> Vocabulary:
    """All bytes, and letters of one byte, of two and of three, one of them new."""
    tokens = [*(bytes([byte]) for byte in range(256)), *map(str.encode, ("ab", "é", "日", NEW)), b""]
    return Vocabulary(
        name="letters",
        tokens=tuple(tokens),
        eos_tokens=(len(tokens) - 1,),
        special_tokens={len(tokens) - 1: "</s>"},
        padding_tokens=frozenset(),
    )


def test_older_tables_are_the_cause_and_documented(letters: Vocabulary) -> None:
    found = findings(OldTables(letters), r"\w+", "aé")
    assert found and {(each.cause, each.documented) for each in found} == {("unicode_version", True)}
    assert findings(Reference(letters), r"\w+", "aé") == []


@pytest.mark.parametrize(("wrong", "pattern"), [(NoNewLetters, r"x\w"), (OldTablesForgetfulToo, r"\w\w")])
def test_what_does_not_vanish_with_the_backends_own_tables_is_no_matter_of_versions(
    wrong: type[Reference], pattern: str, letters: Vocabulary
) -> None:
    """The first has the newest tables and yet forbids what is new; the second has old ones and forbids more
    than what is new."""
    found = findings(wrong(letters), pattern, "xé")
    assert found and not any(each.cause == "unicode_version" or each.documented for each in found)


def real(name: str) -> Adapter:
    (spec,) = parse_specs(name)
    return make(spec, load_vocabulary("probe"))


@pytest.mark.parametrize(
    ("name", "pattern", "text", "cause"),
    [
        ("llguidance", r"\w{2}", "ab", "unicode_version"),
        ("llguidance", "[a-z&&[^aeiou]]", "b", "regex_dialect_rust"),
        ("outlines-core", "[a-z&&[^aeiou]]", "b", "regex_dialect_rust"),
        ("xgrammar", r"\d{2}", "12", "regex_dialect_ecma"),
        ("xgrammar", r"\Aab", "Aab", "regex_dialect_javascript"),
    ],
)
def test_real_backends_are_right_by_their_own_reading(name: str, pattern: str, text: str, cause: str) -> None:
    found = findings(real(name), pattern, text)
    assert found and {(each.cause, each.documented) for each in found} <= {(cause, True), ("more", True)}


# A run

CASES = [
    {
        "description": "intersection",
        "regex": "[a-z&&[^aeiou]]",
        "tests": [{"text": "b", "valid": False}, {"text": "a]", "valid": True}],
    },
    {
        "description": "count",
        "regex": "a{2}",
        "tests": [{"text": "aa", "valid": True}, {"text": "aaa", "valid": False}],
    },
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Row]]:
    """The rows of one run through the command line, by backend and case."""
    folder = tmp_path_factory.mktemp("readings")
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    backends = "llguidance," + ",".join(
        f"miniatures.wrong_readings:{each}" for each in ("Rust", "DocumentedRust", "WrongInEveryDialect")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(wrong_readings.__file__).parents[1]))
        run = [
            "run",
            str(folder / "cases.jsonl"),
            "--backends",
            backends,
            "--vocabularies",
            "bytes",
            "--effort",
            "2",
            "--jobs",
            "1",
        ]
        assert main([*run, "--out", str(folder / "run")]) == 0
    assert {each.backend: each.unicode for each in read_info(folder / "run").arms}["llguidance"] == "16.0"
    found: dict[tuple[str, str], list[Row]] = {}
    for row in read_rows(folder / "run"):
        found.setdefault((row.backend.rpartition(":")[2], row.case), []).append(row)
    return found


@pytest.mark.parametrize(
    ("backend", "documented"), [("llguidance", True), ("DocumentedRust", True), ("Rust", False)]
)
def test_a_verdict_that_is_right_by_another_reading_says_so(
    backend: str, documented: bool, rows: dict[tuple[str, str], list[Row]]
) -> None:
    walks = [row for row in rows[backend, "intersection"] if row.mode != CHECKS_MODE]
    assert [row.valid == row.accepted for row in walks] == [False, False], "the verdicts stay visible"
    said = [finding for row in walks for finding in row.findings if finding.check == VERDICT]
    assert [(each.cause, each.documented) for each in said] == [("regex_dialect_rust", documented)] * 2
    assert not any(finding.check == VERDICT for row in rows[backend, "count"] for finding in row.findings)
    assert {outcome(row).fails for row in rows[backend, "intersection"]} == (
        {False} if documented else {True}
    )


def test_who_is_wrong_in_every_dialect_has_no_excuse(rows: dict[tuple[str, str], list[Row]]) -> None:
    walks = [row for row in rows["WrongInEveryDialect", "count"] if row.mode != CHECKS_MODE]
    assert [row.valid == row.accepted for row in walks] == [False, False]
    assert not any(
        finding.documented or finding.check == VERDICT for row in walks for finding in row.findings
    )
    assert all(outcome(row).fails for row in walks)
