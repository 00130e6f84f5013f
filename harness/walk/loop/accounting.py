"""The rules by which a decode loop's counts must add up to the token. Each finding names its rule, the
request, and both numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.walk.loop.outcome import ANSWERED, Account, Completed, steps


@dataclass(frozen=True)
class Finding:
    """Two numbers that should be equal. `request` is empty where the rule is about the whole batch."""

    rule: str
    request: str
    expected: int
    actual: int

    def __str__(self) -> str:
        where = f" ({self.request})" if self.request else ""
        return f"{self.rule}{where}: {self.actual} instead of {self.expected}"


def emitted(account: Account) -> int:
    """Returns how many output ids the account amounts to."""
    return account.sampled + account.forced + account.retokenized - account.rolled_back


def written(account: Account) -> int:
    """Ids in the output that had no pass of their own: forced and retokenized ones, less those whose place
    they took.

    Where retokenizing writes as many tokens as it takes back, this is `forced`.
    """
    return account.forced + account.retokenized - account.rolled_back


def saved(account: Account) -> int:
    """Passes saved: how many more one token a pass would have taken."""
    return emitted(account) - account.passes


def of_request(request: Completed) -> Iterator[Finding]:
    """Yields the broken ones of the rules that hold for every request, whatever the strategy."""
    account, name = request.account, request.name

    def equal(rule: str, expected: int, actual: int) -> Iterator[Finding]:
        if expected != actual:
            yield Finding(rule, name, expected, actual)

    def at_most(rule: str, actual: int, limit: int) -> Iterator[Finding]:
        if actual > limit:
            yield Finding(rule, name, limit, actual)

    yield from equal(
        "ids are sampled + forced + retokenized - rolled back", emitted(account), len(request.ids)
    )
    yield from equal("every id has its time", len(request.ids), len(request.token_ns))
    yield from at_most("accepted drafts are among the drafted", account.accepted_drafts, account.drafted)
    yield from at_most("accepted drafts are among the sampled", account.accepted_drafts, account.sampled)
    if account.retokenized and not account.rolled_back:
        yield Finding("tokens are retokenized only in the place of others", name, 0, account.retokenized)
    one_each = account.sampled - account.accepted_drafts
    if request.end in ANSWERED and not _ends_in_draft(request):
        yield from equal("every pass gives one token, beside the accepted drafts", one_each, account.passes)
    else:
        yield from at_most("no token without a pass", one_each, account.passes)
    yield from at_most(
        "a pass brings one message, beside what stood before the first",
        len(set(request.token_ns)),
        account.passes + 1,
    )
    times = [
        request.arrived_ns,
        *([] if request.admitted_ns is None else [request.admitted_ns]),
        *request.token_ns,
        request.done_ns,
    ]
    for before, after in pairwise(times):
        if after < before:
            yield Finding("times do not run backwards", name, before, after)
            break


def _ends_in_draft(request: Completed) -> bool:
    """Returns whether the end of the sequence was itself an accepted draft.

    Then the last pass gave no token beside its drafts.
    """
    account = request.account
    return bool(account.accepted_drafts) and account.passes == account.sampled - account.accepted_drafts + 1


def of_run(
    completed: Sequence[Completed],
    table: NDArray[np.int64],
    passes: int,
    wall_ns: int,
    sent: Sequence[str] | None = None,
) -> list[Finding]:
    """Returns the findings of every request, and those of the rules between the requests and the steps of a
    run.

    `table` is int64 `[passes, len(STEP)]`; `sent` has the names of the requests handed in, if known.
    """
    findings = [finding for done in completed for finding in of_request(done)]

    def check(rule: str, is_kept: bool, expected: int, actual: int) -> None:
        if not is_kept:
            findings.append(Finding(rule, "", expected, actual))

    if sent is not None:
        names = sorted(done.name for done in completed)
        check("every request comes back once", names == sorted(sent), len(sent), len(names))
    columns = steps(table)
    check("one step a forward pass", passes == len(table), passes, len(table))
    rows, used = int(columns["rows"].sum()), sum(done.account.passes for done in completed)
    check("a request's pass is a row of a step", used <= rows, rows, used)
    passed = [done for done in completed if done.end in ANSWERED and done.account.passes]
    fed, needed = int(columns["fed"].sum()), sum(done.prompt + done.account.passes - 1 for done in passed)
    check("the prompt and one token a pass were fed", fed >= needed, needed, fed)
    least = int(columns["own_ns"].min()) if len(table) else 0
    check("the parts of a step are within it", least >= 0, 0, least)
    wall = int(columns["wall_ns"].sum())
    check("the steps are within the run", wall <= wall_ns, wall_ns, wall)
    return findings


def of_stepwise(completed: Sequence[Completed], table: NDArray[np.int64]) -> list[Finding]:
    """Returns the findings of the rules that hold in addition where nothing is written and nothing drafted:
    all tokens are sampled, and every token but the last was fed once."""
    findings = []
    for done in completed:
        account = done.account
        other = account.forced + account.retokenized + account.rolled_back + account.drafted
        if other:
            findings.append(Finding("stepwise only samples", done.name, 0, other))
    if all(done.end in ANSWERED for done in completed):
        fed, needed = (
            int(steps(table)["fed"].sum()),
            sum(done.prompt + len(done.ids) - 1 for done in completed),
        )
        if fed != needed:
            findings.append(Finding("stepwise feeds every token but the last once", "", needed, fed))
    return findings


def against_stepwise(completed: Sequence[Completed], stepwise: Sequence[Completed]) -> list[Finding]:
    """Returns the findings of the comparison of the same requests under a strategy and under stepwise: where
    the ids are the same, the passes are stepwise's less the tokens that were written and the drafts that were
    accepted."""
    findings = []
    before = {done.name: done for done in stepwise if done.end in ANSWERED}
    for done in completed:
        other = before.get(done.name)
        if other is None or done.end not in ANSWERED or done.ids != other.ids:
            continue
        expected = (
            other.account.passes - written(done.account) - done.account.accepted_drafts + _ends_in_draft(done)
        )
        if done.account.passes != expected:
            findings.append(
                Finding(
                    "passes are stepwise's less the tokens written", done.name, expected, done.account.passes
                )
            )
    return findings
