"""A piece of work in a child: what comes back, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.backend.process.short_child import answer_of_a_child
from harness.backend.process.system import is_running

LONG = "x" * 300_000 + "é"


def test_an_answer_of_any_length_comes_back_whole() -> None:
    assert answer_of_a_child(lambda: LONG, 60) == LONG
    assert answer_of_a_child(lambda: "", 60) == ""


def leaves_a_process(path: Path) -> None:
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    path.write_text(str(child))


@pytest.mark.parametrize("ending", ["answers", "dies"])
def test_a_process_that_the_work_leaves_costs_no_answer_and_no_time(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "pid"

    def work() -> str:
        leaves_a_process(path)
        if ending == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return LONG

    began = time.monotonic()
    assert answer_of_a_child(work, 120) == (LONG if ending == "answers" else None)
    assert time.monotonic() - began < 60
    while is_running(int(path.read_text())):
        time.sleep(0.01)


def test_what_hangs_is_ended_with_what_it_left(tmp_path: Path) -> None:
    path = tmp_path / "pid"

    def work() -> str:
        leaves_a_process(path)
        time.sleep(600)
        return ""

    assert answer_of_a_child(work, 1) is None
    while is_running(int(path.read_text())):
        time.sleep(0.01)


def test_work_that_raises_has_no_answer() -> None:
    assert answer_of_a_child(lambda: str(1 // 0), 60) is None


HANGING = """
import os, sys
from harness.backend.process.short_child import answer_of_a_child

def work():
    print(os.getpid(), flush=True)
    while True:
        pass

answer_of_a_child(work, 600)
"""


def test_what_hangs_ends_with_its_parent_however_that_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    try:
        until = time.monotonic() + 60
        while is_running(child):
            assert time.monotonic() < until, "it is there for ever"
            time.sleep(0.01)
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)
