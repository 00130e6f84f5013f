"""The API key: how it is sent, and how it is kept out of what is stored."""

from __future__ import annotations

from dataclasses import dataclass

SHORTEST = 12
"""The fewest characters of a key that is a secret. Servers without keys are given placeholders (`EMPTY`,
`none`, `test`), which are words of answers too; to cut them out would make right answers wrong."""


@dataclass(frozen=True)
class ApiKey:
    """The API key. It is sent, and removed from whatever the server says."""

    value: str = ""

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.value}"} if self.value else {}

    def scrub(self, text: str) -> str:
        """Returns the text without the key; a placeholder stays in it. A text is scrubbed before it is cut,
        because a cut within the key would leave its beginning."""
        return text.replace(self.value, "[key]") if len(self.value) >= SHORTEST else text
