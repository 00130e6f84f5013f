"""The result of one request to a server: raw values, without a mean and without a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from harness.serve.requests.words import Role

End = Literal[
    "finished",
    "truncated",
    "refused",
    "failed",
    "dropped",
    "malformed",
    "timeout",
    "aborted",
    "cancelled",
    "harness_error",
]
"""How a request ended. `finished`: the model came to its end. `truncated`: it came to the limit of tokens
(`finish_reason` length), or a content filter cut it off. `refused`: status 4xx, or the same said within the
stream before any text, by a dialect that says it so. `failed`: any other status that is not 200, no
connection, or an error reported within the stream. `dropped`: the connection ended before the answer did.
`malformed`: the content is no stream of events that this interface has. `timeout`: a deadline passed, and
`phase` says which. `aborted`: the server ended the stream properly, but without a reason or with another one.
`cancelled`: the client went away. `harness_error`: the fault is ours."""

ENDS: tuple[End, ...] = get_args(End)
ANSWERED: tuple[End, ...] = ("finished", "truncated")
"""The ends that have latencies (vLLM counts successful requests only)."""

OURS: tuple[End, ...] = ("cancelled", "harness_error")
"""The ends that say nothing of the server."""

ELSEWHERE = (401, 402, 403, 404, 405, 407, 408, 425, 429)
"""The statuses 4xx that say nothing of the grammar. They are about the key, the credit, the address, the
model, a proxy or the load."""

Instead = Literal["", "refusal", "tool calls", "content filter"]
"""What came in place of the text: the model refused to answer (`delta.refusal`), it called tools and wrote no
text (`delta.tool_calls`), or a filter of the service cut the text off (`finish_reason` content_filter). None
says anything of the grammar."""

TextEnd = Literal["", "finished", "truncated"]
"""How a text ended; empty where the reason of its end is not known, or where something came in its place."""

State = Literal["", "cold", "warm"]
"""The state of the request's grammar in this session when it was sent: `warm` if a request with the very same
grammar had brought text and was over by then; empty without a grammar. What the server saw before the session
is unknown."""


@dataclass(frozen=True)
class Usage:
    """The server's own counts; None where it gives none."""

    prompt: int | None = None
    output: int | None = None
    reasoning: int | None = None
    """How many of the output's tokens are thinking."""


@dataclass(frozen=True)
class Heard:
    """An exchange as the client saw it.

    Times are nanoseconds on the session's clock, None where the exchange did not get that far.
    """

    end: End
    begun_ns: int
    """The time before the connection was opened."""
    sent_ns: int
    """When the connection stood and the request began to go out; TTFT and E2E run from here."""
    message_ns: tuple[int, ...]
    """For each message with new text (also of thinking, of a refusal or of a tool call), the time of the read
    that completed it. Messages that came in one read have the same time."""
    last_ns: int | None
    """The time of the last message with `choices`, with or without text; vLLM's clock stops here. A choice
    that has neither text nor a reason of the end, but annotates earlier text, is no message."""
    done_ns: int
    """When the exchange was over, however it ended."""
    phase: str = ""
    """The phase in which an end without an answer arose: `connect`, `status`, `first`, `stream`, `stall` or
    `total`."""
    status: int | None = None
    """The HTTP status; None if there was no response."""
    finish_reason: str | None = None
    text: str = ""
    reasoning_characters: int = 0
    """Characters of text that the server declares to be thinking and not answer. This text has times, and is
    not judged."""
    messages: int = 0
    """Number of messages with `choices`."""
    empty: int = 0
    """How many of these have no new text: the first one with a role only, the one with the reason of the end,
    and others."""
    received_bytes: int = 0
    usage: Usage = Usage()
    timings: dict[str, float] = field(default_factory=dict)
    """The server's own times (llama.cpp's `timings`), as it sent them."""
    why: str = ""
    """One line on what the server said or did, where the end is no answer."""
    instead: Instead = ""
    """Empty where the model wrote text. With another value the request is not answered, though the end is
    `finished` or `truncated`."""
    held_key: bool = False
    """Whether the server wrote the API key into the text. It was cut out, so `text` is not all that was
    written."""
    text_end: TextEnd = ""
    """How the text had ended before the connection did, or before a deadline passed. Such a text is judged,
    though the request is not answered; empty for other ends."""

    @property
    def is_refused_elsewhere(self) -> bool:
        """Returns whether the request was refused for a reason that says nothing of its grammar."""
        return self.end == "refused" and self.status in ELSEWHERE


@dataclass(frozen=True)
class Answer:
    """One request of the plan, and its result."""

    number: int
    """The request's number; constrained requests and their unconstrained twins are counted apart."""
    load: int
    """The load's place in `Setup.loads`."""
    suite: str
    case_id: str
    role: Role
    state: State
    due_ns: int
    """When the request was due; the time until `begun_ns` is our delay."""
    heard: Heard

    @property
    def is_answered(self) -> bool:
        return self.heard.end in ANSWERED and not self.heard.instead

    @property
    def text_end(self) -> TextEnd:
        """Returns how the text ended, which a judge sees if it did."""
        end = self.heard.end
        if end == "finished" or end == "truncated":
            return "" if self.heard.instead else end
        return self.heard.text_end

    @property
    def tokens(self) -> int:
        """Returns the number of output tokens: the server's count, else the number of messages with text."""
        counted = self.heard.usage.output
        return len(self.heard.message_ns) if counted is None else counted

    @property
    def hidden(self) -> int:
        """Returns how many of these are thinking that the server counted and did not send. Their time is in
        TTFT. None was kept back if some came as thinking, or if more messages came than there are other
        tokens: then it came within the text."""
        heard = self.heard
        output, reasoning = heard.usage.output, heard.usage.reasoning
        if output is None or reasoning is None or heard.reasoning_characters:
            return 0
        return 0 if len(heard.message_ns) > output - reasoning else reasoning

    @property
    def streamed(self) -> int:
        """Returns how many of these came in messages."""
        return self.tokens - self.hidden
