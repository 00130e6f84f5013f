"""What must add up to the token, and what does not: each finding names its rule, the request, and both numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.loop.outcome import ANSWERED, Account, Completed, steps


@dataclass(frozen=True)
class Finding:
    """Two numbers that should be one. `request` is empty where it is about the whole batch."""

    rule: str
    request: str
    expected: int
    found: int

    def __str__(self) -> str:
        where = f" ({self.request})" if self.request else ""
        return f"{self.rule}{where}: {self.found} instead of {self.expected}"


def emitted(account: Account) -> int:
    """How many ids the account says there are."""
    return account.sampled + account.forced + account.retokenized - account.rolled_back


def written(account: Account) -> int:
    """Ids that stand in the output without a pass of their own: forced and retokenized less what these took the place of.

    Where retokenizing puts as many tokens as it takes, that is `forced`.
    """
    return account.forced + account.retokenized - account.rolled_back


def saved(account: Account) -> int:
    """Passes that one token a pass would have taken beyond those made."""
    return emitted(account) - account.passes


def of_request(request: Completed) -> Iterator[Finding]:
    """What holds for every request, whatever the strategy."""
    account, name = request.account, request.name

    def equal(rule: str, expected: int, found: int) -> Iterator[Finding]:
        if expected != found:
            yield Finding(rule, name, expected, found)

    def at_most(rule: str, found: int, limit: int) -> Iterator[Finding]:
        if found > limit:
            yield Finding(rule, name, limit, found)

    yield from equal("ids are sampled + forced + retokenized - rolled back", emitted(account), len(request.ids))
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
    yield from at_most("a pass brings one message, beside what stood before the first", len(set(request.token_ns)), account.passes + 1)
    times = [request.arrived_ns, *([] if request.admitted_ns is None else [request.admitted_ns]), *request.token_ns, request.done_ns]
    for before, after in pairwise(times):
        if after < before:
            yield Finding("times do not run backwards", name, before, after)
            break


def _ends_in_draft(request: Completed) -> bool:
    """Was the end of the sequence itself an accepted draft? Then the last pass gave no token beside its drafts."""
    account = request.account
    return bool(account.accepted_drafts) and account.passes == account.sampled - account.accepted_drafts + 1


def of_run(
    completed: Sequence[Completed], table: NDArray[np.int64], passes: int, wall_ns: int, sent: Sequence[str] | None = None
) -> list[Finding]:
    """Every request's findings, and what must hold between the requests and the steps of a run of the loop.

    `table`: int64 `[passes, len(STEP)]`; `sent`: the names of the requests handed in, if known.
    """
    found = [finding for each in completed for finding in of_request(each)]

    def check(rule: str, is_kept: bool, expected: int, seen: int) -> None:
        if not is_kept:
            found.append(Finding(rule, "", expected, seen))

    if sent is not None:
        names = sorted(each.name for each in completed)
        check("every request comes back once", names == sorted(sent), len(sent), len(names))
    columns = steps(table)
    check("one step a forward pass", passes == len(table), passes, len(table))
    rows, used = int(columns["rows"].sum()), sum(each.account.passes for each in completed)
    check("a request's pass is a row of a step", used <= rows, rows, used)
    passed = [each for each in completed if each.end in ANSWERED and each.account.passes]
    fed, needed = int(columns["fed"].sum()), sum(each.prompt + each.account.passes - 1 for each in passed)
    check("the prompt and one token a pass were fed", fed >= needed, needed, fed)
    least = int(columns["own_ns"].min()) if len(table) else 0
    check("the parts of a step are within it", least >= 0, 0, least)
    wall = int(columns["wall_ns"].sum())
    check("the steps are within the run", wall <= wall_ns, wall_ns, wall)
    return found


def of_stepwise(completed: Sequence[Completed], table: NDArray[np.int64]) -> list[Finding]:
    """What more holds where nothing is written and nothing drafted: all is sampled, and every token but the last was fed once."""
    found = []
    for each in completed:
        account = each.account
        other = account.forced + account.retokenized + account.rolled_back + account.drafted
        if other:
            found.append(Finding("stepwise only samples", each.name, 0, other))
    if all(each.end in ANSWERED for each in completed):
        fed, needed = int(steps(table)["fed"].sum()), sum(each.prompt + len(each.ids) - 1 for each in completed)
        if fed != needed:
            found.append(Finding("stepwise feeds every token but the last once", "", needed, fed))
    return found


def against_stepwise(completed: Sequence[Completed], stepwise: Sequence[Completed]) -> list[Finding]:
    """The same requests under a strategy and stepwise, to the token: where the ids are the same, passes are stepwise's less
    the tokens that were written and the drafts that were accepted.
    """
    found = []
    before = {each.name: each for each in stepwise if each.end in ANSWERED}
    for each in completed:
        other = before.get(each.name)
        if other is None or each.end not in ANSWERED or each.ids != other.ids:
            continue
        expected = other.account.passes - written(each.account) - each.account.accepted_drafts + _ends_in_draft(each)
        if each.account.passes != expected:
            found.append(Finding("passes are stepwise's less the tokens written", each.name, expected, each.account.passes))
    return found
