"""What is counted, over tiny runs whose numbers were worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import maskbench_counts
import numpy as np
import pytest
from synthetic import row

from harness.errors import BadInput
from harness.outcomes import metrics, summary
from harness.report.figures.curves import compile_curve, fill_curve, thin
from harness.report.reference_page import page
from harness.rows.row import Finding, Row

NO_SAMPLES = np.zeros(0, np.int64)


@pytest.fixture
def seen(synthetic: ModuleType) -> Any:
    """Folds rows, given as dicts, into one arm."""

    def fold(*rows: dict[str, Any], samples: Any = NO_SAMPLES) -> summary.ArmSummary:
        (arm,) = summary.summarize(
            (synthetic.row(**{"case_id": f"{number:012x}", **each}) for number, each in enumerate(rows)),
            samples,
        )
        return arm

    return fold


def test_the_wanted_numbers_of_a_tiny_run(synthetic: ModuleType, tmp_path: Path) -> None:
    """Seven cases; MaskBench's counts, coverage and compliance by hand."""
    row, ns = synthetic.row, synthetic.ns
    one, two, three, four, five, six, seven = (f"{number:012x}" for number in range(1, 8))
    groups = [
        [
            (row(case_id=one, instance=0), ns(10_000, 1_000, 20_000, 2_000)),
            (row(case_id=one, instance=1, valid=False, accepted=False, stopped_at=1), ns(30_000, 3_000)),
        ],
        # refuses a valid one and accepts an invalid one: counted under both errors
        [
            (row(case_id=two, instance=0, accepted=False, stopped_at=0), ns(3_000)),
            (row(case_id=two, instance=1, valid=False), ns(3_000)),
        ],
        [
            (
                row(
                    case_id=three,
                    status="unsupported",
                    phase="compile",
                    accepted=None,
                    matcher_new_ns=None,
                    first_fill_ns=None,
                ),
                b"",
            )
        ],
        [
            (row(case_id=four, instance=0), ns(40_000, 4_000)),
            (
                row(case_id=four, instance=1, status="crash", signal="SIGSEGV", phase="fill", accepted=None),
                b"",
            ),
            (row(case_id=four, instance=2, status="skipped", phase="walk", accepted=None), b""),
        ],
        [(row(case_id=five, status="timeout", phase="compile", accepted=None, compile_ns=None), b"")],
        [(row(case_id=six, status="harness_error", phase="worker", accepted=None), b"")],
        [
            (
                row(
                    case_id=seven, status="backend_error", phase="accept", accepted=None, compile_ns=7_000_000
                ),
                ns(50_000, 5_000, 60_000),
            )
        ],
    ]
    run = synthetic.write_run(tmp_path / "run", groups, synthetic.info(synthetic.ARMS[:1]))
    (arm,) = summary.read_arms(run)
    got = metrics.values_of(arm)
    counts = {
        "cases": 7, "judged": 6, "works": 1, "failed": 4, "refused": 1, "not_judged": 0, "solved": 1,
        "compile_error": 1, "crash": 1, "out_of_memory": 0, "timeout": 1, "validation_error": 2,
        "invalidation_error": 1, "not_measured": 1, "walks_pass": 3, "walks_over_constrained": 1,
        "walks_under_constrained": 1,
        "walks_declined": 1, "walks_broken": 3, "walks_unjudged": 0, "walks_harness_error": 1,
        "walks_skipped": 1, "walks_with_findings": 0,
    }  # fmt: skip
    assert {name: got[name] for name in counts} == counts
    # six cases are measured; one, two, four and seven compiled; one is right throughout
    assert (got["declared_coverage"], got["conformance"], got["compliance"]) == (4 / 6, 1 / 6, 1 / 4)
    # pairs of fill and accept of all cases that compiled; the half pair at the end is not one
    assert sorted(metrics.tbm(arm)) == [11_000, 22_000, 33_000, 44_000, 55_000]
    assert (got["tbm_n"], got["tbm_p50_us"], got["tbm_p100_us"], got["tbm_avg_us"]) == (5, 33.0, 55.0, 33.0)
    assert sorted(metrics.ttfm(arm)) == [1_005_000, 1_005_000, 1_005_000, 7_005_000]
    assert got["peak_rss"] == 100_000_000
    # the curves end where the coverages are
    assert compile_curve(arm).plateau == got["declared_coverage"]
    assert fill_curve(arm).plateau == got["conformance"]
    assert list(fill_curve(arm).ns) == [10_000, 20_000, 30_000]
    assert fill_curve(arm).share == pytest.approx([1 / 18, 2 / 18, 3 / 18])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"accepted": False}, "validation_error"),
        ({"valid": False}, "invalidation_error"),
        ({"valid": None}, None),
        ({"status": "invalid", "phase": "compile", "accepted": None}, "compile_error"),
        ({"status": "unsupported", "phase": "dialect", "accepted": None}, "compile_error"),
        ({"status": "backend_error", "phase": "compile", "accepted": None}, "compile_error"),
        ({"status": "backend_error", "phase": "load", "accepted": None}, "compile_error"),
        ({"status": "backend_error", "phase": "fill", "accepted": None}, "validation_error"),
        ({"status": "crash", "phase": "compile", "accepted": None}, "crash"),
        ({"status": "timeout", "phase": "end", "accepted": None}, "timeout"),
        ({"status": "oom", "phase": "compile", "accepted": None}, "out_of_memory"),
        ({"status": "harness_error", "accepted": None}, None),
        ({"status": "skipped", "accepted": None}, None),
    ],
)
def test_each_row_is_one_of_the_known_errors_or_none(
    synthetic: ModuleType, fields: dict[str, Any], expected: str | None
) -> None:
    row: Row = synthetic.row(**fields)
    assert summary.maskbench_error(row) == expected


