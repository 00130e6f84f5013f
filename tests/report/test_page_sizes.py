"""The page on vocabularies of several sizes: the figures of each backend, and when the section is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from html_page import render
from synthetic import ARMS, case, info, ns, row, write_run

from harness.report.page.inputs import read_inputs
from harness.report.page.sections.sizes import Sized, scaling

SIZES = {"small": 32_000, "middle": 128_256, "large": 262_144}
ALPHA, BETA = ARMS[0], ARMS[1]


def run_over(folder: Path, sizes: dict[str, int], pairs: int = 1) -> Path:
    """A run of two backends over vocabularies. Alpha's times are multiples of the size, and it fails one case
    of two on the largest; beta solves nothing there, and takes as long with each. Half of alpha's later fills
    (`pairs` of two) take half as long again as the others."""
    cases = [case(number, [("right", b'"a"', True)]) for number in range(2)]
    groups = []
    for arm in (ALPHA, BETA):
        for name, size in sizes.items():
            for made in cases:
                common: dict[str, Any] = {
                    "backend": arm.backend, "backend_version": arm.version, "options": arm.options,
                    "vocabulary": name, "suite": "first", "case": made.name, "case_id": made.id,
                    "peak_rss_bytes": size * 1024,
                }  # fmt: skip
                if arm is ALPHA:
                    # The second case takes ten times as long; where it fails, it must not count.
                    times = size * (10 if made is cases[1] else 1)
                    fails = made is cases[1] and name == "large"
                    common |= {"compile_ns": times, "first_fill_ns": times, "accepted": not fails}
                    samples = ns(times, 1, *(times * 2, 1, times * 3, 1) * pairs)
                else:
                    common |= {"compile_ns": 7_000, "first_fill_ns": 7_000, "accepted": name != "large"}
                    samples = ns(7_000, 1, 8_000, 1)
                groups.append([(row(**common), samples)])
    vocabularies = {name: {"size": size, "sha256": "ab" * 32} for name, size in sizes.items()}
    header = info((ALPHA, BETA), vocabularies=vocabularies)
    return write_run(folder, groups, header, [("first", one) for one in cases])


def drawn(folder: Path) -> Sized:
    inputs = read_inputs([folder])
    sized = scaling(inputs, inputs.runs[0], 1)
    assert sized is not None
    return sized


def test_each_backend_has_its_figures_by_size(tmp_path: Path) -> None:
    sized = drawn(run_over(tmp_path / "run", SIZES))
    tables = {chart.title: chart for chart in sized.charts}
    assert tables["Compile, mean of the cases"].heads == (
        "Backend", "small (32,000)", "middle (128,256)", "large (262,144)"
    )  # fmt: skip
    rows = {title: dict((row[0], row[1:]) for row in chart.rows) for title, chart in tables.items()}
    alpha, beta = [backend.label for backend in sized.backends]
    assert rows["Cases that fail"] == {alpha: ("0", "0", "1"), beta: ("0", "0", "2")}
    # Only the case that alpha solves with every vocabulary counts; beta has no times where it solves none.
    assert rows["Compile, mean of the cases"][alpha] == ("32 µs", "128 µs", "262 µs")
    assert rows["First fill, mean of the cases"][alpha] == ("32 µs", "128 µs", "262 µs")
    assert rows["Later masks, median"][alpha] == ("64 µs~", "257 µs~", "524 µs~"), "the lower of two values"
    assert rows["Peak resident memory"][alpha] == ("31 MiB", "125 MiB", "256 MiB")
    assert rows["Later masks, median"][beta] == ("8 µs~", "8 µs~", "–")
    assert f"{alpha} 1" in sized.about and "From 32,000 to 262,144 ids" in sized.about
    assert all("<svg" in chart.svg for chart in sized.charts)


@pytest.mark.parametrize(
    ("pairs", "median", "p99"), [(9, "64 µs~", "96 µs~"), (10, "64 µs", "96 µs~"), (500, "64 µs", "96 µs")]
)
def test_a_percentile_is_an_observed_value_and_marked_where_few_lie_beyond_it(
    pairs: int, median: str, p99: str, tmp_path: Path
) -> None:
    sized = drawn(run_over(tmp_path / "run", SIZES, pairs))
    alpha = sized.backends[0].label
    found = {chart.title: row[1] for chart in sized.charts for row in chart.rows if row[0] == alpha}
    assert (found["Later masks, median"], found["Later masks, p99"]) == (median, p99)
    assert "µs~" not in found["Compile, mean of the cases"] and "~ marks a percentile" in sized.about


def test_two_vocabularies_are_no_curve(tmp_path: Path) -> None:
    inputs = read_inputs([run_over(tmp_path / "run", {"small": 32_000, "large": 262_144})])
    assert scaling(inputs, inputs.runs[0], 1) is None


@pytest.mark.parametrize("count", [2, 3])
def test_the_section_is_on_the_page_where_there_is_a_curve(tmp_path: Path, count: int) -> None:
    folder = run_over(tmp_path / "run", dict(list(SIZES.items())[:count]))
    assert ('<section id="sizes">' in render([folder])) == (count == 3)
