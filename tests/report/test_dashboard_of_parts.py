"""A history of runs that are parts: of some checks, of a sample, of outcomes alone; each is told as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from histories import add_outcomes, entry, time_of, write_conformance, write_entries
from synthetic import case, info, row, write_run

from harness.backend.arm import Arm
from harness.outcomes.history import conformance
from harness.report.site.badges import conformance_badge
from harness.report.site.dashboard import site


def outcomes_run(folder: Path, version: str, number: int, *, accepted: bool = False, **header: Any) -> Path:
    """Returns a run of one case, whose one document must be refused."""
    of = case(1, [("one", b'"x"', False)])
    one = row(backend_version=version, case_id=of.id, case=of.name, valid=False, accepted=accepted)
    arms = [Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask")]
    about = info(arms, run=f"run{number}", started=time_of(number), **header)
    return write_run(folder, [[(one, b"")]], about, [("first", of)])


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ((), (), 1),
        (("a_check",), (), 0),
        ((), ("a_check",), 0),
        (("a_check",), ("a_check", "another"), 0),
        (("a_check", "another"), ("another", "a_check"), 1),
    ],
)
def test_runs_of_other_checks_are_not_compared(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], lost: int
) -> None:
    past = tmp_path / "past"
    add_outcomes(past, outcomes_run(tmp_path / "a", "1.0", 0, checks=before))
    add_outcomes(past, outcomes_run(tmp_path / "b", "1.1", 1, accepted=True, checks=after))
    assert len(conformance.losses(conformance.read_histories(past))) == lost


def test_the_digest_of_a_run_of_all_checks_is_what_it_was(tmp_path: Path) -> None:
    add_outcomes(tmp_path / "past", outcomes_run(tmp_path / "a", "1.0", 0))
    (history,) = conformance.read_histories(tmp_path / "past")
    assert history.work == "fa4c5356f1c8"


def test_a_sample_is_called_one_in_the_table_and_on_the_badge(tmp_path: Path) -> None:
    past = tmp_path / "past"
    part = {"first": {"version": "1", "sha256": "cd", "cases": 1, "cases_in_all": 9, "instances": 1}}
    add_outcomes(past, outcomes_run(tmp_path / "a", "1.0", 0, suites=part))
    files = site(past)
    said = f"a sample: 1 of 9 cases of first; {conformance.NO_CHECKS}"
    assert f'1 of 1<span class="interval">{said}</span>' in files["index.html"].decode()
    assert json.loads(files["badges/alpha.json"])["message"] == "works on 100.0 % of 1 judged (a sample)"


@pytest.mark.parametrize(
    ("samples", "end"),
    [
        ((), " judged"),
        (("a run of 1 check only: a check",), " judged (some checks)"),
        (("a sample: 1 of 9 cases of first; a run of 1 check only: a check",), " judged (a sample)"),
    ],
)
def test_a_badge_says_of_what_part_it_is(samples: tuple[str, ...], end: str) -> None:
    assert json.loads(conformance_badge("alpha", {"works": 1}, samples))["message"].endswith(end)


def test_without_measurements_no_series_is_said_to_be_quiet(tmp_path: Path) -> None:
    write_conformance(tmp_path, 0, {"": {"works": 3}})
    page = site(tmp_path)["index.html"].decode()
    assert "<dt>Series in alert</dt><dd>not measured</dd>" in page
    assert "Nothing to compare yet" in page and "has never fired" not in page
    write_conformance(tmp_path, 1, {"": {"works": 3}}, version="1.1")
    page = site(tmp_path)["index.html"].decode()
    assert "No series of times has a baseline yet, and no release has lost or won a case." in page


def test_series_without_a_baseline_are_not_said_to_be_quiet(tmp_path: Path) -> None:
    write_entries(tmp_path, [entry(number, 1.0) for number in range(3)])
    page = site(tmp_path)["index.html"].decode()
    assert "<dt>Series in alert</dt><dd>no baseline yet</dd>" in page and "Nothing to compare yet" in page
    write_entries(tmp_path, [entry(number, 1.0) for number in range(3, 20)])
    page = site(tmp_path)["index.html"].decode()
    assert '<dd><span class="state good">✓ none</span></dd>' in page
    assert "The alert rule has never fired, and no release was run on the same work as one before it." in page


@pytest.mark.parametrize(
    ("families", "inside"), [(("speed",), 0), (("all", "speed"), 1), (("speed", "mine"), 2)]
)
def test_the_charts_of_all_cases_stand_at_once(
    families: tuple[str, ...], inside: int, tmp_path: Path
) -> None:
    """What was measured over one family has no family of all: its own is that of all."""
    write_entries(
        tmp_path, [entry(number, 1.0, family=family) for number in range(12) for family in families]
    )
    page = site(tmp_path)["index.html"].decode()
    assert f"By family: {inside} more" in page if inside else "By family" not in page


@pytest.mark.parametrize("other", [True, False])
def test_a_chart_says_that_earlier_runs_are_over_other_cases(other: bool, tmp_path: Path) -> None:
    digests = ["a"] * 12 + ["b" if other else "a"] * 3
    write_entries(tmp_path, [entry(number, 1.0, ratio_digest=one) for number, one in enumerate(digests)])
    said = "fill, speed, earlier runs over other cases</strong>"
    assert (said in site(tmp_path)["index.html"].decode()) is other
