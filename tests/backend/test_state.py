"""What a case can change of the process that serves it."""

from __future__ import annotations

import signal
import time
from typing import NoReturn

import pytest

from harness.backend.process.state import stop_alarms


def test_an_alarm_that_repeats_is_stopped() -> None:
    def handler(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
        stop_alarms()
        time.sleep(0.05)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
