"""A decoding from what the user asked for to its last line: workloads are found, settings planned, arms run
in forks, and texts judged."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import harness
from harness.backend.arm import arm, arm_names
from harness.backend.describe import Description
from harness.backend.registry import parse_specs
from harness.backend.vocabulary import prepare_vocabulary
from harness.errors import BadInput, did_you_mean
from harness.measure.protocol import MeasuredArm, with_again
from harness.oracle.judge import Judge
from harness.paths import expanded
from harness.rows.folder import locked, make_writable, named_by_errors, new_run_id, now
from harness.rows.machine import describe_machine, hardware, hardware_key
from harness.rows.store import refuse_a_record
from harness.running.leftovers import refuse_strangers
from harness.running.looking import look_at
from harness.serve.decode import mechanisms
from harness.serve.decode.engine import DecodeEngine
from harness.serve.decode.model.shapes import SHAPES
from harness.serve.decode.profiles import MECHANISMS, PROFILES, settings
from harness.serve.decode.record import FIGURES, DecodeRecorder, DecodeSetup, has_decoding
from harness.serve.decode.setting import Setting
from harness.serve.decode.workloads import WORKLOADS, Workload, find_workload, judge, judge_cut, own_name
from harness.serve.requests.latency import OBJECTIVES, Objectives
from harness.serve.requests.words import Right
from harness.text import counted, one_line
from harness.walk.loop.strategies import strategies

VOCABULARY = "tekken"
"""The vocabulary of a shape, if none is named; a real model brings its own."""


@dataclass(frozen=True)
class DecodeRequest:
    """The arguments of `grammarbench decode`; None stands for the profile's own."""

    workloads: tuple[str, ...]
    backends: str
    model: str
    vocabulary: str | None
    profile: str
    """The name of one of PROFILES, or MECHANISMS."""
    usual: Setting
    """The usual knobs; workload, strategy and batch come from the other fields."""
    strategies: tuple[str, ...] | None
    batches: tuple[int, ...] | None
    texts: int | None
    prompt_tokens: int | None
    forks: int
    rounds: int | None
    device: str
    dtype: str | None
    out: Path | None
    timeout_s: float
    memory_gb: float
    argv: tuple[str, ...]
    settings: tuple[Setting, ...] = ()
    """Exactly these settings, in place of those of the profile."""
    objectives: Objectives = OBJECTIVES
    again: bool = False
    """Whether the first backend is an arm once more, which shows what two identical arms differ by."""
    accepts: Callable[[Mapping[str, Any]], None] | None = None
    """Is asked about each model as soon as it is built (`Model.describe`), and raises BadInput for one with
    which nothing is to be measured."""


