"""What is asked about the server itself."""

from __future__ import annotations

import fault_server as faults
import pytest
from live.one_request import PATIENT, ask

from harness.errors import BadInput
from harness.serve.live.key import ApiKey
from harness.serve.live.server import find_server


def test_a_server_that_compresses_where_it_may_is_recognised() -> None:
    with faults.serving(faults.says("12"), compresses=True) as server:
        found = find_server(server.url, None, None, "chat", ApiKey(), PATIENT)
        ask(server.url)
    assert (found.dialect.name, found.version, found.model) == ("vllm", "0.11.2", "a-model")
    assert {headers["accept-encoding"] for headers in server.headers} == {"identity"}


@pytest.mark.parametrize("model", [None, "m\udcff"])
def test_a_model_without_a_name_in_utf_8_is_refused_before_it_is_asked(model: str | None) -> None:
    facts = {**faults.FACTS, "/v1/models": {"data": [{"id": "m\ud800\n", "owned_by": "vllm"}]}}
    with faults.serving(faults.says("12"), facts) as server:
        with pytest.raises(BadInput, match=r'"m\\ud\w{3}(\\n)?" holds a lone surrogate'):
            find_server(server.url, None, model, "chat", ApiKey(), PATIENT)
        assert server.asked == []
