"""Files outside docs/, for the site: what is published is taken into it, and links to other files lead to the
repository.

MkDocs calls `on_files` once and `on_page_markdown` for every page (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = Path("docs")
LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)")

PUBLISHED = Path("results", "published")
"""The folder of the runs that are published; their reports are in the site, below `published/`."""

SHOWN = (".md", ".svg")
"""The endings of what else of it the site has: texts, and the pictures in them."""

log = logging.getLogger("mkdocs.hooks.site_links")


def on_files(files: Any, config: Any) -> Any:
    """Returns the files of the site with the reports and texts that are published."""
    from mkdocs.structure.files import File, InclusionLevel

    for path in sorted((ROOT / PUBLISHED).rglob("*")):
        if (place := place_of(path.relative_to(ROOT))) is not None:
            file = File.generated(config, place.as_posix(), abs_src_path=str(path))
            file.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(file)
    return files


def place_of(path: Path) -> Path | None:
    """Returns where in the site the repository's file lies; None if it is not there."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    if path.is_relative_to(PUBLISHED) and (path.name == "report.html" or path.suffix in SHOWN):
        return Path("published") / path.relative_to(PUBLISHED)
    return None


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Returns the page with each link to a file of the repository as one to its place in the site, or else to
    the repository, or as its text and the file's path.

    A file that is not there is a warning, with which a strict build fails.
    """
    here = Path(page.file.src_uri).parent
    is_published = here.is_relative_to("published")
    folder = PUBLISHED / here.relative_to("published") if is_published else DOCS / here

    def led(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / match["path"]))
        if not is_published and path.is_relative_to(DOCS):
            return match[0]
        if not (ROOT / path).exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, path)
        if (place := place_of(path)) is not None and place.suffix:
            return f"[{match['text']}]({os.path.relpath(place, here)}{match['anchor'] or ''})"
        if config.repo_url:
            return f"[{match['text']}]({config.repo_url.rstrip('/')}/blob/HEAD/{path}{match['anchor'] or ''})"
        plain = match["text"].strip("`")
        return match["text"] if plain == str(path) else f"{match['text']} (`{path}`)"

    return LINK.sub(led, markdown)
