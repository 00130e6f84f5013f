"""What a server says in the body of an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SAID_BYTES = 1 << 16
"""The most bytes that are read of the body of a status that is not 200."""

SAID_S = 2.0
"""The most seconds for reading that body."""

SHOWN = 400
"""The most characters of a body that has no form that is known here."""


async def body_of_error(response: Any, transport_error: type[Exception]) -> bytes:
    """Returns the body's first bytes, at most SAID_BYTES, or those that came before an error: the status says
    more than the body."""
    body = bytearray()
    with suppress(TimeoutError, transport_error):
        async with asyncio.timeout(SAID_S):
            async for received in response.aiter_raw():
                body += received
                if len(body) >= SAID_BYTES:
                    break
    return bytes(body[:SAID_BYTES])


def message_of_error(body: bytes, scrub: Callable[[str], str]) -> str:
    """Returns the message in an error's body, if the body has a form that these servers write. `scrub`
    removes the API key, before anything is cut."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return scrub(text)[:SHOWN]
    for name in ("error", "detail", "message"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    return scrub(value) if isinstance(value, str) else scrub(json.dumps(value))[:SHOWN]
