"""Starts the process that `harness.backend.process.process.start` asks for."""

from __future__ import annotations

import sys

from harness.backend.process.child import main

if __name__ == "__main__":
    main(sys.argv[1:])
