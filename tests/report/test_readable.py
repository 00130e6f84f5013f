"""Figures and texts as people read them: rounded, cut and named so that they stay true."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import synthetic
from report_folders import write_rows

from harness.backend.arm import Arm
from harness.report.figures.estimates import share
from harness.report.labels import told_apart
from harness.report.page.inputs import read_inputs
from harness.report.page.verdict import facts
from harness.report.templates import asset
from harness.report.values import percent, percents
from harness.text import beginning, visible


@pytest.mark.parametrize("works", [0, 1, 5, 10_000, 19_990, 19_999, 20_000])
def test_an_interval_holds_the_share_that_it_is_of(works: int) -> None:
    estimate = share(works, 20_000)
    assert estimate is not None and estimate.bounds is not None
    low, high = percents(estimate.bounds)
    assert float(low) <= float(percent(estimate.value).removesuffix(" %")) <= float(high)
    assert (low == "100.0") == (estimate.bounds[0] == 1) and (high == "0.0") == (estimate.bounds[1] == 0)


@pytest.mark.parametrize(("content", "most", "text", "left_off"), [
    ("é" * 5, 4, "éé", 6),
    ("é" * 5, 5, "éé", 6),
    ("aé日", 5, "aé", 3),
    ("abc", 3, "abc", 0),
])  # fmt: skip
def test_a_text_is_cut_between_characters_and_counted_in_bytes(
    content: str, most: int, text: str, left_off: int
) -> None:
    assert beginning(content.encode(), most) == (text, left_off)


def test_bytes_that_are_no_text_are_cut_as_they_are() -> None:
    assert beginning(b"\xff\xfe" + b"a" * 9, 4) == (r"\xff\xfeaa", 7)


@pytest.mark.parametrize("names", [["a", "a", "a · 1"], ["a · 2", "a", "a", "a"], ["b", "a"]])
def test_labels_are_told_apart_whatever_they_are(names: list[str]) -> None:
    labels = told_apart(names, [])
    assert len(set(labels)) == len(labels) == len(names)


def test_what_cannot_be_seen_is_spelled_out() -> None:
    unseen = "\u00ad\u034f\u115f\u1160\u180e\u3164\uffa0\U000e0041\U000e007f"
    assert visible(unseen).isascii() and visible("a日é❤️ \n") == "a日é❤️ \n"


def _luminance(colour: str) -> float:
    """Returns the relative luminance of WCAG 2, from 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_muted_text_can_be_read_on_every_shade_of_the_heat_map() -> None:
    themes = [theme for theme in re.findall(r"\{([^{}]*)\}", asset("style.css")) if "--q0:" in theme]
    assert len(themes) >= 2, "a light one and a dark one"
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", theme))
        for shade in ("page", *(f"q{number}" for number in range(5))):
            dark, light = sorted((_luminance(colours["muted"]), _luminance(colours[shade])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (shade, colours[shade])
        assert all(colours[f"q{one}"] != colours[f"q{other}"] for one, other in pairwise(range(5)))


def test_a_backend_without_a_version_is_named_alone(tmp_path: Path) -> None:
    versions = {"reference": "", "alpha": "1"}
    arms = [Arm(name, version, "", name, ("json_schema",), "bitmask") for name, version in versions.items()]
    run = write_rows(synthetic, tmp_path / "run", tuple(arms), cases=2)
    assert dict(facts(read_inputs([run])))["Versions"] == "reference, alpha 1"
