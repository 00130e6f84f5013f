"""What each command can be told, in a file of the same name as what it does (`harness/commands/`)."""

from __future__ import annotations

from harness.options import decoding, listing, living, measuring, running, showing

GROUPS = (running, showing, measuring, decoding, living, listing)
"""In the order of `--help`."""
