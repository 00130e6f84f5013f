"""What shows that a case is refused or goes wrong: the proofs, gathered while the rows pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from harness.backend.grammar import ASSERTED_FORMAT
from harness.cases.case import Case
from harness.cases.case_line import CASES_FILE
from harness.checks.documents import TOKENS_LEAD
from harness.oracle.judge.asked import Judge
from harness.outcomes.case_state import HANDS_OVER, CaseState, only_where
from harness.outcomes.controls import Enforcing
from harness.outcomes.outcome import Order, Outcome, faults, judges, order_of
from harness.outcomes.summary import ArmKey, arm_key
from harness.rows.row import CHECKS_MODE, DECLINED, OUT_OF_TIME, Finding, Row
from harness.rows.store import published_without, read_cases
from harness.text import one_line

T = TypeVar("T")

MOST_PROOFS = 6
"""Proofs that are kept of one case on one arm, the gravest first."""

LONGEST_DOCUMENT = 400
LONGEST_SAID = 300

MOST_ASKED = 200
"""Documents of which the second validator is asked which constraint they violate."""

KEYWORD = "keyword_"
"""The beginning of a finding's cause that names the keyword which is not kept."""

CAUSES = {
    "begin": "a structure that begins otherwise",
    "control_character": "raw control characters",
    "duplicate_name": "a name twice in an object",
    "early_end": "an end too early",
    "empty_token": "tokens without text",
    "end": "a tag that ends otherwise",
    "end_of_sequence": "the end of the output",
    "escape": "escapes that JSON lacks",
    "fixed_text": "another text than the form has",
    "free_text": "free text that goes on otherwise",
    "invalid_utf8": "tokens that are no UTF-8",
    "number_form": "numbers that JSON lacks",
    "never_text": "ids that are never text",
    "no_document": "text with which no document goes on",
    "no_json": "text that is no JSON",
    "outside_tag": "a trigger with which no structure begins",
    "partial_utf8": "pieces of characters",
    "pattern": "text that the grammar does not have",
    "several_keywords": "what several keywords forbid together",
    "special_token": "special tokens",
    "surrogate": "half surrogate pairs",
    "token_id": "tokens meant by their ids",
    "whitespace": "white space",
}
"""What a check of masks found, in words; other causes are written as their names."""

NO_CHARACTER = "bytes that make no character"
"""What is no UTF-8 and yet no wrong document: the text of a walk, and what a check of `HANDS_OVER` shows."""

DESCRIPTIONS = frozenset((*CAUSES.values(), NO_CHARACTER))
"""What stands in place of a constraint where none is broken by its name."""

CaseKey = tuple[str, str]
"""Suite and case id."""

Instances = dict[CaseKey, int]
"""Instances of cases: for each case the bits that are set are their indices."""

LAST_INSTANCE = 1 << 14
"""The instance as which all behind it count: rows may be anybody's, and an index takes memory."""


def number_of(instances: Instances | None) -> int:
    """Returns how many instances these are."""
    return sum(bits.bit_count() for bits in (instances or {}).values())


def at_least(instances: Instances | None) -> str:
    """Returns the words before their number where there may be more of them: in a case with so many that the
    last of them count as one."""
    return "at least " if any(bits >> LAST_INSTANCE for bits in (instances or {}).values()) else ""


@dataclass(frozen=True)
class Proof:
    """One thing that shows why a case is refused or goes wrong."""

    state: CaseState
    constraint: str
    """What is not kept: the place and the keyword (`tags.uniqueItems`), a keyword, or a check's cause; empty
    where it is not known."""
    said: str
    """The words of the backend where it refuses or breaks, else the sentence of the check; one line."""
    instance: int | None = None
    """The index of the instance that shows it; None where a check found it."""
    instance_name: str = ""
    document: str = ""
    """The output that shows it, cut and on one line; empty where it is not stored."""
    check: str = ""
    """The check that found it; empty for the verdict on an instance."""
    content: bytes = field(default=b"", repr=False)
    """The whole output, where a check let the backend write it."""
    kind: Outcome = Outcome.FINDING

    @property
    def is_of_a_mask(self) -> bool:
        """Does no output show it, but only what a mask allows or forbids?"""
        return self.instance is None and not self.content

    @property
    def order(self) -> Order:
        """Returns the key of the fault that it is of, by which `repro` takes the worst one too."""
        return order_of(self.state, self.kind, self.instance, bool(self.document))


