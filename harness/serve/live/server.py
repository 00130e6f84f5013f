"""The server that a URL names: where it is, what it is, and which model it serves."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from harness.errors import BadInput, did_you_mean
from harness.serve.live.client import Deadlines, httpx, session
from harness.serve.live.dialects import DIALECTS, FACTS, Endpoint, ServerDialect, model_of, recognise
from harness.serve.live.key import KEY_VARIABLE, ApiKey
from harness.text import SURROGATES, one_line

FACT_BYTES, FACT_S = 8 << 20, 10.0
"""The most bytes and seconds of one answer about the server itself."""

NEWER_LIMIT = "max_completion_tokens"
"""What `max_tokens` is called by OpenAI's newer models."""

VERSION_CHARACTERS = 80
"""The most characters of a server's version."""


@dataclass(frozen=True)
class Server:
    """The server to which requests are sent."""

    base: str
    dialect: ServerDialect
    version: str
    """The version that the server gives; empty if it gives none."""
    model: str
    endpoint: Endpoint
    limit_field: str = "max_tokens"
    """The field of a request that holds the most output tokens."""
    left_out: tuple[str, ...] = ()
    """The fields of sampling that the model refuses, and that are not sent."""


def base_of(url: str) -> str:
    """Returns scheme, host, port and path, without a trailing `/v1`. Raises BadInput for anything but
    http(s), and for a URL with credentials."""
    if SURROGATES.search(url):
        raise BadInput(f'"{one_line(url, 200, spelled=True)}" holds a lone surrogate, which has no UTF-8')
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadInput(f'"{one_line(url)[:200]}" is no URL ({error})') from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(
            f'"{one_line(url)[:200]}": give an address that begins with http:// or https://, for '
            "example http://127.0.0.1:8000"
        )
    if parts.username is not None or parts.password is not None:
        raise BadInput(
            "a URL with a password would stand in the record; put a key into the environment "
            f"variable {KEY_VARIABLE}"
        )
    if parts.query or parts.fragment:
        raise BadInput(f'"{one_line(url)[:200]}": leave out what follows "?" or "#"')
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def key_of(named: str | None) -> ApiKey:
    """Returns the API key in the variable of the environment that is named, without blanks around it; by
    default that of KEY_VARIABLE, and none if it is not set. Raises BadInput for a key that no header can
    hold, and where the variable that is named holds none."""
    variable = KEY_VARIABLE if named is None else named
    value = os.environ.get(variable, "").strip()
    if named is not None and not value:
        raise BadInput(
            f'--key-variable: the environment holds no variable "{one_line(named)[:200]}", or no key in it'
        )
    if not (value.isascii() and value.isprintable()):
        raise BadInput(f"the environment variable {variable} holds what no header can hold")
    return ApiKey(value, variable)


def find_server(
    base: str, dialect: str | None, model: str | None, endpoint: Endpoint, key: ApiKey, deadlines: Deadlines
) -> Server:
    """Asks the server what it is, and returns that. Raises BadInput if it does not answer, or if its dialect
    or model is neither recognised nor given."""
    if dialect is not None and dialect not in DIALECTS:
        raise BadInput(f'unknown dialect "{dialect}"{did_you_mean(dialect, list(DIALECTS))}')
    httpx()
    facts = asyncio.run(_facts(base, key, deadlines))
    recognised = recognise(facts)
    if dialect is None and recognised is None:
        raise BadInput(
            f"{base}: cannot tell what server this is; name it with --dialect ({', '.join(DIALECTS)})"
        )
    name = dialect or (recognised[0] if recognised else "")
    wanted = model or model_of(facts)
    if wanted is None:
        raise BadInput(f"{base}: lists no model at /v1/models; name one with --model")
    if SURROGATES.search(wanted):
        shown = one_line(wanted, 200, spelled=True)
        raise BadInput(f'{base}: the model\'s name "{shown}" holds a lone surrogate, which has no UTF-8')
    if key.scrub(wanted) != wanted:
        raise BadInput(f"{base}: the model's name holds the API key, and would stand in the record")
    kind = DIALECTS[name]
    if not kind.fields(endpoint):
        raise BadInput(f"the dialect {name} takes no grammar at {endpoint}; leave out --endpoint")
    version = key.scrub(recognised[1])[:VERSION_CHARACTERS] if recognised else ""
    return Server(base, kind, version, wanted, endpoint)


async def _facts(base: str, key: ApiKey, deadlines: Deadlines) -> dict[str, Any]:
    """Returns the answers of the paths, until the server is recognised. Raises BadInput if it cannot be
    reached or wants another key."""
    facts: dict[str, Any] = {}
    async with session(base, deadlines, key) as http:
        for path in ("/v1/models", *FACTS):
            status, value = await _get(http, base, path, key)
            if path == "/v1/models" and status in (401, 403):
                raise BadInput(
                    f"{base} wants {'another' if key.value else 'a'} key (status {status}); put it into the "
                    f"environment variable {key.variable}"
                )
            if status == 200 and value is not None:
                facts[path] = value
            # The version stands in a path of its own, which comes after the one that tells them apart.
            if (recognised := recognise(facts)) and (recognised[1] or recognised[0] == "openai"):
                break
    return facts


async def _get(http: Any, base: str, path: str, key: ApiKey) -> tuple[int, Any]:
    library = httpx()
    received = bytearray()
    try:
        async with asyncio.timeout(FACT_S), http.stream("GET", base + path) as response:
            async for part in response.aiter_raw():
                received += part
                if len(received) > FACT_BYTES:
                    return response.status_code, None
            status: int = response.status_code
    except (library.TransportError, library.InvalidURL, TimeoutError) as error:
        if path != "/v1/models":
            return 0, None
        why = one_line(key.scrub(str(error))) or type(error).__name__
        raise BadInput(f"{base}: no answer ({why}); is the server up?") from error
    try:
        return status, json.loads(bytes(received))
    except (ValueError, RecursionError):
        return status, None
