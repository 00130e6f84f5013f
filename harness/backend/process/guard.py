"""Keeps a process that runs backends from the network."""

from __future__ import annotations

import sys
from typing import Any

NETWORK_EVENTS = frozenset(
    ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")
)


def forbid_network() -> None:
    """Make every attempt of Python code to reach an address an error: a schema must not be able to fetch
    anything."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NETWORK_EVENTS and not (
            event == "socket.connect" and isinstance(arguments[1], str | bytes)
        ):
            raise PermissionError(f"a worker makes no network access ({event})")

    sys.addaudithook(refuse)
