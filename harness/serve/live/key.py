"""The API key: how it is sent, and how it is kept out of what is stored."""

from __future__ import annotations

import re
from dataclasses import dataclass

KEY_VARIABLE = "GRAMMARBENCH_API_KEY"
"""The environment variable that holds the key, unless another is named."""

SHORTEST = 12
"""The fewest characters of a key that is a secret. Servers without keys are given placeholders (`EMPTY`,
`none`, `test`), which are words of answers too; to cut them out would make right answers wrong."""


@dataclass(frozen=True)
class ApiKey:
    """The API key. It is sent, and removed from whatever the server says."""

    value: str = ""
    variable: str = KEY_VARIABLE
    """The environment variable that holds it."""

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.value}"} if self.value else {}

    def scrub(self, text: str) -> str:
        """Returns the text without the key, also as a string of JSON spells it, where each character may be
        escaped; a placeholder stays in it. A text is scrubbed before it is cut, because a cut within the key
        would leave its beginning."""
        if len(self.value) < SHORTEST:
            return text
        spelled = (rf"(?:\\?{re.escape(character)}|\\u(?i:{ord(character):04x}))" for character in self.value)
        return re.sub("".join(spelled), "[key]", text)
