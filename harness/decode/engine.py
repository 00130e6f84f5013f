"""Forks and rounds: one arm at a time, in a fresh child, every setting beside its unconstrained run; each answer is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.decode.record import Batch, Child, Judged, Loss, Recorder, Right, Role, Setup, Whose, completed_from
from harness.decode.setting import Setting
from harness.errors import BadInput, one_line
from harness.loop.outcome import STEP
from harness.measure.protocol import MeasuredArm, order
from harness.service.client import Lost, Service

LOADER = "harness.decode.arm:load_arm"

BUILD_SECONDS = 600.0
"""For building a model."""

Judge = Callable[[str, int, bytes], Right]
"""Of a workload's name, a request's number in it and the text that came out."""


@dataclass(eq=False)
class Running:
    """One arm."""

    arm: MeasuredArm
    service: Service
    is_open: bool = False
    """Has its child a model?"""
    loaded: bool = False


@dataclass(eq=False)
class Engine:
    """Runs what the setup says."""

    setup: Setup
    memory_bytes: int
    timeout_s: float
    """Of one run of a setting."""
    recorder: Recorder
    judge: Judge
    say: Callable[[str], None]
    dead: set[tuple[str, int]] = field(default_factory=set)
    """Arm and setting that were lost; nothing more is asked of them."""
    plain_first: dict[Setting, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, each in enumerate(self.setup.settings):
            self.plain_first.setdefault(each.plain, place)

    def run(self) -> None:
        """All forks. Raises BadInput if a backend or the model is not to be had."""
        running = [self._service(arm) for arm in self.setup.arms]
        try:
            for each in running:
                each.service.start()
            for fork in range(self.setup.forks):
                shift = fork % len(running)
                for place, each in enumerate([*running[shift:], *running[:shift]]):
                    self.say(f"fork {fork + 1} of {self.setup.forks}: {each.arm.name}")
                    self._arm(fork, place, each)
        finally:
            for each in running:
                each.service.close()

    def _service(self, arm: MeasuredArm) -> Running:
        arguments = {
            "spec": arm.spec,
            "vocabulary": self.setup.vocabulary,
            "model": self.setup.model,
            "device": self.setup.device,
            "dtype": self.setup.dtype,
        }
        return Running(arm, Service(LOADER, arguments, self.memory_bytes, arm.python))

    def _arm(self, fork: int, place: int, each: Running) -> None:
        """One arm's turn in a fork."""
        each.is_open = False
        for plain in self.plain_first:
            mine = [number for number, setting in enumerate(self.setup.settings) if setting.plain == plain]
            for number in range(self.setup.rounds + 1):
                for turn, (role, setting) in enumerate(self._turns(plain, mine, fork, number)):
                    if any((each.arm.name, one) not in self.dead for one in ([setting] if role == "constrained" else mine)):
                        self._run(fork, place, number, turn, each, role, setting)
        each.service.renew()  # the next fork's child is fresh, and the device's memory is the next arm's

    def _turns(self, plain: Setting, mine: Sequence[int], fork: int, number: int) -> list[tuple[Role, int]]:
        """The runs of a round. In the cold one the unconstrained run is last: where nothing is replayed it repeats what came before.

        It has nothing to compile, and so is made cold in the first fork only.
        """
        constrained: list[tuple[Role, int]] = [("constrained", setting) for setting in mine]
        none: tuple[Role, int] = ("none", self.plain_first[plain])
        if number == 0:
            return [*constrained, none] if fork == 0 else constrained
        return order([none, *constrained], fork * self.setup.rounds + number - 1)

    def _open(self, fork: int, place: int, each: Running) -> bool:
        """See that there is a child with a model; what is lost here is lost for every setting."""
        if each.is_open:
            return True
        whose: Whose = "backend"
        try:
            each.service.wait()
            whose = "harness_error"
            load_s = 0.0 if each.loaded else float(each.service.said["load_s"])
            answer, _ = each.service.ask({"op": "open", **_needs(self.setup.settings)}, seconds=BUILD_SECONDS)
        except Lost as why:
            self._lose(fork, each, range(len(self.setup.settings)), whose, str(why))
            return False
        if "bad_input" in answer:
            raise BadInput(answer["bad_input"])
        each.is_open = each.loaded = True
        said = {name: answer[name] for name in ("build_s", "threads", "model", "workloads")}
        self.recorder.child(Child(fork=fork, place=place, arm=each.arm.name, load_s=load_s, **said))
        return True

    def _run(self, fork: int, place: int, number: int, turn: int, each: Running, role: Role, setting: int) -> None:
        """One run of one setting, written down."""
        if not self._open(fork, place, each):
            return
        asked = self.setup.settings[setting] if role == "constrained" else self.setup.settings[setting].plain
        lost = [setting] if role == "constrained" else self._with_load(asked)
        try:
            answer, blob = each.service.ask({"op": "run", "role": role, "setting": asked.to_json()}, seconds=self.timeout_s)
        except Lost as why:
            each.is_open = False
            each.service.renew()
            ours = role == "none" or str(why).startswith("it raised")
            self._lose(fork, each, lost, "harness_error" if ours else "backend", str(why))
            return
        if "bad_input" in answer:  # no memory for a graph of this pass, say
            raise BadInput(answer["bad_input"])
        for whose in ("not_offered", "harness_error"):
            if whose in answer:
                self._lose(fork, each, lost, whose, answer[whose])
                return
        self.recorder.batch(self._batch(answer, blob, fork, number, turn, each.arm.name, role, setting))

    def _batch(self, answer: dict[str, Any], blob: bytes, fork: int, number: int, turn: int, arm: str, role: Role, setting: int) -> Batch:
        workload = self.setup.settings[setting].workload
        judged = []
        rows = zip(completed_from(answer["completed"]), answer["numbers"], answer["texts"], answer["as_replayed"], strict=True)
        for done, which, text, as_replayed in rows:
            judges = role == "constrained" and done.end == "end_of_sequence"
            right: Right = self.judge(workload, which, bytes.fromhex(text)) if judges else "unjudged"
            judged.append(Judged(done, right, as_replayed))
        return Batch(
            fork=fork,
            round=number,
            place=turn,
            arm=arm,
            role=role,
            setting=setting,
            wall_ns=answer["wall_ns"],
            passes=answer["passes"],
            peak_bytes=answer["peak_bytes"],
            counts=answer["counts"],
            completed=tuple(judged),
            steps=np.frombuffer(blob, "<i8").reshape(-1, len(STEP)),
        )

    def _with_load(self, plain: Setting) -> list[int]:
        return [number for number, each in enumerate(self.setup.settings) if each.plain == plain]

    def _lose(self, fork: int, each: Running, settings: Sequence[int], whose: Whose, why: str) -> None:
        for setting in settings:
            if (each.arm.name, setting) in self.dead:
                continue
            self.dead.add((each.arm.name, setting))
            self.recorder.loss(Loss(fork, each.arm.name, setting, whose, one_line(why)[:500]))
            self.say(f"{each.arm.name}, {self.setup.settings[setting].name}: not measured ({whose}: {one_line(why)[:200]})")


def _needs(settings: Sequence[Setting]) -> dict[str, Any]:
    """What the model must hold."""
    limits = [each.limit for each in settings]
    return {
        "rows": max(each.batch for each in settings),
        "loads": {
            name: max(each.texts for each in settings if each.workload == name) for name in {each.workload: None for each in settings}
        },
        "prompt_tokens": max(each.prompt_tokens for each in settings),
        "limit": None if None in limits else max(each for each in limits if each is not None),
        "draft_tokens": max(each.draft_tokens for each in settings),
    }
