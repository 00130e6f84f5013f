"""The script that explores all cases, and the data that it reads, on the page or beside it."""

from __future__ import annotations

import re

from markupsafe import Markup

from harness.report.cases.data import Explored, Packed, fit

SCRIPTS = ("store.js", "list.js", "detail.js", "route.js")
"""The explorer's parts of the page's one script, in order."""
ASSETS = "assets"
STATED, LISTED, DATA = (
    "<!--what is left off-->", "<!--how many cases the list has-->", "<!--the data of the cases-->",
)  # fmt: skip
"""Where these go, once the size of the rest is known; no text of a run can hold a bare `<`."""


def with_data(html: str, explored: Explored, split: bool) -> tuple[str, Packed]:
    """Returns the page with its data and with what was left off; the data lies beside the page if it is split
    (or had to be)."""
    packed = fit(explored, len(html.encode("utf-8", "replace")), split)
    stated = "".join(f'<p class="warning" role="note">{Markup.escape(line)}</p>\n' for line in packed.stated)
    data = (
        ""
        if packed.split
        else "".join(
            f'<script type="text/plain" id="data-{name}">{text}</script>\n' for name, text in _named(packed)
        )
    )
    everything = len(explored.cases)
    listed = f" ({packed.cases:,} of all {everything:,})" if packed.cases < everything else ""
    return html.replace(STATED, stated, 1).replace(LISTED, listed).replace(DATA, data, 1), packed


def _named(packed: Packed) -> list[tuple[str, str]]:
    return [
        ("index", packed.index),
        *((f"cases-{number}", text) for number, text in enumerate(packed.shards)),
    ]


def outside(html: str, packed: Packed) -> tuple[str, dict[str, str]]:
    """Returns the page without inline style and script, for hosts that allow none, and the files beside it by
    path.

    The data are scripts too, for a page that is opened as a file may load no other kind.
    """
    html, stylesheet = _taken(
        html, "<style>", "</style>", f'<link rel="stylesheet" href="{ASSETS}/report.css">'
    )
    html, script = _taken(html, "<script>", "</script>", f'<script src="{ASSETS}/report.js"></script>')
    html = re.sub(
        r"style-src 'unsafe-inline'; script-src 'sha256-[\w+/=]+'",
        "style-src 'self' file: 'unsafe-inline'; script-src 'self' file:",
        html,
        count=1,
    )
    data = {f"{ASSETS}/{name}.js": f'grammarbench("{name}", "{text}");\n' for name, text in _named(packed)}
    return html, {
        f"{ASSETS}/report.css": stylesheet.strip() + "\n",
        f"{ASSETS}/report.js": script + "\n",
    } | data


def _taken(html: str, begin: str, end: str, instead: str) -> tuple[str, str]:
    """Returns the page with the element replaced, and what it held; only our own templates can open one."""
    before, opened, rest = html.partition(begin)
    content, closed, after = rest.partition(end)
    if not (opened and closed):
        raise ValueError(f"the page has no {begin}")
    return before + instead + after, content
