"""A run takes over what an earlier one walked, and walks the rest: it is what one run would have been."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from refused import behind_progress

from harness.backend.describe import Description, describe
from harness.cli.main import main
from harness.errors import BAD_INPUT, OK, BadInput
from harness.rows.folder import ROWS
from harness.rows.row import Row, untimed
from harness.rows.store import PACKED, packed, read_end, read_info, read_rows
from harness.running.merge import merge
from harness.running.session import Request, run
from harness.running.shard import Shard

CASES: list[dict[str, Any]] = [
    {
        "description": f"letters {number}",
        "regex": f"a{{{number}}}b*",
        "tests": [{"text": "a" * number, "valid": True}, {"text": "b", "valid": False}],
    }
    for number in range(1, 7)
]
NAMES = tuple(f"letters: {case['description']}" for case in CASES)
BARE = {"description": "bare", "schema": {"type": "boolean"}}
"""A case for which documents are made."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "letters.json"
    path.write_text(json.dumps(CASES))
    return path


@pytest.fixture
def suite_with_bare(suite: Path) -> Path:
    suite.write_text(json.dumps([*CASES, BARE]))
    return suite


@cache
def described(backends: str) -> Description:
    """What the backends are, which all runs of this file share: to look takes as long as to walk."""
    return describe(backends.split(","), ["bytes"])


def walk(
    suite: Path,
    out: str,
    backends: str = "reference",
    cases: Sequence[str] = (),
    taken_from: str = "",
    bare: bool = False,
    timeout: float = 30.0,
    shard: Shard | None = None,
    resume: bool = False,
    effort: int = 0,
) -> str:
    """Walks the suite into a folder beside it; returns what is said."""
    said: list[str] = []
    request = Request(
        suites=(str(suite),),
        backends=backends,
        vocabularies=("bytes",),
        profile="quick",
        out=suite.with_name(out),
        timeout_s=timeout,
        effort=effort,
        only=tuple(cases),
        bare=bare,
        taken_from=suite.with_name(taken_from) if taken_from else None,
        shard=shard,
        resume=resume,
    )
    run(request, said.append, lambda _: None, described(backends))
    return "\n".join(said)


def rows(folder: Path) -> list[Row]:
    return sorted(map(untimed, read_rows(folder)), key=lambda row: (row.backend, row.case, row.instance or 0))


def publish(run: Path) -> None:
    """Leaves of a run what is published of one: packed rows."""
    content = packed((run / ROWS).read_bytes())
    for file in run.iterdir():
        file.unlink()
    (run / PACKED).write_bytes(content)


@pytest.mark.parametrize("published", [False, True])
def test_a_sample_becomes_the_whole(suite_with_bare: Path, published: bool) -> None:
    suite = suite_with_bare
    walk(suite, "whole")
    walk(suite, "sample", cases=[*NAMES[:3], "letters: bare"])
    if published:
        publish(suite.with_name("sample"))
    said = walk(suite, "enlarged", taken_from="sample")
    # A published run does not say which documents it had made for the bare schema, so that is walked anew.
    assert f"{3 if published else 4} cases taken over" in said
    assert rows(suite.with_name("enlarged")) == rows(suite.with_name("whole"))
    end, info = read_end(suite.with_name("enlarged")), read_info(suite.with_name("enlarged"))
    assert end is not None and end.rows == len(rows(suite.with_name("whole")))
    assert info.suites == read_info(suite.with_name("whole")).suites


def test_what_is_taken_over_is_not_walked_again(suite: Path) -> None:
    walk(suite, "sample", cases=NAMES[:2])
    stored = suite.with_name("sample") / "rows.jsonl"
    lines = stored.read_text()
    spoiled = lines.replace('"accepted":true', '"accepted":false')
    assert spoiled != lines
    stored.write_text(spoiled)
    walk(suite, "enlarged", taken_from="sample")
    refused = {row.case for row in read_rows(suite.with_name("enlarged")) if row.valid and not row.accepted}
    assert refused == set(NAMES[:2])


def test_a_run_that_goes_on_takes_over_what_it_still_owes(suite: Path) -> None:
    walk(suite, "whole")
    walk(suite, "sample", cases=NAMES[:3])
    walk(suite, "begun", cases=NAMES)
    rows_file = suite.with_name("begun") / ROWS
    lines = rows_file.read_text().splitlines(keepends=True)
    rows_file.write_text("".join(lines[:2]))  # the first line and one row
    said = walk(suite, "begun", cases=NAMES, taken_from="sample", resume=True)
    assert "3 cases taken over" in said
    assert rows(suite.with_name("begun")) == rows(suite.with_name("whole"))


