"""The check of masks on objects in a style of XML: backends that are wrong in one way are found, and the
reference is not."""

from __future__ import annotations

from typing import Any

import pytest
from small_formats import tag

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import run_check
from harness.checks.documents import check_every_allowed_token_leads_to_a_document
from harness.checks.subject import Subject
from harness.oracle.reference import Reference, ReferenceGrammar
from harness.rows.row import Finding

BYTES = byte_vocabulary()
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 9}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
OUTPUTS = ("<parameter=city>Rome</parameter><parameter=days>3</parameter>", "<parameter=city>R</parameter>")


def document(style: str = "qwen_xml", **changed: Any) -> dict[str, Any]:
    return {"type": "json_schema", "style": style, "json_schema": SCHEMA | changed}


def pattern(text: str) -> dict[str, Any]:
    return {"type": "regex", "pattern": text}


WRONG = {
    "needs no member": document(required=[]),
    "takes a word for a number": document(
        properties={"city": {"type": "string", "maxLength": 9}, "days": {"type": ["integer", "string"]}}
    ),
    "takes a listed member twice": pattern("(<parameter=(city|days)>[0-9a-zA-Z]{1,9}</parameter>)+"),
    "lets a value hold its end": pattern(
        r"<parameter=city>[^\\0]*</parameter>(<parameter=days>[0-9]+</parameter>)?"
    ),
    "takes a name that is not listed": document(additionalProperties=True),
}


class Mistaking(Reference):
    """Takes every structural tag for another one."""

    form: dict[str, Any]

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return super().compile(tag(self.form))


def findings(adapter: Reference) -> list[Finding]:
    grammar = tag(document())
    instances = tuple(Instance(output, output.encode(), True) for output in OUTPUTS)
    subject = Subject(adapter, Case(case_id(grammar), "a case", grammar, instances), adapter.compile(grammar))
    check = check_every_allowed_token_leads_to_a_document
    return run_check(check.__name__.removeprefix("check_"), check, subject)[1]


@pytest.mark.parametrize("name", WRONG)
def test_a_backend_that_is_wrong_in_one_way_is_found(name: str) -> None:
    adapter = Mistaking(BYTES)
    adapter.form = WRONG[name]
    found = findings(adapter)
    assert found and not any(each.documented for each in found)


def test_the_reference_is_not_found() -> None:
    assert findings(Reference(BYTES)) == []
