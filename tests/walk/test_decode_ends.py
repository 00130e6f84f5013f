"""An output ends with whichever id of end-of-sequence the model draws, under every strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from decode_tools import EOS, WORDS, FakeModel, regex, request, serve

from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference
from harness.walk.loop.outcome import Completed
from harness.walk.loop.strategies import make_strategy, strategies
from harness.walk.loop.strategies.base import Strategy

SECOND = EOS + 1
TWO = replace(WORDS, name="two ends", eos_tokens=(EOS, SECOND))
GRAMMARS = ("(ab)+", "[0-9]{2,9}", '\\{"re": [0-9]+\\}', "abc|abcabc")


def ended_with(end: int, strategy: str, vocabulary: Vocabulary = TWO) -> Sequence[Completed]:
    """Returns what is completed by a model that draws this id as soon as it may."""
    model = FakeModel(vocabulary, rows=len(GRAMMARS))
    model.table[:, end] += 30
    made = [request(str(number), regex(pattern)) for number, pattern in enumerate(GRAMMARS)]

    def strategy_of(vocabulary: Vocabulary) -> Strategy:
        return make_strategy(strategy, vocabulary, 4)

    return serve(made, Reference(vocabulary), strategy_of, model)


@pytest.mark.parametrize("strategy", strategies())
def test_the_second_id_ends_an_output_as_the_first_does(strategy: str) -> None:
    first, second = ended_with(EOS, strategy), ended_with(SECOND, strategy)
    assert {each.end for each in (*first, *second)} == {"end_of_sequence"}
    assert {each.ids[-1] for each in first} == {EOS} and {each.ids[-1] for each in second} == {SECOND}
    assert all(SECOND not in each.ids[:-1] and EOS not in each.ids for each in second)


@pytest.mark.parametrize("strategy", strategies())
def test_what_is_no_id_of_end_of_sequence_ends_nothing(strategy: str) -> None:
    assert all(SECOND not in each.ids for each in ended_with(SECOND, strategy, WORDS))
