"""The sections of the page that are there without JavaScript: each says what the records say, and what was
not measured."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from decode_runs import Played, decoding
from histories import entry, write_entries
from html_page import Page, render
from measured import arm, steady, write_measurement
from report_folders import (
    ALPHA,
    BETA,
    STEPWISE,
    TEXTS,
    measured_run,
    played,
    write_decoding,
    write_kernels,
    write_rows,
)  # fmt: skip

from harness.backend.arm import Arm
from harness.errors import BadInput
from harness.measure.statistics import quantile_interval
from harness.outcomes.metrics import METRICS, Metric, values_of
from harness.outcomes.summary import ArmSummary, CheckSummary, common_solved, read_arms
from harness.report.figures import charts, pareto_chart
from harness.report.figures.estimates import Estimate, best, is_better, order, quantile, share
from harness.report.page import decodes, kernels, matrix, sections
from harness.report.page.cells import cell_of
from harness.report.page.inputs import read_inputs
from harness.report.page.section import TABS, discovered_sections
from harness.report.page.sections import comparing
from harness.report.page.sections.batches import scaling
from harness.report.page.sections.checks import check_lines
from harness.report.page.sections.compiling import compile_figure
from harness.report.page.sections.heat import heat_map
from harness.report.page.sections.jumps import gains
from harness.report.page.sections.masks import mask_times
from harness.report.page.sections.pareto import pareto
from harness.report.page.verdict import verdict
from harness.report.tables.instances import backend_text, metrics_frame
from harness.text import duration

# -------------------------------------------------------------------------------------------------- estimates


def test_a_share_has_wilsons_interval() -> None:
    found = share(0, 100)
    assert found is not None and found.value == 0 and found.low == 0
    assert found.high == pytest.approx(2.5758**2 / (100 + 2.5758**2), rel=1e-3)
    assert share(0, 0) is None


def test_an_interval_of_a_quantile_covers_it() -> None:
    """Of 150 draws of clustered values with a known median, the interval at 99 % misses few; with tokens
    taken for cases it misses many."""
    random = np.random.default_rng(3)
    missed = naive = 0
    for _ in range(150):
        groups = [
            np.rint(1e6 * np.exp(random.normal(0, 1) + random.normal(0, 0.1, 20))).astype(np.int64)
            for _ in range(60)
        ]
        found, apart = (
            quantile(groups, 0.5),
            quantile([np.array([each]) for group in groups for each in group], 0.5),
        )
        assert found is not None and apart is not None and found.bounds and apart.bounds
        missed += not found.bounds[0] <= 1e6 <= found.bounds[1]
        naive += not apart.bounds[0] <= 1e6 <= apart.bounds[1]
    assert missed <= 6 and naive > 30


@pytest.mark.parametrize("cases", [7, 8, 40])
def test_a_median_has_one_interval_on_page_and_in_tables(cases: int) -> None:
    random = np.random.default_rng(5)
    groups = [np.rint(1e6 * np.exp(random.normal(0, 1, 6))).astype(np.int64) for _ in range(cases)]
    found = quantile(groups, 0.5)
    assert found is not None
    assert found.bounds == quantile_interval([group.astype(float) for group in groups], 0.5)
    assert (found.bounds is None) == (cases < 8) == (found.why == "few cases")


def test_the_best_is_shared_where_intervals_overlap() -> None:
    fast, near, slow = Estimate(1.0, 0.9, 1.1), Estimate(1.05, 1.0, 1.2), Estimate(2.0, 1.9, 2.1)
    assert best([fast, near, slow]) == [True, True, False]
    assert best([slow, None, fast]) == [False, False, True]
    assert best([fast, near]) == [False, False]  # nobody is told from anybody
    assert best([fast]) == [False]
    assert best([fast, slow], lower=False) == [False, True]
    assert best([fast, replace(slow, few=True)]) == [False, False]
    assert best([Estimate(1.0), slow]) == [False, False]  # without an interval nothing separates
    assert best([fast, slow, Estimate(604e6)]) == [False, False, False], (
        "what has no interval may be the best"
    )
    assert best([Estimate(256e3), Estimate(604e6)]) == [False, False], "no factor stands in for an interval"


def test_the_order_says_who_is_proven_worse_and_leaves_out_what_has_no_interval() -> None:
    fast, near, far, slow = (
        Estimate(1.0, 0.9, 1.1),
        Estimate(1.05, 1.0, 1.2),
        Estimate(1.15, 1.12, 1.3),
        Estimate(2.0, 1.9, 2.1),
    )
    assert order([slow, near, fast]) == [(2, ""), (1, "="), (0, "›")]
    assert order([fast, near, far]) == [(0, ""), (1, "="), (2, "≥")], (
        "far is proven worse than fast, though not than near"
    )
    assert order([fast, slow], lower=False) == [(1, ""), (0, "›")]
    assert (
        order([Estimate(256e3, why="one case"), Estimate(604e6)]) == []
        and Estimate(1.0, why="one case").why_not == "one case"
    )
    assert (
        is_better(fast, slow)
        and not is_better(slow, fast)
        and not is_better(fast, near)
        and not is_better(fast, Estimate(9.0))
    )


def test_the_frontier_is_what_nobody_beats() -> None:
    fast, right, beaten = (
        pareto_chart.Bubble(n, "x", ns, part, None)
        for n, (ns, part) in enumerate([(10.0, 0.5), (90.0, 0.9), (95.0, 0.8)])
    )
    assert pareto_chart.frontier([beaten, right, fast]) == [fast, right]


ROOM = (30.0, 20.0, 440.0, 290.0)


def boxes_of(
    points: list[tuple[float, float]], widths: list[float], clear: list[pareto_chart.Area]
) -> list[pareto_chart.Area]:
    placed = pareto_chart.beside(points, widths, ROOM, clear)
    return [
        (x + a, y + b - 2, x + a + wide, y + b + 8)
        for (x, y), wide, (a, b) in zip(points, widths, placed, strict=True)
    ]


def meet(a: pareto_chart.Area, b: pareto_chart.Area) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_labels_stay_inside_and_cover_neither_points_nor_each_other() -> None:
    random = np.random.default_rng(0)
    for count in (1, 3, 8, 12):
        for spread in (4.0, 40.0, 400.0):
            for corner in ((32.0, 22.0), (438.0, 288.0), (438.0, 22.0)):
                near = [
                    corner[0] + (spread if corner[0] < 99 else -spread) * each
                    for each in random.random(count)
                ]
                points = [
                    (float(min(max(x, 32), 438)), float(np.clip(y, 22, 288)))
                    for x, y in zip(near, corner[1] + random.normal(0, spread / 4, count), strict=True)
                ]
                widths = [float(each) for each in random.integers(30, 150, count)]
                boxes = boxes_of(points, widths, [])
                for number, a in enumerate(boxes):
                    assert ROOM[0] <= a[0] and ROOM[1] <= a[1] and a[2] <= ROOM[2] and a[3] <= ROOM[3]
                    if count < 12:
                        assert not any(meet(a, (x - 3, y - 3, x + 3, y + 3)) for x, y in points)
                        assert not any(meet(a, b) for b in boxes[:number])


def test_labels_of_late_cases_stand_apart_and_inside() -> None:
    assert charts.spread([0.9, 0.2], 0.05) == [0.9, 0.2], "who is alone stays"
    places = charts.spread([0.90, 0.91, 0.99, 0.3], 0.05)
    assert places == pytest.approx([0.90, 0.95, 1.0, 0.3])


def test_long_names_are_shortened_in_the_middle() -> None:
    names = [
        f"lm-format-enforcer:loader=bytes:shared_enforcer=true · {name}" for name in ("llama3", "tekken")
    ]
    shown = [charts.plain(name, 28) for name in names]
    assert [name[-9:] for name in shown] == [" · llama3", " · tekken"]
    assert all(len(name) <= 28 and name.startswith("lm-format-") for name in shown)


def test_a_label_keeps_clear_of_the_frontier_and_comes_back_beside_a_lonely_point() -> None:
    assert pareto_chart.beside([(100.0, 100.0)], [50.0], ROOM) == [(9.0, -3.0)]
    assert pareto_chart.beside([(430.0, 100.0)], [50.0], ROOM) == [(-59.0, -3.0)]
    line = (100.0, 99.0, 300.0, 101.0)
    (box,) = boxes_of([(100.0, 100.0)], [50.0], [line])
    assert not meet(box, line)
    assert len(pareto_chart.beside([(50.0, 50.0)] * 60, [200.0] * 60, ROOM)) == 60  # there is no room for all
    (box,) = boxes_of([(100.0, 100.0)], [900.0], [])
    assert box[2] == ROOM[2]  # wider than the chart: its end is inside


# -------------------------------------------------------------------------------------------- the matrix etc.


def test_the_matrix_says_what_the_metrics_say(synthetic: ModuleType, tmp_path: Path) -> None:
    inputs = read_inputs([write_rows(synthetic, tmp_path / "run", wrong=30)])
    common = common_solved([line.arm for line in inputs.lines])
    found = matrix.matrix(inputs, common)
    places = {each.key: place for place, each in enumerate(found.columns)}
    assert found.common == len(common) == 90
    assert found.columns[places["first_p50"]].title == "first fill p50", "it is no TTFM"
    for subject, cells in found.rows:
        assert subject.line is not None
        own, shared = values_of(subject.line.arm), values_of(subject.line.arm.only(common))
        assert cells[places["conformance"]].value == own["conformance"]
        assert cells[places["under_constrained"]].text == f"{own['walks_under_constrained']}"
        assert cells[places["rss"]].value == own["peak_rss"]
        compiles = [
            case.compile_ns
            for key, case in subject.line.arm.cases.items()
            if key in common and case.compile_ns
        ]
        assert cells[places["compile_p50"]].value == sorted(compiles)[44]
        assert shared["ttfm_n"] == 90
    stars = {
        each.key: [cells[place].is_best for _, cells in found.rows]
        for place, each in enumerate(found.columns)
    }
    assert stars["conformance"] == stars["compile_p50"] == stars["first_p50"] == [True, False]
    assert stars["declined"] == stars["rss"] == [False, False]
    assert [each.title for each in found.presets] == ["Serving latency", "Correctness first", "Tool calling"]
    assert found.presets[1].order == (("alpha", ""), ("beta", "›")) and not found.presets[1].unranked


def test_what_has_no_interval_is_not_ranked_however_far_apart(synthetic: ModuleType, tmp_path: Path) -> None:
    """One case, compiled in 256 µs and in 604 ms: the page says neither `=` nor who is faster, and nobody has
    a star for it."""
    rows = [
        (synthetic.row(compile_ns=ns, backend=each.backend, backend_version=each.version), b"")
        for each, ns in ((ALPHA, 256_000), (BETA, 604_000_000))
    ]
    run = synthetic.write_run(tmp_path / "run", [[each] for each in rows], synthetic.info((ALPHA, BETA)))
    inputs = read_inputs([run])
    found = matrix.matrix(inputs, common_solved([line.arm for line in inputs.lines]))
    tools = next(each for each in found.presets if each.title == "Tool calling")
    assert tools.order == () and [label for label, _ in tools.unranked] == ["alpha", "beta"]
    assert not any(cell.is_best for _, cells in found.rows for cell in cells)
    text = " ".join(Page(render([run])).text.split())
    assert "alpha = beta" not in text and "Tool calling" not in text, "nobody is told from anybody"
    assert [row[-1] for row in pareto(found).rows] == ["no figure", "no figure"]


def test_times_of_each_arms_own_cases_are_not_ranked(synthetic: ModuleType, tmp_path: Path) -> None:
    inputs = read_inputs([write_rows(synthetic, tmp_path / "run")])
    tools = next(each for each in matrix.matrix(inputs, set()).presets if each.title == "Tool calling")
    assert tools.order == () and {why for _, why in tools.unranked} == {"no case that all solve"}


def test_a_measurement_ranks_instead_of_the_walks(synthetic: ModuleType, tmp_path: Path) -> None:
    """In the walks beta is slower; measured beside alpha, it is twice as fast, and gamma is as fast
    as alpha.
    """
    gamma = replace(BETA, backend="gamma")
    arms = (ALPHA, BETA, gamma)
    rows = write_rows(synthetic, tmp_path / "run", arms)
    walked = read_inputs([rows])
    common = common_solved([line.arm for line in walked.lines])
    assert [each for each, _ in matrix.matrix(walked, common).presets[2].order] == ["alpha", "beta", "gamma"]
    for name, control, expected in (
        ("proven", 1.0, (("beta", ""), ("alpha", "›"), ("gamma", "="))),
        ("unproven", 1.4, ()),
    ):
        folder = write_rows(synthetic, tmp_path / name, arms, cases=4)
        timed = {
            arm("alpha", "reference", "alpha", "1.2.3"): steady(1.0),
            arm("beta", version="2"): steady(0.5, seed=1),
            arm("gamma", version="2"): steady(1.01, seed=2),
            arm("alpha (again)", "a/a", "alpha", "1.2.3"): steady(control, seed=3),
        }
        write_measurement(folder, timed, forks=8)
        inputs = read_inputs([rows, folder])
        found = matrix.matrix(inputs, common_solved([line.arm for line in inputs.lines]))
        latency, _, tools = found.presets
        assert tools.column.key == "measured_compile" and latency.column.key in ("warm_p99", "measured_fill")
        assert tools.order == expected
        assert {why for _, why in tools.unranked} == (set() if expected else {"the measurement is unproven"})
        place = [each.key for each in found.columns].index("measured_compile")
        assert [cells[place].is_best for _, cells in found.rows] == [False, bool(expected), False]


def test_a_ratio_has_one_interval_on_the_page_and_is_ranked_with_the_margin(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Beta is proven three percent slower than alpha, and by that much identical code may differ."""
    folder = write_rows(synthetic, tmp_path / "run", cases=4)
    timed = {
        arm("alpha", "reference", "alpha", "1.2.3"): steady(1.0),
        arm("beta", version="2"): steady(1.03, seed=1),
        arm("alpha (again)", "a/a", "alpha", "1.2.3"): steady(1.0, seed=3),
    }
    write_measurement(folder, timed, forks=8)
    inputs = read_inputs([folder])
    found = matrix.matrix(inputs, common_solved([line.arm for line in inputs.lines]))
    place = [each.key for each in found.columns].index("measured_compile")
    reference, beta = (cells[place] for _, cells in found.rows)
    (said,) = (
        one.found
        for one in inputs.measured[0].comparisons
        if (one.head, one.metric, one.family) == ("beta", "compile", "speed")
    )
    assert said.low > 1 and beta.details == (f"{said.low:.3g} – {said.high:.3g}",)
    assert reference.details == ("the reference",)
    tools = next(each for each in found.presets if each.title == "Tool calling")
    assert tools.order == (("alpha", ""), ("beta", "="))
    sentence = "Where arms are ranked by a time over the reference's, each interval is taken as wider"
    assert sentence in " ".join(Page(render([folder])).text.split())
    assert sentence not in Page(render([write_rows(synthetic, tmp_path / "walked")])).text


