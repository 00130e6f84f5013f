"""`repro` says whether a walk shows the failure again, and behind which cases alone the run saw it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import synthetic
from failing import CASES, OUTLINES, failure_with, finding, row
from miniatures.reference import Reference, ReferenceGrammar, ReferenceObject

from harness.backend.grammar import Bitmask, Grammar
from harness.backend.vocabulary import byte_vocabulary
from harness.cli.main import main
from harness.diagnose.repro import replayed, show, to_json
from harness.diagnose.repro.again import in_words, seen_again
from harness.diagnose.repro.replay import _steps
from harness.diagnose.repro.show import Replayed
from harness.errors import error_text
from harness.rows.row import CHECKS_MODE, Before
from harness.walk.watched import BrokenAnswer

TAKEN = [{"step": [1, "'a'", True, True]}, {"step": [2, "</s>", True, True]}]
REFUSED = [{"step": [1, "'a'", False, False]}]


def test_a_right_walk_behind_a_wrong_verdict_says_so_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It showed yes in each line, and no word of it."""
    cured = row(0, OUTLINES, 0, accepted=False, stopped_at=6, behind=(Before("mine", "1f", "earlier"),))
    run = synthetic.write_run(
        tmp_path / "run", [[(cured, b"")]], synthetic.info((OUTLINES,)), [("mine", CASES[0])]
    )
    words = ["repro", str(run), "star", "--backends", "outlines-core"]
    assert main(words) == main([*words, "--shrink"]) == 0
    told = capsys.readouterr().out
    assert told.count("behind    earlier: not seen when the run walked the case alone") == 2
    assert "  not seen again: it may need the cases before it" in told
    assert "so nothing was shrunk: it may need the cases before it" in told
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["seen_again"] is False and [each["case"] for each in answer["behind"]] == ["earlier"]


def test_a_failure_that_is_there_again_says_nothing_of_the_kind() -> None:
    wrong = row(0, OUTLINES, 1, accepted=False, stopped_at=9)
    again = replayed(replace(failure_with(wrong), instance=CASES[0].instances[1]))
    assert to_json(again)["seen_again"] is True
    assert "not seen again" not in show(again) and "behind" not in show(again)


@pytest.mark.parametrize(
    ("fields", "messages", "seen"),
    [
        ({"accepted": False}, TAKEN, False),
        ({"accepted": False}, REFUSED, True),
        ({"valid": False, "accepted": True}, TAKEN, True),
        ({"valid": False, "accepted": True}, REFUSED, False),
        ({"status": "crash", "phase": "fill"}, TAKEN, False),
        ({"status": "crash"}, [{"lost": "killed"}], True),
        ({"status": "backend_error", "phase": "accept"}, [{"said": "for each token"}, *TAKEN], False),
        ({"status": "backend_error"}, [{"said": "for each token"}, {"said": "ValueError"}], True),
        ({"accepted": False}, [{"lost": "it raised"}], None),
        ({}, TAKEN, None),
    ],
)
def test_what_was_seen_again_follows_from_the_steps(
    fields: dict[str, object], messages: list[dict[str, object]], seen: bool | None
) -> None:
    failure = failure_with(row(0, OUTLINES, 0, **fields))
    assert seen_again(failure, messages) is seen
    assert bool(in_words(failure, messages)) == (seen is False)


@pytest.mark.parametrize(
    ("fields", "messages", "is_said"),
    [
        ({}, TAKEN, True),
        ({}, REFUSED, False),
        ({"under": 3}, TAKEN, False),
        ({}, [*TAKEN, {"allowed": [], "count": 0}], False),
    ],
)
def test_a_finding_that_a_walk_need_not_show_says_so_and_heads_the_answer(
    fields: dict[str, int], messages: list[dict[str, object]], is_said: bool
) -> None:
    """It was headed by the verdict of the row, `unjudged, status ok`."""
    noted = finding("rollback_restores_the_mask", "it looks different", b'"', cause="one", **fields)
    failure = failure_with(row(0, OUTLINES, 0, findings=(noted,)), noted)
    shown = show(Replayed(failure, messages, ""))
    assert "seen      the finding rollback_restores_the_mask (one)" in shown
    assert ("this walk need not show the finding" in shown) == is_said


class _Odd(Reference):
    """A backend with the fault of a parameter below, in every process."""

    fault = ""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        compiled.start = lambda: _OddObject(compiled)  # type: ignore[method-assign]
        return compiled


class _OddObject(ReferenceObject):
    asks_itself = False

    def accept_token(self, token: int) -> bool:
        self.asks_itself = True
        accepted = super().accept_token(token)
        self.asks_itself = False
        return cast(bool, None) if _Odd.fault == "accept" else accepted

    def is_accepting(self) -> bool:
        if _Odd.fault == "end" and not self.asks_itself:
            raise RuntimeError("no")
        return super().is_accepting()

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.asks_itself = True
        super().fill_bitmask(bitmask)
        self.asks_itself = False

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        if _Odd.fault == "fill":
            raise RuntimeError("no")
        return partial(self.fill_bitmask, bitmask)


@pytest.mark.parametrize("fault", ["accept", "end", "fill", ""])
def test_the_replay_asks_an_object_what_the_run_asks_it(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Each was told as not seen again, as it was asked neither through its filler nor whether it may end."""
    monkeypatch.setattr(_Odd, "fault", fault)
    failed = failure_with(row(0, OUTLINES, 0, status="backend_error", phase=fault or "end"))
    adapter, tokens = _Odd(byte_vocabulary()), [*b"aaaa", byte_vocabulary().eos_token]
    messages: list[dict[str, Any]] = []
    try:
        messages += _steps(adapter, Grammar("regex", "a*"), tokens, 1e12)
    except (RuntimeError, BrokenAnswer) as error:
        messages = [*messages, {"said": "for each token"}, {"said": error_text(error)}]
    assert seen_again(failed, messages) is bool(fault)


@pytest.mark.parametrize(
    ("fields", "messages", "seen"),
    [
        ({"status": "crash", "phase": "check", "mode": CHECKS_MODE}, TAKEN, None),
        ({"status": "backend_error", "phase": "answer"}, TAKEN, None),
        ({"status": "crash"}, [{"lost": "killed after 10 s"}], None),
        ({"status": "timeout"}, [{"lost": "killed after 10 s"}], True),
        ({"status": "timeout"}, [{"lost": "its calls had taken 3 s together"}], True),
        ({"status": "oom"}, [{"lost": "killed at 4 GB of resident memory"}], True),
        ({"status": "oom"}, [{"said": "for each token"}, {"said": "MemoryError: "}], True),
        ({"status": "timeout"}, TAKEN, False),
    ],
)
def test_it_is_the_failure_that_is_compared(
    fields: dict[str, str], messages: list[dict[str, object]], seen: bool | None
) -> None:
    failure = failure_with(row(0, OUTLINES, 0, **({"phase": "fill"} | fields)))
    assert seen_again(failure, messages) is seen
    assert bool(in_words(failure, messages)) == (seen is False)