@dataclass(frozen=True)
class CaseAnswer:
    """What one case is like on one arm."""

    suite: str
    case_id: str
    case: str
    state: CaseState
    proofs: tuple[Proof, ...] = ()
    """The gravest first; empty for a case that works, or of which nothing is known."""
    was_judged: bool = True
    """Did an output or a whole mask tell whether the backend is right? A fault of the interface may be all
    that is known."""
    is_counted: bool = True
    """Is it in the denominator of the conformance (`Counts.judged`)?"""
    was_cut_short: bool = False
    """Was the time for its checks up before all of them were made?"""

    @property
    def proof(self) -> Proof | None:
        """Returns what shows best why the case is in its state; None where nothing does."""
        mine = [proof for proof in self.proofs if proof.state == self.state]
        return min(mine, key=lambda proof: proof.order, default=None)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Returns what is not kept in the state that the case is in."""
        proofs = sorted(self.proofs, key=lambda proof: proof.order)
        return distinct(
            proof.constraint for proof in proofs if proof.state == self.state and proof.constraint
        )


def distinct(constraints: Iterable[str]) -> tuple[str, ...]:
    """Returns the constraints, each once: a keyword that an earlier one names at its place is left out."""
    kept: dict[str, None] = {}
    named: set[str] = set()
    for constraint in constraints:
        if constraint not in named:
            kept[constraint] = None
            named |= {constraint, constraint.rpartition(".")[2]}
    return tuple(kept)


def telling(state: CaseState, constraints: Sequence[str]) -> tuple[str, ...]:
    """Returns which of what is not kept in cases of the state says in a few words what goes wrong. Causes of
    checks of the interface do not."""
    if state == CaseState.OTHER_FAULT:
        return tuple(filter(DESCRIPTIONS.__contains__, constraints))
    return tuple(constraints) if state == CaseState.SILENTLY_WRONG else ()


@dataclass
class Proofs:
    """Takes in rows; keeps what shows why cases are refused or go wrong, and what judged the cases."""

    found: dict[ArmKey, dict[CaseKey, list[Proof]]] = field(default_factory=dict)
    names: dict[CaseKey, str] = field(default_factory=dict)
    dialects: set[str] = field(default_factory=set)
    valid: dict[ArmKey, Instances] = field(default_factory=dict)
    """For each arm the valid instances of which the walk came to a verdict, and the invalid ones below."""
    invalid: dict[ArmKey, Instances] = field(default_factory=dict)
    enforcing: Enforcing = field(default_factory=Enforcing)
    masks_compared: dict[ArmKey, set[CaseKey]] = field(default_factory=dict)
    """For each arm the cases of which whole masks were compared with an exact reference."""
    places: dict[ArmKey, dict[CaseKey, int]] = field(default_factory=dict)
    """For each arm at how many places masks were compared with a case's documents."""
    cut_short: dict[ArmKey, set[CaseKey]] = field(default_factory=dict)
    """For each arm the cases of which not every check was made before the time for them was up."""
    formats_held: dict[ArmKey, set[CaseKey]] = field(default_factory=dict)
    """For each arm the cases in which it holds strings to a `format` that need not bind them."""

    def add(self, row: Row) -> None:
        """Takes in one row."""
        key = row.suite, row.case_id
        self.names.setdefault(key, row.case)
        self.dialects.add(row.dialect)
        self.enforcing.add(row)
        if row.mode != CHECKS_MODE and judges(row):
            walked = (self.valid if row.valid else self.invalid).setdefault(arm_key(row), {})
            walked[key] = walked.get(key, 0) | 1 << min(row.instance or 0, LAST_INSTANCE)
        if row.mode == CHECKS_MODE and judges(row):
            self.masks_compared.setdefault(arm_key(row), set()).add(key)
        if places := row.counted.get(TOKENS_LEAD, {}).get("places", 0):
            self.places.setdefault(arm_key(row), {})[key] = places
        if OUT_OF_TIME in row.checks.values():
            self.cut_short.setdefault(arm_key(row), set()).add(key)
        if any(ASSERTED_FORMAT in finding.cause.split("+") for finding in row.findings):
            self.formats_held.setdefault(arm_key(row), set()).add(key)
        proofs = list(_proofs_of(row))
        if proofs:
            kept = self.found.setdefault(arm_key(row), {}).setdefault(key, [])
            for proof in proofs:
                if not any(_same(proof, other) for other in kept):
                    kept.append(proof)
            kept.sort(key=lambda proof: proof.order)
            del kept[MOST_PROOFS:]

    def only(self, arms: Collection[ArmKey]) -> Proofs:
        """Returns what judged the cases, of these arms alone; empty where there is none."""
        if not arms:
            return Proofs()
        return replace(
            self,
            found=_of(arms, self.found),
            valid=_of(arms, self.valid),
            invalid=_of(arms, self.invalid),
            masks_compared=_of(arms, self.masks_compared),
            places=_of(arms, self.places),
            cut_short=_of(arms, self.cut_short),
            formats_held=_of(arms, self.formats_held),
        )

    def explain(self, run: Path) -> None:
        """Adds the documents and the constraints that they violate from the cases of the run, where it has
        them. Raises BadInput."""
        if published_without(run, CASES_FILE) or not (run / CASES_FILE).exists():
            return
        wanted: dict[CaseKey, list[tuple[list[Proof], int]]] = {}
        for by_case in self.found.values():
            for key, proofs in by_case.items():
                for place, proof in enumerate(proofs):
                    if proof.instance is not None or proof.content:
                        wanted.setdefault(key, []).append((proofs, place))
        if not wanted:
            return
        with Judge() as judge:
            asked = _Asked(judge)
            for suite, _, case in read_cases(run):
                for proofs, place in wanted.get((suite, case.id), ()):
                    proofs[place] = _explained(proofs[place], case, asked)


