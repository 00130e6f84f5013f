"""What a run says of its backends' tokens, in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.backend.token_bytes.compare import kinds_text
from harness.text import counted, one_line


def reading_lines(readings: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yields a line for each backend and vocabulary with wrong tokens, or with nothing known of them."""
    for reading in readings:
        backend = reading["backend"] + (f":{reading['options']}" if reading["options"] else "")
        vocabulary = reading["vocabulary"]
        said = _reading_text(reading)
        if said:
            command = f"grammarbench check {backend} --tokens --vocabularies {vocabulary}"
            yield one_line(f"{backend} on {vocabulary}: {said}; {command}", spelled=True)


def _reading_text(reading: dict[str, Any]) -> str:
    """Returns what is wrong, in a line; empty where every id is read rightly, or nothing is shown."""
    if reading.get("problem"):
        return f"it is not known what it takes the tokens for: {reading['problem']}"
    if reading["refused"]:
        return f"every grammar is declined: {reading['refused']}"
    if not reading["wrong"]:
        return ""
    return f"it reads {counted(reading['wrong'], 'id')} wrongly ({kinds_text(reading['kinds'])})"
