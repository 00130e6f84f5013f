"""Every case of the runs with what came of it on each arm: what the case explorer, its files and the groups
are made of.

`Cases` is a collector beside `Failures` (failing.py) because the explorer and the groups need every case,
those that pass too, with the fields of its rows, where `Failures` counts walks by reason and keeps sentences
of the failing ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Instance
from harness.cases.case_line import CASES_FILE
from harness.errors import BadInput
from harness.outcomes.delayed import Delayed, add_once, delayed_of
from harness.outcomes.outcome import (
    LAST,
    NOT_COMPILED,
    CaseRows,
    Order,
    Outcome,
    outcome,
    telling,
    worst_fault,
)
from harness.outcomes.summary import arm_key
from harness.report.cases.failing import (
    CASE_KINDS,
    LOST,
    OUTCOMES,
    CaseKey,
    Who,
    case_kind,
    kind_of,
    shortened,
)
from harness.rows.row import CHECKS_MODE, DECLINED, Row
from harness.rows.store import published_without, read_cases, read_info
from harness.text import beginning

LETTERS = {kind: chr(ord("a") + place) for place, kind in enumerate(OUTCOMES)}
"""One letter for each outcome of a walk, so that those of a case are a string; `.` where an instance was not
walked."""
CASE_LETTERS = {kind: chr(ord("a") + place) for place, kind in enumerate(CASE_KINDS)}
"""The same for what cases come to, so that a column of them is a string; `.` where the case was not run."""

TEXT = 65_536
"""Characters of a grammar, bytes of an instance, that are kept at most."""
NAME, TAG, TAGS, MESSAGE = 300, 80, 200, 2000
INSTANCES, NOTES, FINDINGS, EXAMPLES, WALK = 12, 40, 8, 12, 200
"""How many of each are kept of one case."""


@dataclass(frozen=True)
class Note:
    """One thing that went wrong."""

    who: Who
    instance: int | None
    kind: str
    row: dict[str, Any]
    """What is kept of the row."""
    order: Order
    """The key by which the worst fault of the row is sorted among those of other rows."""


@dataclass
class CaseNoted:
    """One case and what came of it."""

    suite: str
    id: str
    name: str
    dialect: str
    tags: tuple[str, ...]
    rows: dict[Who, CaseRows] = field(default_factory=dict)
    """Its rows, folded by arm."""
    documented: set[Who] = field(default_factory=set)
    """The arms on which a row diverges as the backend documents."""
    walks: dict[Who, dict[int, int]] = field(default_factory=dict)
    """The worst outcome of its walks by arm and instance, as its place in OUTCOMES."""
    notes: dict[tuple[Who, int | None, str, str, str], Note] = field(default_factory=dict)
    delayed: list[tuple[Who, Delayed]] = field(default_factory=list)
    """What befell it behind other cases, and not alone."""
    more: int = 0
    """Notes that are not kept, which are no worse than those that are."""

    def kind(self, who: Who) -> str:
        """Returns what it came to on the arm, one of CASE_KINDS."""
        return case_kind(self.rows[who], who in self.documented)

    def worst_first(self) -> list[Note]:
        """Returns the notes, the worst first, as an answer and `grammarbench repro` tell it."""
        return sorted(self.notes.values(), key=lambda note: note.order)

    @property
    def is_shown_first(self) -> bool:
        """Does it fail on an arm, or is it refused, or does it diverge as documented? What only we lost does
        not count."""
        return any(note.kind != LOST for note in self.notes.values())


PLACES = {kind: place for place, kind in enumerate(OUTCOMES)}

Vocabularies = dict[tuple[str, str], Vocabulary | None]
"""The vocabularies that were looked for, by name and SHA-256; None for one that is not on this machine."""


@dataclass
class Cases:
    """Takes in every row of the runs."""

    noted: dict[CaseKey, CaseNoted] = field(default_factory=dict)

    def add(self, row: Row, run: int) -> None:
        """Takes in one row of the run at this position."""
        if row.mode == CHECKS_MODE and (row.status in DECLINED or row.phase in NOT_COMPILED):
            return  # the walks of the case say it already
        key = row.suite, row.case_id
        case = self.noted.get(key)
        if case is None:
            tags = tuple(tag[:TAG] for tag in kept_tags(row))
            case = self.noted[key] = CaseNoted(row.suite, row.case_id, row.case[:NAME], row.dialect, tags)
        who = run, arm_key(row)
        if (later := delayed_of(row)) is not None:
            add_once(case.delayed, (who, later))
        came_to = outcome(row)
        failed = kind_of(came_to)
        case.rows.setdefault(who, CaseRows()).add(row)
        if came_to == Outcome.DOCUMENTED:
            case.documented.add(who)
        place = PLACES[came_to]
        if row.instance is not None:
            walks = case.walks.setdefault(who, {})
            walks[row.instance] = min(place, walks.get(row.instance, place))
        if failed is None:
            return
        # From the compile on, what happened to the case happened to every instance: one note says it.
        along = None if row.phase in NOT_COMPILED or failed == "declined" else row.instance
        kept = (
            who,
            along,
            failed,
            row.phase,
            row.text if along is None else f"{row.mode} {row.jump_forward} {row.repeat} {row.text}",
        )
        if kept in case.notes:
            return
        worst = worst_fault(row)
        case.notes[kept] = Note(who, along, failed, _kept(row), worst.order if worst is not None else LAST)
        if len(case.notes) > NOTES:
            case.more += 1
            del case.notes[max(reversed(case.notes), key=lambda one: case.notes[one].order)]


def kept_tags(row: Row) -> tuple[str, ...]:
    """Returns the tags by which the case is found and counted, each once."""
    return tuple(dict.fromkeys(row.tags))[:TAGS]


def _kept(row: Row) -> dict[str, Any]:
    """Returns what the page shows of a failing row; what is not there is left out, for that is most of it."""
    findings = [
        _there(
            check=finding.check[:100],
            at=finding.position,
            text=finding.text[:MESSAGE],
            cause=finding.cause[:100],
            documented=finding.documented or None,
            instance=finding.instance,
            over=finding.over or None,
            under=finding.under or None,
            examples=[example[:200] for example in finding.examples[:EXAMPLES]],
            walk=list(finding.walk[:WALK]),
        )
        for finding in sorted(row.findings, key=telling)[:FINDINGS]
    ]
    return _there(
        status=row.status,
        phase=row.phase,
        signal=row.signal,
        text=row.text[:MESSAGE],
        at=row.stopped_at,
        allowed=row.allowed,
        tokens=row.tokens or None,
        findings=findings,
        more_findings=max(0, len(row.findings) - FINDINGS) or None,
        over=max((finding.over for finding in row.findings), default=0) or None,
        under=max((finding.under for finding in row.findings), default=0) or None,
    )


def _there(**fields: Any) -> dict[str, Any]:
    return {
        name: value for name, value in fields.items() if value is not None and value != "" and value != []
    }


def details(
    cases: Sequence[CaseNoted], folders: Sequence[Path], positions: dict[Who, int], vocabularies: Vocabularies
) -> list[dict[str, Any]]:
    """Returns what the page of each case shows: grammar, instances, notes; texts cut at `TEXT`. Raises
    BadInput."""
    made = [_blank(case, positions) for case in cases]
    wanted = {(case.suite, case.id): (case, detail) for case, detail in zip(cases, made, strict=True)}
    for folder in dict.fromkeys(folders):
        known = read_info(folder).vocabularies
        for suite, _, source in () if published_without(folder, CASES_FILE) else read_cases(folder):
            case, detail = wanted.get((suite, source.id), (None, {}))
            if case is None or "grammar" in detail:
                continue
            detail["grammar"] = source.grammar.text[:TEXT]
            if len(source.grammar.text) > TEXT:
                detail["grammar_left_off"] = len(source.grammar.text) - TEXT
            if source.options:
                detail["options"] = source.options
            failed = {note["instance"] for note in detail["notes"] if "instance" in note}
            order = sorted(range(len(source.instances)), key=lambda number: number not in failed)[:INSTANCES]
            detail["instances"] = [_instance(number, source.instances[number]) for number in sorted(order)]
            detail["more_instances"] = max(0, len(source.instances) - INSTANCES)
            for note, raw in zip(case.worst_first(), detail["notes"], strict=True):
                if note.instance is not None and note.instance < len(source.instances):
                    name = note.who[1][3]
                    sha256 = str(known.get(name, {}).get("sha256", ""))
                    vocabulary = vocabulary_of(name, sha256, vocabularies)
                    _refused(raw, source.instances[note.instance], vocabulary)
    return made


def _blank(case: CaseNoted, positions: dict[Who, int]) -> dict[str, Any]:
    last = max((number for walks in case.walks.values() for number in walks), default=-1)
    letters = list(LETTERS.values())
    by_arm = {positions[who]: walks for who, walks in case.walks.items()}
    notes = []
    for note in case.worst_first():
        where: dict[str, Any] = {"arm": positions[note.who], "kind": note.kind}
        notes.append(where | ({} if note.instance is None else {"instance": note.instance}) | note.row)
    walks = {
        str(arm): "".join(
            letters[instances[number]] if number in instances else "."
            for number in range(min(last + 1, 1000))
        )
        for arm, instances in sorted(by_arm.items())
    }
    made = {"instances": [], "more_instances": 0, "walks": walks, "notes": notes, "more": case.more}
    return made | (
        {"delayed": [_later(positions[who], later) for who, later in case.delayed[:NOTES]]}
        if case.delayed
        else {}
    )


def first_note(detail: dict[str, Any], arm: int) -> dict[str, Any] | None:
    """Returns the first note of the arm that is not our own fault, which is the worst: what the page shows
    again of it."""
    mine = (note for note in detail["notes"] if note["arm"] == arm and note["kind"] != LOST)
    return next(mine, None)


def _later(arm: int, delayed: Delayed) -> dict[str, Any]:
    behind = [{"suite": one.suite, "id": one.case_id, "name": one.case[:NAME]} for one in delayed.behind]
    return {"arm": arm, "led": delayed.opening, "behind": behind, "said": delayed.closing[:MESSAGE]}


def _instance(number: int, instance: Instance) -> dict[str, Any]:
    content, left_off = beginning(instance.content, TEXT)
    made: dict[str, Any] = {
        "number": number,
        "name": instance.name[:NAME],
        "valid": instance.valid,
        "content": content,
    }
    if left_off:
        made["left_off"] = left_off
    try:
        instance.content.decode("utf-8")
    except UnicodeDecodeError:
        made["invalid_utf8"] = True
    return made


def vocabulary_of(name: str, sha256: str, known: Vocabularies) -> Vocabulary | None:
    """Returns the run's vocabulary, if it is on this machine and the same."""
    if (name, sha256) not in known:
        try:
            vocabulary = load_vocabulary(name)
            known[name, sha256] = vocabulary if vocabulary.sha256 == sha256 else None
        except BadInput:
            known[name, sha256] = None
    return known[name, sha256]