def _of(arms: Collection[ArmKey], by_arm: dict[ArmKey, T]) -> dict[ArmKey, T]:
    """Returns what is known of these arms."""
    return {arm: known for arm, known in by_arm.items() if arm in arms}


def together(proofs: Iterable[Proofs]) -> Proofs:
    """Returns what judged the cases of several runs; what it shows of single cases stays with the runs."""
    whole = Proofs()
    for one in proofs:
        whole.dialects |= one.dialects
        for walked, of_one in ((whole.valid, one.valid), (whole.invalid, one.invalid)):
            for arm, instances in of_one.items():
                mine = walked.setdefault(arm, {})
                for key, bits in instances.items():
                    mine[key] = mine.get(key, 0) | bits
        for arm, places in one.places.items():
            whole.places.setdefault(arm, {}).update(places)
        for sets, more in (
            (whole.masks_compared, one.masks_compared),
            (whole.cut_short, one.cut_short),
            (whole.formats_held, one.formats_held),
        ):
            for arm, cases in more.items():
                sets.setdefault(arm, set()).update(cases)
    return whole


@dataclass
class _Asked:
    """The second validator, asked once about each document and no more than `MOST_ASKED` times; about a case
    that it gave no answer to in time never again."""

    judge: Judge
    answers: dict[tuple[str, bytes], str] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """The ids of cases that it gave no answer to."""

    def violated(self, case: Case, content: bytes) -> str:
        """Returns the constraint that the document violates; empty where nobody says."""
        question = case.id, content
        if question not in self.answers:
            if len(self.answers) >= MOST_ASKED or case.id in self.lost:
                return ""
            self.answers[question] = self.judge.violated(
                case.grammar,
                content,
                draft=case.options.get("draft"),
                assert_formats=case.options.get("format") == "assert",
            )
            if self.judge.reason:
                self.lost.add(case.id)
        return self.answers[question]


