"""Paired ratios, speed-up and ceiling, and what adds up to the token: by hand, by hypothesis, and against
wrong definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from decode_runs import MS, Played, is_caught, judged, play, request, step, table
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.statistics import interval
from harness.serve.decode import overhead
from harness.serve.decode.overhead import Comparable, Figure, Paired, of_equal_length
from harness.serve.decode.record import DecodedBatch
from harness.serve.requests import latency
from harness.walk.loop import accounting
from harness.walk.loop.outcome import ANSWERED, Account, Completed


def batch(
    requests: Sequence[Completed], *, fork: int = 0, number: int = 1, replayed: bool = True
) -> DecodedBatch:
    steps = table([step(1, 1, MS)])
    return DecodedBatch(
        fork,
        number,
        0,
        "arm",
        "constrained",
        0,
        MS,
        1,
        0,
        {},
        tuple(judged(each, as_replayed=replayed) for each in requests),
        steps,
        captured=0,
        repeated=0,
    )


def timed(short: float, long: float) -> list[Completed]:
    """Two requests of three ids: gaps of so many milliseconds."""
    return [
        request("short", (10, 10 + short, 10 + 2 * short)),
        request("long", (10, 10 + long, 10 + 2 * long)),
    ]


UNEQUAL = request("c", (10, 500)), request("c", (10, 20, 30))
"""An output that is shorter than the other's: another text, no overhead."""


def check_overhead() -> None:
    base = [*timed(10, 1000), UNEQUAL[1]]
    runs = []
    for fork in (0, 1, 2):
        runs += [
            (
                batch([*timed(20, 1100), UNEQUAL[0]], fork=fork, number=each),
                batch(base, fork=fork, number=each),
            )
            for each in (1, 2)
        ]
        runs.append(
            (batch([*timed(900, 90_000), UNEQUAL[0]], fork=fork, number=3), batch(base, fork=fork, number=3))
        )  # a disturbed round
    found = overhead.paired(runs, latency.tpot)
    assert found.interval is not None
    assert found.interval.ratio == pytest.approx(
        math.sqrt(2.0 * 1.1)
    )  # of each request with itself, geometric, the median over rounds
    assert found.interval.forks == 3
    assert (found.requests, found.left_out) == (2, 1)
    assert found.by_fork == pytest.approx(dict.fromkeys(range(3), math.log(2.2) / 2))


def check_direction() -> None:
    slower = overhead.paired([(batch(timed(11, 110)), batch(timed(10, 100)))], latency.tpot).interval
    assert slower is not None and slower.ratio == pytest.approx(1.1)
    assert (slower.low, slower.high) == (0, math.inf)  # one fork says nothing of the next


STEPWISE = [request("a", (10, 20, 30, 40, 50, 60)), request("b", (10, 20))]
JUMPED = [
    request("a", (10, 20, 20, 20, 20, 34), account=Account(3, 4, 1, 2, passes=3)),
    request("b", (10, 20)),
]
"""`a` takes 34 ms instead of 60 in 3 passes instead of 6: of the six ids three had no pass (4 forced + 1
retokenized - 2 rolled back)."""


def check_speed_up() -> None:
    found = overhead.speed_up([(batch(JUMPED, fork=fork), batch(STEPWISE, fork=fork)) for fork in (0, 1)])
    assert found.ratio.interval is not None
    assert found.ratio.interval.ratio == pytest.approx(80 / 54)
    assert found.ceiling == 8 / 5
    assert found.saved == 6  # three passes in each fork
    assert found.of_ceiling == pytest.approx(80 / 54 / 1.6)
    assert overhead.saved_share(JUMPED) == pytest.approx(3 / 8)
    assert found.ceiling == 1 / (1 - 3 / 8)
    assert overhead.saved_share([]) is None


