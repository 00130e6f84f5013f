"""Shrinks a failure and shows the small one to a person."""

from __future__ import annotations

from typing import Any

from harness.backend.arm import pinned
from harness.cases.case import Case
from harness.diagnose.repro.again import WHY_NOT
from harness.diagnose.repro.find import Failure
from harness.diagnose.repro.replay import NOT_HERE
from harness.diagnose.repro.show import heading, heading_to_json, indented, validity_words, with_script
from harness.diagnose.repro.standalone import Shown, stand_alone
from harness.diagnose.shrink import Fault, Outcome, Shrunk, outcome_of, shrink
from harness.errors import BadInput
from harness.rows.row import CHECKS_MODE, Row
from harness.serve.live.judging import MODE as LIVE
from harness.text import counted, one_line


def shrink_failure(failure: Failure) -> Shrunk:
    """Returns the failure, as small as the usual budget makes it. Raises BadInput if the backend does not
    load, for what a live server wrote, and for an output that is said by its tokens."""
    if failure.row.mode == LIVE:
        raise BadInput(NOT_HERE)
    if failure.instance.tokens:
        raise BadInput("only outputs that are texts are made smaller; this one is said by its tokens")
    return shrink(fault_of(failure), python=failure.python)


def fault_of(failure: Failure) -> Fault:
    """Returns the failure in the form that the shrinker takes."""
    row, case, finding = failure.row, failure.case, failure.finding
    outcome = outcome_of(row, finding)
    return Fault(
        spec=pinned(row, row.backend_version),
        vocabulary=row.vocabulary,
        grammar=case.grammar,
        content=failure.instance.content if case.instances else None,
        valid=failure.instance.valid,
        outcome=outcome,
        walk=finding.walk if finding is not None else (),
        check=_check(row, outcome),
        options=case.options,
        timeout_s=failure.timeout_s,
        memory_bytes=failure.memory_bytes,
    )


def _check(row: Row, outcome: Outcome) -> str:
    """Returns the check that must be made to see it: that of the finding; where one was lost, the one that
    the row names."""
    if row.mode != CHECKS_MODE:
        return ""
    if outcome.check:
        return outcome.check if outcome.check in row.checks else ""
    return row.checking if outcome.phase == "check" else ""


def show_shrunk(failure: Failure, shrunk: Shrunk, script: str) -> str:
    """Returns the text that shows grammar and instance before and after, and the script."""
    outcome = one_line(str(shrunk.outcome), spelled=True)
    if not shrunk.shown:
        return "\n".join(
            [*heading(failure), "", f"{outcome} was not seen again, so nothing was shrunk: {WHY_NOT}"]
        )
    case = failure.case
    size = len(shrunk.grammar.text.encode("utf-8", "surrogatepass"))
    sizes = f"grammar {_bytes(case)} -> {counted(size, 'byte')}"
    if shrunk.content is not None:
        sizes += f", instance {len(failure.instance.content)} -> {counted(len(shrunk.content), 'byte')}"
    lines = [
        *heading(failure),
        f"shrunk    {outcome}: {sizes}, in {counted(shrunk.steps, 'step')} "
        f"and {counted(shrunk.tried, 'trial')}" + _why_not_smaller(shrunk),
        f"tokens    {_tokens(failure, shrunk)}",
        *([f"finding   {one_line(shrunk.text, spelled=True)}"] if shrunk.text else []),
        "",
        f"{shrunk.grammar.dialect}:",
        indented(shrunk.grammar.text),
        f"instance, {validity_words(shrunk.valid)}:" if shrunk.content is not None else "no instance",
        indented((shrunk.content or b"").decode("utf-8", "backslashreplace")),
        *with_script(script, _why_no_script(shrunk)),
    ]
    return "\n".join(lines)


def _why_no_script(shrunk: Shrunk) -> str:
    """Returns why there is no script, where there is none: a walk that has no bytes may be one that no script
    can name."""
    has_walk = bool(shrunk.walk) or shrunk.ends
    return (
        "the adapter brings none" if has_walk else "the adapter brings none, or the walk has a special token"
    )


def _why_not_smaller(shrunk: Shrunk) -> str:
    if shrunk.untried:
        return f"; nothing smaller was tried, because {shrunk.untried}"
    return "" if shrunk.is_minimal else "; the budget ended, it may get smaller"


def shrunk_to_json(failure: Failure, shrunk: Shrunk, script: str) -> dict[str, Any]:
    """Returns the small failure as one JSON object, with contents as hex."""
    return {
        **heading_to_json(failure),
        "seen_again": shrunk.shown,
        "outcome": str(shrunk.outcome),
        "dialect": shrunk.grammar.dialect,
        "grammar": shrunk.grammar.text,
        "content": shrunk.content.hex() if shrunk.content is not None else None,
        "valid": shrunk.valid,
        "steps": shrunk.steps,
        "tried": shrunk.tried,
        "is_minimal": shrunk.is_minimal,
        "script": script,
    }


def shrunk_script(shrunk: Shrunk) -> str:
    """Returns the stand-alone script of the small failure; empty if the adapter has none, and if the failure
    was not seen again, so that a script would show nothing."""
    if not shrunk.shown:
        return ""
    shown = Shown(
        library=shrunk.library,
        grammar=shrunk.grammar,
        content=shrunk.content,
        valid=shrunk.valid,
        asserts_formats=shrunk.asserts_formats,
        walk=shrunk.walk,
        ends=shrunk.ends,
        outcome=shrunk.outcome,
        text=shrunk.text,
        words=shrunk.words,
        vocabulary=shrunk.vocabulary,
    )
    return stand_alone(shown, shrunk.script)


def _bytes(case: Case) -> int:
    return len(case.grammar.text.encode("utf-8", "surrogatepass"))


def _tokens(failure: Failure, shrunk: Shrunk) -> str:
    if shrunk.words is None:
        return f"those of {one_line(failure.row.vocabulary, spelled=True)}: fewer do not show it"
    others = one_line(", ".join(map(repr, shrunk.words)), spelled=True)
    return f"every byte, end-of-sequence{f', {others}' if others else ''}"
