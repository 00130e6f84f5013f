"""The page ranks arms only over what all of them did, in the same conditions, and says what is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from decode_runs import Played, decoding
from measured import arm, steady, write_measurement
from report_folders import ALPHA, BETA, write_decoding, write_rows

from harness.backend.arm import Arm
from harness.outcomes.summary import common_solved
from harness.report.page.inputs import Inputs, read_inputs
from harness.report.page.matrix import Matrix, matrix
from harness.report.page.matrix_cells import MatrixCell
from harness.report.page.matrix_presets import Preset
from harness.report.page.sections.batches import scaling
from harness.serve.decode.record import Loss
from harness.serve.decode.setting import Setting


def table(*folders: Path) -> Matrix:
    inputs: Inputs = read_inputs(folders)
    return matrix(inputs, common_solved([line.arm for line in inputs.lines]))


def cells(found: Matrix, key: str) -> list[MatrixCell]:
    """Returns the cells of a column, by row."""
    place = [column.key for column in found.columns].index(key)
    return [row[place] for _, row in found.rows]


# --------------------------------------------------------------------------- arms lost in a measurement


def test_warm_masks_of_an_arm_that_was_lost_at_once_in_a_case_are_not_ranked(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beta is the quicker one in the cases in which it was not lost."""
    # The walks have as many tokens as it takes for a median to have an interval.
    monkeypatch.setattr("measured.FILLS", tuple(np.linspace(2000.0, 2100.0, 40)))
    for name, lost in (("whole", ""), ("lost", "beta")):
        write_rows(synthetic, tmp_path / name, (ALPHA, BETA), cases=4)
        write_measurement(
            tmp_path / name,
            {
                arm("alpha", "reference", version=ALPHA.version): steady(1.0),
                arm("beta", version=BETA.version): steady(0.5, seed=1),
                arm("alpha (again)", "a/a", version=ALPHA.version): steady(1.0, seed=2),
            },
            forks=8,
            cases=9,
            left_out=lambda arm, case, *_, of=lost: (arm, case) == (of, "speed8"),
        )
    assert [cell.is_best for cell in cells(table(tmp_path / "whole"), "warm_p50")] == [False, True]
    found = table(tmp_path / "lost")
    alpha, beta = cells(found, "warm_p50")
    assert not (alpha.is_best or beta.is_best) and beta.details == ("1 case not judged",)
    assert alpha.details != beta.details
    assert [cell.details for cell in cells(found, "measured_fill")][1] == ("1 case not judged",)


# --------------------------------------------------------------------------------------- loads of a decoding

LIGHT, HEAVY = (Setting(name, batch=1, texts=2) for name in ("light", "heavy"))
ALL = {"a": (1,) * 12, "b": (1,) * 8}


def at(pass_ms: float, **more: Any) -> Played:
    return Played(ALL, pass_ms, 0.002, **more)


def decode(folder: Path, sides: dict[Setting, dict[str, Played]], lost: int | None = None) -> Path:
    """Writes a record beside passes of 10 ms; alpha is lost in the heavy load in the fork `lost`."""
    record = decoding(sides, plain=at(10.0), forks=5)
    gone = [("alpha", fork) for fork in range(lost, 5)] if lost is not None else []
    batches = [
        batch
        for batch in record.batches
        if record.setup.settings[batch.setting] != HEAVY
        or batch.role == "none"
        or (batch.arm, batch.fork) not in gone
    ]
    losses = [] if lost is None else [Loss(lost, "alpha", 1, "backend", "the process died")]
    return write_decoding(folder, replace(record, batches=tuple(batches), losses=tuple(losses)))


DEAR_FOR_BETA = {
    LIGHT: {"alpha": at(10.6), "beta": at(10.5)},
    HEAVY: {"alpha": at(30.0), "beta": at(20.0)},
}


def overheads(*folders: Path) -> list[tuple[str, str, bool]]:
    """Returns of each row its cell of the overhead: the value, the last detail, and whether it is the
    best."""
    return [(cell.text, cell.details[-1], cell.is_best) for cell in cells(table(*folders), "tpot_1")]


