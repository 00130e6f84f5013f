"""The input of the decode loop: one request, and how its tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from harness.backend.grammar import Grammar


@dataclass(frozen=True, eq=False)
class Request:
    """One request of a batch. It has a grammar of its own, or none."""

    name: str
    prompt: tuple[int, ...]
    """The prompt's token ids; there is at least one."""
    limit: int
    """The most output tokens, end-of-sequence included."""
    grammar: Grammar | None = None
    reference: tuple[int, ...] | None = None
    """For replay: the output's ids, end-of-sequence last. At each step the reference's next token gets a
    large logit bonus. None means that the output is not replayed."""
    seed: int | None = None
    """The seed of the request's own generator, with which tokens are drawn at temperature 1; None means
    greedy. A draw does not depend on the rest of the batch."""
    arrival_ns: int = 0
    """When the request arrives, in nanoseconds after the start of the loop's run."""
    cancel_ns: int | None = None
    """When the client leaves, in nanoseconds after the start of the loop's run; None means that it stays."""
    reasoning: bool = False
    """The output begins with a thinking part, up to and including the ids of the loop's `think_end`, which
    the grammar does not constrain."""
