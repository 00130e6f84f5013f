"""What docs/ci.md says of `--json`: which keys a command's document has."""

from __future__ import annotations

import json
import re
from typing import Any

import pages


def documented() -> dict[str, str]:
    """Returns each command's cell of the table."""
    section = pages.text_of("docs/ci.md").partition("`--json`\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([\w ]+)` \| (.+) \|$", section, flags=re.MULTILINE))


def keys(command: str, option: str = "") -> set[str]:
    """Returns the documented keys of the command's output, or of its output with an option."""
    cell = documented()[command]
    before, with_option, after = (
        cell.partition(f"with `{option}` ")
        if option
        else (
            re.split(
                r"; |: `path`| with "
                r"`",
                cell,
            )[0],
            "",
            "",
        )
    )
    assert not option or with_option, f"docs/ci.md says nothing of {command} {option}"
    part = re.split(r", with `--|; ", after)[0] if option else before
    return set(re.findall(r"`(\w+)`", part))


def strict(text: str) -> Any:
    """One document and nothing else, without NaN or Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check(printed: str, command: str, option: str = "") -> Any:
    """Checks that the document has what the documentation says, and returns it."""
    value = strict(printed)
    shown = (value or [{}])[0] if isinstance(value, list) else value
    wanted = keys(command, option)
    assert wanted and wanted <= set(shown), (command, option, wanted - set(shown))
    return value
