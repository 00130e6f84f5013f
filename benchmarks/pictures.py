"""The README's two pictures of a report, from a headless Chromium: `python benchmarks/pictures.py
REPORT.html` writes them into docs/.

docs/report.png: its top, light. docs/report-dark.png: the Pareto chart and the mask times, dark. With Pillow
they are cut to 256 colours.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser import Browser

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = (("report.png", "", False, 1180), ("report-dark.png", "times", True, 1270))
"""Name, section at the top, dark or not, height."""


def main(page: Path) -> None:
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for name, section, dark, height in PICTURES:
            browser.open(page.resolve().as_uri(), width=1280, height=height, dark=dark)
            browser.ask("document.documentElement.style.overflow = 'hidden'; 0")
            if section:
                browser.ask(f"document.getElementById('{section}').scrollIntoView(); 0")
            path = DOCS / name
            browser.picture(path)
            small(path)
            print(f"{path}: {path.stat().st_size:,} bytes")


def small(path: Path) -> None:
    """The picture with a palette, if Pillow is there."""
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
