"""`advise` answers first: which backend, what each does with every schema, and what to change."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

import harness
from harness.backend.describe import catalogue
from harness.backend.vocabulary.load import KINDS, vocabulary_kind
from harness.cases.suite import find_suite, read_cases
from harness.cli.main import main
from harness.diagnose.advise import advice as advice_module
from harness.diagnose.advise import rewritten as rewrites
from harness.diagnose.advise.advice import source_of
from harness.diagnose.advise.engines import Offer, engines, offer_of
from harness.diagnose.advise.stored import FILE, stored_advice, write_advice
from harness.errors import BadInput
from harness.outcomes.case_state import CaseState
from harness.report.advice import advice_text
from harness.report.page import page as page_module
from harness.running.session import Outcome, Request, run
from harness.text import Console

TOOLS = {
    "tools": [
        {
            "name": "book",
            "input_schema": {
                "type": "object",
                "properties": {"nights": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["nights"],
                "additionalProperties": False,
            },
        },
        {
            "name": "tag",
            "input_schema": {
                "type": "object",
                "properties": {
                    "names": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}
                },
                "required": ["names"],
                "additionalProperties": False,
            },
        },
    ]
}


SHOWN = (CaseState.WORKS, CaseState.REFUSED, CaseState.SILENTLY_WRONG)
"""The states in which the tools are, which the screen explains."""


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advised")
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    return folder


def advise(folder: Path, *more: str) -> int:
    return main(
        [
            "advise",
            str(folder / "tools.json"),
            "--backends",
            "llguidance,xgrammar",
            "--tokenizer",
            "bytes",
            *more,
        ]
    )


def test_the_answer_comes_first_and_names_what_is_not_kept(
    advised: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advise(advised, "--out", str(advised / "run")) == 0
    screen = capsys.readouterr().out
    answer = " ".join(screen[screen.index("Use ") :].split())
    assert answer.startswith("Use llguidance: it works on 1 of your 2 schemas and refuses 1.")
    assert "xgrammar works on 1" in answer and "`names.uniqueItems`" in answer
    for part in (
        "How sure: ",
        "silently wrong: names.uniqueItems",
        "What goes wrong with xgrammar, the worst first: tag: xgrammar accepts",
        *(f"{state.words.title}: {state.words.meaning}." for state in SHOWN),
        "Unimplemented keys",
        "slowest compile",
        "Can an output go on until max_tokens? llguidance: yes, in white space",
        "With a max_tokens below ",
        "report.html",
    ):
        assert part in answer
    page = (advised / "run" / "report" / "report.html").read_text("utf-8")
    assert "Use llguidance: it works on 1 of your 2 schemas and refuses 1." in page
    assert "What to change" in page and "Then it works on llguidance too." in page
    with_all = "each was tried on the same backends; with it llguidance works on all 2"
    assert with_all in answer and with_all.partition("; ")[2] in page


def interrupted(advised: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the folder of the advice above as if it had been interrupted before its last row."""
    rows = advised / "run" / "rows.jsonl"
    if not rows.exists():
        advise(advised, "--out", str(rows.parent))
        capsys.readouterr()
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:-2]))
    return str(rows.parent)