def _explained(proof: Proof, case: Case, asked: _Asked) -> Proof:
    """Returns the proof with its document and what that violates."""
    content, made_to_break = proof.content, ""
    if proof.instance is not None:
        if proof.instance >= len(case.instances):
            return proof
        content = case.instances[proof.instance].content
        made_to_break = broken_by(case.instances[proof.instance].made_for)
    constraint = proof.constraint
    if proof.state == CaseState.SILENTLY_WRONG and case.grammar.dialect == "json_schema":
        constraint = one_line(asked.violated(case, content) or made_to_break, 120) or constraint
    return replace(proof, constraint=constraint, document=_shown(content))


def broken_by(made_for: Sequence[str]) -> str:
    """Returns the first of the keywords that a document was made to break, given as JSON Pointers, behind its
    place where only members lead there: `tags.uniqueItems`. Empty where there is none."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in "".join(made_for[:1]).split("/")]
    *way, keyword = steps[1:] or [""]
    return ".".join((*(way[1::2] if {*way[::2]} <= {"properties"} else ()), keyword))


def _shown(content: bytes) -> str:
    """Returns the output as text on one line, cut."""
    text = content[: 4 * LONGEST_DOCUMENT].decode("utf-8", "backslashreplace")
    return one_line(text, LONGEST_DOCUMENT, spelled=True)


def _same(one: Proof, other: Proof) -> bool:
    """Do the two show the same thing? Of each instance, and of each cause of a check, one is kept; of a
    refusal one in all."""
    if one.state == other.state == CaseState.REFUSED:
        return True
    return (one.state, one.instance, one.check, one.constraint, one.content) == (
        other.state, other.instance, other.check, other.constraint, other.content,
    )  # fmt: skip


def _proofs_of(row: Row) -> Iterable[Proof]:
    """Yields what the row shows: each fault that costs the case, and its refusal."""
    if row.status in DECLINED:
        text = one_line(row.text, LONGEST_SAID, folded=True)
        yield Proof(CaseState.REFUSED, "", text, kind=Outcome.DECLINED)
        return
    for fault in faults(row):
        if not fault.fails:
            continue
        if fault.finding is None:
            yield Proof(
                fault.state,
                "",
                one_line(row.text, LONGEST_SAID, folded=True),
                fault.instance,
                one_line(row.instance_name, 120),
                check=row.checking if row.mode == CHECKS_MODE else "",
                kind=fault.kind,
            )
            continue
        finding = fault.finding
        where = only_where(finding)
        said = f"{where}, {finding.text}" if where else finding.text
        for constraint in [""] if fault.wrote else _constraints_of(finding):
            yield Proof(
                fault.state,
                constraint,
                one_line(said, LONGEST_SAID, folded=True),
                document=_shown(fault.wrote),
                check=finding.check,
                content=fault.wrote,
                kind=fault.kind,
            )


def _constraints_of(finding: Finding) -> Iterator[str]:
    """Yields what is not kept, by the cause that a check names: one thing, or several with `+` between."""
    if finding.check in HANDS_OVER or (finding.cause == "invalid_utf8" and not finding.under):
        yield NO_CHARACTER
        return
    is_keyword = finding.cause.startswith(KEYWORD)
    for name in finding.cause.removeprefix(KEYWORD).split("+"):
        yield (name if is_keyword else CAUSES.get(name, name.replace("_", " ")))[:80]