def test_a_run_with_rows_taken_over_tells_how_these_were_walked(suite: Path) -> None:
    walk(suite, "sample", cases=NAMES[:3])
    began = suite.with_name("sample") / ROWS
    first, _, rest = began.read_text().partition("\n")
    header = json.loads(first)
    began.write_text(f"{json.dumps({**header, 'jobs': 7, 'executor': 'ray'})}\n{rest}")
    walk(suite, "whole", taken_from="sample")
    whole = read_info(suite.with_name("whole"))
    assert (whole.jobs, whole.executor) == (7, "ray")


def test_a_share_takes_over_its_own_cases_alone(suite: Path) -> None:
    walk(suite, "whole")
    for number in (1, 2):
        walk(suite, f"share{number}", taken_from="whole", shard=Shard(number, 2))
    shares = [{row.case for row in read_rows(suite.with_name(f"share{number}"))} for number in (1, 2)]
    assert not shares[0] & shares[1] and shares[0] | shares[1] == set(NAMES)


def test_a_backend_is_added(suite: Path) -> None:
    walk(suite, "both", backends="reference,unconstrained")
    walk(suite, "one")
    said = walk(suite, "added", backends="unconstrained,reference", taken_from="one")
    assert f"{len(CASES)} cases taken over" in said
    assert rows(suite.with_name("added")) == rows(suite.with_name("both"))


@pytest.mark.parametrize("published", [False, True])
def test_a_case_whose_instances_changed_is_walked_anew(suite: Path, published: bool) -> None:
    walk(suite, "first")
    if published:
        publish(suite.with_name("first"))
    changed = [*CASES]
    changed[0] = {**changed[0], "tests": [changed[0]["tests"][0], {"text": "ab", "valid": True}]}
    suite.write_text(json.dumps(changed))
    # Which of its cases is another, a published run does not say.
    assert f"{0 if published else 5} cases taken over" in walk(suite, "second", taken_from="first")
    second = list(read_rows(suite.with_name("second")))
    assert len(second) == 2 * len(CASES) and all(row.accepted == row.valid for row in second)


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("text", ["aab", "aaaab"])
def test_a_published_row_of_another_document_is_not_taken(suite: Path, text: str, made: bool) -> None:
    """Its name and its verdict are the same, and its length may be. `made`: were documents, for another?"""
    case = {"description": "a case", "regex": "a+b?"}
    for out, content in (("first", "aaa"), ("second", text)):
        cases = [{**case, "tests": [{"description": "one", "text": content, "valid": True}]}]
        suite.write_text(json.dumps(cases + [BARE] * made))
        said = walk(suite, out, taken_from="" if out == "first" else "first")
        if out == "first":
            publish(suite.with_name("first"))
    assert "0 cases taken over" in said and "its cases of letters were others" in said
    assert [row.bytes for row in read_rows(suite.with_name("second")) if row.case == "letters: a case"] == [
        len(text)
    ]


def test_another_version_of_a_published_suite_is_walked_anew(suite: Path) -> None:
    walk(suite, "first")
    stored = suite.with_name("first") / ROWS
    head, rest = stored.read_text().split("\n", 1)
    line = json.loads(head)
    line["suites"]["letters"]["version"] = "2"
    stored.write_text(json.dumps(line) + "\n" + rest)
    publish(suite.with_name("first"))
    said = walk(suite, "second", taken_from="first")
    assert "0 cases taken over" in said and "its cases of letters were others" in said


def test_another_deadline_is_refused(suite: Path) -> None:
    walk(suite, "first")
    with pytest.raises(BadInput, match=r"made with other options \(timeout_s 30.0; now 3.0\)"):
        walk(suite, "second", taken_from="first", timeout=3.0)


def test_that_other_checks_were_made_of_what_is_taken_over_is_said(suite: Path) -> None:
    walk(suite, "first", cases=NAMES[:1], effort=1)
    said = walk(suite, "same", cases=NAMES[:1], taken_from="first", effort=1)
    assert "1 case taken over" in said and "another GrammarBench" not in said
    stored = suite.with_name("first") / ROWS
    lines = [json.loads(line) for line in stored.read_text().splitlines()]
    for line in lines:
        if line.get("checks"):
            del line["checks"]["the_mask_says_what_accept_does"]
    stored.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    said = walk(suite, "second", cases=NAMES[:1], taken_from="first", effort=1)
    assert "have its checks alone (1 check only here: the_mask_says_what_accept_does)" in said
    with pytest.raises(BadInput, match=r"only here: the_mask_says_what_accept_does.*--take-over"):
        walk(suite, "first", cases=NAMES[:1], effort=1, resume=True)
    with pytest.raises(BadInput, match=r"1 check only there: .*merge what one GrammarBench made"):
        merge(suite.with_name("whole"), [suite.with_name("same"), suite.with_name("first")], ())


