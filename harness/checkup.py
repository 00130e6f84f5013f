"""The contract checklist against one backend, in a process of its own: a check that hangs or crashes costs that check."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from harness.channel import BrokenChannel, Frames, send
from harness.contract import CheckResult
from harness.errors import BadInput
from harness.guard import forbid_network
from harness.process import ENVIRONMENT, how_it_ended, module


def run_checks(spec: str, vocabulary: str, timeout_s: float, python: str = sys.executable) -> Iterator[CheckResult]:
    """One result per check, in order; after a lost process the next one goes on behind the check that lost it.

    Raises BadInput if the backend or the vocabulary is not to be had.
    """
    first = 0
    names: list[str] = []
    while True:
        done = first
        for message in _listen(spec, vocabulary, first, timeout_s, python):
            if "bad_input" in message:
                raise BadInput(str(message["bad_input"]))
            if "names" in message:
                names = list(message["names"])
            elif "lost" not in message:
                yield CheckResult(**message)
                done += 1
            elif not names or done < len(names):
                yield CheckResult(names[done] if names else "load", "error", str(message["lost"]))
                done += 1
        if done >= len(names):
            return
        first = done


def _listen(spec: str, vocabulary: str, first: int, timeout_s: float, python: str) -> Iterator[dict[str, Any]]:
    read, write = os.pipe()
    command = [*module("harness.checkup", python), str(write), spec, vocabulary, str(first)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write,),
        env={**os.environ, **ENVIRONMENT},
    ) as process:
        os.close(write)
        frames = Frames()
        try:
            while True:
                ready, _, _ = select.select([read], [], [], timeout_s)
                if not ready:
                    yield {"lost": f"no answer after {timeout_s:g} s; killed"}
                    return
                data = os.read(read, 65536)
                if not data:
                    yield {"lost": how_it_ended(process.wait())}
                    return
                for message, _ in frames.feed(data):
                    yield message
        except BrokenChannel:
            yield {"lost": "the backend wrote into the pipe on which we listen"}
        finally:
            process.kill()
            os.close(read)


def main(arguments: list[str]) -> None:
    """`FD SPEC VOCABULARY FIRST`: the checks' names, then a result for each from the FIRST on."""
    from harness.contract import check_adapter, check_name, checks
    from harness.registry import make, parse_specs
    from harness.vocabulary import load_vocabulary

    forbid_network()
    fd, first = int(arguments[0]), int(arguments[3])
    try:
        (backend,) = parse_specs(arguments[1])
        adapter = make(backend, load_vocabulary(arguments[2]))
    except (BadInput, ValueError) as error:
        send(fd, {"bad_input": str(error)})
        return
    found = checks()
    send(fd, {"names": [check_name(check) for check in found]})
    for check in found[first:]:
        (result,) = check_adapter(adapter, [check])
        send(fd, vars(result))


if __name__ == "__main__":
    main(sys.argv[1:])