def test_the_frontier_is_told_only_beyond_intervals(synthetic: ModuleType, tmp_path: Path) -> None:
    inputs = read_inputs([write_rows(synthetic, tmp_path / "run", wrong=60)])
    found = matrix.matrix(inputs, common_solved([line.arm for line in inputs.lines]))
    assert [row[-1] for row in pareto(found).rows] == ["yes", "no"]
    unsure = [each and replace(each, low=None) for each in found.estimates["walked_p99"]]
    told = pareto(replace(found, estimates=found.estimates | {"walked_p99": unsure}))
    assert [row[-1] for row in told.rows] == ["not ranked", "not ranked"]


def test_cells_of_the_heat_map_lead_to_their_cases(synthetic: ModuleType, tmp_path: Path) -> None:
    inputs = read_inputs([write_rows(synthetic, tmp_path / "run", wrong=30)])
    groups = {group.title: dict(group.rows) for group in heat_map(inputs)}
    good, bad = groups["JSON Schema: keywords and features"]["pattern"]
    assert (good.cell.passed, good.cell.counted, good.glyph) == (60, 60, "✓")
    assert (bad.cell.passed, bad.cell.counted, bad.glyph) == (45, 60, "▲")
    assert bad.link == "#/cases?backend=beta&dialect=json_schema&tag=pattern"
    assert not {"Suites", "Dialects"} & set(groups), "there is but one suite and one dialect"