def test_an_arm_that_lost_a_load_is_not_ranked_and_the_others_stand_over_the_loads_of_all(
    tmp_path: Path,
) -> None:
    """Alpha died in the dear load. Over both loads, beta would look dearer than what alpha has left."""
    alpha, beta = overheads(decode(tmp_path / "whole", DEAR_FOR_BETA))
    assert (alpha[0][:4], alpha[2], beta[2]) == ("+78.", False, True)
    folder = decode(tmp_path / "lost", DEAR_FOR_BETA, lost=0)
    alpha, beta = overheads(folder)
    assert (alpha[0][:2], alpha[1:]) == ("+5", ("1 load not measured", False))
    assert beta[0].startswith(("+4.", "+5.")) and not beta[2]
    (drawn,) = scaling(read_inputs([folder]))
    assert "over the workloads light of" in drawn.about
    assert [row[1][:2] for row in drawn.charts[-1].rows] == ["+5", beta[0][:2]]


def test_an_arm_that_lost_a_load_at_one_batch_size_takes_no_other_point_from_the_chart(
    tmp_path: Path,
) -> None:
    """Alpha has the dear load at batch 1 and not at batch 2, where only beta is over both loads."""
    wider = {replace(load, batch=2): dict(arms) for load, arms in DEAR_FOR_BETA.items()}
    del wider[replace(HEAVY, batch=2)]["alpha"]
    (drawn,) = scaling(read_inputs([decode(tmp_path / "run", DEAR_FOR_BETA | wider)]))
    chart = drawn.charts[-1]
    assert chart.heads == ("Arm", "batch 1", "batch 2") and "workloads" not in chart.caption
    assert [[cell[:3] for cell in cells] for _, *cells in chart.rows] == [["+78", "–"], ["+44", "+44"]]


def test_an_arm_without_requests_that_others_have_is_not_ranked(tmp_path: Path) -> None:
    sides = {LIGHT: {"alpha": at(10.6, broken=("b",)), "beta": at(20.0)}}
    alpha, beta = overheads(decode(tmp_path / "broken", sides))
    assert alpha[1:] == ("1 request not measured", False) and not beta[2]


def test_arms_of_two_decodings_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    one = decode(tmp_path / "one", {LIGHT: {"alpha": at(10.6)}})
    other = decode(tmp_path / "other", {HEAVY: {"beta": at(20.0)}})
    alpha, beta = overheads(one, other)
    assert not alpha[2] and beta[1:] == ("of another decoding", False)
    whole = decode(tmp_path / "whole", {LIGHT: {"alpha": at(12.0), "beta": at(20.0)}})
    assert [each[2] for each in overheads(one, other, whole)] == [True, False], "both ran in the third one"


def test_a_load_that_was_lost_in_a_later_fork_is_told_over_the_forks_before(tmp_path: Path) -> None:
    folder = decode(tmp_path / "later", DEAR_FOR_BETA, lost=3)
    alpha, beta = overheads(folder)
    assert alpha[0].startswith("+78.") and alpha[1] == "3 of 5 forks" and "fork" not in beta[1]
    (drawn,) = scaling(read_inputs([folder]))
    assert [row[1][:3] for row in drawn.charts[-1].rows] == ["+78", "+44"]


def test_a_speed_up_is_over_the_loads_that_all_arms_have(tmp_path: Path) -> None:
    """Alpha gains most in the load that beta has not, and is ranked by the other."""
    sides: dict[Setting, dict[str, Played]] = {}
    for load, fast in ((LIGHT, {"alpha": 5.0, "beta": 4.0}), (HEAVY, {"alpha": 1.0})):
        sides[load] = {name: at(10.0) for name in fast}
        sides[replace(load, strategy="jump_forward")] = {name: at(ms) for name, ms in fast.items()}
    alpha, beta = cells(table(decode(tmp_path / "run", sides)), "jump")
    assert alpha.text == "2.00×" and beta.details == ("1 load not measured",)
    assert not (alpha.is_best or beta.is_best)