def check_a_text_without_a_pass() -> None:
    """One text that is written at once is no reason to be beyond the ceiling."""
    written = request("b", (1, 1), account=Account(forced=2))
    found = overhead.speed_up([(batch([STEPWISE[0], written]), batch(STEPWISE))])
    assert found.ceiling == 8 / 6 and found.ratio.interval is not None
    assert found.ratio.interval.ratio == pytest.approx(80 / 61)


def check_no_ceiling_without_passes() -> None:
    """An altered record may say that stepwise took none."""
    without = [replace(each, account=replace(each.account, passes=0)) for each in STEPWISE]
    found = overhead.speed_up([(batch(JUMPED), batch(without))])
    assert found.ratio.interval is not None and (found.ceiling, found.of_ceiling) == (None, None)


def check_other_texts_do_not_count() -> None:
    other = [replace(JUMPED[0], ids=(9, 9, 9, 9, 9, 9)), JUMPED[1]]
    found = overhead.speed_up([(batch(other, replayed=False), batch(STEPWISE))])
    assert (found.saved, found.ceiling, found.ratio.requests, found.ratio.left_out) == (0, 1, 1, 1)
    spelled = overhead.speed_up(
        [(batch(other), batch(STEPWISE))]
    )  # other ids of the replayed text are the same work
    assert spelled.saved == 3


def check_fallbacks_do_not_count() -> None:
    easy = [replace(each, fallback="timeout") for each in JUMPED]
    assert overhead.speed_up([(batch(easy), batch(STEPWISE))]).ratio.interval is None
    assert overhead.paired([(batch(easy), batch(STEPWISE))], latency.tpot).interval is None


CHECKS = [
    check_overhead,
    check_direction,
    check_speed_up,
    check_a_text_without_a_pass,
    check_no_ceiling_without_passes,
    check_other_texts_do_not_count,
    check_fallbacks_do_not_count,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__)
def test_by_hand(check: Callable[[], None]) -> None:
    check()


def _ratio_of_means(
    runs: Iterable[tuple[DecodedBatch, DecodedBatch]],
    figure: Figure,
    comparable: Comparable = of_equal_length,
) -> Paired:
    sums: dict[int, list[float]] = {}
    for head, base in runs:
        for place, side in enumerate((head, base)):
            sums.setdefault(head.fork, [0.0, 0.0])[place] += sum(
                figure(each.completed) or 0 for each in side.completed
            )
    x = {fork: math.log(above / below) for fork, (above, below) in sums.items()}
    return Paired(interval([*x.values()]), x, 2, 1)


def _rounds_as_units(
    runs: Iterable[tuple[DecodedBatch, DecodedBatch]],
    figure: Figure,
    comparable: Comparable = of_equal_length,
) -> Paired:
    again = [
        (replace(head, fork=index), replace(base, fork=index)) for index, (head, base) in enumerate(runs)
    ]
    return paired(again, figure, comparable)


def _upside_down(
    runs: Iterable[tuple[DecodedBatch, DecodedBatch]],
    figure: Figure,
    comparable: Comparable = of_equal_length,
) -> Paired:
    return paired([(base, head) for head, base in runs], figure, comparable)


def _mean_of_ratios(runs: Iterable[tuple[DecodedBatch, DecodedBatch]]) -> overhead.SpeedUp:
    runs = list(runs)
    return replace(
        speed_up(runs),
        ratio=paired([(base, head) for head, base in runs], overhead.service, overhead.of_equal_text),
    )


paired, speed_up = overhead.paired, overhead.speed_up

