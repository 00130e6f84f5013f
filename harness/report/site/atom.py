"""Regressions as an Atom feed (RFC 4287)."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from harness.report.values import short
from harness.text import visible

ATOM = "http://www.w3.org/2005/Atom"
ENTRIES = 100
"""The most entries of the feed: the newest."""

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class FeedEntry:
    """Something that got worse or better between two runs or releases."""

    time: str
    worse: bool
    key: tuple[str, ...]
    """What it is of; the same whenever it is found again."""
    title: str
    details: tuple[str, ...]
    anchor: str
    """An id on the page."""


def instant(time: str) -> datetime:
    """Returns the time, as UTC where it does not say; 1970 where it is none."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        return EARLIEST
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def feed(changes: Sequence[FeedEntry], latest: str) -> bytes:
    """Returns the feed of those that got worse, the newest first; `latest`: the time of the last run."""
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    worse = sorted(
        (change for change in changes if change.worse), key=lambda change: instant(change.time), reverse=True
    )[:ENTRIES]
    times = [instant(latest), *(instant(change.time) for change in worse)]
    _add(root, "title", "GrammarBench: regressions")
    _add(root, "id", uuid.uuid5(uuid.NAMESPACE_URL, "grammarbench regressions").urn)
    _add(root, "updated", max(times).isoformat())
    _add(_add(root, "author"), "name", "GrammarBench")
    _add(root, "link", rel="self", href="feed.xml")
    _add(root, "link", rel="alternate", type="text/html", href="index.html")
    for change in worse:
        entry = _add(root, "entry")
        _add(entry, "title", short(change.title, 200))
        _add(entry, "id", uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(change.key)).urn)
        _add(entry, "updated", instant(change.time).isoformat())
        _add(entry, "link", rel="alternate", type="text/html", href=f"index.html#{change.anchor}")
        _add(entry, "content", visible("\n".join(change.details)), type="text")
    file = io.BytesIO()
    ElementTree.ElementTree(root).write(file, "utf-8", xml_declaration=True)
    return file.getvalue()


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    element.text = text or None
    return element