def _refused(raw: dict[str, Any], instance: Instance, vocabulary: Vocabulary | None) -> None:
    """Adds the bytes of the refused token and where they begin; nothing where it cannot be told."""
    at, count = raw.get("at"), raw.get("tokens", 0)
    if vocabulary is None or at is None or at >= count or len(instance.content) > TEXT or instance.tokens:
        return
    try:
        tokens = vocabulary.encode(instance.content)
    except ValueError:
        return
    if len(tokens) == count:  # another spelling was walked, or another tokenization
        raw["token"] = vocabulary.tokens[tokens[at]].hex()
        raw["offset"] = sum(len(vocabulary.tokens[token]) for token in tokens[:at])


def commonest_message(cases: Iterable[CaseNoted]) -> str:
    """Returns what was said most often of these cases, shortened; empty if nothing was."""
    counted: dict[str, int] = {}
    for case in cases:
        for said in {shortened(text) for note in case.notes.values() if (text := _message(note))}:
            counted[said] = counted.get(said, 0) + 1
    return max(counted, key=lambda said: (counted[said], said), default="")


def _message(note: Note) -> str:
    findings = note.row.get("findings")
    if not findings:
        return str(note.row.get("text", ""))
    cause = f" ({findings[0]['cause']})" if "cause" in findings[0] else ""
    return f"{findings[0]['check']}{cause}".replace("_", " ")
