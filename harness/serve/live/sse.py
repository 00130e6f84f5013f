"""A bounded reader of server-sent events: a hostile server cannot make us hold more than one event of LONGEST
bytes."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator

LONGEST = 1 << 20
"""The most bytes of one event, unfinished lines included."""


class BadStream(Exception):
    """Says in one line what is wrong with a stream."""


class EventReader:
    """Takes bytes as they arrive, and gives the data of each event that is whole.

    It is not a library's reader, because an event's time is that of the read which completed it, and because
    the bytes must be bounded.
    """

    def __init__(self, longest: int = LONGEST, scrub: Callable[[str], str] = str) -> None:
        """`scrub` removes the API key from what is shown."""
        self.longest = longest
        self._scrub = scrub
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._is_first_line = True
        self.name = ""
        """The name of the event whose data was given last; empty if it has none."""
        self._next_name = ""
        self.strange = ""
        """The first line that is no field of an event. It is ignored, as the standard says."""
        self.misses_data = False
        """Did such a line hold an object of JSON? Then it is most likely data whose field is misspelled, and
        the answer lacks text."""

    def feed(self, received: bytes) -> Iterator[str]:
        """Yields the data of the events that these bytes complete. Raises BadStream."""
        if self._after_return and received:
            received = received.removeprefix(b"\n")
            self._after_return = False
        self._after_return = received.endswith(b"\r")
        lines = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines[:-1]:
            whole = bytes(self._line) + line
            self._line.clear()
            self._hold(len(line))
            if (data := self._take(whole)) is not None:
                yield data
        self._hold(len(lines[-1]))
        self._line += lines[-1]

    @property
    def is_within_event(self) -> bool:
        """Returns whether lines came that no empty line has ended yet."""
        return bool(self._line or self._data)

    def holds(self, data: str, *, at_end: bool = False) -> bool:
        """Returns whether this, as a line that is whole, is all of an event that no empty line has ended yet.
        At the end of the stream, a line without a line end is whole too."""
        line, whole = bytes(self._line), data.encode()
        if line and at_end:
            return not self._data and line in (b"data:" + whole, b"data: " + whole)
        return not line and self._data == [whole]

    def _hold(self, more: int) -> None:
        self._size += more
        if self._size > self.longest:
            raise BadStream(f"an event of more than {self.longest:,} bytes")

    def _take(self, line: bytes) -> str | None:
        if self._is_first_line:
            self._is_first_line, line = False, line.removeprefix(BOM_UTF8)
        if not line:
            data, self._data, self._size = self._data, [], 0
            self.name, self._next_name = self._next_name, ""
            try:
                return b"\n".join(data).decode("utf-8") or None
            except UnicodeDecodeError as error:
                raise BadStream(f"an event that is not UTF-8 ({error.reason})") from error
        if line.startswith(b":"):
            self._size -= len(line)
            return None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._next_name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name not in (b"id", b"retry"):
            self.misses_data |= b"{" in line
            self.strange = self.strange or repr(self._scrub(line.decode("utf-8", "replace"))[:60])
        return None