MUTANTS = {
    "a ratio of means": (check_overhead, overhead, "paired", _ratio_of_means),
    "rounds as units": (check_overhead, overhead, "paired", _rounds_as_units),
    "base over head": (check_direction, overhead, "paired", _upside_down),
    "means over the rounds": (check_overhead, np, "median", np.mean),
    "forced counted twice": (
        check_speed_up,
        accounting,
        "emitted",
        lambda each: each.sampled + 2 * each.forced + each.retokenized - each.rolled_back,
    ),
    "rolled back forgotten": (
        check_speed_up,
        accounting,
        "emitted",
        lambda each: each.sampled + each.forced + each.retokenized,
    ),
    "rolled back added": (
        check_speed_up,
        accounting,
        "emitted",
        lambda each: each.sampled + each.forced + each.retokenized + each.rolled_back,
    ),
    "speed-up since arrival": (check_speed_up, overhead, "service", latency.ttft),
    "a mean of speed-ups": (check_a_text_without_a_pass, overhead, "speed_up", _mean_of_ratios),
    "speed-up of other texts": (check_other_texts_do_not_count, overhead, "of_equal_text", of_equal_length),
    "speed-up of the same ids only": (
        check_other_texts_do_not_count,
        overhead,
        "of_equal_text",
        lambda head, base: head.completed.ids == base.completed.ids,
    ),
    "fallbacks as answers": (
        check_fallbacks_do_not_count,
        latency,
        "is_answered",
        lambda each: each.end in ANSWERED,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_definition_is_caught(name: str) -> None:
    check, module, attribute, wrong = MUTANTS[name]
    assert is_caught(check, module, attribute, wrong)


def test_equal_length_is_asked_for() -> None:
    """The rule itself, swapped where it is the default."""
    base, head = batch([UNEQUAL[1]]), batch([UNEQUAL[0]])
    assert overhead.paired([(head, base)], latency.tpot).interval is None
    assert overhead.paired([(head, base)], latency.tpot, lambda *_: True).interval is not None


# ------------------------------------------------------------------------------------------------- accounting


accounts = st.builds(
    lambda sampled, forced, retokenized, rolled: Account(
        sampled, forced, retokenized, min(rolled, sampled + forced), passes=sampled
    ),
    st.integers(1, 20),
    st.integers(0, 20),
    st.just(0),
    st.integers(0, 5),
)


@given(accounts, st.integers(0, 3))
def test_what_adds_up_has_no_finding(account: Account, retokenized: int) -> None:
    account = replace(account, retokenized=retokenized if account.rolled_back else 0)
    count = accounting.emitted(account)
    each = request("a", [float(min(number, account.passes)) for number in range(count)], account=account)
    assert list(accounting.of_request(each)) == []
    assert accounting.saved(account) == count - account.passes


@given(
    accounts,
    st.sampled_from(["sampled", "forced", "rolled_back", "passes", "retokenized"]),
    st.sampled_from([-1, 1]),
)
def test_one_token_too_many_or_too_few_is_found(account: Account, field: str, by: int) -> None:
    each = request("a", [float(number) for number in range(accounting.emitted(account))], account=account)
    wrong = replace(account, **{field: getattr(account, field) + by})
    found = {finding.rule for finding in accounting.of_request(replace(each, account=wrong))}
    rule = (
        "every pass gives one token, beside the accepted drafts"
        if field == "passes"
        else "ids are sampled + forced + retokenized - rolled back"
    )
    assert rule in found


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (
            request("a", (10, 20), ids=(1, 2), account=Account(2, passes=2, accepted_drafts=1, drafted=0)),
            "accepted drafts are among the drafted",
        ),
        (
            request("a", (10, 20), account=Account(1, 0, 1, 0, passes=1)),
            "tokens are retokenized only in the place of others",
        ),
        (request("a", (10, 20), arrived=15), "times do not run backwards"),
        (request("a", (10, 20), done=19), "times do not run backwards"),
        (request("a", (20, 10)), "times do not run backwards"),
        (request("a", (10, 20), ids=(1, 2, 3), account=Account(3, passes=3)), "every id has its time"),
        (request("a", (10, 20), end="refused", account=Account(2, passes=1)), "no token without a pass"),
        (request("a", (10, 20, 30), account=Account(1, 2, passes=1)), "a pass brings one message"),
    ],
)
def test_each_rule_of_a_request(wrong: Completed, rule: str) -> None:
    found = [str(each) for each in accounting.of_request(wrong)]
    assert any(each.startswith(rule) for each in found), found


