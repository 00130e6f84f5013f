"""Strings as formulas that are rewritten byte by byte of their UTF-8, and whether such a formula can still
come true."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.json_schema.atoms import AtLeastCharacters, InLanguage, IsOneOfTexts
from harness.oracle.json_schema.budget import Budget
from harness.oracle.json_schema.formula import (
    FALSE,
    TRUE,
    Formula,
    atom,
    is_true,
    negation,
    parts_of,
    reduced,
    rewritten,
    with_parts,
)
from harness.oracle.utf8 import ByteRange, Ranges, byte_sequences

MOST_LOOKED_AT = 20_000
"""Formulas that are looked at to decide whether one can come true."""
MOST_UNIVERSAL = 12
"""States that are looked at to see that an automaton has accepted for good."""


def _utf8() -> list[list[int]]:
    """Returns a table: in row `state` and column `byte`, the state behind the byte, or -1 where UTF-8 has no
    such byte. State 0 stands between characters; the others say which bytes a character still lacks."""
    table = [[-1] * 256 for _ in range(8)]
    for first, last, after in (
        (0x00, 0x7F, 0), (0xC2, 0xDF, 1), (0xE0, 0xE0, 4), (0xE1, 0xEC, 2), (0xED, 0xED, 5), (0xEE, 0xEF, 2),
        (0xF0, 0xF0, 6), (0xF1, 0xF3, 3), (0xF4, 0xF4, 7),
    ):  # fmt: skip
        table[0][first : last + 1] = [after] * (last + 1 - first)
    for state, first, last, after in (
        (1, 0x80, 0xBF, 0), (2, 0x80, 0xBF, 1), (3, 0x80, 0xBF, 2), (4, 0xA0, 0xBF, 1), (5, 0x80, 0x9F, 1),
        (6, 0x90, 0xBF, 2), (7, 0x80, 0x8F, 2),
    ):  # fmt: skip
        table[state][first : last + 1] = [after] * (last + 1 - first)
    return table


UTF8 = _utf8()


@cache
def of_raw_characters(raw: Ranges) -> tuple[list[list[int]], list[int]]:
    """Returns, for strings in which only these characters may stand as they are, UTF8 with further rows for
    what must follow the first bytes of characters of which only some may; and the row of first bytes."""
    table = [*UTF8]
    numbers: dict[frozenset[tuple[ByteRange, ...]], int] = {}

    def row_of(sequences: frozenset[tuple[ByteRange, ...]]) -> list[int]:
        row = [-1] * 256
        for byte in range(256):
            rest = frozenset(each[1:] for each in sequences if each[0][0] <= byte <= each[0][1])
            if rest:
                row[byte] = number_of(rest)
        return row

    def number_of(sequences: frozenset[tuple[ByteRange, ...]]) -> int:
        if () in sequences:
            return 0
        if sequences not in numbers:
            row = row_of(sequences)
            if row not in table:
                table.append(row)
            numbers[sequences] = table.index(row)
        return numbers[sequences]

    first = row_of(frozenset(each for low, high in raw for each in byte_sequences(low, high)))
    return table, first


ByteKinds = bytes
"""The kind of each of the 256 bytes; bytes of one kind lead to the same. Kinds are numbered in the order in
which they occur first."""
ONE_KIND: ByteKinds = bytes(256)


def byte_kinds(row: Iterable[Hashable]) -> ByteKinds:
    """Returns the kinds of bytes for each of which the row has another value."""
    numbers: dict[Hashable, int] = {}
    return bytes([numbers.setdefault(value, len(numbers)) for value in row])


@lru_cache(maxsize=4096)
def common_kinds(one: ByteKinds, other: ByteKinds) -> ByteKinds:
    """Bytes are of one kind here if they are so by both."""
    return one if other == ONE_KIND else byte_kinds(zip(one, other, strict=True))


class Strings:
    """What is known of strings for the automata of one schema."""

    def __init__(self, automata: list[Automaton[Any]], raw: Ranges, budget: Budget) -> None:
        self._automata = automata
        self._budget = budget
        self.within, self.first = of_raw_characters(raw)
        """What must follow behind each byte of a character that stands as it is: within it, as in UTF8 or in
        one of its further rows, and at its beginning."""
        self._after: dict[tuple[Formula, int, bool], Formula] = {}
        self._can_end: dict[tuple[Formula, int], bool] = {}
        self._universal: dict[tuple[int, int], bool] = {}
        self._simple: dict[Formula, Formula] = {}
        self._kinds_of_atoms: dict[Any, ByteKinds] = {}
        self._kinds: dict[frozenset[Any], ByteKinds] = {}
        self._samples: dict[tuple[ByteKinds, int], tuple[int, ...]] = {}
        self._runs: dict[tuple[ByteKinds, int], tuple[tuple[int, int, int], ...]] = {}

    def simple(self, formula: Formula) -> Formula:
        """Returns the formula without automata that accept for good."""
        found = self._simple.get(formula)
        if found is None:
            found = self._simple[formula] = rewritten(formula, self._settled)
        return found

    def _settled(self, value: Any) -> Formula:
        if isinstance(value, InLanguage) and self._accepts_all(value.automaton, value.state):
            return TRUE
        return atom(value)

    def _accepts_all(self, number: int, state: int) -> bool:
        key = (number, state)
        found = self._universal.get(key)
        if found is None:
            found = self._universal[key] = self._looks_universal(self._automata[number], state)
        return found

    def _looks_universal(self, automaton: Automaton[Any], state: int) -> bool:
        seen, waiting = {(state, 0)}, [(state, 0)]
        while waiting:
            here, within = waiting.pop()
            if within == 0 and not automaton.accepting(here):
                return False
            automaton.expand(np.array([here], dtype=np.int32))
            for byte, after in enumerate(UTF8[within]):
                if after >= 0:
                    following = int(automaton.table[here, byte])
                    if following == DEAD:
                        return False
                    if (following, after) not in seen:
                        seen.add((following, after))
                        waiting.append((following, after))
                        if len(seen) > MOST_UNIVERSAL:
                            return False
        return True

    # ------------------------------------------------------------------------------------------- byte by byte

    def after_byte(self, formula: Formula, byte: int, is_first: bool) -> Formula:
        """Returns what is asked of the rest behind one more byte, without automata that accept for good;
        `is_first`: it begins a character."""
        if not formula.atoms:
            return formula
        key = (formula, byte, is_first)
        found = self._after.get(key)
        if found is None:
            if formula.is_joint:
                parts = [self.after_byte(part, byte, is_first) for part in formula.parts]
                found = with_parts(formula, parts)
            else:
                found = self._atom_after(formula.parts[0], byte, is_first)
            self._after[key] = found
        return found

    def _atom_after(self, value: Any, byte: int, is_first: bool) -> Formula:
        if isinstance(value, AtLeastCharacters):
            if not is_first:
                return atom(value)
            return TRUE if value.count <= 1 else atom(AtLeastCharacters(value.count - 1))
        if isinstance(value, IsOneOfTexts):
            return atom(value.behind[byte]) if byte in value.behind else FALSE
        assert isinstance(value, InLanguage)
        state = self._automata[value.automaton].step(value.state, byte)
        return FALSE if state == DEAD else self._settled(InLanguage(value.automaton, state))

    def after_text(self, formula: Formula, text: bytes) -> Formula:
        """Returns what is asked of the rest behind whole characters."""
        for byte in text:
            formula = self.after_byte(formula, byte, byte & 0xC0 != 0x80)
        return formula

    def holds(self, formula: Formula) -> bool:
        """Is the formula true of a string that ends here?"""

        def of(value: Any) -> bool:
            if isinstance(value, InLanguage):
                return self._automata[value.automaton].accepting(value.state)
            return isinstance(value, IsOneOfTexts) and b"" in value.values

        return is_true(formula, of)

    def is_true_of(self, formula: Formula, text: str) -> bool:
        """Is the formula true of this string?"""
        return self.holds(self.after_text(formula, text.encode()))

    # ------------------------------------------------------------------------------------------ what can end

    def can_end(self, formula: Formula, within: int = 0) -> bool:
        """Is there a rest of the string, which `within` a character may begin with its last bytes, that makes
        it true?"""
        if not formula.atoms:
            return formula is TRUE
        if within < len(UTF8) and (formula.kind == "atom" or _excludes_texts(formula)):
            return True  # an automaton is never in a state from which no sentence can be finished
        if formula.kind == "or":
            return any(self.can_end(part, within) for part in parts_of(formula))
        key = (formula, within)
        found = self._can_end.get(key)
        if found is None:
            plain = reduced(formula)
            if plain is formula:
                return self._search(formula, within)  # which keeps its answers
            found = self._can_end[key] = self.can_end(plain, within)
        return found

    def _search(self, formula: Formula, within: int) -> bool:
        behind: dict[tuple[Formula, int], tuple[Formula, int] | None] = {(formula, within): None}
        waiting = [(formula, within)]
        for place in waiting:
            self._budget.check()
            here, state = place
            if state == 0 and self.holds(here):
                return self._found(behind, place)
            for byte in self.different(here.atoms, state):
                following = (self.after_byte(here, byte, state == 0), self.within[state][byte])
                if following[0] is TRUE or self._can_end.get(following):
                    return self._found(behind, place)
                if following[0] is FALSE or following in behind:
                    continue
                if self._can_end.get(following) is False:
                    continue
                behind[following] = place
                waiting.append(following)
                if len(behind) > MOST_LOOKED_AT:
                    raise NoOracle("it takes too long to see which strings there are")
        self._can_end |= dict.fromkeys(behind, False)
        return False

    def _found(
        self, behind: dict[tuple[Formula, int], tuple[Formula, int] | None], place: tuple[Formula, int] | None
    ) -> bool:
        """Keeps that the string can be completed from each place on the way to this one."""
        while place is not None:
            self._can_end[place] = True
            place = behind[place]
        return True

    # ----------------------------------------------------------------------------------------- kinds of bytes

    def kinds(self, atoms: frozenset[Any]) -> ByteKinds:
        """Returns the kinds of bytes that these atoms tell apart."""
        found = self._kinds.get(atoms)
        if found is None:
            found = ONE_KIND
            for value in atoms:
                found = common_kinds(found, self._kinds_of_atom(value))
            self._kinds[atoms] = found
        return found

    def _kinds_of_atom(self, value: Any) -> ByteKinds:
        if isinstance(value, AtLeastCharacters):
            return ONE_KIND
        found = self._kinds_of_atoms.get(value)
        if found is None:
            if isinstance(value, IsOneOfTexts):
                found = byte_kinds(map(value.behind.get, range(256)))
            else:
                assert isinstance(value, InLanguage)
                automaton = self._automata[value.automaton]
                automaton.expand(np.array([value.state], dtype=np.int32))
                found = byte_kinds(automaton.table[value.state].tolist())
            self._kinds_of_atoms[value] = found
        return found

    def different(self, atoms: frozenset[Any], within: int) -> tuple[int, ...]:
        """Returns one byte of each kind that the atoms tell apart, of those that may come here."""
        kinds = self.kinds(atoms)
        found = self._samples.get((kinds, within))
        if found is None:
            first: dict[tuple[int, int], int] = {}
            for byte, kind in enumerate(zip(self.within[within], kinds, strict=True)):
                if kind[0] >= 0:
                    first.setdefault(kind, byte)
            found = self._samples[kinds, within] = tuple(first.values())
        return found

    def runs(self, kinds: ByteKinds, within: int) -> tuple[tuple[int, int, int], ...]:
        """Returns the first and the last byte of each run of bytes that may come next in a character that
        stands as it is, and lead to the same; and what must then follow within it."""
        found = self._runs.get((kinds, within))
        if found is None:
            row = self.within[within] if within else self.first
            numbered = groupby(enumerate(zip(row, kinds, strict=True)), lambda each: each[1])
            runs = ((after[0], [byte for byte, _ in group]) for after, group in numbered)
            found = tuple((run[0], run[-1], after) for after, run in runs if after >= 0)
            self._runs[kinds, within] = found
        return found


def _excludes_texts(formula: Formula) -> bool:
    """Is the formula that the string is none of some texts? There are always others."""
    return formula.kind == "not" and isinstance(negation(formula).parts[0], IsOneOfTexts)
