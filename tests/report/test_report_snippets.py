"""Scripts of the backend alone on case pages: made of what the adapter that is installed here brings, run as
a reader would run them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import synthetic
from browser import Browser
from failing import CASES, OUTLINES, QUOTE, STAR, case, finding, row
from report_schema import SCHEMA
from reported import on_page, unpack

from harness.backend import scripts as asking
from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.backend.scripts import scripts
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Instance
from harness.report.cases import data, snippets
from harness.report.cases.cases import CaseNoted
from harness.report.cases.data import fit
from harness.report.page.page import write_report
from harness.rows.row import CHECKS_MODE

EVIL = '</script>\u2028`\'"\\\n"""\N{PILE OF POO}'
"""As a choice; the last two lines of its script must still print."""
NOT_HERE = Arm("outlines-core", "0.0.1", "", "outlines-core", ("regex",), "bitmask")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A verdict, a finding and a refusal to compile by a backend that is here; the first of them too by a
    version of it that is not."""
    vocabulary = load_vocabulary("probe")
    evil = case("evil", Grammar("choice", json.dumps([EVIL])), Instance("it", EVIL.encode(), False))
    count, tokens = len(vocabulary.encode(EVIL.encode())), len(vocabulary.encode(b"hello:abab"))
    refused = {"accepted": False, "stopped_at": tokens - 1, "tokens": tokens}
    spare = {"mode": CHECKS_MODE, "checks": {"the_mask_is_exact": "failed"}}
    of_evil = {
        "case": "evil",
        "case_id": evil.id,
        "dialect": "choice",
        "instance": 0,
        "valid": False,
        "accepted": True,
        "tokens": count,
    }
    of_evil |= {
        "backend": "outlines-core",
        "backend_version": OUTLINES.version,
        "vocabulary": "probe",
        "suite": "mine",
    }
    declined = {"status": "unsupported", "phase": "compile", "text": "no", "accepted": None}
    groups = [
        [(row(0, OUTLINES, 1, **refused), b"")],
        [(row(0, NOT_HERE, 1, **refused), b"")],
        [
            (row(1, OUTLINES, 0), b""),
            (
                row(
                    1,
                    OUTLINES,
                    None,
                    findings=(finding("the_mask_is_exact", "a\nb", QUOTE, b"\xc2", over=9),),
                    **spare,
                ),
                b"",
            ),
        ],
        [(row(2, OUTLINES, 0, **declined), b"")],
        [(synthetic.row(**of_evil), b"")],
    ]
    known = {"probe": {"size": vocabulary.size, "sha256": vocabulary.sha256}}
    folder = tmp_path_factory.mktemp("run") / "run"
    cases = [("mine", each) for each in (*CASES, evil)]
    synthetic.write_run(folder, groups, synthetic.info((OUTLINES, NOT_HERE), vocabularies=known), cases)
    return write_report([folder], tmp_path_factory.mktemp("page"))


NO_CASE = CaseNoted("", "", "", "", ())


def shown(browser: Browser, written: Path, name: str) -> list[str]:
    """The scripts on the page of the case of that name."""
    browser.open(written.as_uri())
    browser.go("/cases?state=failing")
    browser.go(f"/case/{browser.ask(f'index.cases.id[index.cases.name.indexOf({json.dumps(name)})]')}")
    found: list[str] = browser.ask(
        "[...explorer.querySelectorAll('[aria-label=\"script of the backend alone\"]')].map((each) => "
        "each.textContent)"
    )
    return found


def printed(script: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_page_shows_each_kind_of_failure_with_the_backend_alone(written: Path, browser: Browser) -> None:
    (star,) = shown(browser, written, "star")  # the version that is not here has none
    assert "harness" not in star and f"# outlines-core {OUTLINES.version}" in star and star.count("\n") < 24
    lines = printed(star)
    assert lines[-1].endswith("False False") and lines[0].endswith("True True")
    assert "# expected: True True on every line" in star
    text = browser.ask("explorer.textContent")
    assert (
        "No script of the backend alone here: outlines-core 0.2.14 is installed where this page was "
        "made, not 0.0.1."
    ) in text
    assert "# outlines-core 0.2.14" in browser.ask(
        "explorer.querySelector('[aria-label^=\"issue text\"]').textContent"
    )
    (found,) = shown(browser, written, "quoted")
    assert (
        printed(found)[-1].startswith("b'\\xc2' False")
        and '# expected: True True on the last line, because an output can go on so; seen: "a\\nb"' in found
    )
    (refused,) = shown(browser, written, "boom")
    assert printed(refused) == [] and "# expected: no error" in refused
    assert browser.console == []


def test_the_script_of_a_documented_finding_walks_to_it() -> None:
    """It was empty, and printed nothing of what it said that it shows."""
    vocabulary = load_vocabulary("probe")
    shown = {"check": "the_mask_is_exact", "walk": [vocabulary.ids_by_bytes[b"a"]]}
    detail: dict[str, Any] = {"instances": []}
    for kind in ("finding", "documented"):
        note = {"kind": kind, "arm": 0, "findings": [shown]}
        assert snippets._walk(note, detail, vocabulary) == {"pieces": [b"a".hex()], "end": False}
        without = {**note, "findings": [{"check": "the_mask_is_exact"}]}
        assert snippets._walk(without, detail, vocabulary) is None
    assert snippets._walk({"kind": "declined", "arm": 0}, detail, vocabulary) == {"pieces": [], "end": False}


def test_a_hostile_grammar_stays_a_text_of_the_script(written: Path, browser: Browser) -> None:
    (evil,) = shown(browser, written, "evil")
    lines = printed(evil)
    assert lines[-1] == "b'' True True" and all(each.endswith("True True") for each in lines)
    assert b"".join(ast.literal_eval(each.rsplit(" ", 2)[0]) for each in lines) == EVIL.encode()
    assert browser.console == [] and browser.requested == [written.as_uri()]


def test_what_a_row_says_stays_in_the_comment_of_its_script(tmp_path: Path, browser: Browser) -> None:
    check = 'fine\nraise SystemExit("a line of the row")'
    vocabulary = load_vocabulary("probe")
    fields = {"mode": CHECKS_MODE, "checks": {check: "failed"}}
    rows = [(row(1, OUTLINES, None, findings=(finding(check, "seen", QUOTE, b"\xc2"),), **fields), b"")]
    known = {"probe": {"size": vocabulary.size, "sha256": vocabulary.sha256}}
    run = synthetic.write_run(
        tmp_path / "run",
        [[(row(1, OUTLINES, 0), b"")], rows],
        synthetic.info((OUTLINES,), vocabularies=known),
        [("mine", each) for each in CASES],
    )
    (script,) = shown(browser, write_report([run], tmp_path / "page"), "quoted")
    assert printed(script) and script.splitlines()[-1].startswith("# expected: fine\\nraise SystemExit")
    assert browser.console == []


def test_the_data_are_what_their_schema_says_and_leave_a_page_that_would_be_too_large(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = json.loads((written.parent / "report.json").read_text())
    jsonschema.validate(made, SCHEMA)
    assert [each.get("no_snippet", "")[:13] for each in made["arms"]] == ["", "outlines-core"]
    assert sum("snippets" in each for each in made["details"]) == 4
    index, details = on_page(written.read_text())
    page = {"in_all": 4, "repro": [True], "walked_as": ["first"], "alone": False}
    explored = data.Explored(index, 4, [NO_CASE] * 4, [], details, {}, page)
    whole = fit(explored, 0)
    cut = fit(explored, 0, usual=0, most=whole.size - 1)
    assert "no scripts that need the backend alone" in cut.stated[-1] and not any(
        "snippets" in each for each in unpack(cut.shards[0])
    )


def test_only_what_is_installed_here_under_the_arms_name_and_version_is_asked(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit(3)")
    strangers = (
        Arm("evil:Adapter", "0.2.14", "", "outlines-core", (), "bitmask"),
        Arm("outlines-core", "0.2.14", "", "no such distribution \0", (), "bitmask"),
        Arm("outlines-core", "0.2.14", "", "outlines-core", (), "bitmask", python="/bin/false"),
        Arm("outlines-core", "0.2.14", "whitespace=</script>", "outlines-core", (), "bitmask"),
        Arm("reference", "", "", "", (), "bitmask"),
        NOT_HERE,
    )
    found = scripts([(each, [STAR]) for each in strangers])
    assert [each.of for each in found] == [{}] * 6 and all(each.why for each in found)
    assert (
        "no adapter of its name" in found[0].why
        and "is not installed" in found[1].why
        and "option whitespace=" in found[3].why
    )
    (good,) = scripts([(OUTLINES, [STAR, Grammar("ebnf", "root ::= [")])])
    assert list(good.of) == [STAR] and good.why == "" and "Guide" in good.of[STAR]


def test_an_adapter_that_ends_its_process_or_hangs_costs_only_its_own_scripts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "if 'harness.backend.scripts:open_scripts' in ' '.join(sys.orig_argv):\n"
        "    from harness.adapters.outlines_core import OutlinesCore\n"
        "    plain = OutlinesCore.script\n"
        "    ends = {'(x': lambda: os._exit(9), '(y': lambda: time.sleep(60)}\n"
        "    OutlinesCore.script = lambda self, grammar: ends.get(grammar.text, lambda: plain(self, "
        "grammar))()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    other = Grammar("regex", "b")
    (lost,) = scripts([(OUTLINES, [STAR, Grammar("regex", "(x"), other])])
    assert list(lost.of) == [STAR] and "ended the process" in lost.why
    monkeypatch.setattr(asking, "SECONDS", 3.0)
    (hung,) = scripts([(OUTLINES, [STAR, Grammar("regex", "(y"), other])])
    assert set(hung.of) <= {STAR} and "ended the process" in hung.why
