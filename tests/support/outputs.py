"""What may not be in what we write, whatever the names in it are: looked at as its readers would take it."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|[+-]?inf", re.IGNORECASE)


def look_at_exports(folder: Path) -> None:
    """Every file that `export` wrote."""
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        if path.suffix == ".json":
            json.loads(text, parse_constant=_refuse)
        elif path.suffix == ".xml":
            ElementTree.fromstring(text)
        elif path.suffix == ".csv":
            look_at_csv(text)
        elif path.suffix == ".md":
            look_at_markdown(text)
        elif path.suffix == ".txt":
            look_at_commands(text)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def look_at_csv(text: str) -> None:
    """No cell is a formula in a spreadsheet."""
    for line in csv.reader(text.splitlines(keepends=True), strict=True):
        for cell in line:
            assert not cell.startswith(FORMULA) or NUMBER.fullmatch(cell), f"a formula: {cell[:80]!r}"


def look_at_markdown(text: str) -> None:
    """No element of HTML but those that we write, and no link to a script."""
    tags = set(re.findall(r"(?<!\\)<\s*(/?\s*[A-Za-z][A-Za-z0-9]*)", text))
    assert {tag.strip("/ ").lower() for tag in tags} <= {"details", "summary", "br", "code", "sub", "pre"}, (
        f"elements in Markdown: {tags}"
    )
    assert not re.search(r"(?<!\\)\]\(\s*javascript:", text), "a link to a script in Markdown"


def look_at_commands(text: str) -> None:
    """Every line is a workflow command of ours, on one line, without a character that a terminal obeys."""
    for line in text.split("\n"):
        assert not line or re.match(r"::(error|warning|notice|group|endgroup)\b", line), (
            f"not a command of ours: {line[:120]!r}"
        )
        assert all(character.isprintable() for character in line), f"control characters in {line[:120]!r}"


class _Elements(HTMLParser):
    """Every element with its attributes; scripts' contents apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def look_at_page(html: str) -> None:
    """No handler, no script but ours, no address that runs or fetches anything."""
    for tag, attributes in _Elements(html).elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), f"<{tag} {name}={value!r}>"
            is_within = name == "xlink:href" and (value or "").startswith("#")
            assert is_within or name not in (
                "src",
                "srcdoc",
                "action",
                "formaction",
                "xlink:href",
                "data",
                "background",
                "ping",
            ), f"<{tag} {name}={value!r}>"
            if name == "href":
                address = (value or "").strip().lower()
                # An empty icon keeps a browser from asking the server for one.
                assert address == "data:," or not re.match(r"(javascript|data|vbscript):", address), (
                    f"<{tag} href={value!r}>"
                )
            if name == "style":
                assert "url(" not in (value or "").lower() and "expression" not in (value or "").lower(), (
                    f"<{tag} style={value!r}>"
                )
        assert tag not in ("img", "iframe", "object", "embed", "base", "form"), f"<{tag}> {attributes}"
        assert tag != "script" or not attributes.get("src"), f"a script from elsewhere: {attributes}"
        assert tag != "link" or (attributes.get("rel") or "") in ("alternate", "icon", "stylesheet"), (
            f"<link {attributes}>"
        )
