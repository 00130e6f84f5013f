"""Forks and rounds: one arm at a time, in a fresh child, every setting beside its unconstrained run. Each
answer is written down at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.measure.protocol import MeasuredArm, order
from harness.serve.decode.goodness import PLACE_COLUMNS, Goodness, ScoredText
from harness.serve.decode.record import (
    Child,
    DecodedBatch,
    DecodeRecorder,
    DecodeSetup,
    Judged,
    Loss,
    Whose,
    completed_from,
)
from harness.serve.decode.setting import Setting
from harness.serve.requests.words import Right, Role
from harness.text import one_line
from harness.walk.loop.outcome import ANSWERED, STEP

LOADER = "harness.serve.decode.arm:load_arm"

BUILD_SECONDS = 600.0
"""The most seconds for building a model."""

AGAIN = 3
"""How often a warm run in which passes were captured is made again, at most."""

UNJUDGED: Right = "unjudged"

Fault = tuple[Whose, str]
"""A fault says whose it is that a run came to no end, and why."""

Judge = Callable[[str, int, bytes, bool], Right]
"""Judges a text, given the workload's name, the request's number in it, the text that came out, and whether
it was cut at its limit."""


@dataclass(eq=False)
class DecodingArm:
    """One arm and its service."""

    arm: MeasuredArm
    service: Service
    is_open: bool = False
    """Whether the arm's child has a model."""
    loaded: bool = False
    kind: str = ""
    """What kind of model the child has: `shape` or `real`."""
    warm: set[int] = field(default_factory=set)
    """The settings that the child has served under their grammars, by their places."""
    has_served: bool = False
    """Whether any run of the arm came to an end."""
    failed: str = ""
    """The fault of ours by which the arm's last child was lost, without its numbers; empty if by none."""

    def renew(self) -> None:
        """Drop the child; the next request goes to a fresh one, which has no model yet."""
        self.is_open = False
        self.warm.clear()
        self.service.renew()


@dataclass(frozen=True)
class Turn:
    """One run that an arm has to make."""

    fork: int
    place: int
    """The arm's place in the order of the fork."""
    round: int
    number: int
    """The run's place in its round."""
    role: Role
    setting: int
    """The setting's place in `DecodeSetup.settings`."""


