"""Adjudication asks the automaton of a case's documents: it accuses where no document goes on, tells freedom
from a broken promise, and accuses nobody where the validators contradict it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from adjudicated import a_run, guilty, judged
from miniatures.wrong_walks import READING

from harness.backend.grammar import Grammar
from harness.backend.layout import COMPACT, EVERY_SPELLING, LAYOUTS, Layout, with_delete_escaped
from harness.backend.process.service import Service
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case, Instance
from harness.cli.main import main
from harness.diagnose.adjudicate import Settings, Summary
from harness.diagnose.adjudicate import reference as reference_module
from harness.diagnose.adjudicate.arms import Arms
from harness.diagnose.adjudicate.disputes import Dispute
from harness.diagnose.adjudicate.evidence import Evidence, Origin
from harness.diagnose.adjudicate.reference import Reference
from harness.diagnose.adjudicate.trial import Trial
from harness.diagnose.adjudicate.verdicts import DocumentVerdict, Validators
from harness.oracle.automaton import NoOracle
from harness.oracle.language import documents_of

pytestmark = pytest.mark.usefixtures("importable_miniatures")

BYTES = byte_vocabulary()


@pytest.mark.parametrize(
    ("name", "cause", "text"),
    [("OpensNoDocument", "no_json", "{x"), ("OpensAnotherName", "additionalProperties", '{"z')],
)
def test_a_token_that_leads_to_no_document_is_wrong_though_no_document_shows_it(
    name: str, cause: str, text: str, tmp_path: Path
) -> None:
    folder = a_run(tmp_path, "Reading", f"wrong_documents:{name}")
    summary, witnesses = judged(folder, positions=None, tries=1)
    assert guilty(witnesses) == {(name, "under_constrained", cause)}
    (witness,) = witnesses
    assert witness["text"] == text and witness["decided_by"] == "automaton"
    assert witness["judge"] is witness["second"] is False and witness["other"]
    assert summary.decided == {"automaton": summary.tokens} and summary.tokens > 0
    assert f"by the automaton alone: {summary.tokens}" in summary.text()


def test_what_an_arm_by_its_own_word_does_not_write_is_its_freedom(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "Reading", "wrong_documents:FreeToBeCompact")
    summary, witnesses = judged(folder)
    assert witnesses == [] and not summary.blamed
    free = "miniatures.wrong_documents:FreeToBeCompact"
    assert summary.freedoms.keys() == {free}
    assert summary.decided == {"automaton": summary.tokens} and summary.freedoms[free] >= summary.tokens > 0
    assert f"{free}: {summary.freedoms[free]} refusals of what its own layout lacks" in summary.text()


def test_what_an_arm_promises_and_does_not_write_is_its_fault(tmp_path: Path) -> None:
    summary, witnesses = judged(a_run(tmp_path, "Reading", "wrong_documents:PromisesSpace"))
    assert guilty(witnesses) == {("PromisesSpace", "over_constrained", "whitespace")}
    assert {witness["decided_by"] for witness in witnesses} == {"both"}
    assert not summary.freedoms and summary.decided == {"both": summary.tokens}


def test_a_promise_is_found_broken_at_one_token(tmp_path: Path) -> None:
    """No instance and no arm has written an exponent: the shortest document with the token shows it."""
    plain = (Instance("plain", b'{"n":1,"s":""}', True),)
    folder = a_run(
        tmp_path, "wrong_documents:Exact", "wrong_documents:Promising", instances=plain, vocabulary="bytes"
    )
    summary, witnesses = judged(folder, positions=None)
    assert guilty(witnesses) == {("Promising", "over_constrained", "number_forms")}
    assert summary.decided["open"] == 0


def test_a_document_and_the_automaton_say_the_same(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "wrong_documents:Exact", "wrong_documents:ForgetsRequiredNames")
    summary, witnesses = judged(folder)
    assert guilty(witnesses) == {("ForgetsRequiredNames", "under_constrained", "required")}
    assert {witness["decided_by"] for witness in witnesses} == {"both"}
    assert summary.decided["both"] > 0 and not summary.decided["open"]


def test_no_document_at_all_is_told_of_the_first_token(tmp_path: Path) -> None:
    grammar = Grammar("json_schema", json.dumps({**READING, "maxProperties": 1}))
    folder = a_run(
        tmp_path, "wrong_documents:TakesAnything", "wrong_documents:ForgetsRequiredNames", grammar=grammar
    )
    summary, witnesses = judged(folder, tries=1)
    arms = {arm for arm, kind, _ in guilty(witnesses) if kind == "under_constrained"}
    assert arms == {"TakesAnything", "ForgetsRequiredNames"}
    first = {witness["text"] for witness in witnesses if witness["decided_by"] == "automaton"}
    assert first and all(len(str(text).strip()) <= 1 for text in first)
    assert not summary.decided["open"]


def stand_in(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Puts the automaton of another schema in the place of READING's."""

    def documents(schema: str, *arguments: Any, **options: Any) -> Any:
        assert json.loads(schema) == READING
        return documents_of(json.dumps({**READING, **changed}), *arguments, **options)

    monkeypatch.setattr(reference_module, "documents_of", documents)