def test_our_own_failures_are_in_no_denominator(seen: Any) -> None:
    arm = seen({}, {"status": "harness_error", "accepted": None}, {"status": "skipped", "accepted": None})
    assert metrics.declared_coverage(arm) == 1
    assert metrics.conformance(arm) == 1
    assert metrics.not_measured(arm) == 2


def test_a_crash_counts_although_the_rest_of_the_case_was_skipped(seen: Any) -> None:
    lost = {"status": "crash", "phase": "fill", "accepted": None, "case_id": "a" * 12}
    arm = seen(lost, {"status": "skipped", "accepted": None, "case_id": "a" * 12, "instance": 1})
    assert metrics.not_measured(arm) == 0
    assert (metrics.declared_coverage(arm), metrics.conformance(arm)) == (1, 0)


def test_without_judged_instances_there_is_no_conformance(seen: Any) -> None:
    bare = {"instance": None, "valid": None, "accepted": None}
    arm = seen(bare, bare | {"status": "unsupported", "phase": "compile"})
    assert metrics.declared_coverage(arm) == 0.5
    assert metrics.conformance(arm) is None
    assert metrics.compliance(arm) is None
    assert (metrics.not_judged(arm), metrics.refused(arm), metrics.judged(arm), metrics.solved(arm)) == (
        1,
        1,
        0,
        1,
    )


def test_who_declines_everything_covers_nothing(seen: Any) -> None:
    arm = seen({"status": "unsupported", "phase": "compile", "accepted": None})
    assert (metrics.declared_coverage(arm), metrics.conformance(arm), metrics.compliance(arm)) == (0, 0, None)


def test_no_rows_give_no_shares(seen: Any, synthetic: ModuleType) -> None:
    (arm,) = summary.summarize([], NO_SAMPLES, synthetic.info(synthetic.ARMS[:1]))
    got = metrics.values_of(arm)
    assert got["declared_coverage"] is got["conformance"] is got["tbm_p50_us"] is got["peak_rss"] is None
    assert got["cases"] == 0
    assert not len(compile_curve(arm).ns)


def test_findings_are_counted_whatever_the_verdict(seen: Any) -> None:
    assert metrics.walks_with_findings(seen({"findings": (Finding("a", 0, "b"),)}, {})) == 1


def test_percentiles_are_numpys_over_observed_values() -> None:
    values = np.random.default_rng(0).lognormal(9, 2, 12_345).astype(np.int64)
    got = metrics.percentiles(values)
    for name, share in metrics.QUANTILES.items():
        assert got[name] == np.percentile(values, share * 100, method="inverted_cdf")
        assert np.mean(values <= (got[name] or 0)) >= share
    assert got["avg"] == pytest.approx(values.mean())


def test_a_percentile_needs_ten_values_beyond_it() -> None:
    assert metrics.few("p99.9", 9_999) and not metrics.few("p99.9", 10_000)
    assert metrics.few("p99", 999) and not metrics.few("p99", 1000)
    assert metrics.few("p25", 39) and not metrics.few("p25", 40)
    assert not metrics.few("p100", 1)


def test_versions_and_vocabularies_are_arms_of_their_own(synthetic: ModuleType) -> None:
    rows = [
        synthetic.row(),
        synthetic.row(backend_version="1.2.4"),
        synthetic.row(vocabulary="other"),
        synthetic.row(options="a=b"),
    ]
    assert [arm.key for arm in summary.summarize(rows, NO_SAMPLES)] == [summary.arm_key(row) for row in rows]


