"""The fields of a request that a model of OpenAI's wants otherwise, found by asking for a short text."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from harness.serve.live.answer import Heard
from harness.serve.live.asking import Sampling, body_of
from harness.serve.live.client import Client, Deadlines
from harness.serve.live.dialects import PATHS
from harness.serve.live.key import ApiKey
from harness.serve.live.server import NEWER_LIMIT, Server

OPTIONAL = ("temperature", "seed")
"""The fields that are left out where a model refuses them."""

TRIED = Sampling(limit=16, temperature=0.0, prompt="", seed=0)


def as_wanted(server: Server, temperature: float, key: ApiKey, deadlines: Deadlines) -> Server:
    """Returns the server with the names of fields that its model takes, and without those that it refuses.

    Servers that an engine brings have one interface for all models and are not asked. OpenAI's newer models
    refuse `max_tokens` and every temperature but their own, each with status 400 and a message that names the
    field. What is refused for another reason is left as it is: the session's own requests will tell.
    """
    if not server.dialect.fields_differ:
        return server
    tried = replace(TRIED, temperature=temperature)
    for _ in range(1 + len(OPTIONAL)):
        heard = asyncio.run(_ask(server, tried, key, deadlines))
        mended = _mended(server, heard.why) if heard.status in (400, 422) else server
        if mended == server:
            break
        server = mended
    return server


def _mended(server: Server, why: str) -> Server:
    if server.limit_field != NEWER_LIMIT and NEWER_LIMIT in why:
        return replace(server, limit_field=NEWER_LIMIT)
    for name in OPTIONAL:
        if name not in server.left_out and re.search(rf"\b{name}\b", why):
            return replace(server, left_out=(*server.left_out, name))
    return server


async def _ask(server: Server, sampling: Sampling, key: ApiKey, deadlines: Deadlines) -> Heard:
    body = body_of(server, sampling, "Say yes.", 0, None)
    assert body is not None  # it has no grammar
    heard: list[Heard] = []
    client = Client(server.base, PATHS[server.endpoint], key, deadlines)
    async with client.opened():
        await client.ask(body, server.endpoint == "chat", heard.append)
    return heard[0]
