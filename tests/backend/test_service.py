"""A service: what it answers, how a loss is told, and that the next request is answered all the same."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from places import SUPPORT

from harness.backend.process import process
from harness.backend.process.lost import CLOSED_CODE, Lost
from harness.backend.process.process import Start, start
from harness.backend.process.service import Service, ask_all
from harness.backend.process.system import ENVIRONMENT, descendants, is_running, kill_group, start_time
from harness.errors import BadInput

LOADER = "answering:open_answering"
FOUND = {"PYTHONPATH": str(SUPPORT)}


def sleepers() -> list[int]:
    """Returns the processes below us that a handler left running."""
    return [pid for pid in descendants(os.getpid()) if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]


def running(service: Service) -> list[int]:
    """Returns the process of the service and all below it that run."""
    assert service._process is not None
    root = service._process.popen.pid
    return [pid for pid in (root, *descendants(root)) if is_running(pid)]


@pytest.fixture
def service() -> Iterator[Service]:
    with Service(LOADER, memory_bytes=200_000_000, environment=FOUND) as service:
        yield service


def test_it_answers_with_what_was_asked_and_the_bytes_behind_it(service: Service) -> None:
    big = bytes(range(256)) * 20_000  # more than a pipe takes at once
    for number, blob in enumerate((b"", b"abc", big)):
        answer, reversed_blob = service.ask({"asked": number}, blob, seconds=30)
        assert answer == {"echo": {"asked": number}} and reversed_blob == blob[::-1]
    assert service.description["greeting"] == "hello"


@pytest.mark.parametrize(
    ("harm", "whose", "cause", "signal", "text"),
    [
        ("hangs", "backend", "timeout", "", "killed after 0.5 s"),
        ("eats", "backend", "oom", "", "killed at 0.2 GB of resident memory"),
        ("aborts", "backend", "crash", "SIGABRT", "killed by SIGABRT"),
        ("is killed", "backend", "crash", "SIGKILL", "killed by SIGKILL"),
        ("exits", "backend", "crash", "", "it ended the process with exit code 3"),
        ("raises", "harness", "raised", "", "it raised RuntimeError: it is broken"),
    ],
)
def test_a_loss_says_whose_it_is_and_costs_one_request(
    service: Service, harm: str, whose: str, cause: str, signal: str, text: str
) -> None:
    service.wait()
    with pytest.raises(Lost) as caught:
        service.ask({"harm": harm}, seconds=0.5 if harm == "hangs" else 30)
    lost = caught.value
    assert (lost.whose, lost.cause, lost.signal, lost.text) == (whose, cause, signal, text)
    assert service.ask({"asked": 1}, seconds=30)[0] == {"echo": {"asked": 1}}


@pytest.mark.parametrize(
    ("harm", "cause"), [("none", ""), ("hangs", "timeout"), ("aborts", "crash"), ("raises", "raised")]
)
def test_what_loads_with_a_thread_answers_with_it(harm: str, cause: str) -> None:
    with Service(LOADER, {"threads": True}, environment=FOUND) as service:
        assert service.ask({"asked": 1}, seconds=30)[0] == {"echo": {"asked": 1}}
        try:
            assert service.ask({"harm": harm}, seconds=1)[0] == {"echo": {"harm": "none"}} and not cause
        except Lost as lost:
            assert lost.cause == cause
        assert service.ask({"asked": 2}, seconds=30)[0] == {"echo": {"asked": 2}}


@pytest.mark.parametrize("threads", [False, True])
def test_closed_pipes_are_told_with_a_fork_and_without(threads: bool) -> None:
    with Service(LOADER, {"threads": threads}, environment=FOUND) as service:
        with pytest.raises(Lost, match="closed the pipes on which it is asked and answers") as caught:
            service.ask({"harm": "closes pipes"}, seconds=30)
        assert (caught.value.whose, caught.value.cause) == ("backend", "closed")
        assert service.ask({"asked": 1}, seconds=30)[0] == {"echo": {"asked": 1}}


@pytest.mark.parametrize(("error", "code"), [("None", 0), ("OSError", 1), ("BrokenChannel", CLOSED_CODE)])
def test_only_what_befalls_the_pipes_has_their_exit_code(error: str, code: int) -> None:
    program = (
        "from harness.backend.process.channel import BrokenChannel\n"
        "from harness.backend.process.fork import serve_and_exit\n"
        "def serve():\n"
        f"    if {error}: raise {error}\n"
        "serve_and_exit(serve)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, error in done.stderr) == (code, code != 0)


def test_bad_input_is_raised_here(service: Service) -> None:
    with pytest.raises(BadInput, match="there is no such thing"):
        service.ask({"harm": "bad input"}, seconds=30)
    assert service.ask({}, seconds=30)[0] == {"echo": {}}


def test_a_kill_never_hits_the_next_child(service: Service) -> None:
    """The next child is forked when everything of the last one is gone."""
    for number in range(40):
        if number % 2:
            service.renew()
        else:
            with pytest.raises(Lost):
                service.ask({"harm": "hangs"}, seconds=0.01)
        assert service.ask({"asked": number}, seconds=30)[0] == {"echo": {"asked": number}}


def test_what_a_child_left_behind_ends_with_it(service: Service) -> None:
    service.ask({"harm": "leaves"}, seconds=30)
    before = running(service)
    service.renew()
    service.ask({}, seconds=30)
    after = running(service)
    assert len(before) == 3 and len(after) == 2, "the process, its child, and what was left"


@pytest.mark.parametrize("harm", ["none", "hangs", "aborts", "is killed"])
def test_what_loading_left_running_ends_with_the_process(harm: str) -> None:
    """It has a session of its own, and a process that crashes leaves it to nobody."""
    with Service(LOADER, {"helper": True}, environment=FOUND) as service:
        service.wait()
        helpers = sleepers()
        with suppress(Lost):
            service.ask({"harm": harm}, seconds=1)
        service.ask({}, seconds=30)
        helpers += sleepers()
    assert len(set(helpers)) == (1 if harm == "none" else 2) and not any(map(is_running, helpers))


def test_what_serves_itself_ends_after_what_is_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is below a process that has ended cannot be found any more."""

    def kill_and_wait(pid: int) -> None:
        kill_group(pid)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    with Service(LOADER, {"threads": True}, environment=FOUND) as service:
        service.ask({"harm": "leaves"}, seconds=30)
        below = running(service)
        monkeypatch.setattr(process, "kill_group", kill_and_wait)
    assert len(below) == 2 and not any(map(is_running, below))