def test_requests_that_did_not_end_may_have_used_a_pass_more() -> None:
    assert (
        list(accounting.of_request(request("a", (10, 20), end="refused", account=Account(2, passes=3)))) == []
    )


def test_the_end_of_the_sequence_may_be_a_draft() -> None:
    """Two passes: a draft of two and a token, then a draft of two whose second is the end."""
    account = Account(sampled=5, drafted=6, accepted_drafts=4, passes=2)
    each = request("a", (10, 10, 10, 20, 20), account=account)
    assert list(accounting.of_request(each)) == []
    assert accounting.saved(account) == 3
    stepwise = request("a", (10, 20, 30, 40, 50))
    assert accounting.against_stepwise([each], [stepwise]) == []
    assert list(accounting.of_request(replace(each, account=replace(account, passes=3))))
    assert accounting.against_stepwise([replace(each, account=replace(account, passes=3))], [stepwise])


def test_an_output_that_is_all_written_needs_no_pass() -> None:
    each = request("a", (1, 1), account=Account(forced=2))
    assert accounting.of_run([each], table([]), 0, 1) == []


def played(texts: dict[str, list[int]]) -> DecodedBatch:
    return play(Played(texts), "arm", "constrained", 0, 0, 1, 0)


def rules(run: DecodedBatch) -> set[str]:
    return {
        each.rule
        for each in accounting.of_run(
            [each.completed for each in run.completed], run.steps, run.passes, run.wall_ns
        )
    }


def test_requests_and_steps_agree() -> None:
    run = played({"a": [1, 4, 1], "b": [1, 1, 1, 1]})
    completed = [each.completed for each in run.completed]
    assert accounting.of_run(completed, run.steps, run.passes, run.wall_ns, ["b", "a"]) == []
    assert {
        each.rule for each in accounting.of_run(completed, run.steps, run.passes, run.wall_ns, ["a"])
    } == {"every request comes back once"}
    assert rules(replace(run, passes=5)) == {"one step a forward pass"}
    assert rules(replace(run, wall_ns=1)) == {"the steps are within the run"}
    assert "a request's pass is a row of a step" in rules(replace(run, steps=run.steps[:3], passes=3))
    broken = run.steps.copy()
    broken[0, 2] *= 2  # a forward pass longer than its step
    assert rules(replace(run, steps=broken)) == {"the parts of a step are within it"}
    broken = run.steps.copy()
    broken[:, 1] = 0
    assert rules(replace(run, steps=broken)) == {"the prompt and one token a pass were fed"}


def test_stepwise_writes_nothing_and_feeds_all_once() -> None:
    run = played({"a": [1, 1, 1], "b": [1, 1]})
    assert accounting.of_stepwise([each.completed for each in run.completed], run.steps) == []
    twice = run.steps.copy()
    twice[-1, 1] += 1
    assert len(accounting.of_stepwise([each.completed for each in run.completed], twice)) == 1
    jumped = played({"a": [1, 2]})
    found = accounting.of_stepwise([each.completed for each in jumped.completed], jumped.steps)
    assert "stepwise only samples" in {each.rule for each in found}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_a_strategys_passes_are_stepwises_less_what_it_wrote(brought: list[int]) -> None:
    stepwise = [each.completed for each in played({"a": [1] * sum(brought)}).completed]
    jumped = [each.completed for each in played({"a": brought}).completed]
    assert accounting.against_stepwise(jumped, stepwise) == []
    assert stepwise[0].account.passes - jumped[0].account.passes == jumped[0].account.forced
    more = replace(jumped[0], account=replace(jumped[0].account, forced=jumped[0].account.forced + 1))
    assert [each.actual - each.expected for each in accounting.against_stepwise([more], stepwise)] == [1]
