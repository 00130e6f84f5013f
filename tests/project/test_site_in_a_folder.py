"""The documentation's site, opened from a folder: the script of its search runs without a server."""

from __future__ import annotations

import shutil
from pathlib import Path

from browser import Browser

SCRIPT = Path(__file__).parents[2] / "docs" / "assets" / "iframe-worker.js"

PAGE = """<!doctype html><title>page</title><script src="iframe-worker.js"></script><body><script>
const worker = new Worker("below/worker.js");
const answer = new Promise((done) => worker.addEventListener("message", (event) => done(event.data)));
worker.postMessage({ number: 20 });
</script>"""

WORKER = 'addEventListener("message", (event) => postMessage({ number: event.data.number + 1 }));'


def test_a_worker_answers_a_page_that_was_opened_from_a_folder(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "worker.js").write_text(WORKER)
    (tmp_path / "page.html").write_text(PAGE)
    shutil.copy(SCRIPT, tmp_path)
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.ask("answer.then((data) => data.number)") == 21
    assert browser.console == []
