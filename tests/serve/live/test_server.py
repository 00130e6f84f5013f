"""What is asked about the server itself."""

from __future__ import annotations

import fault_server as faults
from live.one_request import PATIENT, ask

from harness.serve.live.key import ApiKey
from harness.serve.live.server import find_server


def test_a_server_that_compresses_where_it_may_is_recognised() -> None:
    with faults.serving(faults.says("12"), compresses=True) as server:
        found = find_server(server.url, None, None, "chat", ApiKey(), PATIENT)
        ask(server.url)
    assert (found.dialect.name, found.version, found.model) == ("vllm", "0.11.2", "a-model")
    assert {headers["accept-encoding"] for headers in server.headers} == {"identity"}
