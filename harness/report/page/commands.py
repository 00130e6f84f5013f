"""The reader's own commands that measure what the runs of a page do not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cases.suite import DECODED
from harness.report.page.inputs import Inputs
from harness.rows.again import is_live, more, spec_of, suite_word, worded
from harness.rows.row import RunInfo
from harness.serve.decode.record import DecodeSetup
from harness.serve.decode.workloads import WORKLOADS

STRATEGIES = ("--strategies", "stepwise,jump_forward")


def commands(inputs: Inputs) -> dict[str, str]:
    """Returns the commands that would measure what is missing, by what they measure. What no command
    measures is not there: a live server, and the decoding of suites of which no text is known as valid."""
    every = [(run.folder, run.info) for run in (*inputs.runs, *inputs.scouting)]
    runs = [(folder, info) for folder, info in every if not is_live(info)]
    specs = _specs(inputs, runs)
    if every and not specs:
        return {}
    verbs = {"run": (), "measure": (), "kernels": (), "decode": STRATEGIES}
    if runs:
        if not all(_has_texts(info) for _, info in runs):
            del verbs["decode"]
        return {verb: more(verb, runs, specs, *options) for verb, options in verbs.items()}
    return {verb: _of_decodings(verb, inputs, specs, *options) for verb, options in verbs.items()}


def _specs(inputs: Inputs, runs: Sequence[tuple[Path, RunInfo]]) -> list[str]:
    """Returns the backends as `--backends` takes them, but for controls and live servers."""
    released = (
        {arm.backend for _, info in runs for arm in info.arms if arm.distribution}
        if runs
        else {subject.backend for subject in inputs.subjects}
    )
    subjects = [
        subject
        for subject in inputs.subjects
        if subject.line is None or not (subject.line.is_control or is_live(subject.line.run.info))
    ]
    return list(
        dict.fromkeys(spec_of(subject, subject.version, subject.backend in released) for subject in subjects)
    )


def _has_texts(info: RunInfo) -> bool:
    """Returns whether each suite came with instances: `decode` makes none, and refuses a suite without."""
    return all(about.get("instances", 1) > about.get("generated", 0) for about in info.suites.values())


def _of_decodings(verb: str, inputs: Inputs, specs: Sequence[str], *options: str) -> str:
    """Returns the command for the workloads and vocabularies of the decodings, on a page without a run."""
    decodings = [decoded.decoding for decoded in inputs.decoded]
    suites = dict.fromkeys(word for decoding in decodings for word in _asked(verb, decoding.setup))
    vocabularies = dict.fromkeys(decoding.setup.vocabulary for decoding in decodings)
    folder = decodings[0].folder if decodings else None
    return worded(verb, folder, list(suites), list(vocabularies), specs, *options)


def _asked(verb: str, setup: DecodeSetup) -> Iterator[str]:
    """Yields the decoding's workloads as its command named them. One of ours is part of a suite, which the
    other commands take."""
    for workload in dict.fromkeys(setting.workload for setting in setup.settings):
        if workload in WORKLOADS:
            yield workload if verb == "decode" else DECODED
        else:
            named = [word for word in setup.argv[1:] if Path(word).stem == workload]
            yield named[0] if named else suite_word(workload)