def test_a_folder_of_that_name_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of ours is called `tools` too."""
    monkeypatch.chdir(tmp_path)
    assert find_suite(source_of("tools")).is_ours
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.json").write_text('{"type": "object"}')
    mine = find_suite(source_of("tools"))
    assert not mine.is_ours and [path.name for path in mine.files] == ["mine.json"]
    assert source_of(str(tmp_path / "tools")) == str(tmp_path / "tools")


def test_a_program_asks_for_the_same(advised: Path) -> None:
    advice = harness.advise(
        advised / "tools.json", backends=["llguidance"], tokenizer="bytes", out=advised / "asked"
    )
    assert advice.answer.best is not None and advice.answer.best.name == "llguidance"
    assert not advice.works and advice.folder == advised / "asked"
    notes = tuple(f"Note {number} is a sentence of its own, among many." for number in range(30))
    answer = replace(advice.answer, certainty=notes)
    screen = advice_text(replace(advice, answer=answer), "a page", Console())
    said = " ".join(screen.split())
    assert f"How sure: {answer.sure}. {notes[0]}" in said
    assert f"What this rests on: {' '.join(notes[1:])}" in said, "nothing is left out of what it rests on"


def test_an_option_of_the_engine_is_no_advice_where_no_backend_works(advised: Path) -> None:
    offer = offer_of("vllm", catalogue())
    bad = advised / "bad"
    bad.mkdir()
    (bad / "tools.json").write_text(json.dumps({"tools": TOOLS["tools"][1:]}))
    for folder, said in ((bad, "If it must be one, write for vllm"), (advised, "For vllm, write")):
        advice = harness.advise(
            folder / "tools.json",
            backends=["llguidance"],
            tokenizer="bytes",
            out=folder / "engine",
        )
        screen = advice_text(replace(advice, engine="vllm", offer=offer), "a page", Console())
        assert f"{said}: --structured-outputs-config.backend guidance" in screen
        stored = stored_advice(advice.folder)
        assert stored is not None and replace(stored, engine="vllm").choice == f"{said}:"


def test_the_page_has_the_option_of_the_engine_between_the_answer_and_the_cards(advised: Path) -> None:
    folder = advised / "option"
    harness.advise(advised / "tools.json", backends=["llguidance"], tokenizer="bytes", out=folder)
    stored = stored_advice(folder)
    assert stored is not None
    told = ("The calls `<fail>`.", "It hands over none.")
    write_advice(folder, replace(stored, engine="vllm", engine_option="--backend <b>", notes=told))
    assert main(["report", str(folder)]) == 0
    page = (folder / "report" / "report.html").read_text("utf-8")
    before, said, behind = page.partition("write: <code>--backend &lt;b&gt;</code>")
    assert said and said not in behind and "--backend <b>" not in page
    assert 'class="sentence"' in before and 'class="cards"' not in before and 'class="cards"' in behind
    note = "<p>The calls <code>&lt;fail&gt;</code>. It hands over none.</p>"
    assert page.count(note) == 1 and note in behind.partition('class="sure"')[0], "as on the terminal"


def test_a_backend_that_the_engine_lacks_is_called_so(advised: Path) -> None:
    """Who names backends is not told that others are not installed."""
    advice = harness.advise(
        advised / "tools.json", backends=["llguidance"], tokenizer="bytes", out=advised / "foreign"
    )
    backend = "llguidance"
    for arms, are_wrappers, said in [
        ({"xgrammar": ""}, False, ("llguidance is no backend of e.",)),
        ({"e:wrapper=x": ""}, True, ("llguidance was tried by itself, not through e.",)),
        (
            {"llguidance:x=y": ""},
            True,
            ("The backends are e's own", "llguidance has options of"),
        ),
        ({"xgrammar": "", backend: ""}, False, ("The backends are the libraries that e has",)),
        ({backend: ""}, False, ("The backends are the libraries that e has", "Not installed, so not tried")),
    ]:
        notes = replace(advice, engine="e", offer=Offer(arms, are_wrappers, ("gone",))).notes
        assert len(notes) == len(said) and all(map(str.startswith, notes, said))
    offer = Offer({backend: ""}, False, (), has_wrappers=False)
    assert replace(advice, engine="e", offer=offer).notes == (
        "What was tried is the grammar code that e runs, as a library has it here.",
    )


def test_the_help_names_each_kind_of_path_that_is_a_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["advise", "--help"])
    said = capsys.readouterr().out
    for name, shown in [("tokenizer.json",) * 2, ("ranks.tiktoken", ".tiktoken"), ("model.gguf", ".gguf")]:
        (tmp_path / name).touch()
        assert vocabulary_kind(str(tmp_path / name))[0] in KINDS
        assert shown in said


def test_one_tokenizer_is_asked_about(advised: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", str(advised / "tools.json"), "--tokenizer", "all", "--out", str(advised / "every")]
    assert main(words) == 2
    assert "advice is about one tokenizer" in capsys.readouterr().err
    assert not (advised / "every").exists()


def test_rewrites_are_looked_for_in_so_many_cases(advised: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [{**TOOLS["tools"][1], "name": name} for name in ("one", "two", "three")]
    (advised / "many.json").write_text(json.dumps({"tools": tools}))
    monkeypatch.setattr(rewrites, "MOST_CASES", 1)
    advice = harness.advise(
        advised / "many.json", backends=["llguidance"], tokenizer="bytes", out=advised / "many"
    )
    assert len((*advice.changes, *advice.unchanged)) == 1 and advice.not_looked_at == 2
    assert "For 2 more cases no rewrite was looked for." in advice_text(advice, "a page", Console())


def test_a_gate_fails_where_a_schema_does_not_work(advised: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = interrupted(advised, capsys)
    assert advise(advised, "--out", out, "--resume", "--require", "works", "--json") == 1
    advice: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert advice["best"] == "llguidance" and advice["works"] is False
    by_name = {
        backend["name"]: {case["name"]: case for case in backend["cases"]} for backend in advice["backends"]
    }
    assert by_name["llguidance"]["tag"]["state"] == "refused"
    assert by_name["xgrammar"]["tag"]["state"] == "silently_wrong"
    assert by_name["xgrammar"]["tag"]["constraints"][0] == "names.uniqueItems"
    assert json.loads(by_name["xgrammar"]["tag"]["document"])["names"]
    assert by_name["xgrammar"]["book"]["state"] == by_name["llguidance"]["book"]["state"] == "works"


@pytest.mark.long
def test_a_gate_passes_where_all_work(advised: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (advised / "good").mkdir()
    (advised / "good" / "tools.json").write_text(json.dumps({"tools": TOOLS["tools"][:1]}))
    assert advise(advised / "good", "--out", str(advised / "passed"), "--require", "works") == 0
    assert "wrong" not in capsys.readouterr().out.split("How sure")[0]


def test_a_schema_is_rewritten_so_that_it_works(advised: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = {
        "name": "age",
        "input_schema": {
            "type": "object",
            "properties": {"v": {"not": {"const": "no"}, "type": "string"}},
            "required": ["v"],
            "additionalProperties": False,
        },
    }
    (advised / "not").mkdir()
    (advised / "not" / "tools.json").write_text(json.dumps([tool]))
    words = [
        "advise",
        str(advised / "not" / "tools.json"),
        "--backends",
        "llguidance",
        "--tokenizer",
        "bytes",
    ]
    assert main([*words, "--out", str(advised / "rewritten"), "--json"]) == 0
    advice = json.loads(capsys.readouterr().out)
    assert advice["backends"][0]["counts"]["refused"] == 1 and not advice["works"]
    (change,) = advice["changes"]
    assert change["gained"] == ["llguidance"] and advice["unchanged"] == []
    assert "not" not in json.loads(change["schema"])["properties"]["v"]
    page = (advised / "rewritten" / "report" / "report.html").read_text("utf-8")
    assert "Then it works on llguidance too." in page


def test_a_rewrite_is_looked_at_as_closely_as_the_schema(
    advised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And along documents that are made for it: nothing else is known of its schema alone."""
    asked: list[tuple[Request, list[str]]] = []

    def kept(request: Request, *more: Any) -> Outcome:
        asked.append(
            (request, [case.name for case in read_cases(find_suite(request.suites[0])) if case.instances])
        )
        return run(request, *more)

    monkeypatch.setattr(advice_module, "run", kept)
    mine: dict[str, Any] = {"description": "mine", "schema": TOOLS["tools"][1]["input_schema"]}
    mine["tests"] = [{"data": {"names": ["a"]}, "valid": True}]
    made = {"description": "made", "schema": {**mine["schema"], "title": "another"}}
    (advised / "both.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (mine, made)))
    harness.advise(advised / "both.jsonl", backends=["llguidance"], tokenizer="bytes", out=advised / "both")
    (before, _), (after, with_documents) = asked
    assert replace(after, suites=before.suites, out=before.out) == before and before.effort
    assert set(with_documents) == {"mine"}


def test_a_mistake_in_a_source_is_told_before_any_backend_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_at(*_: object) -> NoReturn:
        raise AssertionError("backends were looked at first")

    monkeypatch.setattr(advice_module, "catalogue", looked_at)
    monkeypatch.setattr(advice_module, "installed_backends", looked_at)
    (tmp_path / "schema.json").write_text('{"type": ')
    for source, said in (("schema.json", "malformed JSON"), ("shema.json", "unknown suite")):
        for engine in (["--engine", "vllm"], []):
            assert main(["advise", str(tmp_path / source), *engine]) == 2
            assert said in capsys.readouterr().err


def test_where_all_is_refused_and_nothing_is_known_there_is_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {"properties": {"a": {"$id": "https://example.com/a/", "$ref": "x.json"}}}
    (tmp_path / "far.json").write_text(json.dumps(schema))
    words = ["advise", str(tmp_path / "far.json"), "--backends", "llguidance", "--tokenizer", "bytes"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert screen.startswith("Nothing can be said yet") and "nothing is known. Every schema was ref" in screen
    assert (tmp_path / "out" / "report" / "report.html").is_file()


def test_the_answer_is_not_lost_with_its_page(
    advised: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise BadInput("no page today")

    monkeypatch.setattr(page_module, "_built", broken)
    out = ["--backends", "llguidance", "--out", str(advised / "pageless")]
    assert advise(advised, *out) == 2
    screen = capsys.readouterr()
    assert "llguidance works on 1 of your 2 schemas" in screen.out and "no page today" in screen.err


def test_a_file_of_that_name_which_is_no_advice_is_not_overwritten(
    advised: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = advised / "mine"
    folder.mkdir()
    (folder / FILE).write_text('{"mine": true}')
    assert advise(advised, "--backends", "llguidance", "--out", str(folder)) == 2
    assert "no advice of ours" in capsys.readouterr().err
    assert (folder / FILE).read_text() == '{"mine": true}' and os.listdir(folder) == [FILE]


def test_an_advice_that_was_changed_is_one_line(advised: Path) -> None:
    folder = advised / "damaged"
    folder.mkdir()
    assert stored_advice(folder) is None
    (folder / FILE).write_text('{"engine": 3}')
    with pytest.raises(BadInput, match="no advice"):
        stored_advice(folder)


def entry_of(name: str, distribution: str, engines: dict[str, dict[str, str]], **more: Any) -> dict[str, Any]:
    """An entry of the catalogue, of an adapter whose library is installed."""
    entry = {"name": name, "distribution": distribution, "version": "1", "problem": "", "engines": engines}
    return {**entry, "engine_facts": {}, **more}


CATALOGUE: list[dict[str, Any]] = [
    entry_of("a", "a", {"e": {"": "--set a"}}),
    entry_of("b", "b", {"e": {"": "--set b"}, "f": {"": ""}}, version="", problem="not installed"),
    entry_of("w", "e", {"e": {"wrapper=a": "--set a"}}, version="", problem="no e"),
    entry_of("n", "n", {}),
]


def test_an_engine_is_stood_in_for_by_what_is_installed() -> None:
    assert engines(CATALOGUE) == ["e", "f"]
    offer = offer_of("e", CATALOGUE)
    assert offer.arms == {"a": "--set a"} and not offer.are_wrappers and offer.missing == ("b",)
    assert offer.has_wrappers  # though it is not installed
    assert not offer_of("f", [{**CATALOGUE[1], "version": "1", "problem": ""}]).has_wrappers
    wrapped = [CATALOGUE[0], {**CATALOGUE[2], "version": "2", "problem": ""}]
    offer = offer_of("e", wrapped)
    assert offer.arms == {"w:wrapper=a": "--set a"} and offer.are_wrappers
    assert offer.as_set("a,w") == "a,w"


def test_a_library_is_tried_with_the_settings_that_the_engine_gives_it() -> None:
    """And with what the engine's own check of a request refuses."""
    pytest.importorskip("xgrammar")
    for engine in ("vllm", "sglang"):
        entries = [entry for entry in catalogue() if entry["name"] not in ("vllm", "sglang")]
        offer = offer_of(engine, entries)
        served = f"xgrammar:engine={engine}"
        assert served in offer.arms and not offer.are_wrappers
        assert offer.as_set("xgrammar") == served
        assert offer.as_set("xgrammar==0.2.8,reference") == f"xgrammar==0.2.8:engine={engine},reference"
        assert offer.as_set("xgrammar:whitespace=compact") == "xgrammar:whitespace=compact"
        assert offer.as_set(f"xgrammar,{served}") == served


def test_an_engine_whose_backend_cannot_be_loaded_is_not_only_unknown() -> None:
    lost = entry_of("l", "", {}, version="", problem="cannot be imported")
    for entries, said in ((CATALOGUE, "known: e, f$"), ([*CATALOGUE, lost], "; l cannot be loaded here and")):
        with pytest.raises(BadInput, match=said):
            offer_of("elsewhere", entries)


def test_a_library_stands_for_an_engine_only_where_the_engines_wrapper_can_be_tried() -> None:
    """Not vLLM's lm-format-enforcer, whose wrapper cannot be made, nor SGLang's outlines, which has another
    outlines-core behind it (docs/engines.md)."""
    for module in ("torch", "xgrammar", "llguidance", "outlines_core", "lmformatenforcer"):
        pytest.importorskip(module)
    entries = catalogue()
    for engine in ("vllm", "sglang"):
        offered = [
            (entry["distribution"] == engine, chosen)
            for entry in entries
            for chosen in entry["engines"].get(engine, {}).values()
        ]
        wrappers, libraries = (
            {chosen for is_one, chosen in offered if is_one == kind} for kind in (True, False)
        )
        assert wrappers == libraries != set()


@pytest.mark.parametrize(
    ("engine", "said"), [("ee", 'did you mean "e"'), ("f", "no backend of f is installed")]
)
def test_an_engine_that_is_not_to_be_had_is_one_line(engine: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        offer_of(engine, CATALOGUE)