@pytest.mark.parametrize("kind", ["suites", "backends", "vocabularies"])
def test_a_run_with_nothing_in_common_is_refused(suite: Path, kind: str) -> None:
    """It would walk every case anew, for hours, which is not what its user asked for."""
    walk(suite, "first")
    stored = suite.with_name("first") / "rows.jsonl"
    head, rest = stored.read_text().split("\n", 1)
    fields = json.loads(head)
    if kind == "backends":
        fields["arms"][0]["backend"] = "another"
    else:
        fields[kind] = {"another": next(iter(fields[kind].values()))}
    stored.write_text(json.dumps(fields) + "\n" + rest)
    with pytest.raises(BadInput, match=f"has the {kind} another.* so that no rows can be taken over"):
        walk(suite, "second", taken_from="first")


def test_other_tokens_of_the_same_name_are_refused(suite: Path) -> None:
    walk(suite, "sample")
    stored = suite.with_name("sample") / "rows.jsonl"
    head, rest = stored.read_text().split("\n", 1)
    (about,) = json.loads(head)["vocabularies"].values()
    stored.write_text(head.replace(about["sha256"], "0" * 64) + "\n" + rest)
    with pytest.raises(BadInput, match="another tokenizer under the name bytes"):
        walk(suite, "enlarged", taken_from="sample")


def test_another_tokenizer_of_the_same_tokens_is_refused_where_both_runs_tell(suite: Path) -> None:
    walk(suite, "sample")
    stored = suite.with_name("sample") / "rows.jsonl"
    head, rest = stored.read_text().split("\n", 1)
    fields = json.loads(head)
    (about,) = fields["vocabularies"].values()
    about["tokenizer_sha256"] = "0" * 64
    stored.write_text(json.dumps(fields) + "\n" + rest)
    with pytest.raises(BadInput, match="another tokenizer under the name bytes"):
        walk(suite, "enlarged", taken_from="sample")
    del about["tokenizer_sha256"]
    stored.write_text(json.dumps(fields) + "\n" + rest)
    walk(suite, "enlarged", taken_from="sample")


def test_bare_schemas_get_no_documents(suite_with_bare: Path) -> None:
    suite = suite_with_bare
    walk(suite, "bare", cases=["letters: bare"], bare=True)
    (row,) = read_rows(suite.with_name("bare"))
    assert row.instance is None and row.status == "ok"
    walk(suite, "made", cases=["letters: bare"])
    made = list(read_rows(suite.with_name("made")))
    assert made and all(row.instance is not None for row in made)


def test_documents_made_by_other_options_are_not_taken(suite: Path) -> None:
    """The case has the same id by either, and the document that breaks the format is right without it."""
    dated = {"description": "bare", "schema": {"type": "string", "format": "date"}}
    for out, options in (("asserting", {"format": "assert"}), ("whole", {}), ("second", {})):
        suite.write_text(json.dumps([{**dated, "options": options}]))
        walk(suite, out, taken_from="asserting" if out == "second" else "")
    assert rows(suite.with_name("second")) == rows(suite.with_name("whole"))


def test_a_bare_run_gives_no_documents_on(suite_with_bare: Path) -> None:
    suite = suite_with_bare
    walk(suite, "bare", bare=True)
    walk(suite, "whole")
    assert f"{len(CASES)} cases taken over" in walk(suite, "second", taken_from="bare")
    assert rows(suite.with_name("second")) == rows(suite.with_name("whole"))


def test_of_a_run_with_a_torn_line_the_whole_cases_are_taken(suite: Path) -> None:
    walk(suite, "sample", cases=NAMES[:2])
    stored = suite.with_name("sample") / ROWS
    stored.write_bytes(b"".join(stored.read_bytes().splitlines(keepends=True)[:-1])[:-9])
    assert "1 case taken over" in walk(suite, "enlarged", taken_from="sample")
    walk(suite, "whole")
    assert rows(suite.with_name("enlarged")) == rows(suite.with_name("whole"))


def test_the_command_takes_both_options(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--backends reference --vocabularies bytes --effort 0 --bare"
    words = ["run", str(suite), *options.split()]
    first, second = str(suite.with_name("first")), str(suite.with_name("second"))
    assert main([*words, "--case", NAMES[0], "--out", first]) == OK
    assert main([*words, "--take-over", first, "--out", second]) == OK
    assert "1 case taken over" in capsys.readouterr().err
    saved = suite.with_name("second") / "experiment.toml"
    assert main(["run", str(saved), "--out", str(suite.with_name("repeated"))]) == OK
    assert rows(suite.with_name("repeated")) == rows(suite.with_name("second"))
    capsys.readouterr()
    nothing = str(suite.parent / "nothing")
    assert main([*words, "--take-over", nothing, "--out", str(suite.with_name("third"))]) == BAD_INPUT
    assert len(behind_progress(capsys.readouterr().err)) == 1
