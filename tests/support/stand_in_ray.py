"""As much of Ray as a sweep uses, in this process, with tasks that are lost when they are told to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """A node is gone, or Ray."""


class WorkerCrashedError(RayError):
    """The process of a task is gone."""


class RayTaskError(RayError):
    """The task raised."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"a traceback of many\nlines: {cause}")
        self.cause = cause


class Stream:
    """What a task yields, one after the other."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self.chunks = chunks
        self.is_cancelled = False

    def __next__(self) -> Callable[[], Any]:
        try:
            chunk = next(self.chunks)
        except StopIteration:
            raise
        except Exception as raised:
            error = raised
            return lambda: _raise(error)
        return lambda: chunk


def _raise(error: Exception) -> None:
    raise error


class StandIn:
    """`ray`.

    `fate(number, chunks)` says what becomes of the chunks of the task of that number, the first one's being
    0.
    """

    exceptions = SimpleNamespace(
        RayError=RayError, RayTaskError=RayTaskError, WorkerCrashedError=WorkerCrashedError
    )

    def __init__(self, fate: Callable[[int, Iterator[Any]], Iterator[Any]]) -> None:
        self.fate = fate
        self.streams: list[Stream] = []
        self.options_given: dict[str, Any] = {}
        self.most_at_a_time = 0

    def remote(self, function: Callable[..., Iterator[Any]]) -> Any:
        def submit(*arguments: Any) -> Stream:
            self.streams.append(Stream(self.fate(len(self.streams), function(*arguments))))
            return self.streams[-1]

        def options(**given: Any) -> Any:
            self.options_given = given
            return SimpleNamespace(remote=submit)

        return SimpleNamespace(options=options)

    def wait(
        self, streams: Sequence[Stream], num_returns: int, timeout: float
    ) -> tuple[list[Stream], list[Stream]]:
        assert len({id(stream) for stream in streams}) == len(streams) and streams
        self.most_at_a_time = max(self.most_at_a_time, len(streams)) if timeout else self.most_at_a_time
        return list(streams[-num_returns:]), list(streams[:-num_returns])

    @staticmethod
    def get(reference: Callable[[], Any]) -> Any:
        return reference()

    @staticmethod
    def cancel(stream: Stream, force: bool) -> None:
        stream.is_cancelled = force
