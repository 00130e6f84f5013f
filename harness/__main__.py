"""The program: `grammarbench`, and `python -m harness`."""

import signal
import sys


def main() -> int:
    """Runs the command line; returns its exit code. Ctrl-C is one line even where the command line is still
    being imported; once a command runs, `harness.cli.main` says what became of it."""
    try:
        from harness.cli.main import main as run_command
        from harness.errors import INCOMPLETE

        if (code := run_command()) == INCOMPLETE:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever presses it three times has been heard
        return code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from harness.errors import INCOMPLETE

        print("grammarbench: interrupted", file=sys.stderr)
        return INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
