"""How a script of benchmarks/ ends: on bad input with one line and an exit code, as the command does; told to
end, as after an interruption."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from harness.errors import BAD_INPUT, BadInput
from harness.text import one_line

Given = ParamSpec("Given")


def script(main: Callable[Given, int]) -> Callable[Given, int]:
    """Returns a script's main function that raises neither BadInput nor OSError: it prints such an error as
    one line on stderr, behind the script's name, and returns the exit code."""
    name = Path(inspect.getfile(main)).stem

    @wraps(main)
    def told(*given: Given.args, **named: Given.kwargs) -> int:
        try:
            return main(*given, **named)
        except (BadInput, OSError) as error:
            print(f"{name}: {one_line(str(error))}", file=sys.stderr)
            return error.exit_code if isinstance(error, BadInput) else BAD_INPUT

    return told


def ended(*_: object) -> None:
    """Told to end: leave as after an interruption."""
    sys.exit(128 + signal.SIGTERM)