def test_an_arm_of_the_run_without_rows_is_there(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", [[(synthetic.row(), b"")]], complete=False)
    assert [(arm.name, len(arm.cases)) for arm in summary.read_arms(run)] == [
        ("alpha", 1), ("beta:any_whitespace=false", 0), ("gamma", 0), ("delta", 0),
    ]  # fmt: skip


def test_what_was_asked_of_an_arm_is_asked_anew_after_a_further_row(seen: Any, synthetic: ModuleType) -> None:
    arm = seen({"accepted": False, "stopped_at": 1}, samples=np.zeros(4, np.int64))
    assert not arm.solves_any and (arm.timed.cases, arm.timed.of) == (0, 1)
    arm.add(synthetic.row(case_id="f" * 12, samples=(0, 4)))
    assert arm.solves_any and (arm.timed.cases, arm.timed.of) == (1, 2)


def test_the_common_solved_set_is_what_all_solve(synthetic: ModuleType) -> None:
    ids = ["a" * 12, "b" * 12, "c" * 12]
    rows = [synthetic.row(case_id=each) for each in ids]
    rows += [synthetic.row(backend="beta", case_id=each, accepted=each != ids[1]) for each in ids[:2]]
    arms = summary.summarize(rows, NO_SAMPLES)
    assert summary.common_solved(arms) == {("first", ids[0])}
    assert len(metrics.ttfm(arms[0].only({("first", ids[0])}))) == 1


def test_a_thinned_curve_keeps_exact_points_and_its_end(seen: Any) -> None:
    random = np.random.default_rng(1)
    samples = random.lognormal(9, 1, 40_000).astype(np.int64)
    arm = seen({"samples": (0, 20_000)}, {"samples": (20_000, 20_000)}, {"accepted": False}, samples=samples)
    whole, thinned = fill_curve(arm), thin(fill_curve(arm))
    assert len(whole.ns) > 1000 and 100 < len(thinned.ns) <= 200
    assert thinned.plateau == whole.plateau == pytest.approx(2 / 3)
    at = np.searchsorted(whole.ns, thinned.ns)
    assert (whole.ns[at] == thinned.ns).all() and (whole.share[at] == thinned.share).all()
    assert (np.diff(thinned.ns) > 0).all() and (np.diff(thinned.share) > 0).all()
    assert whole.at(1 / 3) == pytest.approx(np.median(samples[::2]), rel=0.01)
    assert whole.at(0.7) is None


def test_each_solved_case_weighs_the_same_however_long(seen: Any) -> None:
    samples = np.array([100, 0] + [900, 0] * 99, np.int64)
    arm = seen({"samples": (0, 2)}, {"samples": (2, 198)}, samples=samples)
    curve = fill_curve(arm)
    assert list(curve.ns) == [100, 900]
    assert curve.share == pytest.approx([0.5, 1.0])


def test_a_new_metric_is_one_function(seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", dict(metrics.METRICS))

    @metrics.metric("Cases twice", "cases", "neither")
    def twice(arm: summary.ArmSummary) -> int:
        """Two times the cases."""
        return 2 * len(arm.cases)

    assert metrics.values_of(seen({}, {}))["twice"] == 4
    assert metrics.METRICS["twice"].definition == "Two times the cases."


def test_samples_that_are_cut_off_are_told_with_their_run(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.write_run(
        tmp_path / "run",
        [[(synthetic.row(), synthetic.ns(10, 1, 30, 1))]],
        synthetic.info(synthetic.ARMS[:1]),
    )
    (run / "samples.i64").write_bytes(synthetic.ns(10))
    (arm,) = summary.read_arms(run)
    with pytest.raises(BadInput, match=re.escape(f"{run}/samples.i64: shorter than the rows say")):
        list(summary.walk_times(arm.only(set(arm.cases)), arm.cases.values()))


def test_the_errors_are_named_as_maskbenchs_and_are_near_its_numbers(seen: Any) -> None:
    """One name has two numbers: of a schema that goes wrong both ways MaskBench counts the last error only,
    and what is refused at end-of-sequence only is taken for it."""
    both = {"case_id": "0" * 12}
    refused, taken = {**both, "accepted": False, "stopped_at": 1}, {**both, "instance": 1, "valid": False}
    got = metrics.values_of(seen(refused, taken))
    assert (got["validation_error"], got["invalidation_error"]) == (1, 1)
    unfinished = {"valid": False, "accepted": False, "tokens": 4, "stopped_at": 4}
    got = metrics.values_of(seen(unfinished))
    assert (got["invalidation_error"], got["solved"]) == (0, 1)
    for rows in ([refused, taken], [unfinished]):
        case = maskbench_counts.MaskBenchCase("a schema")
        for fields in rows:
            case.add(row(**fields), True)
        assert case.count == "invalidation error"
    reference = " ".join(page().split())
    assert "near what MaskBench calls passing" in reference
    assert (
        "a case may count in several of these, and end-of-sequence is asked for. MaskBench counts"
        in reference
    )
