"""The messages of one answer, taken in one by one: text, times, counts, and the reason of the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.serve.live.answer import ANSWERED, End, Heard, Instead, TextEnd, Usage
from harness.serve.live.sse import BadStream

TEXT_CHARACTERS = 1 << 20
"""The most characters of an answer's text."""

DONE = "[DONE]"
"""The data of the event that ends a stream."""

ERROR = "error"
"""The name of an event whose data is an error, whatever its form."""

LOST: tuple[End, ...] = ("dropped", "timeout")
"""The ends that may come behind a text that had ended."""

FINISHED, TRUNCATED = ("stop", "eos"), ("length",)
FILTERED = ("content_filter",)
"""The reason of the end where the service cut off a text for what it says."""

CALLED = ("tool_calls", "function_call")
"""The reasons of the end where the model called tools, which is an end of its own only without text."""


class ServerError(BadStream):
    """The server reported an error within the stream. `code` is the error's, if it has a number."""

    def __init__(self, why: str, code: int | None) -> None:
        super().__init__(why)
        self.code = code


class Collected:
    """What was received so far."""

    def __init__(self, is_chat: bool, begun_ns: int, scrub: Callable[[str], str]) -> None:
        """`scrub` removes the API key."""
        self.is_chat = is_chat
        self.scrub = scrub
        self.begun_ns = self.sent_ns = begun_ns
        self.message_ns: list[int] = []
        self.last_ns: int | None = None
        self.pieces: list[str] = []
        self.refusal: list[str] = []
        """The pieces of the sentence with which the model refuses."""
        self.calls = False
        """Whether the model called a tool."""
        self.characters = 0
        self.reasoning = 0
        self.messages = self.empty = self.received_bytes = 0
        self.status: int | None = None
        self.finish_reason: str | None = None
        self.usage = Usage()
        self.timings: dict[str, float] = {}
        self.is_done = False
        """Whether `[DONE]` came."""
        self.misses_text = False
        """Whether a line came that cannot be read and may have held text."""

    def take(self, data: str, now: int, name: str = "") -> None:
        """Take in one event, with its name. Raises BadStream if it is none of this interface."""
        if data.strip() == DONE:
            self.is_done = True
            return
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
            wrong = "not JSON"
        else:
            wrong = "" if isinstance(message, dict) else "no object"
        if name == ERROR and wrong:
            raise ServerError(f"an error within the stream: {self.scrub(data)[:300]}", None)
        if wrong:
            raise BadStream(f"an event that is {wrong}: {self._shown(data)}")
        if name == ERROR or message.get("error") or message.get("object") == "error":
            raise self._error(message)
        self._count(message)
        choices = message.get("choices")
        if choices is None:  # some servers send usage so
            return
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise BadStream(f"choices that are no list of objects: {self._shown(data)}")
        if choices:
            self._choice(choices[0], now)

    def _choice(self, choice: dict[str, Any], now: int) -> None:
        if type(index := choice.get("index")) is int and index != 0:
            raise BadStream(f"a choice of index {str(index)[:20]}, where one answer was asked for")
        reason = choice.get("finish_reason")
        holder = self._holder(choice)
        if holder is None and not isinstance(reason, str):
            return
        holder = holder or {}
        text = holder.get("content" if self.is_chat else "text") or ""
        beside = holder if self.is_chat else {}
        thought = beside.get("reasoning_content") or beside.get("reasoning") or ""
        refusal = beside.get("refusal") or ""
        if not (isinstance(text, str) and isinstance(thought, str) and isinstance(refusal, str)):
            raise BadStream("text that is no string")
        calls = bool(beside.get("tool_calls") or beside.get("function_call"))
        if isinstance(reason, str):
            self.finish_reason = self.scrub(reason)[:40]
        self.messages += 1
        self.last_ns = now
        self.reasoning += len(thought)
        self.calls |= calls
        if not (text or thought or refusal or calls):
            self.empty += 1
            return
        self.message_ns.append(now)
        self.characters += len(text) + len(refusal)
        if self.characters > TEXT_CHARACTERS:
            raise BadStream(f"a text of more than {TEXT_CHARACTERS:,} characters")
        self.pieces.append(text)
        self.refusal.append(refusal)

    def _holder(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """Returns what holds the choice's text; None if nothing does, as beside a reason of the end, or in an
        annotation of text that came before (Azure's content filter). Raises BadStream, also for the text of
        another interface."""
        name = "delta" if self.is_chat else "text"
        if choice.get(name) is not None:
            holder = choice[name] if self.is_chat else choice
            if isinstance(holder, dict):
                return holder
        elif not any(choice.get(other) is not None for other in ("delta", "message", "text")):
            return None
        raise BadStream(f"a choice without {name}")

    def _shown(self, data: str) -> str:
        """Returns the beginning of what cannot be read, to be shown."""
        return repr(self.scrub(data)[:60])

    def _error(self, message: dict[str, Any]) -> ServerError:
        """Returns the error that the server reports by this message."""
        error = message.get("error")
        error = error if isinstance(error, dict) else message
        why = error.get("message") or message.get("error") or message
        said = self.scrub(why) if isinstance(why, str) else self.scrub(json.dumps(why))[:300]
        return ServerError(f"an error within the stream: {said}", _whole(error.get("code")))

    def _count(self, message: dict[str, Any]) -> None:
        usage, timings = message.get("usage"), message.get("timings")
        if isinstance(usage, dict):
            self.usage = Usage(
                _newer(_whole(usage.get("prompt_tokens")), self.usage.prompt),
                _newer(_whole(usage.get("completion_tokens")), self.usage.output),
                _newer(_reasoning(usage), self.usage.reasoning),
            )
        if isinstance(timings, dict):
            numbers = {
                self.scrub(str(name))[:40]: value
                for name, value in list(timings.items())[:20]
                if type(value) in (int, float)
            }
            self.timings = {name: float(value) for name, value in numbers.items() if abs(value) < 1e15}

    @property
    def instead(self) -> Instead:
        """Returns what came in place of the text. What is refused or filtered has no text that is meant, even
        where some came before; a tool that is called beside a text takes nothing from it."""
        if any(self.refusal):
            return "refusal"
        if self.finish_reason in FILTERED:
            return "content filter"
        return "tool calls" if self.calls and not any(self.pieces) else ""

    def ending(self) -> tuple[End, str, str]:
        """Returns the end, its phase and its reason, for a stream that ended properly."""
        said = {
            "": "",
            "refusal": f"the model refused: {''.join(self.refusal)}",
            "tool calls": "the model called a tool and wrote no text",
            "content filter": "a content filter cut the answer off",
        }[self.instead]
        if self.finish_reason in FINISHED or (said and self.finish_reason in CALLED):
            return "finished", "", said
        if self.finish_reason in (*TRUNCATED, *FILTERED):
            return "truncated", "", said
        why = "without a reason" if self.finish_reason is None else f"with the reason {self.finish_reason!r}"
        return "aborted", "stream", f"the server ended the stream {why}"

    def _text_end(self) -> TextEnd:
        """Returns how the text ended, if the reason of its end came."""
        end = self.ending()[0]
        if self.instead or self.misses_text or not (end == "finished" or end == "truncated"):
            return ""
        return end

    def heard(self, end: End, phase: str, why: str, done_ns: int) -> Heard:
        """Returns everything that was received, as a Heard."""
        written = "".join(self.pieces)
        # No tokens beside a text are no count of its tokens.
        output = self.usage.output or (None if self.message_ns else self.usage.output)
        text = self.scrub(written)
        return Heard(
            end=end,
            begun_ns=self.begun_ns,
            sent_ns=self.sent_ns,
            message_ns=tuple(self.message_ns),
            last_ns=self.last_ns,
            done_ns=done_ns,
            phase=phase,
            status=self.status,
            finish_reason=self.finish_reason,
            text=text,
            reasoning_characters=self.reasoning,
            messages=self.messages,
            empty=self.empty,
            received_bytes=self.received_bytes,
            usage=replace(self.usage, output=output),
            timings=self.timings,
            why=why,
            instead=self.instead if end in ANSWERED else "",
            held_key=text != written,
            text_end=self._text_end() if end in LOST else "",
        )


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 40 else None


def _reasoning(usage: dict[str, Any]) -> int | None:
    """Returns how many of the output's tokens are thinking; None where the server does not say it, or counts
    them beside the output's, which its total shows."""
    details = usage.get("completion_tokens_details")
    prompt, output, total, reasoning = (
        _whole(count)
        for count in (
            *map(usage.get, ("prompt_tokens", "completion_tokens", "total_tokens")),
            details.get("reasoning_tokens") if isinstance(details, dict) else None,
        )
    )
    if output is None or not reasoning or reasoning > output:
        return None
    return None if total == (prompt or 0) + output + reasoning else reasoning


def _newer(count: int | None, before: int | None) -> int | None:
    """Returns the count; the one before it where a later message has none, or a count of no tokens."""
    return count if count or before is None else before
