"""What is said of a request in one word, in our own loop and at a server alike."""

from __future__ import annotations

from typing import Literal

Role = Literal["constrained", "none"]
"""Whether the request has its grammar or, beside another one that has it, none."""

Right = Literal["valid", "invalid", "unjudged"]
"""What the judge says of the output."""
