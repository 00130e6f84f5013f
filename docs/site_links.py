"""Files outside docs/, for the site: published reports are taken into it, and links to other files lead
to the repository.

MkDocs calls `on_files` once and `on_page_markdown` for every page (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\(\.\./(?P<path>[^()\s#]+)(?P<anchor>#[^()\s]*)?\)")

PUBLISHED = Path("results", "published")
"""The folder of the runs that are published; the reports in it are pages of the site, in `published/`."""

log = logging.getLogger("mkdocs.hooks.site_links")


def on_files(files: Any, config: Any) -> Any:
    """Returns the files of the site with the published reports."""
    from mkdocs.structure.files import File

    for report in sorted((ROOT / PUBLISHED).rglob("report.html")):
        place = Path("published") / report.relative_to(ROOT / PUBLISHED)
        files.append(File.generated(config, place.as_posix(), abs_src_path=str(report)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Returns the page with each link to a file outside docs/ as one to the repository, or as its text and
    the file's path; a link to a published report leads to it in the site.

    A file that is not there is a warning, with which a strict build fails.
    """

    def outside(match: re.Match[str]) -> str:
        path = match["path"]
        if not (ROOT / path).exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, path)
        if Path(path).is_relative_to(PUBLISHED) and Path(path).name == "report.html":
            return f"[{match['text']}](published/{Path(path).relative_to(PUBLISHED).as_posix()})"
        if config.repo_url:
            return f"[{match['text']}]({config.repo_url.rstrip('/')}/blob/HEAD/{path}{match['anchor'] or ''})"
        plain = match["text"].strip("`")
        return match["text"] if plain == path else f"{match['text']} (`{path}`)"

    return LINK.sub(outside, markdown)