@pytest.mark.parametrize(
    ("changed", "document"),
    [({"required": []}, "{}"), ({"required": ["n", "s", "z"], "additionalProperties": True}, None)],
)
def test_an_automaton_that_the_validators_contradict_accuses_nobody(
    changed: dict[str, Any], document: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first automaton takes `{}`, which is invalid; the second one takes no document that is valid."""
    stand_in(monkeypatch, **changed)
    folder = a_run(tmp_path, "wrong_documents:Exact", "wrong_documents:ForgetsRequiredNames")
    summary, witnesses = judged(folder, tries=1)
    (ours,) = (witness for witness in witnesses if witness["kind"] == "automaton_contradicted")
    assert ours["arm"] == "" and ours["judge"] is ours["second"] is (document is None)
    assert document in (None, str(ours["text"]).strip())
    assert "automaton" not in {witness["decided_by"] for witness in witnesses}
    assert not any(witness["arm"] and witness["text"] == ours["text"] for witness in witnesses)
    assert {arm for arm, kind, _ in guilty(witnesses) if arm} <= {"ForgetsRequiredNames"}
    assert summary.contradicted == 1 and not summary.decided["automaton"]
    assert "failure of ours: in 1 case both validators contradict the automaton" in summary.text()


class Confirming(Validators):
    """Calls a few texts valid, whatever the schema says."""

    def __init__(self, *valid: bytes) -> None:
        self.formats, self.valid = False, valid

    def verdict(self, case: Case, document: bytes) -> DocumentVerdict:
        is_valid = document in self.valid
        return DocumentVerdict(is_valid, is_valid, "" if is_valid else "no_json")


def evidence(*valid: bytes) -> Evidence:
    truth, summary = reference(READING), Summary()
    arms = Arms("a case", {}, 1.0, summary)
    return Evidence(truth.case, "first", "bytes", arms, {}, Confirming(*valid), truth, summary)


def test_a_contradiction_takes_back_what_the_automaton_said_alone() -> None:
    found = evidence(b"{}")
    found.accuse(frozenset({"an arm"}), b"{", Origin(1, b"x"), "no_json", "")
    assert [witness.decided_by for witness in found.witnesses.values()] == ["automaton"]
    assert found.consider(b"{}", Origin()).valid is None
    assert [key[:2] for key in found.witnesses] == [("", "automaton_contradicted")]
    assert found.reference.contradicted and found.reference.goes_on(b"{") == "unknown"


def test_a_text_that_the_validators_call_valid_accuses_nobody() -> None:
    found = evidence(b"{}")
    found.accuse(frozenset({"an arm"}), b"{", Origin(1, b"}"), "required", "")
    assert [key[:2] for key in found.witnesses] == [("", "automaton_contradicted")]


class Saying(Validators):
    """Says the same of every text."""

    def __init__(self, verdict: DocumentVerdict) -> None:
        self.formats, self.said = False, verdict

    def verdict(self, case: Case, document: bytes) -> DocumentVerdict:
        return self.said


@pytest.mark.parametrize(
    ("verdict", "kinds"),
    [
        (DocumentVerdict(True, None), []),
        (DocumentVerdict(True, False, "type"), [("", "validators_disagree", "type")]),
        (DocumentVerdict(False, True), [("", "validators_disagree", "")]),
        (DocumentVerdict(None, formats_decide=True), []),
        (DocumentVerdict(False, False, "type"), [("loose", "under_constrained", "required")]),
        (DocumentVerdict(False, None), [("loose", "under_constrained", "required")]),
        (DocumentVerdict(None), [("loose", "under_constrained", "required")]),
    ],
)
def test_a_text_that_one_validator_calls_valid_accuses_nobody(
    verdict: DocumentVerdict, kinds: list[tuple[str, str, str]]
) -> None:
    """Nobody knows there; where no validator calls the text valid, the automaton's word stands."""
    case = reference(READING).case
    trial = Trial(case, "first", 0, frozenset(), BYTES, {}, {}, Saying(verdict), Settings(), Summary())
    dispute = Dispute(tuple(b"{"), ord("}"), frozenset({"loose"}), frozenset({"right"}))
    blames = any(arm for arm, _, _ in kinds)
    assert trial._decide([dispute]) == ["automaton" if blames else "open"]
    assert list(trial.evidence.witnesses) == kinds and not trial.reference.contradicted


class Disagreeing(Validators):
    """Disagree on every text, about its last byte."""

    def __init__(self) -> None:
        self.formats = False

    def verdict(self, case: Case, document: bytes) -> DocumentVerdict:
        return DocumentVerdict(True, False, document[-1:].decode())


def test_a_case_with_two_documents_of_which_the_validators_disagree_counts_once() -> None:
    instances = tuple(Instance(text, text.encode(), True) for text in ("1", "2"))
    case, summary = replace(reference(READING).case, instances=instances), Summary(cases=1)
    trial = Trial(case, "first", 0, frozenset(), BYTES, {}, {}, Disagreeing(), Settings(), summary)
    witnesses = trial.run()
    assert [witness.cause for witness in witnesses] == ["1", "2"]
    for witness in witnesses:
        summary.add(witness)
    assert "validators disagree in 1 case" in summary.text() and not summary.blamed


class Finishing(Arms):
    """Two arms, of which one finishes and accepts a document that the other one refuses."""

    def __init__(self, document: bytes) -> None:
        self.document, self.services = document, dict.fromkeys(("right", "strict"), cast(Service, None))
        self.layouts, self.documented = dict.fromkeys(self.services), {}

    def ask(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"right": ({"refused_at": None}, b""), "strict": ({"refused_at": 1}, b"")}

    def complete(self, *_: Any) -> bytes:
        return self.document


def test_an_automaton_that_a_finished_document_contradicts_accuses_nobody() -> None:
    case, document = reference(READING).case, b"{}"
    trial = Trial(case, "first", 0, frozenset(), BYTES, {}, {}, Confirming(document), Settings(), Summary())
    trial.arms = trial.evidence.arms = Finishing(document)
    right, strict = (frozenset({name}) for name in trial.arms.names)
    assert trial._decide([Dispute(tuple(b"{"), ord("}"), right, strict)]) == ["documents"]
    assert [key[:2] for key in trial.evidence.witnesses] == [("", "automaton_contradicted")]


def test_without_an_automaton_documents_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_documents(*_: Any, **__: Any) -> Any:
        raise NoOracle("a reason")

    monkeypatch.setattr(reference_module, "documents_of", no_documents)
    arms = ("ForgetsRequired", "wrong_documents:FreeToBeCompact", "wrong_documents:PromisesSpace")
    summary, witnesses = judged(a_run(tmp_path, "Reading", *arms), tries=1)
    assert guilty(witnesses) == {
        ("ForgetsRequired", "under_constrained", "required"),
        ("PromisesSpace", "over_constrained", "whitespace"),
    }
    assert summary.freedoms.keys() == {"miniatures.wrong_documents:FreeToBeCompact"}
    assert {witness["decided_by"] for witness in witnesses} == {"documents"}
    assert summary.no_reference == {"a reason": 1} and summary.decided.keys() <= {"documents", "open"}
    assert "no automaton in 1 case: a reason" in summary.text()


def reference(schema: Any, formats: bool = False) -> Reference:
    return Reference(Case("0" * 12, "a case", Grammar("json_schema", json.dumps(schema))), formats)


def test_without_an_automaton_the_spelling_tells_what_a_layout_lacks() -> None:
    unique, closed = reference({"uniqueItems": True}), replace(COMPACT, unlisted="never", further_items=False)
    assert unique.is_outside(b"[1\r\n]", closed) and unique.is_document(b"[]") == "unknown"
    assert not unique.is_outside(b'[{"z":1,"a":2}]', closed), "which names there are is not known"
    assert not unique.is_outside(b"[1\r\n]", EVERY_SPELLING)


def test_what_formats_decide_is_said_so() -> None:
    address = {"type": "string", "format": "ipv4"}
    either, asserted = reference(address), reference(address, formats=True)
    assert either.goes_on(b'"1') == "yes" and either.goes_on(b'"x') == "formats"
    assert either.goes_on(b"1") == "no" and either.is_document(b'"x"') == "formats"
    assert asserted.goes_on(b'"x') == "no" and asserted.cause(BYTES, b'"', ord("x")) == "format"
    document = either.document(b'"1')
    assert document is not None and either.is_document(document) == "yes"


@pytest.mark.parametrize(
    ("before", "token", "cause"),
    [
        (b'{"s":1,', ord("z"), "no_json"),
        (b'{"s":"', 1, "no_json"),
        (b'{"s":', ord("1"), "type"),
        (b"{", ord("}"), "required"),
        (b"", BYTES.eos_token, "no_json"),
        (b'{"s":"",', ord("]"), "no_json"),
        (b'{"s":"","s', ord('"'), "duplicate_name"),
    ],
)
def test_the_causes_are_those_of_the_validators(before: bytes, token: int, cause: str) -> None:
    assert reference(READING).cause(BYTES, before, token) == cause


def test_a_document_in_a_layout_is_found_behind_many_names() -> None:
    names = [f"property_number_{number}" for number in range(12)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names,
    }
    truth = reference(schema)
    spaced = replace(COMPACT, separators=None)
    document = truth.document(b'{ "prop', spaced)
    assert document is not None and truth.is_document(document, spaced) == "yes"
    assert truth.goes_on(b"{ ", COMPACT) == "no" and truth.document(b"{ ", COMPACT) is None


@pytest.mark.parametrize(
    "layout", [*LAYOUTS.values(), EVERY_SPELLING, with_delete_escaped(replace(COMPACT, longest_run=2))]
)
def test_a_layout_goes_to_another_process_and_back(layout: Layout) -> None:
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


SCHEMAS = {
    "an_object": READING,
    "open": {"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "required": ["a"]},
    "a_list": {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 1, "maxItems": 3},
    "an_address": {"type": "string", "format": "ipv4"},
}


def test_two_libraries_are_adjudicated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    data = {"an_object": {"n": 1.5, "s": "é"}, "open": {"a": 1, "b": 2}, "a_list": [3], "an_address": "::"}
    for name, schema in SCHEMAS.items():
        tests = [{"description": "one", "data": data[name], "valid": True}]
        (suite / f"{name}.json").write_text(json.dumps({"schema": schema, "tests": tests}))
    run = str(tmp_path / "run")
    options = ["--backends", "xgrammar,llguidance", "--vocabularies", "probe", "--effort", "0", "--out", run]
    assert main(["run", str(suite), *options]) in (0, 1)
    capsys.readouterr()
    assert main(["adjudicate", run, "--effort", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cases"] == len(SCHEMAS) and told["contradicted"] == 0 and told["no_reference"] == {}
    assert sum(told["decided"].values()) == told["tokens"] > 0
    assert not told["decided"].get("open") and not told["decided"].get("documents")
    witnesses = [json.loads(line) for line in Path(run, "witnesses.jsonl").read_text().splitlines()]
    assert all(witness["decided_by"] in ("automaton", "both") for witness in witnesses)
