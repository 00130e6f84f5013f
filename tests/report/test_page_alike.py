"""The page ranks arms only over what all of them did, in the same conditions, and says what is left out."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from measured import arm, steady, write_measurement
from report_folders import ALPHA, BETA, write_rows

from harness.outcomes.summary import common_solved
from harness.report.page.inputs import Inputs, read_inputs
from harness.report.page.matrix import Matrix, matrix
from harness.report.page.matrix_cells import MatrixCell


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
    # So many tokens that a median has an interval.
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
