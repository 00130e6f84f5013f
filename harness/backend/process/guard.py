"""Keeps a process that runs backends from the network."""

from __future__ import annotations

import sys
from typing import Any

NETWORK_EVENTS = frozenset(
    (
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.getnameinfo",
    )
)
ADDRESS_EVENTS = frozenset(("socket.connect", "socket.bind"))
"""These reach no network where the address is a path: then the socket is one of this machine alone."""


def forbid_network() -> None:
    """Make every attempt of Python code to reach an address, to be reached at one, or to ask for a name an
    error: a schema must not be able to fetch anything."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NETWORK_EVENTS or (event in ADDRESS_EVENTS and not isinstance(arguments[1], str | bytes)):
            raise PermissionError(f"a worker makes no network access ({event})")

    sys.addaudithook(refuse)
