"""What the search for a small failure keeps to: its budget, what a hang is, whom it asks about validity, and
which fault it is."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from harness.backend.grammar import Grammar
from harness.backend.layout import COMPACT, Layout
from harness.diagnose.shrink import Fault, Outcome, search, shrink
from harness.diagnose.shrink.edits import Candidate, steps
from harness.diagnose.shrink.schemas import smaller_schemas
from harness.diagnose.shrink.validity import Validity
from harness.oracle.judge import Judge

pytestmark = pytest.mark.usefixtures("importable_miniatures")


TEXT = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
LONG = json.dumps(TEXT, ensure_ascii=False).encode()
CRASHES = Fault(
    "miniatures:SegfaultsInFill",
    "bytes",
    Grammar("json_schema", '{"enum": ["boom", 1]}'),
    b'"boom"',
    True,
    Outcome("broken", "crash", "fill", "SIGSEGV"),
)


def refused(grammar: Grammar, content: bytes) -> Fault:
    """A right output that the backend refuses."""
    spec = "miniatures.refusing:Refuses"
    return Fault(spec, "bytes", grammar, content, True, Outcome("over_constrained"))


# --- the budget


ANYTHING = Grammar("regex", ".*")


class SlowJudge(Validity):
    """Calls no smaller instance valid, and takes a fiftieth of a second to say so."""

    asked = 0

    def of(self, grammar: Grammar, content: bytes) -> bool | None:
        SlowJudge.asked += 1
        time.sleep(0.02)
        return (grammar, content) == (ANYTHING, LONG)


def test_the_budget_ends_a_search_in_which_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of 2,000 characters has thousands of smaller ones, of which none is right."""
    monkeypatch.setattr(search, "Validity", SlowJudge)
    monkeypatch.setattr(SlowJudge, "asked", 0)
    small = shrink(refused(ANYTHING, LONG), seconds=3.0)
    assert small.shown and not small.is_minimal
    assert SlowJudge.asked < 200, "they take the seconds, and nothing is asked behind them"


def test_the_grammar_is_cut_before_the_last_thousands_of_documents() -> None:
    now = Candidate(Grammar("json_schema", '{"type": "string", "minLength": 1, "pattern": "x"}'), LONG, ())
    found = [step() for _, step in zip(range(400), steps(now), strict=False)]
    assert any(json.loads(each.grammar.text) == {"type": "string", "pattern": "x"} for each in found)
    whole = [step().content for step in steps(now)]
    assert json.dumps(TEXT[:-1], ensure_ascii=False).encode() in whole, "they come all the same"


def test_candidates_are_remembered_by_a_digest() -> None:
    grammar = Grammar("regex", "a")
    every = [
        Candidate(grammar, None, ()),
        Candidate(grammar, b"", ()),
        Candidate(grammar, b"", None),
        Candidate(grammar, b"", (b"ab",)),
        Candidate(grammar, b"", (b"a", b"b")),
        Candidate(Grammar("regex", "\ud800"), b"", ()),
        Candidate(Grammar("ebnf", "a"), b"", ()),
    ]
    assert len({each.digest for each in every}) == len(every)
    assert Candidate(grammar, LONG, ()).digest == Candidate(grammar, bytes(LONG), ()).digest
    assert len(Candidate(grammar, LONG, ()).digest) == 32


# --- hangs


@pytest.mark.parametrize("candidates", [400, 12], ids=["in time", "after the last candidate"])
def test_what_is_called_a_hang_hangs_as_long_as_the_run_waited(candidates: int) -> None:
    """Compiling takes 10 ms for each character; while it is searched, 150 ms count as a hang."""
    outcome = Outcome("broken", "timeout", "compile")
    text = "abcdefghij" * 6
    slow = Fault(
        "miniatures.slow:Slow:compile_ms=10",
        "bytes",
        Grammar("regex", text),
        text.encode(),
        True,
        outcome,
        timeout_s=0.5,
    )
    small = shrink(slow, hang_seconds=0.15, candidates=candidates, seconds=8.0)
    assert small.shown and not small.is_minimal and small.tried <= candidates
    assert len(small.grammar.text) >= 45 and small.text == "no end within 0.5 s"
    if candidates == 400:  # else there may be no recheck left for it
        assert small.content == b"" and small.steps >= 1, "what hangs all the same is taken"


