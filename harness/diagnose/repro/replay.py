"""The failure walked again in a process of its own, which says each step; it may hang or crash as the run's
did."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from time import perf_counter_ns
from typing import Any

from harness.backend.arm import pinned
from harness.backend.grammar import Adapter, Bitmask, BoolMask, Grammar, GrammarObject
from harness.backend.process.child import Answer, Handler
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.registry import library_of, make, parse_specs
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Instance
from harness.checks import SLOW, asks_for_forced_text
from harness.diagnose.repro.find import Failure
from harness.diagnose.shrink.stepping import Step, small_vocabulary, spelled, stepped_on, tokens_of, words_of
from harness.errors import error_text
from harness.outcomes.outcome import fault_of
from harness.rows.row import CHECKS_MODE, Finding
from harness.serve.live.judging import MODE as LIVE
from harness.walk.replay import too_slow_text
from harness.walk.watched import as_bool

NOT_HERE = "not here: a live server wrote it; `grammarbench live` asks it anew"
"""The sentence for a row that cannot be walked again, because no backend of ours wrote it."""
EXAMPLES = 20
LOAD_SECONDS = 300.0

ENDED = {"ended": True}
"""The message behind which the walk is made again, with a vocabulary of its own tokens alone."""
GOES_ON: dict[str, Any] = {}
"""A message that tells nothing but that a part of the work is done, so that each part has the time of one."""


def replay(failure: Failure) -> list[dict[str, Any]]:
    """Returns the messages of the process that walks it, up to its end or the deadline.

    Raises BadInput where another version than the run's is installed.
    """
    if failure.row.mode == LIVE:
        return [{"lost": NOT_HERE}]
    row = failure.row
    question: dict[str, Any] = {
        "spec": pinned(row, row.backend_version),
        "vocabulary": row.vocabulary,
        "dialect": failure.case.grammar.dialect,
        "grammar": failure.case.grammar.text,
        "content": failure.instance.content.hex(),
        "tokens": failure.instance.tokens,
        "walk": walk_of(failure.finding),
        "ends": failure.finding is not None and bool(fault_of(failure.finding).wrote),
        "most_ns": _most_ns(failure),
    }
    messages: list[dict[str, Any]] = []
    service = Service(
        f"{__name__}:{open_replay.__name__}", memory_bytes=failure.memory_bytes, python=failure.python
    )
    with service:
        seconds = LOAD_SECONDS
        while True:
            try:
                answer, _ = service.ask(question, seconds=seconds)
            except Lost as lost:
                # What follows the end is a question of ours, and no part of the failure.
                return messages if ENDED in messages else [*messages, {"lost": str(lost)}]
            if answer["message"] is None:
                return messages
            messages.append(answer["message"])
            question = {}
            seconds = LOAD_SECONDS if answer["message"] == ENDED else failure.timeout_s


def _most_ns(failure: Failure) -> float | None:
    """Returns the nanoseconds that the calls of the walk may take together, as in the run; None for what a
    check walked, which had another limit there."""
    is_of_check = failure.finding is not None or failure.row.mode == CHECKS_MODE
    return None if is_of_check else SLOW * failure.timeout_s * 1e9


def walk_of(finding: Finding | None) -> tuple[int, ...] | None:
    """Returns the tokens that show the finding; none where forced text is asked for at the very start.

    None: those of the instance.
    """
    if finding is None:
        return None
    at_start = finding.position == 0 and asks_for_forced_text(finding.check)
    return finding.walk if finding.walk or at_start else None


def open_replay() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that answers a question, and then each empty request, with the next message; the
    message is None at the end."""
    walked: list[Iterator[dict[str, Any]]] = []

    def answer_next(question: dict[str, Any], blob: bytes) -> Answer:
        if "spec" in question:
            walked.append(_messages(question))
        return {"message": next(walked[0], None)}, b""

    return answer_next, {}


