"""Figures and texts as people read them: rounded, cut and named so that they stay true."""

from __future__ import annotations

import pytest

from harness.report.figures.estimates import share
from harness.report.labels import told_apart
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
