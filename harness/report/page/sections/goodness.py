"""What the grammar takes from a real model: removed probability, tax, and spellings, from records of
decoding."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.page.content import Content
from harness.report.page.decodes import about
from harness.report.page.section import Section, Values
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.figures import Values as Figures
from harness.serve.decode.show import central
from harness.serve.requests.titles import FIGURES, say

LINES = 200
"""Most lines of the table."""

COLUMNS = ("removed", "favourite_masked", "tax", "tax_per_id", "imposed", "canonical", "canonical_ids")
"""The figures of a line, behind its load, its arm and the number of its texts."""

HEADS = ("Load", "Arm", "Texts", *(FIGURES[name].title for name in COLUMNS))


@dataclass(frozen=True)
class Scored:
    """One record of decoding."""

    about: str
    rows: tuple[tuple[str, ...], ...]
    """The cells of each line, in the order of HEADS."""
    left_off: int
    why: str
    """Why nothing was scored; empty if something was."""
    unscored: tuple[str, ...]
    """What could not be scored, and why."""


def values(page: Content) -> Values | None:
    """Returns a table for every decode record; None where there is no such record."""
    records = [_record(decoded) for decoded in page.inputs.decoded]
    return {"records": records, "heads": HEADS} if records else None


SECTION = Section("goodness", "What the grammar takes", 85, values, "serving")


def _record(decoded: Decoded) -> Scored:
    cells = [cell for cell in decoded.cells if cell.goodness is not None]
    rows = [_row(cell, decoded.values(cell)) for cell in cells[:LINES]]
    unscored = [
        f"{_load(cell)}, {cell.arm}: {reason}"
        for cell in cells
        if cell.goodness is not None
        for reason in [
            *([cell.goodness.why] if cell.goodness.why else []),
            *(f"{count} not scored: {why}" for why, count in cell.goodness.left_out.items()),
        ]
    ]
    head = f"{decoded.decoding.setup.run}: {about(decoded)}"
    return Scored(
        head, tuple(rows), max(0, len(cells) - LINES), decoded.why_not_scored(), tuple(unscored[:LINES])
    )


def _load(cell: DecodeCell) -> str:
    mode = "" if cell.setting.mode == "replay" else f" {cell.setting.mode}"
    return f"{cell.setting.workload} ×{cell.setting.batch} {cell.strategy.replace('_', '-')}{mode}"


def _row(cell: DecodeCell, figures: Figures) -> tuple[str, ...]:
    assert cell.goodness is not None
    return _load(cell), cell.arm, str(len(cell.goodness.texts)), *(_said(figures, name) for name in COLUMNS)


def _said(figures: Figures, name: str) -> str:
    one = central(figures, name)
    return say(name, one) if one is not None else "–"