def test_a_process_that_has_a_helpers_number_is_not_killed() -> None:
    process = start(Start(LOADER, {}, environment=FOUND))
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        process.helpers = {other.pid: start_time(other.pid) - 1}
        process.close()
        assert is_running(other.pid)
        process.helpers = {other.pid: start_time(other.pid)}
        process.kill_children()
        assert not is_running(other.pid)


def test_only_the_child_itself_is_believed(service: Service) -> None:
    for number in range(5):
        assert service.ask({"harm": "forks", "asked": number}, seconds=30)[0]["echo"]["asked"] == number
        assert service.ask({"asked": -number}, seconds=30)[0] == {"echo": {"asked": -number}}


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one(service: Service) -> None:
    service.post({"asked": "first"})
    assert service.ask({"asked": "second"}, seconds=30)[0] == {"echo": {"asked": "second"}}


def test_the_page_is_seen_here_also_when_the_child_is_lost() -> None:
    with Service(LOADER, environment=FOUND, has_page=True) as service:
        with pytest.raises(Lost):
            service.ask({"page": 7, "harm": "aborts"}, seconds=30)
        assert service.page is not None and service.page[0] == 7


def test_a_bell_rings_when_a_request_is_answered() -> None:
    process = start(Start(LOADER, {}, environment=FOUND, has_bell=True))
    try:
        while not any(event["event"] == "child" for event in process.hear()[0]):
            assert select.select([process.control], [], [], 30)[0]
        for number in (1, 2):
            assert not select.select([process.bell], [], [], 0)[0]
            os.write(process.request, process.request_bytes({"asked": number}))
            assert select.select([process.bell], [], [], 30)[0]
            [(answer, _)] = process.take_answers()
            assert answer["echo"] == {"asked": number}
    finally:
        process.close()


@pytest.mark.parametrize(
    ("fails", "text"),
    [
        ("raises", "it does not load: RuntimeError: it is broken"),
        ("dies", "killed by SIGABRT while it loaded"),
    ],
)
def test_what_does_not_load_is_a_loss_of_ours(fails: str, text: str) -> None:
    with Service(LOADER, {"fails": fails}, environment=FOUND) as service:
        with pytest.raises(Lost) as caught:
            service.wait()
        assert (caught.value.whose, caught.value.cause) == ("harness", "load") and text in caught.value.text