def test_a_search_goes_on_from_the_last_hang_that_was_one() -> None:
    """While it is searched, what compiles for 200 ms counts as a hang; it is smaller than what never ends."""
    outcome = Outcome("broken", "timeout", "compile")
    hangs = Fault(
        "miniatures.slow:HangsOnTwo:slow_ms=200",
        "bytes",
        Grammar("regex", "xaxxbx"),
        b"xaxxbx",
        True,
        outcome,
        timeout_s=0.6,
    )
    small = shrink(hangs, hang_seconds=0.1)
    assert small.grammar.text in ("ab", "ba") and small.content == b"" and small.text == "no end within 0.6 s"
    assert small.is_minimal, "nothing ended the budget"
    hurried = shrink(hangs, hang_seconds=0.1, candidates=14)
    assert not hurried.is_minimal and hurried.tried <= 14 and {"a", "b"} <= set(hurried.grammar.text)


def test_where_the_budget_is_too_short_for_the_runs_deadline_it_is_told() -> None:
    outcome = Outcome("broken", "timeout", "compile")
    hangs = Fault(
        "miniatures:Hangs", "bytes", Grammar("regex", "boom"), b"boom", True, outcome, timeout_s=600.0
    )
    small = shrink(hangs, hang_seconds=0.15, seconds=6.0)
    assert small.shown and small.text == "no end within 1.5 s; the run waited 600 s"


# --- validity


def test_nobody_is_said_to_have_judged_an_instance_that_was_not() -> None:
    small = shrink(CRASHES)
    assert small.shown and small.content != CRASHES.content and small.valid is None
    whole = shrink(CRASHES, candidates=1)
    assert whole.shown and whole.content == CRASHES.content and whole.valid is True


# --- the steps


def test_a_text_of_const_or_enum_gets_shorter_in_schema_and_instance() -> None:
    for schema in ({"const": "abcdéf"}, {"enum": ["abcdéf", 1]}, {"items": {"const": "abcdéf"}}):
        found = [(json.dumps(less), part) for less, part in smaller_schemas(schema, "abcdéf")]
        for text in ("déf", "abc", "abcdé", ""):
            assert (json.dumps(schema).replace(json.dumps("abcdéf"), json.dumps(text)), text) in found
    other = [part for _, part in smaller_schemas({"const": "abcdéf"}, "another")]
    assert set(other) == {"another"}, "a text that the instance lacks is cut alone"


# --- another fault


def judged(schema: object, document: object, validity: Validity) -> bool | None:
    return validity.of(Grammar("json_schema", json.dumps(schema)), json.dumps(document).encode())


def test_a_fault_does_not_shrink_to_a_layout_that_the_backend_states() -> None:
    """Without `a` among the properties, `a` is an unlisted name before a listed one."""
    layout = Layout(order="listed", unlisted="last")
    bounded = {"maximum": 2.75}
    both, one = {"properties": {"a": {}, "b": bounded}}, {"properties": {"b": bounded}}
    with Judge() as judge:
        validity = Validity(judge, {})
        whole = Grammar("json_schema", json.dumps(both))
        assert validity.agrees(whole, b'{"a": 1, "b": 2.7}', True, layout)
        assert judged(both, {"a": 1, "b": 2.7}, validity) is True
        assert judged(one, {"a": 1, "b": 2.7}, validity) is None
        assert judged(one, {"b": 2.7}, validity) is True and judged(one, {"b": 3}, validity) is False
        outside = Validity(judge, {})
        assert outside.agrees(whole, b'{"b": 2.7, "a": 1}', True, layout)
        assert judged(one, {"a": 1, "b": 2.7}, outside) is True, "the fault itself may be the order"


def test_a_fault_of_a_regex_does_not_shrink_to_what_a_dialect_explains() -> None:
    r"""To ECMA-262 the digit is none, to others it is one."""
    digit = "\u0663".encode()
    with Judge() as judge:
        validity = Validity(judge, {})
        assert validity.of(Grammar("regex", r"\d"), digit) is True
        assert validity.agrees(Grammar("regex", r"(\d|b)*"), b"3b", True)
        assert validity.of(Grammar("regex", r"\d*"), digit) is None
        assert validity.of(Grammar("regex", r"\d*"), b"3") is True
        contrary = Validity(judge, {})
        assert contrary.agrees(Grammar("regex", r"\d*b"), digit + b"b", True)
        assert contrary.of(Grammar("regex", r"\d"), digit) is True, "the fault itself may be the dialect"


def test_the_layout_is_the_backends_own(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Layout | None] = []

    class Hears(Validity):
        def agrees(self, grammar: Grammar, content: bytes, valid: bool, layout: Layout | None = None) -> bool:
            heard.append(layout)
            return False

    monkeypatch.setattr(search, "Validity", Hears)
    schema = refused(Grammar("json_schema", "{}"), b"{}")
    shrink(replace(schema, spec=f"{schema.spec}:layout=compact"))
    shrink(refused(Grammar("regex", "a"), b"a"))
    assert heard == [COMPACT, None]
