"""Which values there are: whether some JSON value makes a formula true, and what parts of a value must then
be.

Arrays and objects are followed item by item and member by member, without their contents: of a part it only
matters which of the formulas that are asked of it are true, and for which of these answers there is a value
at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

from harness.backend.layout import Layout
from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.atoms import (
    TYPES,
    AllMembers,
    AllNames,
    AtLeastProperties,
    HasName,
    JsonType,
)
from harness.oracle.json_schema.budget import Budget
from harness.oracle.json_schema.fixpoint import LeastAnswers
from harness.oracle.json_schema.formula import (
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    disjunction,
    negation,
    parts_of,
    rewritten,
)
from harness.oracle.json_schema.names import Names, listed_names, useful_names, without_name
from harness.oracle.json_schema.numbers import Literal, Numbers
from harness.oracle.json_schema.parts import (
    Answers,
    Effect,
    Part,
    all_of,
    array_holds,
    atoms_of,
    behind,
    boolean_holds,
    next_item,
    object_holds,
    questions_of,
    simple_items,
    without_choice,
)
from harness.oracle.json_schema.schemas import Schemas
from harness.oracle.json_schema.strings import Strings

MOST_STEPS = 200_000
"""Steps of all searches of one schema."""
MOST_ANSWERS = 512
"""Combinations of answers to what is asked of one part of a value."""


class Values:
    """Decides for one schema. Raises NoOracle where that takes too long."""

    def __init__(self, schemas: Schemas, layout: Layout, budget: Budget) -> None:
        self.schemas = schemas
        self.budget = budget
        self.strings = Strings(schemas.automata, layout.raw, budget)
        self.numbers = Numbers(layout)
        self._answers = LeastAnswers()
        self._known_answers: dict[tuple[Formula, ...], tuple[tuple[bool, ...], ...]] = {}
        self._wanted_of: dict[tuple[Formula, str], Formula] = {}
        self._of_all_members: dict[Formula, frozenset[Hashable]] = {}
        self._steps = 0

    def _decide(self, key: Hashable, search: Callable[[], bool]) -> bool:
        """Returns the answer of a search that may ask for its own answer, for a value that has itself as a
        part is none."""

        def counted() -> bool:
            self._count()
            return search()

        return self._answers.answer(key, counted)

    def exists(self, formula: Formula) -> bool:
        """Is there a value that makes the formula true?"""
        return self._decide(("value", formula), lambda: any(self.exists_of(formula, kind) for kind in TYPES))

    def exists_of(self, formula: Formula, kind: JsonType) -> bool:
        """Is there one of that type?"""
        return self._exists_restricted(self._restricted(formula, kind), kind)

    def _restricted(self, formula: Formula, kind: JsonType) -> Formula:
        left = self.schemas.restricted(formula, kind)
        return self.strings.simple(left) if kind == "string" else left

    def _exists_restricted(self, left: Formula, kind: JsonType) -> bool:
        """Is there a value of that type that makes a formula true that is restricted to the type?"""
        if left is FALSE:
            return False
        if kind == "null":
            return left is TRUE
        if kind == "boolean":
            return any(boolean_holds(left, value) for value in (True, False))
        if kind == "number":
            return self.numbers.can_end((left,), Literal())
        if kind == "string":
            return self.strings.can_end(left)
        if kind == "array":
            return self.array_can_end(left)
        return self.object_can_end(left, listed_names(left), frozenset())

    # ---------------------------------------------------------------------------------------------- arrays

    def array_can_end(self, formula: Formula) -> bool:
        """Can an array of which the formula is asked from here on be completed?"""
        if array_holds(formula):
            return True
        if not formula.atoms:
            return False
        if formula.kind == "or":
            return any(self.array_can_end(part) for part in parts_of(formula))
        return self._decide(("array", formula), lambda: self._array_search(formula))

    def _array_search(self, formula: Formula) -> bool:
        seen, waiting = {formula}, [formula]
        for here in waiting:
            for following in self._after_parts(next_item((here,))):
                after = simple_items(following[0])
                if after in seen or after is FALSE:
                    continue
                if array_holds(after) or self._answers.is_known_true(("array", after)):
                    return True
                seen.add(after)
                waiting.append(after)
                self._count()
        return False

    def _count(self) -> None:
        self.budget.check()
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NoOracle("it takes too long to see which values there are")

    # --------------------------------------------------------------------------------------------- objects

    def object_can_end(self, formula: Formula, listed: Names, seen: Names) -> bool:
        """Can an object be completed of which the formula is asked from here on, and that has these listed
        names?"""
        if object_holds(formula):
            return True
        if not formula.atoms:
            return False
        if formula.kind == "or":
            return any(self.object_can_end(part, listed, seen) for part in parts_of(formula))
        free = useful_names(formula, listed - seen)
        return self._decide(
            ("object", formula, listed, free), lambda: self._object_search(formula, listed, free)
        )

    def _object_search(self, formula: Formula, listed: Names, free: Names) -> bool:
        """Members commute, so each listed name is taken or left in turn, and other names follow."""
        if all(isinstance(part.parts[0], HasName | AllMembers | AllNames) for part in parts_of(formula)):
            return self._required_can_come(formula, free)
        required = {value.name for value in formula.atoms if isinstance(value, HasName)}
        names = sorted(free, key=lambda name: (name not in required, name))

        def following(here: Formula, count: int) -> Iterator[tuple[Formula, int]]:
            """Yields what can be asked behind one more decision, of which `count` names were."""
            if count == len(names):
                for part in self._other_members(here, listed):
                    yield from ((after, count) for (after,) in self._after_parts(part))
                return
            name = names[count]
            part = self.next_member((here,), name, self.answers_of((here,), name))
            yield from ((after, count + 1) for (after,) in self._after_parts(part))
            yield without_name(here, name), count + 1

        # Depth first, since most searches find something, and what is wanted comes first.
        seen: set[tuple[Formula, int]] = set()
        waiting = [iter([(formula, 0)])]
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
            elif step[0] is not FALSE and step not in seen:
                if object_holds(step[0]):
                    return True
                seen.add(step)
                self._count()
                waiting.append(following(*step))
        return False

    def _required_can_come(self, formula: Formula, free: Names) -> bool:
        """Returns the answer for a formula that wants some names and something of all members: no other
        member helps, and of these each must be possible by itself."""
        required = {value.name for value in formula.atoms if isinstance(value, HasName)}
        others = conjunction(part for part in parts_of(formula) if not isinstance(part.parts[0], HasName))
        return required <= free and all(self._can_come(others, name) for name in required)

    def _can_come(self, formula: Formula, name: str) -> bool:
        """Is there a value for a member with this name that a formula over all members allows?"""
        found = self._wanted_of.get((formula, name))
        if found is None:
            self._count()
            part = self.next_member((formula,), name, self.answers_of((formula,), name))
            questions = conjunction(effect.question for effect in part.effects)
            found = questions if part.before[0] is not FALSE else FALSE
            self._wanted_of[formula, name] = found
        return self.exists(found)

    def _other_members(self, formula: Formula, listed: Names) -> Iterator[Part]:
        """Yields every kind of member whose name is not listed."""
        questions = self.name_questions((formula,))
        other = self.unlisted(listed)
        for answers in self.answers(questions, other, self.string_exists):
            yield self.next_member((formula,), None, dict(zip(questions, answers, strict=True)))

    def unlisted(self, listed: Names) -> Formula:
        """Returns the formula of the names that are not listed."""
        return negation(self.schemas.is_one_of(listed)) if listed else TRUE

    def string_exists(self, formula: Formula) -> bool:
        """Is there a string that makes the formula true?"""
        return self.strings.can_end(self._restricted(formula, "string"))

    def name_questions(self, formulas: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Returns what must be known of a name that is not listed: the patterns that match it, and whether
        names may be so."""
        found: dict[Formula, None] = {}
        for value in atoms_of(formulas):
            if isinstance(value, AllMembers):
                found |= dict.fromkeys(self.pattern(number) for number, _ in value.patterns)
            elif isinstance(value, AllNames):
                found[self.schemas.restricted(value.formula, "string")] = None
        return tuple(each for each in found if each.atoms)

    def pattern(self, number: int) -> Formula:
        """Returns the formula that a string matches a pattern of names."""
        return self.strings.simple(self.schemas.matches(number))

    def answers_of(self, formulas: tuple[Formula, ...], name: str) -> dict[Formula, bool]:
        """Returns the answers to the questions for one name."""
        return {each: self.strings.is_true_of(each, name) for each in self.name_questions(formulas)}

    def next_member(
        self, formulas: tuple[Formula, ...], name: str | None, answers: dict[Formula, bool]
    ) -> Part:
        """Returns what is asked of the value behind a name (None: one that is not listed) of which the
        answers are known."""

        def answer(question: Formula) -> bool:
            return answers[question] if question.atoms else question is TRUE

        effects: dict[Effect, None] = {}

        def of(value: Any) -> Formula:
            if isinstance(value, HasName):
                return TRUE if value.name == name else atom(value)
            if isinstance(value, AtLeastProperties):
                return TRUE if value.count <= 1 else atom(AtLeastProperties(value.count - 1))
            if isinstance(value, AllNames):
                return atom(value) if answer(self.schemas.restricted(value.formula, "string")) else FALSE
            assert isinstance(value, AllMembers)
            found = [value.by_name[name]] if name in value.by_name else []
            found += [each for number, each in value.patterns if answer(self.pattern(number))]
            wanted = conjunction(found) if found else value.others
            if wanted is FALSE:
                return FALSE
            if wanted is not TRUE:
                effects[Effect(value, wanted, atom(value), FALSE)] = None
            return atom(value)

        left = tuple(rewritten(formula, of, self._changed_by(formula, name)) for formula in formulas)
        kept = atoms_of(left)
        return Part(TRUE, (), left, tuple(effect for effect in effects if effect.fact in kept))

    def _changed_by(self, formula: Formula, name: str | None) -> frozenset[Hashable]:
        """Returns the atoms of the formula for which a member with this name means something."""
        found = self._of_all_members.get(formula)
        if found is None:
            found = frozenset(value for value in formula.atoms if not isinstance(value, HasName))
            self._of_all_members[formula] = found
        return found if name is None else found | {HasName(name)}

    # ------------------------------------------------------------------------------------------------ parts

    def _after_parts(self, part: Part) -> Iterator[tuple[Formula, ...]]:
        """Yields what can be asked of the whole behind the part, for each combination of answers that some
        value gives."""
        questions = questions_of(part.effects)
        for answers in self._answers_of_values(questions):
            yield behind(part, dict(zip(questions, answers, strict=True)))

    def _answers_of_values(self, questions: tuple[Formula, ...]) -> Iterator[tuple[bool, ...]]:
        """Yields every combination of answers that some value gives, type by type."""
        known = self._known_answers.get(questions)
        if known is not None:
            yield from known
            return
        found: dict[tuple[bool, ...], None] = {}
        for kind in TYPES:
            exists = partial(self._exists_restricted, kind=kind)
            restricted = tuple(self._restricted(question, kind) for question in questions)
            if any(question.atoms for question in restricted):
                given = self.answers(restricted, TRUE, exists)
            else:
                given = iter([tuple(question is TRUE for question in restricted)])
            for answers in given:
                if answers not in found:
                    if len(found) == MOST_ANSWERS:
                        raise NoOracle("too many answers to what is asked of one part of a value")
                    found[answers] = None
                    yield answers
        if self._answers.is_idle:  # within a search, it may have taken its own answer for false
            self._known_answers[questions] = tuple(found)

    def answers(
        self, questions: tuple[Formula, ...], given: Formula, exists: Callable[[Formula], bool]
    ) -> Iterator[tuple[bool, ...]]:
        """Yields every combination of answers that some value gives; true before false, so that what is
        wanted comes first."""
        count = 0
        waiting: list[tuple[tuple[bool, ...], Formula]] = [((), given)]
        while waiting:
            answers, formula = waiting.pop()
            if not exists(formula):
                continue
            if len(answers) == len(questions):
                count += 1
                if count > MOST_ANSWERS:
                    raise NoOracle("too many answers to what is asked of one part of a value")
                yield answers
                continue
            question = questions[len(answers)]
            waiting.append(((*answers, False), conjunction([formula, negation(question)])))
            waiting.append(((*answers, True), conjunction([formula, question])))

    def wanted(self, part: Part, can_end: Callable[[Formula], bool]) -> Part | None:
        """Returns the part with what is wanted of it and asked about it; None if no value lets the whole come
        true.
        """
        whole = part.before[0]
        # Each alternative has few questions; all combinations of the answers to those of all would be many.
        alternatives = parts_of(whole) if whole.kind == "or" else (whole,)
        ways = [way for each in alternatives for way in self._ways(part, each, can_end)]
        if not ways:
            return None
        asked: list[Formula] = []
        settled: list[tuple[Formula, bool]] = []
        for question in questions_of(part.effects):
            can_be = any(self._can_be(way, question, True) for way in ways)
            if can_be and any(self._can_be(way, question, False) for way in ways):
                asked.append(question)
            else:
                settled.append((question, can_be))
        wanted = disjunction(map(all_of, ways))
        return part._replace(wanted=wanted, asked=tuple(asked), settled=tuple(settled))

    def _ways(self, part: Part, whole: Formula, can_end: Callable[[Formula], bool]) -> list[Answers]:
        """Returns the answers about the part with which this formula of the whole can come true."""
        effects = tuple(effect for effect in part.effects if effect.fact in whole.atoms)
        questions = questions_of(effects)
        alone = part._replace(before=(whole,), effects=effects)
        good = [
            answers
            for answers in self._answers_of_values(questions)
            if can_end(simple_items(behind(alone, dict(zip(questions, answers, strict=True)))[0]))
        ]
        return without_choice(questions, good)

    def _can_be(self, way: Answers, question: Formula, answer: bool) -> bool:
        """Does some value with these answers give this one to the question?"""
        if question in way:
            return way[question] in (answer, None)
        return self.exists(all_of({**way, question: answer}))
