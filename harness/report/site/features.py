"""What a feature's cases came to over releases: one table per arm, vocabulary and suite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from harness.backend.arm import arm
from harness.outcomes.case_state import CaseState
from harness.outcomes.history.conformance import (
    EVERY,
    WORKS,
    Counts,
    FeatureChange,
    SuiteHistory,
    judged,
    releases,
)
from harness.report.site.trend import day
from harness.report.values import short

RELEASES, FEATURES = 12, 200
"""Columns and rows of a table, at most; the page says how many are left out."""


@dataclass(frozen=True)
class FeatureCell:
    """One feature in one release."""

    works: int
    cases: int
    """How many of the feature's cases were judged."""
    colour: str
    """A class of the style sheet; empty where nothing was judged."""
    others: str
    """The other states with their counts, as glyphs."""
    lost: int
    """Cases that worked in the release before; 0 where that cannot be said."""
    won: int
    """Cases that did not; likewise."""

    @property
    def all_work(self) -> bool:
        """Was any of its cases judged, and do all of these work?"""
        return 0 < self.cases == self.works


@dataclass(frozen=True)
class FeatureColumn:
    """One release."""

    version: str
    day: str
    is_other_work: bool
    """Its cases, vocabulary, effort, checks or seed are not those of the column before."""


@dataclass(frozen=True)
class FeatureMatrix:
    """Of how many cases of each feature every release works, on one arm."""

    title: str
    anchor: str
    columns: tuple[FeatureColumn, ...]
    lines: tuple[tuple[str, tuple[FeatureCell | None, ...]], ...]
    always: tuple[str, ...]
    """Features whose cases all work in every release shown."""
    releases_left_out: int
    features_left_out: int


def matrices(histories: Sequence[SuiteHistory], anchor_of: dict[tuple[str, ...], str]) -> list[FeatureMatrix]:
    """Returns a table for each backend, options, vocabulary and suite, in that order; `anchor_of` has the id
    of each."""
    feature_matrices = []
    for key, group in groupby(
        sorted(histories, key=lambda history: (key_of(history), history.time, history.run)), key=key_of
    ):
        every = releases(group)
        feature_matrices.append(_matrix(every[-RELEASES:], len(every[:-RELEASES]), anchor_of[key]))
    return feature_matrices


def key_of(history: SuiteHistory) -> tuple[str, ...]:
    """Returns what a table is of."""
    return history.backend, history.options, history.vocabulary, history.suite


def _matrix(shown: Sequence[SuiteHistory], left_out: int, anchor: str) -> FeatureMatrix:
    last = shown[-1]
    columns = [
        FeatureColumn(short(release.version, 24) or "–", day(release.time), False) for release in shown[:1]
    ]
    columns += [
        FeatureColumn(short(b.version, 24) or "–", day(b.time), not a.is_comparable(b))
        for a, b in pairwise(shown)
    ]
    lines, always = [], []
    for name in sorted({name for release in shown for name in release.features}):
        cells = tuple(
            _cell(release, before, name) for before, release in zip([None, *shown], shown, strict=False)
        )
        there = [cell for cell in cells if cell]
        if not there:  # a history that names the feature and counts no case of it
            continue
        if name != EVERY and all(cell.all_work for cell in there):
            always.append(short(name, 60))
        else:
            lines.append((name, cells))
    # All cases, then what was lost, then what works least; last what nobody judged.
    lines.sort(key=lambda line: (line[0] != EVERY, *_order(line[1]), line[0]))
    named = tuple(
        (short(name, 60) if name != EVERY else "all cases", cells) for name, cells in lines[:FEATURES]
    )
    title = f"{short(arm(last), 60)} on {short(last.suite, 40)}, vocabulary {short(last.vocabulary, 40)}"
    return FeatureMatrix(title, anchor, tuple(columns), named, tuple(always), left_out, len(lines[FEATURES:]))


def _order(cells: Sequence[FeatureCell | None]) -> tuple[bool, float]:
    there = [cell for cell in cells if cell]
    last = there[-1]
    return not any(cell.lost for cell in there), last.works / last.cases if last.cases else math.inf


def _cell(history: SuiteHistory, before: SuiteHistory | None, feature: str) -> FeatureCell | None:
    counts: Counts | None = history.features.get(feature)
    if not counts:
        return None
    works, cases = counts.get(WORKS, 0), judged(counts)
    share = works / cases if cases else 0.0
    colour = (
        ""
        if not cases
        else "q4"
        if share == 1
        else "q3"
        if share >= 0.9
        else "q2"
        if share >= 0.7
        else "q1"
        if share >= 0.4
        else "q0"
    )
    others = " ".join(
        f"{state.words.glyph}{counts[state.value]}"
        for state in CaseState
        if state != CaseState.WORKS and counts.get(state.value)
    )
    step = (
        FeatureChange(before, history, feature)
        if before and before.is_comparable(history) and feature in before.features
        else None
    )
    return FeatureCell(works, cases, colour, others, step.lost if step else 0, step.won if step else 0)
