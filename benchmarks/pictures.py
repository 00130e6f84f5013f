"""The README's picture of a report, from a headless Chromium: `python benchmarks/pictures.py REPORT.html`
writes its first screen into docs/report.png.

With Pillow it is cut to 256 colours.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from browser import Browser

PICTURE = Path(__file__).parents[1] / "docs" / "report.png"
HEIGHT = 1000
"""As high as the sentence, the cards, the gravest risks and the first cases."""


def main(page: Path) -> None:
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        browser.open(page.resolve().as_uri(), width=1280, height=HEIGHT)
        browser.ask("document.documentElement.style.overflow = 'hidden'; 0")
        browser.picture(PICTURE)
        small(PICTURE)
        print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


def small(path: Path) -> None:
    """The picture with a palette, if Pillow is there."""
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
