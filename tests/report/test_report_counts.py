"""What a page counts for an arm or against it: not the floor of the times, nothing that we lost, no walk that
nobody can judge; and by a name that no other arm has."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from histories import write_conformance
from html_page import Page, render

from harness.backend.arm import Arm
from harness.outcomes.history.conformance import read_histories
from harness.report.cases.data import explore
from harness.report.figures import charts
from harness.report.figures.curves import Curve, token_curve
from harness.report.figures.estimates import share
from harness.report.frames.load import load
from harness.report.labels import LONGEST, told_apart
from harness.report.page.inputs import Inputs, read_inputs
from harness.report.page.lines import common, solved
from harness.report.page.matrix import Matrix, matrix
from harness.report.page.matrix_cells import NOT_JUDGED
from harness.report.page.sections.heat import heat_map
from harness.report.page.sections.pareto import pareto
from harness.report.run_summary import read_summary, summary_text
from harness.report.site.dashboard import site
from harness.report.site.features import matrices
from harness.report.values import percent, percents
from harness.text import Console

ALPHA, BETA = (Arm(name, "1", "", name, ("json_schema",), "bitmask") for name in ("alpha", "beta"))
FLOOR = Arm("unconstrained", "1", "", "", ("json_schema",), "bitmask")


def controlled(synthetic: ModuleType, folder: Path, *arms: Arm) -> Path:
    """A run of arms that are always right and of a control, with invalid instances in half of the cases."""
    cases, groups = [], []
    random = np.random.default_rng(1)
    for number in range(60):
        instances = [("yes", b'"a"', True), ("no", b"1", False)][: 1 + number % 2]
        case = synthetic.case(number, instances)
        cases.append(("first", case))
        for arm in (*arms, FLOOR):
            cost = {"alpha": 20, "beta": 60, "unconstrained": 1}[arm.backend] * (1000 + number)
            fields = {"backend": arm.backend, "backend_version": "1", "case": case.name, "case_id": case.id}
            fields |= {"compile_ns": cost * 50, "first_fill_ns": cost}
            groups.append(
                [
                    (
                        synthetic.row(**fields, instance=place, valid=valid, accepted=valid or arm is FLOOR),
                        synthetic.ns(*map(int, random.lognormal(np.log(cost), 0.3, 60))),
                    )
                    for place, (_, _, valid) in enumerate(instances)
                ]
            )
    return synthetic.write_run(folder, groups, synthetic.info((*arms, FLOOR)), cases)  # type: ignore[no-any-return]


def matrix_of(inputs: Inputs) -> Matrix:
    return matrix(inputs, solved(inputs.lines))


def test_a_control_is_never_the_best_and_takes_no_case_from_the_others(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = controlled(synthetic, tmp_path / "run", ALPHA, BETA)
    inputs = read_inputs([run])
    assert [line.is_control for line in inputs.lines] == [False, False, True]
    found, shared = matrix_of(inputs), common(inputs.lines)
    assert found.common == 60 and shared is not None and shared.cases == 60 and not shared.left_out
    stars = {
        column.key: [cells[place].is_best for _, cells in found.rows]
        for place, column in enumerate(found.columns)
    }
    assert stars["first_p50"] == stars["compile_p50"] == [True, False, False]
    chart = pareto(found)
    assert [row[-1] for row in chart.rows] == ["yes", "yes", "–"], "both are always right"
    assert 'id="pareto-arm-1"' in chart.svg and 'id="pareto-arm-2"' not in chart.svg
    of = {line["of"] for line in load(run).times.to_dict("records") if line["cases"] == "common"}
    assert of == {"60/60"}
    text = " ".join(Page(render([run])).text.split())
    assert "over the 60 cases that every arm but the controls solves" in text


def test_one_arm_and_its_floor_are_compared_on_what_the_arm_solves(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    inputs = read_inputs([controlled(synthetic, tmp_path / "run", BETA)])
    assert matrix_of(inputs).common == 60


def lost_run(synthetic: ModuleType, folder: Path, **wrong: object) -> Path:
    """Two cases: we lost the first one on beta; the second is as said on alpha, and works on beta."""
    ours = {"status": "harness_error", "phase": "oracle", "text": "ours broke", "accepted": None}
    cases = [synthetic.case(number, [("yes", b'"a"', True)]) for number in (1, 2)]

    def walked(arm: Arm, number: int, **fields: object) -> list[object]:
        case = cases[number]
        return [
            (
                synthetic.row(
                    backend=arm.backend, backend_version="1", case=case.name, case_id=case.id, **fields
                ),
                b"",
            )
        ]

    groups = [walked(ALPHA, 0), walked(BETA, 0, **ours), walked(ALPHA, 1, **wrong), walked(BETA, 1)]
    header = synthetic.info((ALPHA, BETA))
    return synthetic.write_run(folder, groups, header, [("first", case) for case in cases])  # type: ignore[no-any-return]


def test_a_case_that_only_we_lost_is_no_failure_of_a_backend(synthetic: ModuleType, tmp_path: Path) -> None:
    run = lost_run(synthetic, tmp_path / "run")
    inputs = read_inputs([run])
    explored = explore(inputs.cases, inputs.tried)
    assert explored.failing == 0 and explored.groups == []
    assert all("snippets" not in detail for detail in explored.details)
    assert any(detail["notes"] for detail in explored.details), "the explorer still says what happened"
    text = " ".join(Page(render([run])).text.split())
    assert "1 case was not measured in full on some arm, through our own fault" in text
    assert "ours broke" in text and "None: no case fails or is refused" in text
    assert "Why cases fail" not in text and "come out alike" not in text


def test_what_we_lost_is_told_beside_what_fails(synthetic: ModuleType, tmp_path: Path) -> None:
    run = lost_run(synthetic, tmp_path / "run", accepted=False, stopped_at=0)
    text = " ".join(Page(render([run])).text.split())
    assert "1 case fails, is refused or diverges as documented on at least one arm" in text
    assert "Why cases fail, are refused or diverge as documented with alpha" in text
    assert "documented with beta" not in text and "1 case was not measured in full" in text


def test_walks_that_nobody_can_judge_are_no_part_of_a_share_of_wrong_verdicts(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    cases = [synthetic.case(number, [("x", b'"a"', False if number == 0 else None)]) for number in range(50)]
    groups = [
        [(synthetic.row(case=case.name, case_id=case.id, valid=case.instances[0].valid), b"")]
        for case in cases
    ]
    header = synthetic.info(synthetic.ARMS[:1])
    run = synthetic.write_run(tmp_path / "run", groups, header, [("first", case) for case in cases])
    found = matrix_of(read_inputs([run]))
    ((_, cells),) = found.rows
    by_key = dict(zip((column.key for column in found.columns), cells, strict=True))
    assert by_key["under_constrained"].details[0] == "100.0 % of judged walks"
    assert by_key["declined"].details[0] == "0.0 % of walks"


def test_walks_that_were_declined_or_broke_are_no_judged_walks(synthetic: ModuleType, tmp_path: Path) -> None:
    """Refusing much makes a backend look no less wrong: of ten cases two are let through, two are right, and
    nothing was walked of the others."""
    fields: dict[int, dict[str, object]] = {
        number: {"valid": False, "accepted": number < 2} for number in range(4)
    }
    fields |= {
        number: {"status": "unsupported", "phase": "compile", "accepted": None} for number in (4, 5, 6)
    }
    fields |= {number: {"status": "crash", "phase": "compile", "accepted": None} for number in (7, 8, 9)}
    cases = [
        synthetic.case(number, [("x", b'"a"', number > 3), ("y", b'"b"', number > 3)]) for number in fields
    ]
    groups = [
        [
            (synthetic.row(case=case.name, case_id=case.id, instance=instance, **fields[number]), b"")
            for instance in (0, 1)
        ]
        for number, case in enumerate(cases)
    ]
    header = synthetic.info(synthetic.ARMS[:1])
    run = synthetic.write_run(tmp_path / "run", groups, header, [("first", case) for case in cases])
    found = matrix_of(read_inputs([run]))
    ((_, cells),) = found.rows
    by_key = dict(zip((column.key for column in found.columns), cells, strict=True))
    four_cases = share(4, 8, 4)
    assert four_cases is not None and four_cases.bounds is not None
    assert by_key["under_constrained"].text == "4"
    assert by_key["under_constrained"].details == (
        "50.0 % of judged walks",
        f"{'–'.join(percents(four_cases.bounds))} %",
    )
    assert by_key["over_constrained"].details[0] == "0.0 % of judged walks"
    assert by_key["declined"].details[0] == by_key["broken"].details[0] == "30.0 % of walks"


def test_cases_outside_of_the_conformance_are_told_apart(synthetic: ModuleType, tmp_path: Path) -> None:
    fields: list[dict[str, object]] = [
        {},
        {"valid": None},
        {"valid": None},
        {"valid": None, "status": "unsupported", "phase": "compile", "accepted": None},
        {"status": "harness_error", "phase": "oracle", "accepted": None},
    ]
    groups = [[(synthetic.row(case_id=f"{number:012x}", **each), b"")] for number, each in enumerate(fields)]
    run = synthetic.write_run(tmp_path / "run", groups, synthetic.info(synthetic.ARMS[:1]))
    found = matrix_of(read_inputs([run]))
    ((_, cells),) = found.rows
    by_key = dict(zip((column.key for column in found.columns), cells, strict=True))
    assert by_key["conformance"].details[:4] == (
        "1 of 1 judged",
        "2 not judged",
        "1 refused, with nothing to judge them by",
        "1 not measured",
    )


def test_where_nothing_was_judged_no_verdict_is_called_unmeasured(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    rows = [[(synthetic.row(case_id=f"{number:012x}", valid=None), b"")] for number in range(3)]
    run = synthetic.write_run(tmp_path / "run", rows, synthetic.info(synthetic.ARMS[:1]))
    found = matrix_of(read_inputs([run]))
    ((_, cells),) = found.rows
    by_key = dict(zip((column.key for column in found.columns), cells, strict=True))
    for key in ("conformance", "under_constrained", "over_constrained"):
        assert by_key[key].text == NOT_JUDGED, key


def test_a_feature_of_which_nothing_was_judged_does_not_work(tmp_path: Path) -> None:
    features = {"good": {"works": 2}, "nobody": {"not_judged": 2}, "bad": {"works": 1, "silently_wrong": 1}}
    write_conformance(tmp_path, 0, features)
    (found,) = matrices(read_histories(tmp_path), {("alpha", "", "tiny", "keywords"): "it"})
    assert found.always == ("good",)
    assert [name for name, _ in found.lines] == ["all cases", "bad", "nobody"]
    (cell,) = dict(found.lines)["nobody"]
    assert cell is not None and cell.colour == "" and not cell.all_work
    text = " ".join(Page(site(tmp_path)["index.html"].decode()).text.split())
    assert "nobody not judged ?2" in text and "0/0" not in text


LONG = "acme_inference_platform.grammar_backends.prefix_cached:PrefixCachedBackend:any_whitespace=false"


def test_no_two_arms_have_one_name_on_a_page(synthetic: ModuleType, tmp_path: Path) -> None:
    assert told_apart(["a", "a", "b"], [("1", "2", "1")]) == ["a · 1", "a · 2", "b"]
    assert told_apart(["a", "a"], [("1", "1")]) == ["a · 1", "a · 2"]
    alike = told_apart([f"{'x' * 99}{each}{'y' * 99}" for each in "12"], [])
    assert len(set(alike)) == 2 and all(len(each) <= LONGEST + 4 for each in alike)
    arms = [Arm(LONG, "1", f"cache_size={size}", "acme", (), "bitmask") for size in (64, 128)]
    case = synthetic.case(1, [("yes", b'"a"', True)])
    groups = [
        [
            (
                synthetic.row(
                    backend=LONG, backend_version="1", options=arm.options, case_id=case.id, accepted=is_right
                ),
                b"",
            )
        ]
        for arm, is_right in zip(arms, (True, False), strict=True)
    ]
    run = synthetic.write_run(tmp_path / "run", groups, synthetic.info(arms), [("first", case)])
    labels = [line.label for line in read_inputs([run]).lines]
    assert [label[-8:] for label in labels] == ["_size=64", "size=128"]
    text = " ".join(Page(render([run])).text.split())
    cards = text[text.index("How sure") : text.index("What this rests on")]
    assert all(label in cards for label in labels), "each card has its own arm's name"


def test_what_was_judged_is_said_by_names_that_tell_arms_apart(synthetic: ModuleType, tmp_path: Path) -> None:
    vocabularies = {name: {"size": 300, "sha256": name * 16} for name in ("aaaa", "bbbb")}
    case = synthetic.case(1, [("x", b'"a"', True)])
    groups = [
        [
            (
                synthetic.row(
                    backend_version="1", vocabulary=name, case_id=case.id, valid=valid, accepted=True
                ),
                b"",
            )
        ]
        for name, valid in (("aaaa", True), ("bbbb", None))
    ]
    header = synthetic.info((ALPHA,), vocabularies=vocabularies)
    run = synthetic.write_run(tmp_path / "run", groups, header, [("first", case)])
    page, terminal = Page(render([run])).text, summary_text(read_summary(run), Console(400))
    for said in (page, terminal):
        assert "alpha · aaaa: 1 of 1 case" in said and "alpha · bbbb: 0 of 1 case" in said


def test_a_guide_far_from_all_curves_does_not_squeeze_them(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[float, float]] = []
    plain = charts._axes

    def noting(axes: object, low: float, high: float) -> None:
        limits.append((low, high))
        plain(axes, low, high)  # type: ignore[arg-type]

    monkeypatch.setattr(charts, "_axes", noting)
    curve = Curve(np.array([500, 1000, 2000]), np.array([0.3, 0.6, 1.0]))
    charts.ecdf("x", "t", [curve], charts.Frame([charts.Guide(4e3, "near"), charts.Guide(2e9, "far")]))
    assert limits == [(500 / 1.3, 4e3 * 1.3)]


@pytest.mark.parametrize("cases", [1, 2, 3, 4, 5, 8, 15, 50, 500])
def test_a_curve_ends_at_the_share_of_cases_that_arrived(cases: int) -> None:
    random = np.random.default_rng(cases)
    for _ in range(40):
        times = [random.integers(500, 5000, random.integers(1, 200)).astype(float) for _ in range(cases)]
        assert percent(token_curve(times, cases).plateau) == "100.0 %"
        part = token_curve(times, 3 * cases)
        assert part.plateau == 1 / 3 and (np.diff(part.share) > 0).all()


def test_the_suites_that_fail_most_are_not_hidden(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.page.sections.heat.SUITES", 2)
    cases = [(suite, synthetic.case(number, [("x", b'"a"', True)])) for number, suite in enumerate("abc")]
    groups = [
        [(synthetic.row(suite=suite, case_id=case.id, accepted=suite == "a"), b"")] for suite, case in cases
    ]
    run = synthetic.write_run(tmp_path / "run", groups, synthetic.info(synthetic.ARMS[:1]), cases)
    (suites,) = [group for group in heat_map(read_inputs([run])) if group.title == "Suites"]
    assert [name for name, _ in suites.rows] == ["b", "c"] and suites.left_off == 1


def test_a_case_is_found_by_every_tag_by_which_it_is_counted(synthetic: ModuleType, tmp_path: Path) -> None:
    tags = tuple(f"tag{number:02}" for number in range(60))
    case = synthetic.case(1, [("x", b'"a"', True)], tags=tags)
    rows = [(synthetic.row(case_id=case.id, tags=tags, accepted=False), b"")]
    run = synthetic.write_run(tmp_path / "run", [rows], synthetic.info(synthetic.ARMS[:1]), [("first", case)])
    inputs = read_inputs([run])
    (noted,) = inputs.cases.noted.values()
    counted = {name for of in inputs.features.counts.values() for group, name in of if group != "dialect"}
    assert set(tags) <= counted == set(noted.tags)
