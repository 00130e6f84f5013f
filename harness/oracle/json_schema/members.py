"""The members of objects: which names may come next, and what is asked of the values behind them."""

from __future__ import annotations

from harness.backend.layout import Layout
from harness.oracle.json_schema.formula import Formula, conjunction, disjunction
from harness.oracle.json_schema.frames import Formulas, Object
from harness.oracle.json_schema.names import Names, Order
from harness.oracle.json_schema.parts import Part, all_of
from harness.oracle.json_schema.texts import Beginnings
from harness.oracle.json_schema.values import Values


class Members:
    """The members of the objects of one schema, in the order that a layout gives them."""

    def __init__(self, values: Values, layout: Layout) -> None:
        self._values = values
        self._layout = layout
        self._names: dict[tuple[Formulas, Names, Names, tuple[Order, ...]], Formula | None] = {}
        self._beginnings: dict[Names, Beginnings] = {}

    def name(self, frame: Object) -> Formula | None:
        """Returns the formula of the names that may come next; None if there is none."""
        key = (frame.formulas, frame.listed, frame.seen, frame.orders)
        if key not in self._names:
            formula = disjunction(self._kinds_of_names(frame))
            formula = self._values.strings.simple(formula)
            self._names[key] = formula if self._values.strings.can_end(formula) else None
        return self._names[key]

    def _kinds_of_names(self, frame: Object) -> list[Formula]:
        """Returns the listed names that may come next, and each kind of other names, as formulas."""
        values = self._values
        good = frozenset(name for name in frame.listed - frame.seen if self.member(frame, name) is not None)
        found = [values.schemas.is_one_of(good)]
        questions = values.name_questions(frame.formulas)
        other = values.unlisted(frame.listed)
        for answers in values.answers(questions, other, values.string_exists):
            known = dict(zip(questions, answers, strict=True))
            if self.member(frame, None, known) is not None:
                found.append(conjunction([other, all_of(known)]))
        return found

    def member(
        self, frame: Object, name: str | None, answers: dict[Formula, bool] | None = None
    ) -> Part | None:
        """Returns what is asked of the value behind a name (None: one that is not listed, of which the
        answers are given); None if the object cannot be completed with any."""
        values = self._values
        known = values.answers_of(frame.formulas, name) if name is not None else answers or {}
        seen = self.seen_behind(frame, name)
        part = values.next_member(frame.formulas, name, known)
        return values.wanted(part, lambda formula: values.object_can_end(formula, frame.listed, seen))

    def seen_behind(self, frame: Object, name: str | None) -> Names:
        """Returns the listed names that may not come behind a name (None: one that is not listed)."""
        if name is None:
            return frame.listed if self._layout.unlisted in ("last", "asked") else frame.seen
        return frame.seen.union((name,), *(_not_behind(name, order) for order in frame.orders))

    def beginnings(self, names: Names) -> Beginnings:
        """Returns every beginning of the UTF-8 of these names, and the bytes behind it."""
        found = self._beginnings.get(names)
        if found is None:
            texts = [name.encode("utf-8", "surrogatepass") for name in names]
            following: dict[bytes, set[int]] = {b"": set()}
            for text in texts:
                for end, byte in enumerate(text):
                    following.setdefault(text[:end], set()).add(byte)
                following.setdefault(text, set())
            found = {beginning: bytes(sorted(each)) for beginning, each in following.items()}
            self._beginnings[names] = found
        return found


def _not_behind(name: str, order: Order) -> tuple[str, ...]:
    """Returns the names of an order that may not come behind the name; a name that it does not have comes
    behind all of them, unless where it is there the order says nothing."""
    if name in order.names:
        return order.names[: order.names.index(name) + 1]
    return () if order.is_closed else order.names
