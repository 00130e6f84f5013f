"""The least answers of questions that ask for one another, against repeated passes over all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.oracle.json_schema.fixpoint import LeastAnswers

Questions = list[list[list[int]]]
"""For each question its alternatives, each of which asks for other questions that must all be true."""


@st.composite
def questions(draw: st.DrawFn) -> Questions:
    count = draw(st.integers(1, 9))
    others = st.lists(st.integers(0, count - 1), max_size=4)
    return draw(st.lists(st.lists(others, max_size=4), min_size=count, max_size=count))


def least(asked: Questions) -> list[bool]:
    found = [False] * len(asked)
    for _ in asked:
        found = [any(all(found[other] for other in each) for each in alternatives) for alternatives in asked]
    return found


class Asked(LeastAnswers):
    """Counts the searches."""

    def __init__(self, asked: Questions) -> None:
        super().__init__()
        self.asked, self.searches = asked, 0

    def of(self, number: int) -> bool:
        def search() -> bool:
            self.searches += 1
            return any(all(self.of(other) for other in each) for each in self.asked[number])

        return self.answer(number, search)


@settings(max_examples=600)
@given(questions(), st.data())
def test_every_answer_is_the_least_in_whatever_order_it_is_asked(
    asked: Questions, data: st.DataObject
) -> None:
    answers = Asked(asked)
    order = data.draw(st.permutations(range(len(asked))))
    assert [answers.of(number) for number in order] == [least(asked)[number] for number in order]
    assert answers.is_idle
    assert [answers.is_known_true(number) for number in order] == [least(asked)[number] for number in order]


def test_a_search_that_fails_leaves_nothing_that_was_assumed() -> None:
    answers = LeastAnswers()

    def asks_for_the_outer() -> bool:
        return answers.answer("outer", lambda: False)

    def fails() -> bool:
        answers.answer("inner", asks_for_the_outer)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        answers.answer("outer", fails)
    assert answers.is_idle
    assert answers.answer("outer", lambda: True)
    assert answers.answer("inner", asks_for_the_outer)


def test_questions_that_all_ask_for_one_another_are_searched_once_each() -> None:
    count = 60
    answers = Asked([[[other] for other in range(count) if other != number] for number in range(count)])
    assert not answers.of(0)
    assert answers.searches == count
