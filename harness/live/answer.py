"""What came of one request to a server: raw, without a mean and without a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

End = Literal["finished", "truncated", "refused", "failed", "dropped", "malformed", "timeout", "aborted", "cancelled", "harness_error"]
"""`finished`: the model came to its end. `truncated`: it came to the limit of tokens (`finish_reason` length). `refused`: status 4xx.
`failed`: any other status that is not 200, no connection, or an error told within the stream. `dropped`: the connection ended before the
answer did. `malformed`: what came is no stream of events that this interface has. `timeout`: a deadline passed, `phase` says which.
`aborted`: the server ended the stream properly, but without a reason, or with another one. `cancelled`: we went away.
`harness_error`: it was us."""

ENDS: tuple[End, ...] = get_args(End)
ANSWERED: tuple[End, ...] = ("finished", "truncated")
"""The ends that have latencies (vLLM counts successful requests only)."""

Role = Literal["constrained", "none"]
State = Literal["", "cold", "warm"]
"""Of a request's grammar in this session when it was sent: `warm` if a request with the very same one had brought text and was over by
then; empty without a grammar. What the server had seen before the session nobody knows."""


@dataclass(frozen=True)
class Usage:
    """What the server says that it counted; None where it does not say."""

    prompt: int | None = None
    output: int | None = None


@dataclass(frozen=True)
class Heard:
    """An exchange as the client saw it. Times are nanoseconds on the session's clock, None where it did not get there."""

    end: End
    begun_ns: int
    """Before the connection is opened."""
    sent_ns: int
    """When the connection stood and the request began to go out; TTFT and E2E run from here."""
    message_ns: tuple[int, ...]
    """For each message with new text, the time of the read that completed it: messages that came in one read have one time."""
    last_ns: int | None
    """Of the last message with `choices`, text or none: where vLLM's clock stops."""
    done_ns: int
    """When the exchange was over, whatever came of it."""
    phase: str = ""
    """Where another end than an answer arose: `connect`, `status`, `first`, `stream`, `stall`, `total`."""
    status: int | None = None
    """HTTP's."""
    finish_reason: str | None = None
    text: str = ""
    reasoning_characters: int = 0
    """Of text that the server declares to be thought, not answer: it has times, and is not judged."""
    messages: int = 0
    """Messages with `choices`."""
    empty: int = 0
    """Of these, those without new text: role-only first ones, the one with the reason of the end, and others."""
    received_bytes: int = 0
    usage: Usage = Usage()
    timings: dict[str, float] = field(default_factory=dict)
    """The server's own (llama.cpp's `timings`), as it sent them."""
    why: str = ""
    """One line of what the server said or did, where the end is no answer."""


@dataclass(frozen=True)
class Answer:
    """One request of the plan, and what came of it."""

    number: int
    """Of the request; constrained requests and their twins are counted apart."""
    load: int
    """Its place in `Setup.loads`."""
    suite: str
    case_id: str
    role: Role
    state: State
    due_ns: int
    """When it was to be sent; the time until `begun_ns` is ours."""
    heard: Heard

    @property
    def is_answered(self) -> bool:
        return self.heard.end in ANSWERED

    @property
    def tokens(self) -> int:
        """Output tokens: the server's count, else the messages with text."""
        counted = self.heard.usage.output
        return len(self.heard.message_ns) if counted is None else counted