@dataclass(eq=False)
class DecodeEngine:
    """Runs what the setup says."""

    setup: DecodeSetup
    memory_bytes: int
    timeout_s: float
    """The most seconds for one run of a setting."""
    recorder: DecodeRecorder
    judge: Judge
    say: Callable[[str], None]
    accepts: Callable[[Mapping[str, Any]], None] | None = None
    """Refuses a model with which nothing is to be measured, as `DecodeRequest.accepts` says."""
    dead: set[tuple[str, int]] = field(default_factory=set)
    """The pairs of arm and setting that were lost; they are not run again."""
    plain_first: dict[Setting, int] = field(default_factory=dict)
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """What the arm's last constrained run of each setting wrote, by the setting's place: the requests that
    were answered under their grammar, each with the `number`, `ids` and `moves` that a scoring needs."""

    def __post_init__(self) -> None:
        for place, setting in enumerate(self.setup.settings):
            self.plain_first.setdefault(setting.plain, place)

    def run(self) -> None:
        """Run all forks. Raises BadInput if a backend or the model is not to be had, or not accepted."""
        running = [self._service(arm) for arm in self.setup.arms]
        try:
            for running_arm in running:
                running_arm.service.start()
            for fork in range(self.setup.forks):
                shift = fork % len(running)
                for place, running_arm in enumerate([*running[shift:], *running[:shift]]):
                    self.say(f"fork {fork + 1} of {self.setup.forks}: {running_arm.arm.name}")
                    self._arm(fork, place, running_arm)
        finally:
            for running_arm in running:
                running_arm.service.close()

    def _service(self, arm: MeasuredArm) -> DecodingArm:
        arguments = {
            "spec": arm.spec,
            "vocabulary": self.setup.vocabulary,
            "model": self.setup.model,
            "device": self.setup.device,
            "dtype": self.setup.dtype,
        }
        return DecodingArm(arm, Service(LOADER, arguments, self.memory_bytes, arm.python, tells_load=True))

    def _arm(self, fork: int, place: int, running_arm: DecodingArm) -> None:
        """Run one arm's part of a fork."""
        self.outputs = {}
        for plain in self.plain_first:
            mine = self._with_load(plain)
            for round_number in range(self.setup.rounds + 1):
                for number, (role, setting) in enumerate(self._turns(plain, mine, fork, round_number)):
                    served = [setting] if role == "constrained" else mine
                    turn = Turn(fork, place, round_number, number, role, setting)
                    if round_number:
                        self._warm_up(running_arm, turn, mine)
                    if any((running_arm.arm.name, one) not in self.dead for one in served):
                        self._run(running_arm, turn)
        if fork == 0:  # the other forks write the same texts
            self._score(fork, place, running_arm)
        # The next fork's child is fresh, and the device's memory is the next arm's.
        running_arm.renew()

    def _warm_up(self, running_arm: DecodingArm, turn: Turn, mine: Sequence[int]) -> None:
        """Make the cold runs of the load's settings again that the child has not made, because it took the
        place of a lost one. Otherwise runs would count as warm in which grammars are compiled, and without
        replay an unconstrained run would not know what to repeat."""
        while cold := [
            setting
            for setting in mine
            if setting not in running_arm.warm and (running_arm.arm.name, setting) not in self.dead
        ]:
            number = mine.index(cold[0])
            self._run(running_arm, replace(turn, round=0, number=number, role="constrained", setting=cold[0]))

    def _turns(self, plain: Setting, mine: Sequence[int], fork: int, number: int) -> list[tuple[Role, int]]:
        """Returns the runs of a round, as pairs of role and setting.

        In the cold round the unconstrained run is last, because without replay it repeats what was written
        before. It has nothing to compile, and so is made cold in the first fork only.
        """
        constrained: list[tuple[Role, int]] = [("constrained", setting) for setting in mine]
        none: tuple[Role, int] = ("none", self.plain_first[plain])
        if number == 0:
            return [*constrained, none] if fork == 0 else constrained
        return order([none, *constrained], fork * self.setup.rounds + number - 1)

    def _open(self, fork: int, place: int, running_arm: DecodingArm) -> bool:
        """See to it that the arm has a child with a model; returns whether it has. A child that is lost here,
        or has no model, is lost for every setting."""
        if running_arm.is_open:
            return True
        is_loaded = False
        whose: Whose = "harness_error"
        try:
            running_arm.service.wait()
            is_loaded = True
            load_s = 0.0 if running_arm.loaded else float(running_arm.service.description["load_s"])
            answer, _ = running_arm.service.ask(
                {"op": "open", **_needs(self.setup.settings)}, seconds=BUILD_SECONDS
            )
            why = answer.get("harness_error")
        except Lost as lost:
            why = str(lost)
            if not is_loaded and lost.whose == "backend":
                whose = "backend"
        if why is not None:
            running_arm.renew()
            self._lose(fork, running_arm, range(len(self.setup.settings)), whose, why)
            return False
        if self.accepts is not None:
            self.accepts(answer["model"])
        running_arm.is_open = running_arm.loaded = True
        running_arm.kind = str(answer["model"].get("kind", ""))
        facts = {name: answer[name] for name in ("build_s", "threads", "model", "workloads")}
        self.recorder.child(Child(fork=fork, place=place, arm=running_arm.arm.name, load_s=load_s, **facts))
        return True

    def _run(self, running_arm: DecodingArm, turn: Turn) -> None:
        """Make one run of one setting and write it down."""
        if not self._open(turn.fork, turn.place, running_arm):
            return
        setting = self.setup.settings[turn.setting]
        asked = setting if turn.role == "constrained" else setting.plain
        lost = [turn.setting] if turn.role == "constrained" else self._with_load(asked)
        message = {"op": "run", "role": turn.role, "setting": asked.to_json(), "cold": turn.round == 0}
        repeated, kept, fault = self._asked(running_arm, turn, message)
        if kept is not None:
            running_arm.has_served = True
            self.recorder.batch(self._batch(*kept, running_arm.arm.name, turn, repeated))
            if turn.role == "constrained":
                self.outputs[turn.setting] = [
                    {"number": number, "ids": done["ids"], "moves": done["moves"]}
                    for number, done in enumerate(kept[0]["completed"])
                    if done["end"] in ANSWERED and done["compile_state"] and not done["fallback"]
                ]
        if fault is not None:
            self._lose(turn.fork, running_arm, lost, *fault)
            self._give_up(turn.fork, running_arm, *fault)
        elif turn.role == "constrained":
            running_arm.warm.add(turn.setting)

    def _asked(
        self, running_arm: DecodingArm, turn: Turn, message: dict[str, Any]
    ) -> tuple[int, tuple[dict[str, Any], bytes] | None, Fault | None]:
        """Has the run made, and made again if it is a warm one in which passes were captured: a cold run does
        not meet every size of pass. Returns how often it was made again, the last whole answer, and the fault
        by which the run or a repeat of it was lost; then the child is gone, unless it is sound."""
        repeated, kept = -1, None
        try:
            while kept is None or (turn.round and kept[0]["captured"] and repeated < AGAIN):
                answer, blob = running_arm.service.ask(message, seconds=self.timeout_s)
                for whose in ("not_offered", "harness_error"):
                    if whose in answer:
                        if whose == "harness_error" and not answer.get("sound"):
                            running_arm.renew()
                        return max(repeated, 0), kept, (whose, answer[whose])
                repeated, kept = repeated + 1, (answer, blob)
        except Lost as why:
            running_arm.renew()
            ours = turn.role == "none" or why.whose == "harness"
            return max(repeated, 0), kept, ("harness_error" if ours else "backend", str(why))
        return repeated, kept, None

    def _give_up(self, fork: int, running_arm: DecodingArm, whose: Whose, why: str) -> None:
        """Loses the rest of an arm that made no run at all and lost two children running by the same fault of
        ours: each further one would build the model only to meet it."""
        if running_arm.is_open:
            return
        same = re.sub(r"0x[0-9a-f]+|\d+", "", why) if whose == "harness_error" else ""
        if same and same == running_arm.failed and not running_arm.has_served:
            rest = range(len(self.setup.settings))
            self._lose(fork, running_arm, rest, whose, f"not tried, as two before it were lost so: {why}")
        running_arm.failed = same

    def _score(self, fork: int, place: int, running_arm: DecodingArm) -> None:
        """Has the texts of every setting scored, and writes the scores down. The arm's child has made its
        last run, and ends afterwards. Nothing is done for a shape, whose weights are random."""
        if running_arm.kind == "real" and self.outputs:
            self.say(f"{running_arm.arm.name}: asking the model about the texts that it wrote")
        for number, outputs in self.outputs.items():
            if not self._open(fork, place, running_arm) or running_arm.kind != "real":
                return
            arm, setting = running_arm.arm.name, self.setup.settings[number]
            try:
                answer, blob = running_arm.service.ask(
                    {"op": "score", "setting": setting.to_json(), "outputs": outputs}, seconds=self.timeout_s
                )
            except Lost as why:
                answer, blob = {"harness_error": str(why)}, b""
            if "harness_error" in answer and not answer.get("sound"):
                running_arm.renew()
            why_not = one_line(str(answer.get("harness_error", "")))[:500]
            if why_not:
                self.say(f"{arm}, {setting.name}: its texts were not scored ({why_not[:200]})")
            self.recorder.goodness(
                Goodness(arm, number, _scored_texts(answer, blob), answer.get("left_out", {}), why_not)
            )

    def _batch(
        self, answer: dict[str, Any], blob: bytes, arm: str, turn: Turn, repeated: int
    ) -> DecodedBatch:
        """Returns what the arm's child answered of a run, with the texts of answered requests judged."""
        workload = self.setup.settings[turn.setting].workload
        judged = []
        rows = zip(completed_from(answer["completed"]), answer["texts"], answer["as_replayed"], strict=True)
        for which, (done, text, as_replayed) in enumerate(rows):
            cut, right = done.end == "limit", UNJUDGED
            # A beginning of the text to replay, which is valid, needs no judge.
            if turn.role == "constrained" and done.end in ANSWERED and not (cut and as_replayed):
                right = self.judge(workload, which, bytes.fromhex(text), cut)
            judged.append(Judged(done, right, as_replayed))
        return DecodedBatch(
            fork=turn.fork,
            round=turn.round,
            place=turn.number,
            arm=arm,
            role=turn.role,
            setting=turn.setting,
            wall_ns=answer["wall_ns"],
            passes=answer["passes"],
            peak_bytes=answer["peak_bytes"],
            counts=answer["counts"],
            completed=tuple(judged),
            steps=np.frombuffer(blob, "<i8").reshape(-1, len(STEP)),
            captured=answer["captured"],
            repeated=repeated,
        )

    def _with_load(self, plain: Setting) -> list[int]:
        return [number for number, setting in enumerate(self.setup.settings) if setting.plain == plain]

    def _lose(
        self, fork: int, running_arm: DecodingArm, settings: Sequence[int], whose: Whose, why: str
    ) -> None:
        for setting in settings:
            if (running_arm.arm.name, setting) in self.dead:
                continue
            self.dead.add((running_arm.arm.name, setting))
            self.recorder.loss(Loss(fork, running_arm.arm.name, setting, whose, one_line(why)[:500]))
            self.say(
                f"{running_arm.arm.name}, {self.setup.settings[setting].name}: not measured ({whose}: "
                f"{one_line(why)[:200]})"
            )


def _scored_texts(answer: dict[str, Any], blob: bytes) -> tuple[ScoredText, ...]:
    """Returns the texts of an answer to `score`, none where it has none."""
    table, at, texts = np.frombuffer(blob, "<i8").reshape(-1, len(PLACE_COLUMNS)), 0, []
    for text in answer.get("texts", ()):
        places = table[at : at + text["places"]]
        texts.append(ScoredText(text["name"], text["ids"], text["other"], places))
        at += len(places)
    return tuple(texts)


def _needs(settings: Sequence[Setting]) -> dict[str, Any]:
    """Returns what the model must hold to serve all settings."""
    limits = [setting.limit for setting in settings]
    return {
        "rows": max(setting.batch for setting in settings),
        "loads": {
            name: max(setting.texts for setting in settings if setting.workload == name)
            for name in {setting.workload: None for setting in settings}
        },
        "prompt_tokens": max(setting.prompt_tokens for setting in settings),
        "limit": None if None in limits else max(limit for limit in limits if limit is not None),
        "draft_tokens": max(setting.draft_tokens for setting in settings),
    }