@pytest.mark.parametrize(
    ("fails", "cause", "text"),
    [
        ("raises", "load", "it does not load: RuntimeError: it is broken"),
        ("dies", "crash", "the process was killed by SIGABRT while it loaded"),
        ("closes", "closed", "it closed the pipe on which it answers while it loaded"),
        ("hangs", "timeout", "it did not load within 2 s"),
        ("is killed", "load", "the process was killed by SIGKILL while it loaded"),
    ],
)
def test_what_befalls_a_backend_as_it_loads_is_its_own(fails: str, cause: str, text: str) -> None:
    """Only a loader that tells when the backend is at work says so; a kill from outside is nobody's."""
    for loading in (True, False):
        arguments = {"fails": fails, "loading": loading}
        with (
            Service(
                LOADER,
                arguments,
                environment=FOUND,
                load_seconds=2 if fails == "hangs" else 60,
                tells_load=True,
            ) as service,
            pytest.raises(Lost) as caught,
        ):
            service.wait()
        lost, is_backends = caught.value, loading and fails != "is killed"
        wanted = ("backend", cause) if is_backends else ("harness", "load")
        assert (lost.whose, lost.cause, lost.text) == (*wanted, text)
        assert lost.signal == ("SIGABRT" if is_backends and fails == "dies" else "")


@pytest.mark.parametrize("spoils", ["", "stdin", "descriptor", "children"])
def test_what_a_backend_puts_in_the_place_of_stdin_or_of_a_handler_costs_no_child(spoils: str) -> None:
    """The process ended with the first lost child, or did not know how it had ended."""
    with Service(LOADER, {"spoils": spoils}, environment=FOUND) as service:
        service.wait()
        first = service._process
        for _ in range(2):
            with pytest.raises(Lost, match="killed by SIGABRT"):
                service.ask({"harm": "aborts"}, seconds=10)
            assert service.ask({"value": 7}, seconds=10)[0]["echo"]["value"] == 7
        assert service._process is first, "another child of the same process"


def test_what_is_not_to_be_had_is_the_users() -> None:
    with (
        Service(LOADER, {"fails": "input"}, environment=FOUND) as service,
        pytest.raises(BadInput, match=r"^there is no such thing$"),
    ):
        service.wait()


def test_all_are_asked_at_once_and_each_has_its_answer_or_loss() -> None:
    services = {name: Service(LOADER, environment=FOUND) for name in ("one", "two")}
    try:
        services["two"].wait()
        message: dict[str, Any] = {"harm": "exits"}
        found = ask_all(services, message, seconds=30)
        assert list(found) == ["one", "two"] and all(isinstance(each, Lost) for each in found.values())
    finally:
        for service in services.values():
            service.close()


ASKED = """
import torch

def driver(*_):
    raise SystemExit("the driver was asked")

torch.cuda._is_compiled = lambda: True
torch.cuda._device_count_nvml = lambda: 1
torch._C._cuda_getDeviceCount = driver
import xgrammar
print(torch.cuda.is_available())
"""


@pytest.mark.parametrize(
    ("environment", "says"),
    [(ENVIRONMENT, "True"), pytest.param({}, "the driver was asked", marks=pytest.mark.long)],
)
def test_a_backends_import_does_not_begin_the_driver(environment: dict[str, str], says: str) -> None:
    """xgrammar asks torch for a GPU when it is imported. A process in which the driver has begun cannot fork
    children that use the device."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
    )
    assert says in done.stdout + done.stderr


DUMP = """Fatal Python error: Aborted

Stack (most recent call first):
  File "/a/b.py", line 5 in other

Current thread 0x00007fa631e96b80 (most recent call first):
  File "/a/b.py", line 83 in _loaded
  File "<frozen runpy>", line 88 in _run_code
  ...

Extension modules: numpy._core._multiarray_umath, numpy.linalg._umath_linalg (total: 2)"""


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n\n", ": two"),
        (f"panicked. aborting.\n{DUMP}", ": panicked. aborting."),
        (f"{DUMP}\nand then this", ": and then this"),
        (DUMP, ""),
        (DUMP[-40:], ""),
        ('  File "a.py", line 3, in f\nOSError: no', ": OSError: no"),
    ],
)
def test_the_last_line_is_what_the_process_said_itself(printed: str, said: str) -> None:
    """What faulthandler lists behind a signal, such as the extension modules, says nothing of the cause."""
    assert Lost("killed by SIGABRT", printed=printed).last_line() == said
