"""Where things are for the tests."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
SUPPORT = Path(__file__).resolve().parent
"""What child processes of tests have on PYTHONPATH: the miniatures are importable from it."""
CORPORA = ROOT.parent / "shared" / "corpora"
"""Real inputs beside the checkout; tests that use them skip where they are not there."""