# ------------------------------------------------------------------------------------------- runs of walks


def of_run(
    synthetic: ModuleType,
    folder: Path,
    one: Arm,
    wrong: int = 0,
    cases: int = 120,
    slower: int = 1,
    **fields: Any,
) -> Path:
    """Writes a run of one arm; fields of its first line and of its machine are these."""
    write_rows(synthetic, folder, (one,), cases=cases, wrong=wrong)
    first, *lines = (folder / "rows.jsonl").read_text().splitlines()
    header = json.loads(first)
    header["machine"] |= fields.pop("machine", {})
    rows = [json.loads(line) for line in lines]
    for row in rows:
        if row.get("compile_ns"):
            row["compile_ns"] *= slower
    (folder / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (header | fields, *rows)))
    return folder


def preset(found: Matrix, title: str) -> Preset:
    return next(one for one in found.presets if one.title == title)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"effort": 2}, "tried with other checks"),
        ({"checks": ["mask_matches_accept"]}, "tried with other checks"),
        ({"cases": 90}, "tried on other cases"),
    ],
    ids=["alike", "effort", "checks", "cases"],
)
def test_outcomes_of_runs_that_were_not_tried_alike_are_not_ranked(
    synthetic: ModuleType, tmp_path: Path, fields: dict[str, Any], why: str
) -> None:
    """The arm that nobody checked is not the best, as the answer on the same page says."""
    alpha = of_run(synthetic, tmp_path / "alpha", ALPHA, wrong=60)
    beta = of_run(synthetic, tmp_path / "beta", BETA, **fields)
    found = table(alpha, beta)
    right = cells(found, "conformance")
    assert [cell.is_best for cell in right] == [False, not why]
    assert right[1].details[-1] == f"not ranked: {why}" if why else "not ranked" not in str(right)
    assert right[1].details[-2 if why else -1].endswith("100.0 %"), "its own interval stays"
    first = preset(found, "Correctness first")
    assert first.order == (() if why else (("beta", ""), ("alpha", "›")))
    if why:
        assert ("beta", why) in first.unranked
    assert [one is not None and one.can_rank for one in found.estimates["compile_p50"]] == [True, True]


def test_arms_that_were_tried_alike_are_ranked_beside_one_that_was_not(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    both = write_rows(synthetic, tmp_path / "both", (ALPHA, BETA), wrong=60)
    other = of_run(synthetic, tmp_path / "other", replace(BETA, backend="gamma"), effort=2)
    found = table(both, other)
    first = preset(found, "Correctness first")
    assert [sign for _, sign in first.order] == ["", "›"]
    assert first.unranked == (("gamma", "tried with other checks"),)
    assert not any(cell.is_best for cell in cells(found, "conformance"))


@pytest.mark.parametrize(
    ("machine", "is_ranked"),
    [
        ({}, True),
        ({"load_avg_1min": "9.5", "cpu_temp": "90 C"}, True),
        ({"cpu_model_name": "slow"}, False),
        ({"cpus_usable": "1"}, False),
    ],
    ids=["the same", "another load", "another processor", "fewer processors"],
)
def test_times_of_another_machine_are_not_ranked(
    synthetic: ModuleType, tmp_path: Path, machine: dict[str, str], is_ranked: bool
) -> None:
    alpha = of_run(synthetic, tmp_path / "alpha", ALPHA)
    beta = of_run(synthetic, tmp_path / "beta", BETA, slower=10, machine=machine)
    found = table(alpha, beta)
    quick, slow = cells(found, "compile_p50")
    assert (quick.is_best, slow.is_best) == (is_ranked, False)
    assert ("not ranked: on another machine" in slow.details) is not is_ranked
    assert preset(found, "Tool calling").order == ((("alpha", ""), ("beta", "›")) if is_ranked else ())
    assert preset(found, "Correctness first").order == (("alpha", ""), ("beta", "="))
