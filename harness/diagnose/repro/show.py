"""Shows a failure to a person: grammar, instance, each token of the walk, and the script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.backend.arm import arm
from harness.diagnose.repro.again import behind, in_words, seen_again
from harness.diagnose.repro.find import Failure
from harness.diagnose.repro.replay import NOT_HERE, replay
from harness.diagnose.repro.standalone import Shown, stand_alone
from harness.diagnose.shrink import outcome_of
from harness.diagnose.shrink.stepping import END, words_of
from harness.rows.row import Finding, verdict
from harness.text import counted, one_line

LONGEST_GRAMMAR = 4000


@dataclass(frozen=True)
class Replayed:
    """A failure that was walked again, and the script that shows it."""

    failure: Failure
    messages: list[dict[str, Any]]
    """What the process that walked it said."""
    script: str
    """The stand-alone script; empty if the adapter has none, or if the walk has a special token that no
    script can name."""


def replayed(failure: Failure) -> Replayed:
    """Walks the failure again, and writes its script. Raises BadInput."""
    messages = replay(failure)
    return Replayed(failure, messages, _script(failure, messages))


def show(again: Replayed) -> str:
    """Returns the text that shows the grammar, the instance, the tokens up to the failure with their bytes,
    what was allowed there, and the script."""
    failure = again.failure
    row, case = failure.row, failure.case
    lines = [
        *heading(failure),
        *(
            f"finding   {one_line(f'{finding.check}{_place(finding)}: {finding.text}', spelled=True)}"
            for finding in row.findings
        ),
        "",
        f"{case.grammar.dialect}:",
        indented(case.grammar.text),
        *_instance(failure),
        f"walked again{_whither(failure.finding)}:",
    ]
    for message in again.messages:
        if "lost" in message:
            lines.append(f"  {one_line(message['lost'], spelled=True)}")
        elif "step" in message:
            token, text, allowed, accepted = message["step"]
            lines.append(f"  {_yes(allowed)}, {_yes(accepted)}: token {token} {one_line(text, spelled=True)}")
        elif "allowed" in message:
            examples = one_line(", ".join(message["allowed"]), spelled=True)
            lines.append(
                f"  allowed there: {counted(message['count'], 'token')}{': ' if examples else ''}{examples}"
            )
        elif "said" in message:
            lines.append(f"  {one_line(message['said'], spelled=True)}")
    lines += [f"  {line}" for line in in_words(failure, again.messages)]
    return "\n".join([*lines, "", *with_script(again.script, _why_no_script(again.messages))])


def _instance(failure: Failure) -> list[str]:
    """Returns the lines that show the instance along which it was seen."""
    if not failure.case.instances:
        return ["no instance", ""]
    if not failure.is_of_instance:
        return ["no instance: the check made the walk itself", ""]
    instance = failure.instance
    name = one_line(instance.name, spelled=True)
    return [
        f"instance {failure.number} ({name}), {validity_words(instance.valid)}:",
        indented(instance.content.decode("utf-8", "backslashreplace")),
    ]


def to_json(again: Replayed) -> dict[str, Any]:
    """Returns the failure as one JSON object: `walked` holds the messages of the process that walked it
    again, `seen_again` is null where the walk cannot tell, and `script` is empty if there is none."""
    failure, messages = again.failure, again.messages
    row, case = failure.row, failure.case
    steps = [message["step"] for message in messages if "step" in message]
    return {
        **heading_to_json(failure),
        "findings": row.findings,
        "dialect": case.grammar.dialect,
        "grammar": case.grammar.text,
        "instance": failure.number if failure.is_of_instance else None,
        "content": failure.instance.content.hex() if failure.is_of_instance else None,
        "valid": failure.instance.valid if failure.is_of_instance else None,
        "walked": [dict(zip(("token", "text", "allowed", "accepted"), step, strict=True)) for step in steps],
        "allowed": next((message["allowed"] for message in messages if "allowed" in message), None),
        "lost": next((message["lost"] for message in messages if "lost" in message), None),
        "seen_again": seen_again(failure, messages),
        "script": again.script,
    }


def heading_to_json(failure: Failure) -> dict[str, Any]:
    """Returns the case, the backend, and what the run saw."""
    row = failure.row
    names = (
        "case",
        "case_id",
        "suite",
        "backend",
        "backend_version",
        "options",
        "vocabulary",
        "status",
        "phase",
        "text",
    )
    return {name: getattr(row, name) for name in names} | {
        "verdict": verdict(row.status, row.valid, row.accepted),
        "behind": [] if row.delayed else [vars(case) for case in row.behind],
    }


def heading(failure: Failure) -> list[str]:
    """Returns the case, the backend, and what the run saw."""
    row, case = failure.row, failure.case
    where = f" in {row.phase}" if row.phase else ""
    return [
        f"case      {one_line(case.name, spelled=True)} ({one_line(row.suite, spelled=True)}, {case.id})",
        f"backend   {one_line(f'{arm(row)} {row.backend_version}'.strip(), spelled=True)}, "
        f"vocabulary {one_line(row.vocabulary, spelled=True)}",
        f"seen      {_seen(failure)}" + (one_line(f"{where}: {row.text}", spelled=True) if row.text else ""),
        *behind(failure),
    ]


def _seen(failure: Failure) -> str:
    """Returns what the run saw: the finding that is shown, where the failure is one, or the verdict."""
    row, finding = failure.row, failure.finding
    if finding is not None and row.status == "ok":
        cause = f" ({finding.cause})" if finding.cause else ""
        return one_line(f"the finding {finding.check}{cause}", spelled=True)
    return f"{verdict(row.status, row.valid, row.accepted)}, status {row.status}"


def with_script(text: str, why_not: str) -> list[str]:
    """Returns the lines at the end of every page; `why_not` says why there is no script, where there is
    none."""
    return ["without GrammarBench:" if text else f"there is no script: {why_not}", "", text]


def _why_no_script(messages: list[dict[str, Any]]) -> str:
    with_its_script = next((message for message in messages if "script" in message), None)
    if with_its_script is None:
        is_here = messages != [{"lost": NOT_HERE}]
        return "the backend was lost before the walk" if is_here else "it was not walked again"
    is_special = with_its_script["walk"] is None
    return "the walk has a special token" if is_special else "the adapter brings none"


def validity_words(valid: bool | None) -> str:
    """Returns the validity in words."""
    return {True: "valid", False: "invalid", None: "of unknown validity"}[valid]


def _script(failure: Failure, messages: list[dict[str, Any]]) -> str:
    with_its_script = next((message for message in messages if "script" in message), None)
    if with_its_script is None:
        return ""
    walk: list[str] = with_its_script["walk"] or []
    few_suffice = any(message.get("few_suffice") for message in messages)
    shown = Shown(
        library=with_its_script["library"],
        grammar=failure.case.grammar,
        content=failure.instance.content,
        valid=failure.instance.valid,
        asserts_formats=failure.case.asserts_formats,
        draft=failure.case.draft,
        walk=tuple(bytes.fromhex(token) for token in walk if token != END),
        ends=bool(walk) and walk[-1] == END,
        outcome=outcome_of(failure.row, failure.finding),
        text=failure.finding.text if failure.finding is not None else failure.row.text,
        words=words_of(walk) if few_suffice else None,
        vocabulary=failure.row.vocabulary,
    )
    return stand_alone(shown, with_its_script["script"])


def _whither(finding: Finding | None) -> str:
    return "" if finding is None else f" to {one_line(finding.check, spelled=True)}"


def _place(finding: Finding) -> str:
    return "" if finding.position is None else f" at token {finding.position}"


def _yes(flag: bool) -> str:
    return "yes" if flag else "NO "


def indented(text: str) -> str:
    """Returns the text, cut and indented."""
    more = len(text) - LONGEST_GRAMMAR
    cut = text if more <= 0 else f"{text[:LONGEST_GRAMMAR]} ... ({more} characters more)"
    return "".join(f"    {one_line(line, spelled=True)}\n" for line in cut.splitlines() or [""])
