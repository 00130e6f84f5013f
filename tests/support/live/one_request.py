"""One request to a live server, and what was heard."""

from __future__ import annotations

import asyncio
import json

from harness.serve.live.answer import Answer, Heard
from harness.serve.live.client import Client, Deadlines
from harness.serve.live.dialects import PATHS, Endpoint
from harness.serve.live.key import ApiKey

PATIENT = Deadlines(connect_s=5.0, first_s=10.0, stall_s=10.0, total_s=20.0)


def ask(
    url: str,
    limits: Deadlines = PATIENT,
    endpoint: Endpoint = "chat",
    key: str = "",
    *,
    refuses_in_stream: bool = False,
) -> Heard:
    """Asks once, and returns what was heard."""
    found: list[Heard] = []

    async def once() -> None:
        client = Client(url, PATHS[endpoint], ApiKey(key), limits, refuses_in_stream=refuses_in_stream)
        async with client.opened():
            await client.ask(json.dumps({"model": "a-model"}).encode(), endpoint == "chat", found.append)

    asyncio.run(once())
    (heard,) = found
    return heard


def answer(heard: Heard) -> Answer:
    """Returns what was heard as the answer to the first request of a session."""
    return Answer(0, 0, "suite", "0" * 12, "constrained", "cold", 0, heard)