def _messages(question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk, and yield a message for each step."""
    (spec,) = parse_specs(question["spec"])
    vocabulary = load_vocabulary(question["vocabulary"])
    adapter = make(spec, vocabulary)
    grammar = Grammar(question["dialect"], question["grammar"])
    # A finding's own walk ends with the token in question, an output's with the end.
    tokens = question["walk"]
    if tokens is not None and question["ends"]:
        tokens = [*tokens, adapter.vocabulary.eos_token]
    if tokens is None:
        instance = Instance("", bytes.fromhex(question["content"]), None, tokens=tuple(question["tokens"]))
        tokens = [*instance.ids(vocabulary), adapter.vocabulary.eos_token]
    walk = spelled(vocabulary, tokens)
    script = "" if walk is None else adapter.script(grammar)
    yield {"script": script, "library": library_of(adapter), "walk": walk}
    try:
        steps = yield from _steps(adapter, grammar, tokens, question["most_ns"])
    except GeneratorExit:
        raise
    except BaseException as error:
        yield {"said": error_text(error)}
        return
    if walk is None or steps is None:
        return
    yield ENDED
    try:
        few = small_vocabulary(words_of(walk))
        again = yield from _again(make(spec, few), grammar, tokens_of(few, walk))
    except GeneratorExit:
        raise
    except BaseException:  # another failure than the one that is shown
        again = None
    yield {"few_suffice": steps == again}


def _again(
    adapter: Adapter, grammar: Grammar, tokens: list[int]
) -> Generator[dict[str, Any], None, list[tuple[bool, bool]]]:
    """Return which steps are allowed and accepted, and yield after each part of the work."""
    yield GOES_ON
    grammar_object = adapter.compile(grammar).start()
    yield GOES_ON
    steps = []
    for step in stepped_on(adapter, grammar_object, tokens):
        steps.append((step.allowed, step.accepted))
        yield GOES_ON
    return steps


def _steps(
    adapter: Adapter, grammar: Grammar, tokens: list[int], most_ns: float | None
) -> Generator[dict[str, Any], None, list[tuple[bool, bool]] | None]:
    """Yield a message for each step, and return which steps were allowed and accepted; None if they took more
    than `most_ns` nanoseconds together, which ends the walk."""
    vocabulary = adapter.vocabulary
    steps = []
    yield {"said": "for each token: does the mask allow it, is it accepted"}
    grammar_object = adapter.compile(grammar).start()
    if most_ns is not None:
        grammar_object = _AsRunAsks(adapter, grammar_object)
    yield GOES_ON
    for step, spent_ns in _timed(stepped_on(adapter, grammar_object, tokens)):
        steps.append((step.allowed, step.accepted))
        if most_ns is not None and not step.accepted and not step.allowed_tokens:
            as_bool(grammar_object.is_accepting(), "is_accepting")  # the run asks whether it can end there
        yield {"step": [step.token, _name(vocabulary, step.token), step.allowed, step.accepted]}
        if step.refused or (len(steps) == len(tokens) and step.token not in vocabulary.eos_tokens):
            examples = [f"{token} {_name(vocabulary, token)}" for token in step.allowed_tokens[:EXAMPLES]]
            more = ["..."] * (len(step.allowed_tokens) > EXAMPLES)
            yield {"allowed": examples + more, "count": len(step.allowed_tokens)}
        if most_ns is not None and spent_ns > most_ns and len(steps) < len(tokens):
            yield {"lost": too_slow_text(spent_ns, len(steps) - 1, len(tokens) - 1)}
            return None
    return steps


class _AsRunAsks(GrammarObject):
    """An object of the backend, asked as the walk of an instance asks it: through its `filler`, with answers
    that must be bools, and whether the output may end before it does."""

    def __init__(self, adapter: Adapter, asked: GrammarObject) -> None:
        self._ends, self._asked = adapter.vocabulary.eos_tokens, asked

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self._asked.filler(bitmask)()

    def fill_bool_mask(self, mask: BoolMask) -> None:
        self._asked.fill_bool_mask(mask)

    def accept_token(self, token: int) -> bool:
        if token in self._ends:
            as_bool(self.is_accepting(), "is_accepting")
        return as_bool(self._asked.accept_token(token), "accept_token")

    def is_accepting(self) -> bool:
        return self._asked.is_accepting()

    def is_terminated(self) -> bool:
        return self._asked.is_terminated()


def _timed(steps: Iterator[Step]) -> Iterator[tuple[Step, int]]:
    """Yields each step, and how many nanoseconds all up to it took together."""
    spent_ns = 0
    while True:
        began = perf_counter_ns()
        step = next(steps, None)
        spent_ns += perf_counter_ns() - began
        if step is None:
            return
        yield step, spent_ns


def _name(vocabulary: Vocabulary, token: int) -> str:
    return vocabulary.special_tokens.get(token) or repr(vocabulary.tokens[token])
