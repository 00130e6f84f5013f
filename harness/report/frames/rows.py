"""The rows of a run as lines of tables: cases, instances and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness.backend.arm import arm_names, full_name
from harness.measure.statistics import observed_quantile
from harness.outcomes.controls import controls
from harness.outcomes.outcome import Outcome, faults, is_documented, outcome, walk_verdict
from harness.outcomes.result import Noticed
from harness.outcomes.summary import ArmSummary, CaseSummary, arm_key, fills_of
from harness.rows.row import CHECKS_MODE, Row, RunInfo

Line = dict[str, Any]

TEXT, COUNT, TIME, YES_NO = "object", "Int64", "Float64", "boolean"
"""The types of columns, each of which can be missing."""

WHOSE = dict.fromkeys(("run", "arm", "backend", "version", "options", "vocabulary"), TEXT)
"""The columns that say whose line it is."""

WHICH = dict.fromkeys(("suite", "case", "case_id", "dialect"), TEXT)
"""The columns that say which case it is of."""

CASES = {
    **WHOSE, **WHICH, "tags": TEXT, "outcome": TEXT, "state": TEXT, "judged": YES_NO, "faults": TEXT,
    "documented": TEXT, "said": TEXT, "compile_us": TIME, "first_fill_us": TIME,
    "ttfm_us": TIME, "masks": COUNT, "mask_p50_us": TIME, "mask_max_us": TIME, "repro": TEXT,
}  # fmt: skip

INSTANCES = {
    **WHOSE, **WHICH, "instance": COUNT, "instance_name": TEXT, "mode": TEXT, "outcome": TEXT,
    "documented": YES_NO, "valid": YES_NO, "accepted": YES_NO, "stopped_at": COUNT, "status": TEXT,
    "phase": TEXT, "said": TEXT, "tokens": COUNT, "bytes": COUNT, "compile_us": TIME,
    "matcher_new_us": TIME, "first_fill_us": TIME, "walk_us": TIME, "peak_rss_bytes": COUNT,
}  # fmt: skip

FINDINGS = {
    **WHOSE, **WHICH, "instance": COUNT, "check": TEXT, "cause": TEXT, "documented": YES_NO, "fails": YES_NO,
    "position": COUNT, "over": COUNT, "under": COUNT, "said": TEXT, "examples": TEXT,
}  # fmt: skip


def microseconds(ns: int | None) -> float | None:
    """Returns a time in nanoseconds in microseconds; None for none."""
    return None if ns is None else ns / 1e3


class Seen:
    """Gathers the lines of one run while its rows pass."""

    def __init__(self, run: str, info: RunInfo) -> None:
        self.run = run
        self.names = arm_names(info.arms)
        self.controls = controls(info)
        self.instances: list[Line] = []
        self.findings: list[Line] = []
        self._cases: dict[tuple[str, str], Line] = {}
        """What a line says of the case itself, by the suite and the id of the case."""

    def whose(self, backend: str, version: str, options: str, vocabulary: str) -> Line:
        """Returns the columns that say whose line it is."""
        name = self.names.get((backend, version, options)) or (f"{backend}:{options}" if options else backend)
        who = {"backend": backend, "version": version, "options": options, "vocabulary": vocabulary}
        return {"run": self.run, "arm": name, **who}

    def add(self, row: Row) -> None:
        """Takes in one row."""
        which = {"suite": row.suite, "case": row.case, "case_id": row.case_id, "dialect": row.dialect}
        if (row.suite, row.case_id) not in self._cases:
            self._cases[row.suite, row.case_id] = {**which, "tags": " ".join(row.tags)}
        common = self.whose(*arm_key(row)) | which
        if row.mode != CHECKS_MODE:
            self.instances.append(
                common
                | {
                    "instance": row.instance,
                    "instance_name": row.instance_name,
                    "mode": row.mode,
                    "outcome": _outcome(row),
                    "documented": is_documented(row),
                    "valid": row.valid,
                    "accepted": row.accepted,
                    "stopped_at": row.stopped_at,
                    "status": row.status,
                    "phase": row.phase,
                    "said": row.text,
                    "tokens": row.tokens,
                    "bytes": row.bytes,
                    "compile_us": microseconds(row.compile_ns),
                    "matcher_new_us": microseconds(row.matcher_new_ns),
                    "first_fill_us": microseconds(row.first_fill_ns),
                    "walk_us": microseconds(row.wall_ns),
                    "peak_rss_bytes": row.peak_rss_bytes,
                }
            )
        for fault in faults(row):
            if (finding := fault.finding) is not None:
                self.findings.append(
                    common
                    | {
                        "instance": row.instance if finding.instance is None else finding.instance,
                        "check": finding.check,
                        "cause": finding.cause,
                        "documented": finding.documented,
                        "fails": fault.fails,
                        "position": finding.position,
                        "over": finding.over,
                        "under": finding.under,
                        "said": finding.text,
                        "examples": " ".join(finding.examples),
                    }
                )

    def case_lines(self, arms: Sequence[ArmSummary], noticed: Noticed) -> Iterator[Line]:
        """Yields a line per case of each arm; call it once all rows have been taken in."""
        failing = {(case.arm, case.suite, case.case_id): case for case in noticed.failing(arms)}
        for one in arms:
            whose = self.whose(*one.key)
            for (suite, case_id), case in one.cases.items():
                wrong = failing.get((full_name(one), suite, case_id))
                yield {
                    **whose,
                    **self._cases[suite, case_id],
                    "outcome": case.rows.outcome.value,
                    "state": case.rows.state.value,
                    "judged": case.rows.is_judged,
                    "faults": " ".join(wrong.faults) if wrong else "",
                    "documented": " ".join(wrong.documented) if wrong else "",
                    "said": wrong.said if wrong else "",
                    "compile_us": microseconds(case.compile_ns),
                    "first_fill_us": microseconds(case.first_fill_ns),
                    "ttfm_us": microseconds(case.ttfm_ns),
                    **_masks(one, case),
                    "repro": wrong.repro if wrong else "",
                }


def _outcome(row: Row) -> str:
    """Returns what the walk came to in the words of docs/words.md: where all that is wrong with it is
    documented, its verdict, because a column of its own says that."""
    found = outcome(row)
    return walk_verdict(row) if found == Outcome.DOCUMENTED else found.value


def _masks(of: ArmSummary, case: CaseSummary) -> Line:
    """Returns how many masks of the case were filled, and how long they took; nothing where a run was
    published without its samples."""
    ns = fills_of(of, case) if len(of.samples) else np.zeros(0, np.int64)
    if not len(ns):
        return {}
    middle = observed_quantile(ns, 0.5)
    return {"masks": len(ns), "mask_p50_us": middle / 1e3, "mask_max_us": int(ns.max()) / 1e3}
