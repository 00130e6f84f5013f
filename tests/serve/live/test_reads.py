"""Messages that came in one read have one time, however HTTP cuts them into chunks."""

from __future__ import annotations

import asyncio
import json

import fault_server as faults
from live.one_request import answer, ask

from harness.serve.live import figures
from harness.serve.live.reads import ReadClock

WRITES, MESSAGES, GAP_S = 4, 5, 0.05


async def several_chunks_a_write(talk: faults.Talk) -> None:
    """A chunk for each message, as servers write them, but some in one write, as a proxy passes them on."""
    await talk.head()
    for _ in range(WRITES):
        events = [f"data: {json.dumps(talk.message('x'))}\n\n".encode() for _ in range(MESSAGES)]
        await talk.raw(b"".join(f"{len(event):x}\r\n".encode() + event + b"\r\n" for event in events))
        await asyncio.sleep(GAP_S)
    await talk.finish()


def test_chunks_of_one_read_have_one_time() -> None:
    with faults.serving(several_chunks_a_write) as server:
        heard = ask(server.url)
    assert (heard.end, len(heard.message_ns)) == ("finished", WRITES * MESSAGES)
    together = [heard.message_ns[place : place + MESSAGES] for place in range(0, WRITES * MESSAGES, MESSAGES)]
    assert [len(set(times)) for times in together] == [1] * WRITES
    # A client that is held up may read two writes at once.
    assert 1 <= len(figures.itl(answer(heard))) < WRITES


def test_the_clock_is_read_once_a_turn() -> None:
    times = iter(range(10))

    async def turns() -> list[int]:
        clock = ReadClock(lambda: next(times))
        found = []
        for _ in range(3):
            found += [clock.now(), clock.now()]
            await asyncio.sleep(0)
        return found

    assert asyncio.run(turns()) == [0, 0, 1, 1, 2, 2]
