"""Tells a connection that this machine could not make from one that the server did not take."""

from __future__ import annotations

import errno
from collections.abc import Iterator

WHAT_TO_DO = "; send fewer requests at a time"

LACKS = {
    errno.EMFILE: f"this process may open no more files{WHAT_TO_DO}, or raise `ulimit -n`",
    errno.ENFILE: f"this machine may open no more files{WHAT_TO_DO}, or raise `fs.file-max`",
    # What getaddrinfo says of a host's name where it may open no file.
    errno.EBUSY: f"the host's name cannot be looked up, mostly for want of open files{WHAT_TO_DO}, or raise "
    "`ulimit -n`",
    errno.EADDRNOTAVAIL: f"this machine has no port or no address left to connect from{WHAT_TO_DO}",
    errno.ENOBUFS: f"this machine has no room left for another connection{WHAT_TO_DO}",
    errno.ENOMEM: f"this machine has no memory left for another connection{WHAT_TO_DO}",
}
"""What this machine lacks, by the number of the error, and what to do about it."""


def lack_of(error: BaseException) -> str:
    """Returns in one line what this machine lacks; empty if the connection failed for another reason.

    A host may have several addresses, each with an error of its own. It is our lack only if all of them are:
    one that refuses shows that no server is there, and without IPv6 `localhost` has an address that cannot be
    connected from at any time.
    """
    numbers = [
        cause.errno for cause in _causes(error) if isinstance(cause, OSError) and cause.errno is not None
    ]
    return LACKS[numbers[0]] if numbers and all(number in LACKS for number in numbers) else ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and everything behind it, each once; the libraries wrap one error in another."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inner = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        waiting += (cause.__cause__, cause.__context__, *inner)
