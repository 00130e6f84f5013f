"""An HTML page as a reader finds it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from harness.report.page.page import write_report

VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}


def render(runs: Sequence[Path], trend: Path | None = None) -> str:
    """Returns the page about the runs. Raises BadInput."""
    with tempfile.TemporaryDirectory() as folder:
        return write_report(list(runs), Path(folder), trend).read_text("utf-8")


def page_of(*runs: Path) -> str:
    """Returns the page of runs that may lack their cases."""
    for run in runs:
        (run / "cases.jsonl").touch()
    return render(list(runs))


class Page(HTMLParser):
    """Checks that tags nest, and collects what the tests ask for."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.content: dict[str, str] = {}
        self.texts: list[str] = []
        self.is_data = False
        self.feed(html)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_data = tag == "script" and ("type", "text/plain") in attrs
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.links.append((tag, value or ""))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.is_data = False
        assert self.stack and self.stack.pop() == tag, (
            f"</{tag}> closes {self.stack[-3:]}, line {self.getpos()}"
        )

    def handle_data(self, data: str) -> None:
        if self.is_data:
            return
        if self.stack and self.stack[-1] in ("script", "style"):
            self.content[self.stack[-1]] = self.content.get(self.stack[-1], "") + data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())