class Interrupted(KeyboardInterrupt):
    """Somebody ended the decoding; what was measured until then is in the folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


def decode(request: DecodeRequest, say: Callable[[str], None]) -> Path:
    """Runs the decoding, and returns its folder. Raises BadInput and Interrupted; what was measured until
    then stays in the folder."""
    planned, switched, rounds = _plan(request)
    workloads = {name: find_workload(name) for name in dict.fromkeys(setting.workload for setting in planned)}
    specs = parse_specs(request.backends)
    model = _prepare_model(request.model)
    vocabulary = prepare_vocabulary(request.vocabulary or (VOCABULARY if model in SHAPES else f"hf:{model}"))
    run_id = new_run_id()
    folder = request.out or Path("results") / "runs" / run_id
    refuse_a_record(folder, has_decoding)
    refuse_strangers(folder, (FIGURES,))
    make_writable(folder)
    with locked(folder), named_by_errors(folder, request.out is None):
        refuse_a_record(folder, has_decoding)  # another session may have written one since
        for workload in workloads.values():
            if workload.left_out:
                say(one_line(workload.left_out, spelled=True))
        described = look_at(specs, [vocabulary], say, reads=False)
        setup = DecodeSetup(
            run=run_id,
            started=now(),
            harness=harness.__version__,
            argv=request.argv,
            profile=request.profile,
            vocabulary=vocabulary,
            sha256=described.vocabularies[vocabulary]["sha256"],
            model=model,
            device=request.device,
            dtype=request.dtype,
            forks=request.forks,
            rounds=rounds,
            arms=_arms(described, request.again),
            settings=planned,
            machine=describe_machine(),
            hardware=hardware_key(hardware()),
            mechanisms=switched,
            objectives=request.objectives,
        )
        say(
            f"{counted(len(planned), 'setting')} x {counted(len(setup.arms), 'backend')} x "
            f"{counted(setup.forks, 'fork')} of {counted(rounds, 'round')} "
            f"and a cold one, into {folder}"
        )
        try:
            _run(folder, setup, workloads, request, say)
        except KeyboardInterrupt as stopped:
            raise Interrupted(folder) from stopped
    return folder


def _plan(request: DecodeRequest) -> tuple[tuple[Setting, ...], tuple[dict[str, Any], ...], int]:
    """Returns the settings, the closing experiment's mechanisms, and the number of warm rounds. Raises
    BadInput."""
    for name in request.strategies or ():
        if name not in strategies():
            raise BadInput(f'unknown strategy "{name}"{did_you_mean(name, list(strategies()))}')
    asked = tuple(map(own_name, request.workloads))
    for what, names in (("strategy", request.strategies or ()), ("workload", asked)):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise BadInput(f'the {what} "{twice[0]}" is named twice; name each once')
    profile = PROFILES["quick" if request.profile == MECHANISMS else request.profile]
    profile = replace(
        profile,
        workloads=asked or profile.workloads or WORKLOADS,
        strategies=request.strategies or profile.strategies,
        batches=request.batches or profile.batches,
        texts=request.texts or profile.texts,
        prompt_tokens=request.prompt_tokens or profile.prompt_tokens,
        rounds=request.rounds or profile.rounds,
    )
    if request.settings:
        return request.settings, (), profile.rounds
    usual = replace(request.usual, prompt_tokens=profile.prompt_tokens, texts=profile.texts)
    if request.profile == MECHANISMS:
        planned, switched = mechanisms.experiment(usual, asked or mechanisms.WORKLOADS)
        return planned, switched, request.rounds or mechanisms.ROUNDS
    return settings(profile, usual, profile.workloads), (), profile.rounds


def _prepare_model(name: str) -> str:
    """Make sure that the model is on this machine, and return the name under which a child loads it. Raises
    BadInput."""
    if name in SHAPES:
        return name
    if expanded(name).is_dir():
        return str(expanded(name).resolve())
    known = (
        f"no shape ({', '.join(SHAPES)}) and no "
        f"folder{did_you_mean(name, list(SHAPES)) if '/' not in name else ''}"
    )
    try:
        from huggingface_hub import snapshot_download

        snapshot_download(name, allow_patterns=["*.json", "*.safetensors"])
    except ImportError as error:
        raise BadInput(
            f'model "{name}": {known}, and without huggingface_hub no hub; pip install '
            "'grammarbench[decode]'"
        ) from error
    except Exception as error:  # the hub client's errors and its transport's share no base
        raise BadInput(
            f'model "{name}": {known}, and the hub does not give it ({one_line(str(error))[:150]})'
        ) from error
    return name


def _arms(described: Description, again: bool) -> tuple[MeasuredArm, ...]:
    """Returns the arms in the order in which they were asked for; with `again` the first one is the
    reference, and its A/A arm comes last."""
    names = arm_names(described.arms)
    arms = tuple(
        MeasuredArm(
            names[described_arm.backend, described_arm.version, described_arm.options],
            arm(described_arm),
            described_arm.backend,
            described_arm.version,
            described_arm.options,
            "arm",
            described_arm.python or sys.executable,
        )
        for described_arm in described.arms
    )
    if not again:
        return arms
    return tuple(with_again(arms, arms[0]))


def _run(
    folder: Path,
    setup: DecodeSetup,
    workloads: dict[str, Workload],
    request: DecodeRequest,
    say: Callable[[str], None],
) -> None:
    verdicts: dict[tuple[str, int, bytes, bool], Right] = {}
    with DecodeRecorder(folder, setup) as recorder, Judge() as judging:

        def right(workload: str, number: int, output: bytes, cut: bool) -> Right:
            texts = workloads[workload].texts
            key = (workload, number % len(texts), output, cut)
            if key not in verdicts:
                judges = judge_cut if cut else judge
                verdicts[key] = judges(texts[key[1]], output, judging)
            return verdicts[key]

        memory_bytes = int(request.memory_gb * 1e9)
        DecodeEngine(setup, memory_bytes, request.timeout_s, recorder, right, say, request.accepts).run()
        recorder.finish(now())
