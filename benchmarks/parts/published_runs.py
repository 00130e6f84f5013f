"""Packs whole runs into a folder of results/published."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from further_sessions import copy_sessions

from harness.errors import BadInput
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report
from harness.rows.folder import ROWS, SAMPLES
from harness.rows.store import PACKED, packed, read_info


def publish(runs: Sequence[str], into: Path, with_samples: bool = False) -> None:
    """Packs the rows of each run, given as NAME=RUN, and writes its page; the samples of times, which are
    large, lie beside them only where they are asked for. What has that name is replaced once the new one is
    whole. Raises BadInput."""
    named = [(name, Path(path)) for name, _, path in (given.partition("=") for given in runs)]
    for (name, run), given in zip(named, runs, strict=True):
        if not name or Path(name).name != name or not given.partition("=")[2]:
            raise BadInput(f'"{given}": give NAME=RUN, the name of a folder below --into and a run')
        read_info(run)
    for name, run in named:
        folder, made = into / name, into / f"{name}.new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        write_report(read_inputs([run], to_be_published=True), made / "report.html")
        copy_sessions(run, made)
        if with_samples:
            shutil.copy(run / SAMPLES, made / SAMPLES)
        (made / PACKED).write_bytes(packed((run / ROWS).read_bytes()))
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
