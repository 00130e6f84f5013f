"""The README's picture of a report, from a headless Chromium: `python benchmarks/pictures.py REPORT.html`
writes its first screen into docs/report.png.

With Pillow it is cut to 256 colours.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from browser import CHROMIUM, Browser
from endings import script

from harness.errors import OK, BadInput

PICTURE = Path(__file__).parents[1] / "docs" / "report.png"
HEIGHT = 1000
"""As high as the sentence, the cards, the gravest risks and the first cases."""


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path, metavar="REPORT.html")
    page: Path = parser.parse_args(arguments).page
    if not page.is_file():
        raise BadInput(f"{page}: there is no such page")
    if CHROMIUM is None:
        raise BadInput("no Chromium is installed here")
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        browser.open(page.resolve().as_uri(), width=1280, height=HEIGHT)
        browser.ask("document.documentElement.style.overflow = 'hidden'; 0")
        browser.picture(PICTURE)
        give_palette()
        print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")
    return OK


def give_palette() -> None:
    """Makes the picture smaller by a palette, if Pillow is there."""
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(PICTURE).convert("RGB").quantize(256).save(PICTURE, optimize=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
