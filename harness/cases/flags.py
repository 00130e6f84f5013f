"""Sets the `valid` of a case's instances: found where the case does not state it, and questioned where the
stated one cannot be right."""

from __future__ import annotations

import json
from dataclasses import replace

from harness.cases.case import Case, Instance
from harness.oracle.judge import Judge
from harness.oracle.judge.drafts import DIALECT_URI

CONTRADICTED = "whose `valid` both validators contradict"
UNREADABLE = "whose text one JSON parser reads and another refuses"
HIDDEN_DRAFT = "of a draft that their schema does not say, for its `$schema` is none that we know"


def with_verdicts(
    case: Case, judge: Judge, questioned: bool, both: bool
) -> tuple[Case, dict[str, list[str]]]:
    """Returns the case with a verdict on each instance, where there is a judge for its dialect; and the names
    of contested ones by reason.

    An instance without `valid` gets the judge's verdict; with `both`, only if the second validator does not
    contradict. With `questioned`, a stated `valid` of a JSON document is checked too: a contested instance
    has no `valid`, so that no backend is blamed for it.
    """
    asks_all = questioned and case.grammar.dialect == "json_schema"
    if not asks_all and all(instance.valid is not None for instance in case.instances):
        return case, {}
    is_hidden = asks_all and _hides_its_draft(case)
    instances: list[Instance] = []
    why: dict[str, list[str]] = {}
    for instance in case.instances:
        if instance.valid is None:
            instances.append(replace(instance, valid=_verdict(case, instance, judge, both)))
        elif asks_all and (reason := HIDDEN_DRAFT if is_hidden else _objection(case, instance, judge)):
            instances.append(replace(instance, valid=None, contested=instance.valid))
            why.setdefault(reason, []).append(instance.name)
        else:
            instances.append(instance)
    return replace(case, instances=tuple(instances)), why


def _verdict(case: Case, instance: Instance, judge: Judge, both: bool) -> bool | None:
    if instance.tokens:
        return None
    draft, formats = case.draft, case.asserts_formats
    valid = judge.verdict(case.grammar, instance.content, draft=draft, assert_formats=formats)
    if both and valid is not None and case.grammar.dialect == "json_schema":
        second, _ = judge.second(case.grammar, instance.content, draft=draft, assert_formats=formats)
        return valid if second in (valid, None) else None
    return valid


def _objection(case: Case, instance: Instance, judge: Judge) -> str:
    """Returns why the `valid` that the case states is not believed; empty where it is. Where the case does
    not say whether formats are constraints, both readings must contradict it."""
    if instance.tokens:
        return ""
    draft = case.draft
    readings = (
        [True] if case.asserts_formats else [False, True] if '"format"' in case.grammar.text else [False]
    )
    for formats in readings:
        verdict = judge.verdict(case.grammar, instance.content, draft=draft, assert_formats=formats)
        if verdict is None:
            return UNREADABLE if judge.reason.startswith("contested") else ""
        if verdict == instance.valid:
            return ""
    others = [
        judge.second(case.grammar, instance.content, draft=draft, assert_formats=formats)[0]
        for formats in readings
    ]
    return CONTRADICTED if others == [not instance.valid] * len(others) else ""


def _hides_its_draft(case: Case) -> bool:
    """Is the case of a draft, while its schema names a meta-schema of its own?

    The backend cannot know that draft then.
    """
    if "draft" not in case.options:
        return False
    try:
        schema = json.loads(case.grammar.text)
    except (ValueError, RecursionError):
        return False
    return isinstance(schema, dict) and not DIALECT_URI.fullmatch(str(schema.get("$schema")))