def test_the_verdict_is_the_worst(synthetic: ModuleType, tmp_path: Path) -> None:
    one = write_rows(synthetic, tmp_path / "one", cases=20)
    same = write_rows(synthetic, tmp_path / "same", cases=20)
    worse = write_rows(synthetic, tmp_path / "worse", cases=20, wrong=9)
    killed = synthetic.write_run(
        tmp_path / "killed", [[(synthetic.row(), b"")]], synthetic.info((ALPHA,)), complete=False
    )
    assert verdict(read_inputs([one])).word == "NO BASELINE"
    assert verdict(read_inputs([one, same])).word == "PASS"
    found = verdict(read_inputs([one, worse]))
    assert found.word == "REGRESSED" and len(found.changes) == 5 and found.more == 4
    assert found.changes[0][0] == "↘" and "under_constrained" in found.changes[0][1]
    assert verdict(read_inputs([one, killed])).word == "INCOMPLETE"


@pytest.mark.parametrize(
    ("slower", "control", "word"), [(1.0, 1.0, "PASS"), (1.5, 1.0, "REGRESSED"), (1.0, 1.3, "UNPROVEN")]
)
def test_a_measurement_decides_the_verdict(
    synthetic: ModuleType, tmp_path: Path, slower: float, control: float, word: str
) -> None:
    found = verdict(read_inputs([measured_run(synthetic, tmp_path / "run", slower, control)]))
    assert found.word == word
    assert ("A/A proven" in found.control) == (control == 1.0)
    assert dict(found.facts)["Hardware key"] == "h" * 12


