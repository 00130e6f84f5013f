"""Branches of checks that no wrong adapter reaches alone: each is tried with stand-ins for what is around
it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.checks import drafts, reasoning


def test_what_is_forced_in_the_thinking_is_found_though_masks_are_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = SimpleNamespace(
        accept_token=lambda _: True, jump_forward=lambda: b"{", fast_forward_tokens=lambda: []
    )
    thought = SimpleNamespace(
        thinking=(5,),
        begun=1,
        tokens=(5,),
        compiled=SimpleNamespace(start=lambda: one),
        wrong=lambda *_: [],
        finding=lambda position, text, *_, **__: text,
    )
    monkeypatch.setattr(reasoning, "thoughts", lambda *_: [thought])
    subject: Any = SimpleNamespace(effort=None)
    found: list[Any] = list(reasoning.check_reasoning_is_not_constrained(subject))
    assert found == ["(b'{', []) is forced"]


@pytest.mark.parametrize(("where", "position"), [("start", 0), ("behind", 1)])
def test_an_end_at_either_side_of_the_thinking_is_found(
    monkeypatch: pytest.MonkeyPatch, where: str, position: int
) -> None:
    thought = SimpleNamespace(
        thinking=(5,),
        compiled=SimpleNamespace(start=lambda: "start"),
        finding=lambda position, *_: position,
    )
    monkeypatch.setattr(reasoning, "thoughts_reached", lambda *_: [(thought, "behind")])
    vocabulary = SimpleNamespace(eos_tokens=(0,))
    subject: Any = SimpleNamespace(vocabulary=vocabulary, allowed=lambda at: [at == where])
    found: list[Any] = list(reasoning.check_the_output_does_not_end_while_it_reasons(subject))
    assert found == [position]


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_draft_that_is_cut_before_its_end_or_goes_past_it_is_found(
    monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    place = SimpleNamespace(position=1, tokens=(7,), instance=0, text=b"")
    one = SimpleNamespace(accept_tokens=lambda _: taken, is_terminated=lambda: True)
    subject: Any = SimpleNamespace(
        random=lambda _: SimpleNamespace(randint=lambda low, high: 1), reach=lambda _: one
    )
    around: dict[str, Any] = {
        "endings": lambda *_: [(place, None, 0)],
        "place_on": lambda *_: SimpleNamespace(tokens=()),
        "next_token": lambda *_: 8,
        "look": lambda *_: SimpleNamespace(allowed=lambda _: None),
        "end_name": lambda *_: "</s>",
        "overrides": lambda *_: False,
        "finding": lambda subject, place, text, walk: text,
    }
    for name, stand_in in around.items():
        monkeypatch.setattr(drafts, name, stand_in)
    found = list(drafts.check_a_draft_ends_at_end_of_sequence(subject))
    assert len(found) == (taken != 2)
