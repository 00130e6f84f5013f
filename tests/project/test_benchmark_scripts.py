"""Bad input to the scripts of benchmarks/ is one line and exit code 2, and nothing that was there is lost."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import releases_page
from further_sessions import copy_sessions
from report_folders import write_rows
from scripts import script_of

from harness.backend.grammar import Grammar
from harness.cases.case import Case, case_id
from harness.errors import BAD_INPUT, OK
from harness.outcomes.case_state import CaseState
from harness.rows.sessions import add_session
from harness.rows.store import read_info

WRONG = [
    ("accusations", "no_run"),
    ("accusations", ""),
    ("agreement", "--files -1"),
    ("agreement", "--folder no_folder"),
    ("endless", "--endless no_run"),
    ("endless", "--publish no_run --into kept"),
    ("fidelity", "no_backend"),
    ("findings", "--publish name=no_run --into kept"),
    ("findings", "--publish name --into kept"),
    ("findings", "--publish =no_run --into kept"),
    ("findings", "--publish ..=no_run --into kept"),
    ("findings", "--into kept"),
    ("generated", "no_folder"),
    ("generated", ". --every 0"),
    ("generated", "kept"),
    ("gpu", "--out a_file --show"),
    ("gpu", "--out a_file/below decode"),
    ("gpu", "--out kept --seconds nan"),
    ("json_schema_oracle", "no_folder"),
    ("json_schema_oracle", "kept 0"),
    ("larks", "few random.jsonl"),
    ("larks", ""),
    ("larks", "1 no_folder/random.jsonl"),
    ("loop", "no_backend"),
    ("maskbench_table", "no_run"),
    ("memory", "1000"),
    ("memory", "many"),
    ("overhead", "no_folder"),
    ("pictures", "no_page.html"),
    ("ray_sweep", "neither"),
    ("ray_sweep", "memory few"),
    ("releases", "--out kept --corpora no_folder --arms unconstrained"),
    ("releases", "--out kept --most 0"),
    ("report", "0"),
    ("sensitivity", "neither"),
    ("sensitivity", "same 0"),
    ("token_loaders", "kept xgrammar no_family"),
    ("token_loaders", ""),
    ("vocabulary_loading", "no_vocabulary"),
    ("wrappers", "no_run"),
    ("wrappers", "no_run --cases -1"),
]


WALKED = [
    releases_page.Walked(
        releases_page.Release("alpha", "alpha", "1", ""), {"a": CaseState.WORKS}, {"a": "a case"}
    )
]


@pytest.mark.parametrize(("name", "words"), WRONG, ids=[" ".join(case) for case in WRONG])
def test_bad_input_is_one_line_and_takes_nothing_away(
    name: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").touch()
    old = tmp_path / "kept" / "name" / "rows.jsonl.xz"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"published")
    try:
        code = script_of(name).main(words.split())
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err
    assert code == BAD_INPUT
    # argparse puts the usage before its line.
    assert said.startswith("usage: ") or (said.startswith(f"{name}: ") and said.count("\n") == 1), said
    assert old.read_bytes() == b"published"


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    return script_of("findings")


def test_a_run_is_published_under_its_name_and_replaces_what_had_it(
    findings: ModuleType, synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "DOCS", tmp_path / "docs")
    run = write_rows(synthetic, tmp_path / "run", cases=3)
    old = tmp_path / "mine" / "old"
    old.mkdir(parents=True)
    assert findings.main(["--publish", f"mine={run}", "--into", str(tmp_path)]) == OK
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["report.html", "rows.jsonl.xz"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "run"]
    assert str(run) not in (tmp_path / "mine" / "report.html").read_text()
    assert findings.main(["--publish", f"mine={run}", "--into", str(tmp_path), "--samples"]) == OK
    assert (tmp_path / "mine" / "samples.i64").read_bytes() == (run / "samples.i64").read_bytes()


@pytest.mark.parametrize("name", ["findings", "endless", "releases"])
def test_the_sessions_of_a_published_run_lie_beside_its_rows(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script, published = script_of(name), tmp_path / "published"
    run = write_rows(synthetic, tmp_path / "run", cases=3)
    add_session(run, synthetic.info(jobs=7))
    if name == "releases":
        monkeypatch.setattr(releases_page, "read", lambda *_: WALKED)
        script.publish(tmp_path, [], {})
    elif name == "endless":
        script.publish(run, published)
    else:
        script.publish([f"published={run}"], tmp_path)
    assert read_info(published).jobs == 7
    copy_sessions(write_rows(synthetic, tmp_path / "other", cases=3), published)
    assert read_info(published).jobs == 2


@pytest.mark.parametrize("fields", [{"backend_version": "2"}, {"vocabulary": "other"}])
def test_what_would_be_one_line_of_the_table_of_endless_outputs_is_refused(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, str]
) -> None:
    rows = [synthetic.row(), synthetic.row(**fields)]
    run = synthetic.write_run(
        tmp_path / "run", [[(row, b"")] for row in rows], synthetic.info(synthetic.arms_of(rows))
    )
    script = script_of("endless")
    for words in (["--endless", str(run)], ["--endless", str(run), "--spellings", str(run)]):
        assert script.main(words) == BAD_INPUT
        assert "several versions of a backend, or several vocabularies" in capsys.readouterr().err


def test_the_adapter_that_sensitivity_measures_is_where_it_looks() -> None:
    script = script_of("sensitivity")
    module, _, _ = script.BASE.partition(":")
    assert script.SUPPORT.joinpath(*module.split(".")).with_suffix(".py").is_file()


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (True, True, "both validators confirm it"),
        (None, True, "one validator confirms it, the other has no verdict"),
        (None, False, "one validator contradicts it, the other has no verdict"),
        (False, None, "one validator contradicts it, the other has no verdict"),
        (True, False, "the validators disagree"),
        (None, None, "no validator has a verdict"),
        (False, False, "both validators contradict it"),
    ],
)
def test_what_two_validators_say_of_an_accusation(first: bool | None, second: bool | None, said: str) -> None:
    class Judge:
        def verdict(self, *_: object, **__: object) -> bool | None:
            return first

        def second(self, *_: object, **__: object) -> tuple[bool | None, str]:
            return second, ""

    script = script_of("accusations")
    grammar = Grammar("json_schema", "{}")
    case = Case(case_id(grammar), "", grammar)
    accusation = script.Accusation(case, True, None, frozenset(), b"", b"1")
    assert script.outcome(Judge(), accusation, b"1") == said
