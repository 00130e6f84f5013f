"""The words that say how a request was asked and judged; our own loop and a server have the same."""

from __future__ import annotations

from typing import Literal

Role = Literal["constrained", "none"]
"""A request has its grammar, or it has none and stands beside another one that has it."""

Right = Literal["valid", "invalid", "unjudged"]
"""The judge calls the output one of these."""
