"""Links of the pages to files outside docs/, for the site, in which these files are not.

MkDocs calls `on_page_markdown` for every page (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\(\.\./(?P<path>[^()\s#]+)(?P<anchor>#[^()\s]*)?\)")

log = logging.getLogger("mkdocs.hooks.site_links")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Returns the page with each such link as one to the repository, or as its text and the file's path.

    A file that is not there is a warning, with which a strict build fails.
    """

    def outside(match: re.Match[str]) -> str:
        path = match["path"]
        if not (ROOT / path).exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, path)
        if config.repo_url:
            return f"[{match['text']}]({config.repo_url.rstrip('/')}/blob/HEAD/{path}{match['anchor'] or ''})"
        plain = match["text"].strip("`")
        return match["text"] if plain == path else f"{match['text']} (`{path}`)"

    return LINK.sub(outside, markdown)
