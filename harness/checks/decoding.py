"""The decode loop over a case's valid instances, each strategy in turn, without a model: what is written, and
with how many passes.

Made with `run --decode` only. Nothing here is timed, so it may run anywhere and beside anything;
`grammarbench decode` measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from harness.backend.grammar import Adapter, CompiledGrammar, Grammar
from harness.backend.vocabulary import Vocabulary
from harness.checks import DECODING, WRITES, Check
from harness.checks.subject import NotApplicable, Subject
from harness.errors import BadInput
from harness.rows.row import Finding
from harness.walk.loop import accounting
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.outcome import ANSWERED, STEP, Completed, is_replayed
from harness.walk.loop.request import Request
from harness.walk.loop.respelling import prepare as prepare_spelling
from harness.walk.loop.silent import SilentModel
from harness.walk.loop.strategies import make_strategy, strategies
from harness.walk.replay import walk
from harness.walk.watched import unwatched

CATEGORY = DECODING

MOST_TOKENS = 400
"""The most tokens of all outputs of a case together; the last one is cut there."""
ROWS = 4
BATCH_TOKENS = 100
"""The most tokens that the outputs of one batch have together, unless the batch has one output."""
PROMPT_TOKENS = 64
"""The end of the grammar's text: what drafts are copied from."""
DRAFT_TOKENS = 4


def prepare(vocabulary: Vocabulary) -> None:
    """Imports what the loop needs, and builds the tables of spelling. Raises BadInput without torch."""
    try:
        import torch as torch
    except ImportError as error:
        raise BadInput(
            f"--decode needs torch where each backend runs ({error}); pip install torch there, "
            "or leave it out"
        ) from error
    prepare_spelling(vocabulary)


def checks() -> Iterator[Check]:
    """Yields one check for each strategy."""
    for name in strategies():
        yield _check(name)


def _check(strategy: str) -> Check:
    def check(subject: Subject) -> Iterator[Finding]:
        return _wrong(subject, strategy)

    beside = "walked alone" if strategy == "stepwise" else "decoded stepwise"
    check.__name__ = f"check_{strategy}{WRITES}"
    check.__doc__ = (
        f"Decoded in a batch by the strategy {strategy}, a valid instance comes out as it does when {beside}."
    )
    return check


def _wrong(subject: Subject, strategy: str) -> Iterator[Finding]:
    asked = _requests(subject)
    if not asked:
        raise NotApplicable("no valid instance that the vocabulary can spell")
    completed = _decode(subject, strategy, asked)
    right = [request for request in completed if _is_written(subject, request)]
    subject.counted[strategy + WRITES] = _counts(completed, right)
    if len(right) < len(completed):
        spelled = {request.name: request.reference or () for request in asked}
        others = [] if strategy == "stepwise" else _decode(subject, "stepwise", asked)
        fine = {other.name for other in others if _is_written(subject, other)}
        for request in completed:
            if request not in right and (
                request.name in fine if others else _is_walked(subject, spelled[request.name])
            ):
                yield _finding(subject, strategy, request)
    if strategy != "stepwise" and not any(
        request.account.drafted or accounting.written(request.account) for request in completed
    ):
        raise NotApplicable("the strategy had nothing to write")


def _requests(subject: Subject) -> list[Request]:
    """Returns one request for each valid instance, in a seeded choice where they are too many; a request's
    name is the instance's number."""
    vocabulary, grammar = subject.vocabulary, subject.case.grammar
    numbers = subject.valid()
    subject.random("decoding").shuffle(numbers)
    prompt = _prompt(grammar, vocabulary)
    requests: list[Request] = []
    left = MOST_TOKENS
    for number in numbers:
        try:
            ids = (*vocabulary.encode(subject.case.instances[number].content), vocabulary.eos_token)
        except ValueError:  # no spelling
            continue
        requests.append(Request(str(number), prompt, min(left, len(ids)), grammar, ids))
        left -= len(ids)
        if left < 1:
            break
    return requests


def _prompt(grammar: Grammar, vocabulary: Vocabulary) -> tuple[int, ...]:
    try:
        ids = vocabulary.encode(grammar.text.encode("utf-8", "surrogatepass")[-8 * PROMPT_TOKENS :])[
            -PROMPT_TOKENS:
        ]
    except ValueError:
        ids = []
    return tuple(ids) or (vocabulary.eos_token,)


class _Compiled(Adapter):
    """The subject's adapter, which has compiled its grammar already."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject.vocabulary)
        self._compiled = subject.compiled
        self.mask_format = subject.adapter.mask_format

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return self._compiled


def _decode(subject: Subject, strategy: str, asked: Sequence[Request]) -> list[Completed]:
    """Returns what the loop completed, batch by batch.

    Raises ArithmeticError if the loop's account of the ids does not add up, which is our failure.
    """
    vocabulary = subject.vocabulary
    completed: list[Completed] = []
    with CompileQueue(_Compiled(subject), workers=0) as queue:
        model, options = SilentModel(vocabulary.size, ROWS), LoopOptions(overlap=False)
        loop = Loop(model, vocabulary, make_strategy(strategy, vocabulary, DRAFT_TOKENS), queue, options)
        for batch in _batches(asked):
            served = loop.serve(batch)
            steps = np.array(served.steps, np.int64).reshape(-1, len(STEP))
            wrong = accounting.of_run(
                served.completed, steps, served.passes, served.wall_ns, [request.name for request in batch]
            )
            if wrong:
                raise ArithmeticError(f"{strategy}: {wrong[0]}")
            completed += served.completed
    return completed


def _batches(asked: Sequence[Request]) -> Iterator[list[Request]]:
    batch: list[Request] = []
    for request in asked:
        if len(batch) == ROWS or (batch and sum(one.limit for one in batch) + request.limit > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(request)
    yield batch


def _is_written(subject: Subject, done: Completed) -> bool:
    return is_replayed(
        done, subject.vocabulary.decode(done.ids), subject.case.instances[int(done.name)].content
    )


def _is_walked(subject: Subject, reference: Sequence[int]) -> bool:
    """Does a walk of it alone come to its end? What is refused there too is the verdict's matter."""
    return bool(
        walk(
            subject.compiled, subject.vocabulary, reference[:-1], subject.adapter.mask_format, unwatched()
        ).accepted
    )


def _finding(subject: Subject, strategy: str, done: Completed) -> Finding:
    if done.end in ANSWERED:
        cause, why = "other_text", f"it wrote {subject.vocabulary.decode(done.ids)[-80:]!r}"
    else:
        cause, why = (
            done.phase or done.end,
            (f"{done.why} behind {subject.vocabulary.decode(done.ids)[-60:]!r}"),
        )
    return Finding(
        position=len(done.ids),
        text=f"{strategy}: {done.end}, {why}",
        cause=cause,
        instance=int(done.name),
        walk=done.ids if cause != "other_text" else (),
    )


def _counts(completed: Sequence[Completed], right: Sequence[Completed]) -> dict[str, int]:
    """Returns the number of texts that were asked for and written, and of the written ones the ids, the
    passes, and where the ids come from."""
    account = ("forced", "retokenized", "rolled_back", "drafted", "accepted_drafts", "passes")
    sums = {name: sum(getattr(request.account, name) for request in right) for name in account}
    return {
        "texts": len(completed),
        "written": len(right),
        "ids": sum(len(request.ids) for request in right),
        **sums,
    }