def test_walks_that_only_chose_what_to_measure_are_not_counted_twice(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    both = tuple(Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask") for version in ("1", "2"))
    rows = write_rows(synthetic, tmp_path / "rows", both, cases=10)
    inputs = read_inputs([rows, measured_run(synthetic, tmp_path / "measured", 1.0)])
    assert [line.run.folder for line in inputs.lines] == [rows, rows]
    assert [len(each.line.arm.cases) for each in inputs.subjects if each.line] == [10, 10]
    assert all(each.measured for each in inputs.subjects) and len(inputs.scouting) == 1


def test_overhead_and_gain_are_those_that_were_played(synthetic: ModuleType, tmp_path: Path) -> None:
    rows = write_rows(synthetic, tmp_path / "run", cases=10)
    inputs = read_inputs([rows, write_decoding(tmp_path / "decode", played())])
    alpha, beta = inputs.subjects
    assert decodes.batches(inputs) == [1, 8] and beta.decoded == ()
    (found, _), (gain, _) = (
        one for one in (decodes.overhead([alpha], 8)[0], decodes.speed_up([alpha])[0]) if one is not None
    )
    assert found.value == pytest.approx(0.1, abs=0.01) and found.bounds and found.bounds[0] > 0.05
    assert gain.value == pytest.approx(2.0, rel=0.02)
    (record,) = scaling(inputs)
    assert [each.title for each in record.charts] == [
        "TTFT over batch size",
        "TTFT from row over batch size",
        "TPOT over batch size",
        "Overhead over no grammar",
    ]
    assert record.charts[2].rows[-1][0] == "no grammar" and record.charts[2].rows[-1][1].startswith("10 ms")
    ((_, chart),) = gains(inputs)
    assert chart.rows[0][:3] == ("calls ×1 jump-forward", "alpha", "50.0 %") and chart.rows[0][4] == "2.00"


def test_requests_without_their_grammar_are_counted_and_give_no_time(tmp_path: Path) -> None:
    sides = {
        "alpha": Played(TEXTS, 11.0, fallback=tuple(TEXTS)),
        "beta": Played(TEXTS, 12.0, fallback=("b",)),
    }
    record = decoding({STEPWISE: sides}, plain=Played(TEXTS, 10.0), forks=4)
    (drawn,) = scaling(read_inputs([write_decoding(tmp_path / "decode", record)]))
    assert drawn.counts == (
        "alpha: 0/16 requests solved; 16/16 ran without their grammar: no time here is of these",
        "beta: 8/16 requests solved; 8/16 ran without their grammar: no time here is of these",
    )
    alpha, beta, *none = drawn.charts[2].rows
    assert alpha == ("alpha", "–") and beta[1].startswith("12 ms")
    assert [(one[0], one[1][:5]) for one in none] == [
        ("no grammar, beside alpha", "10 ms"),
        ("no grammar, beside beta", "10 ms"),
    ]
    assert drawn.counts[0] in Page(render([tmp_path / "decode"])).text


def test_the_median_request_of_a_decoding_is_that_of_the_terminal(tmp_path: Path) -> None:
    """Medians were taken per fork, between two requests, and then averaged; an interval of two forks that are
    far apart had bounds of centuries."""
    texts = {"a": (1,) * 12, "b": (1, 2, 1), "c": (3, 1)}
    for number, (noise, forks) in enumerate(((0.05, 5), (0.05, 12), (1.5, 2))):
        record = decoding({STEPWISE: {"alpha": Played(texts, 11.0, noise)}}, forks=forks)
        inputs = read_inputs([write_decoding(tmp_path / str(number), record)])
        (cell,) = inputs.decoded[0].cells
        ((_, shown), _) = scaling(inputs)[0].charts[2].rows
        levels = inputs.decoded[0].values(cell)["tpot"]
        assert isinstance(levels, dict) and levels["p50"] is not None
        assert shown.startswith(f"{duration(levels['p50'])} ["), shown
        assert shown.endswith(", >99×]") == (forks == 2), shown


def test_what_arrived_at_a_rate_is_a_table(tmp_path: Path) -> None:
    opened = replace(STEPWISE, rate=40.0, arrivals="gamma")
    sides = {"alpha": Played(TEXTS, 11.0, fallback=("b",))}
    folder = write_decoding(tmp_path / "decode", decoding({opened: sides}, plain=Played(TEXTS, 10.0)))
    (drawn,) = scaling(read_inputs([folder]))
    free, ours = drawn.open_loads
    assert free[:6] == ("calls ×1, 40/s (gamma)", "alpha", "none", "10 ms", "10 ms", "80 ms")
    assert ours[:6] == ("calls ×1, 40/s (gamma)", "alpha", "stepwise", "11 ms", "11 ms", "132 ms")
    text = Page(render([folder])).text
    assert "There is no chart over batch sizes" in text and "Nothing to draw" not in text
    assert "Goodput: TTFT <= 500 ms, TPOT <= 50 ms." in text and " ".join(ours) in text


def test_an_arm_whose_calls_nobody_timed_has_no_curve(synthetic: ModuleType, tmp_path: Path) -> None:
    """A live server compiles unseen: its curve said that it compiles and solves nothing."""
    rows = write_rows(synthetic, tmp_path / "run", cases=4)
    live = replace(ALPHA, backend="engine")
    untimed = {
        "backend": "engine",
        "backend_version": live.version,
        "compile_ns": None,
        "first_fill_ns": None,
    }
    refused = replace(ALPHA, backend="refuser")
    groups = [[(synthetic.row(case_id=f"{number:012x}", **untimed), b"")] for number in range(4)]
    groups.append([(synthetic.row(backend="refuser", backend_version="1.2.3", status="unsupported"), b"")])
    served = synthetic.write_run(tmp_path / "live", groups, synthetic.info((live, refused), run="other"))
    inputs = read_inputs([served, rows])
    compiled, filled = compile_figure(inputs.tried), mask_times(inputs).cold
    assert (
        [name.split()[0] for name in compiled.labels]
        == ["refuser", "alpha", "beta"]
        == [name.split()[0] for name in filled.labels]
    )
    assert dict(compiled.table)["ends at"] == ["0.0 %", "100.0 %", "100.0 %"] == dict(filled.table)["ends at"]
    places = [str(line.position) for line in inputs.tried if not line.label.startswith(("engine", "refuser"))]
    assert re.findall(r'id="compile-arm-(\d+)"', str(compiled.svg)) == places


# ----------------------------------------------------------------------------------------- sections are found

WEATHER = """
from harness.report.page.section import Section


def values(page):
    return {"lines": page.inputs.lines} if page.inputs.lines else None


SECTION = Section("weather", "Weather", 55, values, "right")
"""


def test_a_section_is_one_module_and_its_template(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weather_report.py").write_text(WEATHER)
    (tmp_path / "weather_report.html.j2").write_text(
        '<section id="weather"><h2>Fair over {{ m.name(lines[0]) }}</h2></section>'
    )
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    reports = import_module("harness.reports")
    monkeypatch.setattr(reports, "__path__", [*reports.__path__, str(tmp_path)])
    html = render([write_rows(synthetic, tmp_path / "run", cases=4)])
    ids = [each for each in Page(html).ids if each in ("matrix", "weather", "disagreements")]
    assert ids == ["matrix", "weather", "disagreements"], "the section does not stand in its place"
    assert re.search(r'<a href="#matrix">[^<]*</a> <a href="#weather">Weather</a>', html)
    assert "Fair over alpha" in " ".join(Page(html).text.split())
    without = render([write_decoding(tmp_path / "decode", played())])
    assert "weather" not in without, "a section that has nothing to show is on the page"


def test_the_sections_stand_in_a_fixed_order() -> None:
    found = [each.id for each in discovered_sections().values()]
    assert found[:7] == ["answer", "advised", "summary", "times", "masks", "compiling", "ratios"]
    assert found[7:13] == ["sizes", "matrix", "exact-masks", "endless", "tokens", "checks"]
    assert found[13:17] == ["batches", "jumps", "goodness", "live"]
    assert found[17:20] == ["comparison", "disagreements", "failing"]
    assert found[20:] == ["missing", "data", "numbers", "environment", "definitions"]
    assert {each.tab for each in discovered_sections().values()} == set(TABS)


def test_a_metric_of_a_new_unit_is_shown(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bits(arm: ArmSummary) -> int:
        """Bits of something."""
        return 123_456

    made = Metric("bits", "Bits of something", "bits", "neither", "Bits of something.", bits)  # type: ignore[arg-type]
    monkeypatch.setitem(METRICS, "bits", made)
    run = write_rows(synthetic, tmp_path / "run", cases=2)
    assert "bits Bits of something 123,456 123,456" in " ".join(Page(render([run])).text.split())
    assert "BITS" in backend_text(metrics_frame(read_arms(run)))


def test_causes_with_equal_counts_stand_in_the_order_of_their_names() -> None:
    arm_seen = ArmSummary("alpha", "1", "", "probe", np.zeros((0, 2), np.int64))
    arm_seen.checks["fact"] = CheckSummary(failed=3, causes=Counter(["second", "first", "third", "third"]))
    (line,) = check_lines([arm_seen])
    assert line.cells[0].causes == [("third", 2), ("first", 1), ("second", 1)]


# --------------------------------------------------------------------------------------------------- the page


def test_what_was_not_measured_is_said_with_the_command_that_would(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    text = Page(render([write_rows(synthetic, tmp_path / "run", cases=10)])).text
    for verb in ("measure", "decode --strategies stepwise,jump_forward"):
        name, *options = verb.split()
        folder = {"measure": "run-measured", "decode": "run-decoded"}[name]
        assert re.search(
            rf"grammarbench {name} --backends alpha==\S+,beta==\S+ --vocabularies \S+ "
            rf"{' '.join([*options, ''])}--out {folder}",
            text,
        ), verb
    assert "Not measured in these runs" in text and "grammarbench measure kernels" in text
    assert "NO BASELINE" in text and "A/A not measured" in text


def test_the_answer_is_about_the_last_run_of_an_arm(synthetic: ModuleType, tmp_path: Path) -> None:
    runs = [write_rows(synthetic, tmp_path / name, cases=10) for name in ("one", "two")]
    inputs = read_inputs(runs)
    assert [(line.label, line.run.folder) for line in inputs.answered] == [
        ("alpha", runs[1]),
        ("beta", runs[1]),
    ]
    html = render(runs)
    assert html.count('<li class="card') == 2 and 'id="verdict"' in html


def test_how_sure_an_answer_is_counts_what_the_last_run_of_an_arm_was_judged_by(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    first = write_rows(synthetic, tmp_path / "one", cases=30)
    last = write_rows(synthetic, tmp_path / "two", (ALPHA,), cases=30, wrong=5)
    answer = read_inputs([first, last]).answer()
    assert answer is not None and answer.best is not None and answer.best.name == "beta"
    swapped = read_inputs([last, first]).answer()
    assert swapped is not None
    by = "30 of 30 schemas were judged, by 30 valid and 0 invalid outputs."
    assert answer.certainty[0] == swapped.certainty[0] == f"In {synthetic.info().run} {by}"
    shorter = read_inputs([first, write_rows(synthetic, tmp_path / "three", cases=10)]).answer()
    assert shorter is not None and "10 of 10 schemas were judged, by 10 valid" in shorter.certainty[0]
    alone = read_inputs([first]).answer()
    assert alone is not None and alone.certainty[0] == by


@pytest.mark.parametrize(
    ("untimed", "why"),
    [(2, ""), (3, "samples of only 17 of 20 cases"), (20, "no samples lie beside these rows")],
)
def test_times_of_the_few_cases_with_samples_are_not_told_as_the_runs(
    synthetic: ModuleType, tmp_path: Path, untimed: int, why: str
) -> None:
    is_told = not why
    run = write_rows(synthetic, tmp_path / "run", cases=20, untimed=untimed)
    inputs = read_inputs([run])
    assert [line.arm.timed.is_enough for line in inputs.tried] == [is_told] * 2
    answer = inputs.answer()
    assert answer is not None
    assert ("Half of the tokens cost at most" in answer.sentence) == is_told
    assert (answer.backends[0].per_token_ns is not None) == is_told
    found = matrix.matrix(inputs, set())
    assert (found.estimates["walked_p99"][0] is not None) == is_told
    assert bool(pareto(found).svg) == is_told, "it has no dot"
    text = " ".join(Page(render([run])).text.split())
    assert is_told or f"per token, TBM p50 not measured {why}" in text
    assert ("not measured samples of" in text) == ("samples of only" in why)
    assert ("Cases with every token's time: alpha 17 of 20; beta 17 of 20." in text) == (untimed == 3)


def test_no_card_is_chosen_where_none_can_be_recommended(synthetic: ModuleType, tmp_path: Path) -> None:
    def run(name: str, accepted: bool) -> Path:
        rows = [[(synthetic.row(accepted=accepted), b"")]]
        return synthetic.write_run(tmp_path / name, rows, synthetic.info((synthetic.ARMS[0],)))  # type: ignore[no-any-return]

    assert '<li class="card chosen"' in render([run("right", True)])
    html = render([run("wrong", False)])
    assert '<li class="card"' in html and '<li class="card chosen"' not in html


def test_skipped_walks_do_not_read_as_a_negative_number() -> None:
    cell = cell_of(Counter({"pass": 3, "declined": 2, "skipped": 11}))
    assert cell.rest_told == [("declined", "⊘2"), ("skipped", "skipped 11")]


def test_a_control_has_no_card_and_no_words_of_regression_stand_where_nothing_is_compared(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    control = Arm("unconstrained", "", "", "", ("json_schema",), "bitmask")
    rows = [
        (synthetic.row(backend=arm.backend, backend_version=arm.version, instance=place, **fields), b"")
        for arm, refuses in ((control, True), (ALPHA, False))
        for place, fields in enumerate(({}, {"valid": False, "accepted": refuses}))
    ]
    run = synthetic.write_run(tmp_path / "run", [rows[:2], rows[2:]], synthetic.info((control, ALPHA)))
    inputs = read_inputs([run])
    assert [line.label for line in inputs.tried] == ["alpha"]
    assert [line.label for line in inputs.lines] == ["alpha", "unconstrained"], "the control is last"
    page = Page(render([run]))
    assert "Left out: unconstrained" in page.text and "control: enforces nothing" in page.text
    assert "verdict" not in page.ids and "REGRESSED" not in page.text


def test_a_report_of_decoding_alone_is_a_page(tmp_path: Path) -> None:
    text = Page(render([write_decoding(tmp_path / "decode", played())])).text
    assert re.search(r"Conformance\s+grammarbench run ", text), "it does not say what walks the cases"
    assert "TPOT over batch size" in text and "50.0 %" in text
    unfinished = Page(render([write_decoding(tmp_path / "killed", played(), finish=False)])).text
    assert "INCOMPLETE" in unfinished and "(decoding) has no end" in unfinished


def test_every_section_is_there_with_everything_measured(synthetic: ModuleType, tmp_path: Path) -> None:
    arms = (replace(ALPHA, version="1", unicode="15.1"), replace(ALPHA, version="2"))
    rows = write_rows(synthetic, tmp_path / "rows", arms, cases=10)
    folders = [
        rows,
        measured_run(synthetic, tmp_path / "measured", 1.5),
        write_decoding(tmp_path / "decode", played()),
    ]
    folders.append(write_kernels(tmp_path / "kernels"))
    write_entries(
        tmp_path / "history",
        [entry(day, 1.0 + 0.01 * (day % 3), metric="fill", version="2") for day in range(12)],
    )
    html = render(folders, tmp_path / "history")
    page = Page(html)
    assert "Not measured in these runs" not in page.text
    assert {
        "verdict",
        "summary",
        "times",
        "masks",
        "compiling",
        "matrix",
        "batches",
        "jumps",
        "comparison",
        "environment",
    } <= set(page.ids)
    assert "bitmask 15.1" in page.text and "bitmask not known" in page.text, (
        "the Unicode version of a backend's tables is not shown"
    )
    assert (
        "REGRESSED" in page.text
        and "▸ slower" in page.text
        and "noise floor" in page.text
        and "@software{grammarbench" in page.text
    )
    assert html.count('class="spark"') >= 1
    assert render(folders, tmp_path / "history") == html
    charts = re.findall(r'<svg viewBox="[^"]*" role="img" aria-labelledby="([\w-]+) ([\w-]+)">', html)
    assert len(charts) >= 8 and all(set(each) <= set(page.ids) for each in charts)
    assert not re.search(r"#0[acd]0[bd]0\d", html), "a sentinel colour is left"
    assert html.count("<details") > len(charts)


def test_hostile_names_stay_text_in_every_section(synthetic: ModuleType, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>$x^2$'\"&"
    arms = (Arm(evil, evil, "", evil, ("json_schema",), "bitmask"), BETA)
    rows = write_rows(synthetic, tmp_path / "rows", arms, cases=10)
    sides = {
        arm("beta", "reference", version="2"): steady(1),
        arm(evil, backend=evil, version=evil): steady(2),
    }
    write_measurement(rows, sides | {arm("beta (again)", "a/a"): steady(1)}, families=(evil, "plain"))
    record = played()
    evil_arms = tuple(replace(each, backend=evil, version=evil, options="") for each in record.setup.arms)
    decode = write_decoding(
        tmp_path / "decode",
        replace(record, setup=replace(record.setup, arms=evil_arms, run=evil, model=evil)),
    )
    html = render([rows, decode])
    page = Page(html)
    assert "<script>alert" not in html and html.count("alert(1)") > 20
    assert evil in page.text
    assert not [
        target for _, target in page.links if "://" in target or target.startswith(("javascript:", "//"))
    ]


def test_a_sparkline_has_a_point_per_run_and_marks_alerts() -> None:
    from harness.outcomes.history.measurements import series

    quiet = series([entry(day, 1.0 + 0.001 * day) for day in range(40)])[0]
    assert str(comparing.spark(quiet)).count(",") >= comparing.SPARKS and "slower" not in comparing.spark(
        quiet
    )
    (step,) = series([entry(day, 1.0 if day < 20 else 1.3) for day in range(40)])
    assert 'class="slower"' in comparing.spark(step)
    assert comparing.spark(series([entry(0, 1.0)])[0]) == ""


# ----------------------------------------------------------------------------------------------- mask kernels


def test_mask_kernels_are_drawn_over_batch_sizes_and_probed(tmp_path: Path) -> None:
    inputs = read_inputs([write_kernels(tmp_path / "kernels")])
    (found,) = kernels.applied(inputs)
    assert [each.label for each in found.kernels] == [
        "alpha/torch",
        "plain/masked_fill",
    ] and "vocabulary 2,000" in found.about
    (chart,) = found.charts
    assert chart.title == "50 % of the tokens allowed" and chart.heads == ("Kernel", "batch 1", "batch 8")
    assert chart.rows[0] == ("alpha/torch", "2 µs · 300% of a copy's speed", "16 µs · 300% of a copy's speed")
    assert chart.rows[2][0] == "copy" and "kernel-1" in chart.svg and "arm-" not in chart.svg
    assert found.outcomes == ("passed", "failed", "refused") and found.probes == (
        ("alpha/torch", (1, 1, 1), "a row is left out"),
    )
    text = Page(render([tmp_path / "kernels"])).text
    assert "Mask kernels over batch sizes" not in text and "TPOT, overhead over batch sizes" in text
    bare = kernels.applied(read_inputs([write_kernels(tmp_path / "bare", times=False, finish=False)]))[0]
    assert bare.charts == () and "nothing was timed" in bare.about and "Incomplete" in bare.about
    evil = "</script><script>alert(9)</script>"
    page = render([write_kernels(tmp_path / "evil", evil)])
    assert evil not in page and "alpha/torch&lt;/script&gt;" in page


def test_a_record_of_kernels_that_is_none_is_bad_input(tmp_path: Path) -> None:
    folder = write_kernels(tmp_path / "kernels")
    path = folder / "kernels.jsonl"
    path.write_text(path.read_text().replace('"machine"', '"engine"'))
    with pytest.raises(
        BadInput,
        match=r"kernels\.jsonl:1: no line of a run of kernels \(/machine is "
        r"missing\)",
    ):
        render([folder])


def test_without_kernels_the_page_says_so(synthetic: ModuleType, tmp_path: Path) -> None:
    html = render([write_rows(synthetic, tmp_path / "run", cases=4)])
    assert "<h3>Mask kernels over batch sizes</h3>" in html and re.search(
        r"grammarbench measure kernels --backends alpha==\S+,beta==\S+ --out run-kernels", html
    )
