"""What a decode loop is asked for: one request, and how its tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from harness.grammar import Grammar


@dataclass(frozen=True, eq=False)
class Request:
    """One request of a batch, with a grammar of its own or none."""

    name: str
    prompt: tuple[int, ...]
    """Token ids; at least one."""
    limit: int
    """Output tokens at most, end-of-sequence included."""
    grammar: Grammar | None = None
    reference: tuple[int, ...] | None = None
    """Replay: the output's ids, end-of-sequence last; each step's reference token gets a large logit bonus. None: not replayed."""
    seed: int | None = None
    """Sampled at temperature 1 with a generator of its own; None: greedy. The draw does not depend on the rest of the batch."""
    arrival_ns: int = 0
    """After the start of the loop's run."""
    cancel_ns: int | None = None
    """When the client leaves, after the start of the loop's run."""
    reasoning: bool = False
    """The output begins with a thinking part, up to and including the loop's `think_end`, which the grammar does not constrain."""
