"""The judgement of a server's texts by the language that was asked for, and the rows that record it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from harness.cases.case import Case, Instance
from harness.oracle.judge import Judge
from harness.rows.row import Row, Status
from harness.serve.live.answer import Answer
from harness.serve.live.asking import Source
from harness.serve.live.record import NOT_ASKED, Judgement, Lived

MODE = "live"
"""The mode of a live server's rows."""

JUDGE_SECONDS = 10.0

TEXT = 2_000


def judge_answer(judge: Judge, case: Case, answer: Answer) -> Judgement:
    """Returns the judgement of one answer. A finished text: is it valid? A truncated one: can it be continued
    to a valid one, as far as that can be decided? A text that had ended before the connection did is judged
    too. Other ends are unjudged, and so are a refusal, a tool call or what a filter left in place of the
    text, and a text out of which the API key was cut: it is not the text that the server wrote."""
    if answer.heard.instead:
        return Judgement("unjudged", answer.heard.why)
    if answer.text_end and answer.heard.held_key:
        return Judgement("unjudged", "the text held the API key")
    if answer.text_end == "finished":
        content = answer.heard.text.encode("utf-8", "surrogatepass")
        valid = judge.verdict(case.grammar, content, draft=case.draft, assert_formats=case.asserts_formats)
        return (
            Judgement("unjudged", judge.reason)
            if valid is None
            else Judgement("valid" if valid else "invalid")
        )
    if answer.text_end == "truncated":
        # A character that was cut in two is shown as one that nobody wrote.
        content = answer.heard.text.rstrip("\ufffd").encode("utf-8", "surrogatepass")
        found = judge.membership(case.grammar, content)
        if found == "neither":
            return Judgement("invalid", "truncated, and no valid text begins so")
        return Judgement("unjudged", "truncated", fits=found is not None)
    return Judgement("unjudged", answer.heard.end)


def outputs(lived: Lived, role: str = "constrained") -> Iterator[Answer]:
    """Returns the answers of that role, in the order in which they were due, without those that we
    cancelled."""
    mine = (answer for answer in lived.answers if answer.role == role and answer.heard.end != "cancelled")
    return iter(sorted(mine, key=lambda answer: (answer.load, answer.number)))


def with_outputs(sources: Sequence[Source], lived: Lived) -> list[Source]:
    """Returns the cases with the server's texts as their instances, in the order of the rows."""
    by_case: dict[tuple[str, str], list[Instance]] = {}
    for answer in outputs(lived):
        mine = by_case.setdefault((answer.suite, answer.case_id), [])
        right = lived.right(answer).right
        valid = None if right == "unjudged" else right == "valid"
        mine.append(Instance(_name(lived, answer), answer.heard.text.encode("utf-8", "surrogatepass"), valid))
    return [
        replace(
            source,
            case=replace(source.case, instances=tuple(by_case.get((source.suite, source.case.id), ()))),
        )
        for source in sources
    ]


def rows(
    sources: Sequence[Source], lived: Lived, declined: Mapping[int, str], not_asked: Set[int]
) -> Iterator[list[Row]]:
    """Yields the rows of each case: one for each constrained request, or one in all if the case is not sent.
    Unconstrained twins are in the session's own record."""
    refused = {
        (answer.suite, answer.case_id)
        for answer in outputs(lived, "none")
        if answer.heard.end == "refused" and not answer.heard.is_refused_elsewhere
    }
    by_case: dict[tuple[str, str], list[Answer]] = {}
    for answer in outputs(lived):
        by_case.setdefault((answer.suite, answer.case_id), []).append(answer)
    for place, source in enumerate(sources):
        key = source.suite, source.case.id
        if place in declined:
            yield [_blank(source, lived, "unsupported", "dialect", declined[place])]
        elif place in not_asked:
            yield [_blank(source, lived, "skipped", "", NOT_ASKED)]
        elif answers := by_case.get(key):
            yield [
                _row(source, lived, number, answer, key in refused) for number, answer in enumerate(answers)
            ]


def _blank(source: Source, lived: Lived, status: Status, phase: str, text: str) -> Row:
    setup, case = lived.setup, source.case
    return Row(
        backend=setup.dialect,
        backend_version=setup.version,
        options=options_of(setup.endpoint),
        vocabulary=vocabulary_of(setup.model),
        suite=source.suite,
        suite_version=source.suite_version,
        case=case.name,
        case_id=case.id,
        dialect=case.grammar.dialect,
        tags=case.tags,
        instance=None,
        instance_name="",
        mode=MODE,
        jump_forward=False,
        repeat=0,
        status=status,
        phase=phase,
        signal="",
        text=text[:TEXT],
        valid=None,
        accepted=None,
        stopped_at=None,
        tokens=0,
        bytes=0,
        grammar_bytes=len(case.grammar.text.encode("utf-8", "surrogatepass")),
        compile_ns=None,
        matcher_new_ns=None,
        first_fill_ns=None,
        wall_ns=None,
        peak_rss_bytes=None,
        samples=None,
    )


def _row(source: Source, lived: Lived, number: int, answer: Answer, is_refused_without: bool) -> Row:
    heard, right = answer.heard, lived.right(answer)
    status, phase, text = _status(answer, is_refused_without)
    judged = None if right.right == "unjudged" else right.right == "valid"
    if not text and (right.why or judged is False):
        text = right.why or f"written without regard to the grammar: {heard.text[:300]!r}"
    elif judged is False:
        text = f"{text}; its text had ended, without regard to the grammar: {heard.text[:300]!r}"
    return replace(
        _blank(source, lived, status, phase, text),
        instance=number,
        instance_name=_name(lived, answer),
        valid=judged,
        accepted=True if status == "ok" and judged is not None else None,
        tokens=answer.tokens,
        bytes=len(heard.text.encode("utf-8", "surrogatepass")),
        wall_ns=max(0, heard.done_ns - heard.sent_ns),
    )


def _status(answer: Answer, is_refused_without: bool) -> tuple[Status, str, str]:
    """Status, phase and text for a row."""
    heard = answer.heard
    if answer.is_answered:
        return "ok", "", ""
    if heard.instead:
        return "skipped", "", f"{heard.why} (says nothing of the grammar)"
    if heard.end == "refused":
        if heard.is_refused_elsewhere:
            return "skipped", heard.phase, f"{heard.why} (says nothing of the grammar)"
        if is_refused_without:
            return "skipped", heard.phase, f"{heard.why} (refused without a grammar too)"
        return "unsupported", "compile", heard.why
    if heard.end == "timeout":
        return "timeout", heard.phase, heard.why
    if heard.end == "harness_error":
        return "harness_error", heard.phase, heard.why
    return "backend_error", heard.phase, f"{heard.end}: {heard.why}"


def _name(lived: Lived, answer: Answer) -> str:
    return f"{lived.load(answer).name}, request {answer.number}"


def options_of(endpoint: str) -> str:
    """Returns the options of a row: the endpoint, or empty for chat."""
    return "" if endpoint == "chat" else f"endpoint={endpoint}"


def vocabulary_of(model: str) -> str:
    """Returns the vocabulary of a row: the model, which brings its own."""
    return model[:200]
