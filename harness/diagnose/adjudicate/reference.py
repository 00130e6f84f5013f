"""What the automaton of a case's documents says of a text: whether a document goes on with it, which one, and
what forbids it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from harness.backend.layout import Layout
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.checks.documents import causes_of_wrong_tokens
from harness.diagnose.adjudicate.verdicts import formats_asserted
from harness.oracle.automaton import NoOracle
from harness.oracle.completion import short_completion
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton, json_schema_automaton
from harness.oracle.json_schema.budget import SECONDS
from harness.oracle.language import documents_of

Answer: TypeAlias = Literal["yes", "no", "formats", "unknown"]
"""`formats`: it depends on whether formats are assertions. `unknown`: there is no automaton, or it takes too
long."""

WITNESS_SECONDS = 4.0
"""Processor time that all searches for documents may take with one automaton. They have one of their own, so
that a long search leaves no decision without its automaton."""
SPELLING_SECONDS = 2.0
"""Processor time that the automaton of a layout's spelling may take in one case."""
NO_JSON = frozenset(
    {"control_character", "early_end", "escape", "invalid_utf8", "no_json", "number_form", "surrogate"}
)
"""Causes of the check of documents for which the validators have one word."""


@dataclass(eq=False)
class Reference:
    """The automata of one case: all its documents, and those in the layout of a backend."""

    case: Case
    formats: bool
    """Whether formats are assertions; otherwise an answer must hold whether they are or not."""
    reason: str = ""
    """Why there is no reference; empty where there is one."""
    contradicted: bool = False
    """Both validators contradict the automaton, which is asked nothing more."""
    _spellings: dict[Layout, JsonSchemaAutomaton] = field(default_factory=dict)

    def contradict(self) -> None:
        """Ends the use of the automaton, because it is wrong."""
        self.contradicted, self.reason = True, "both validators contradict the automaton"

    def goes_on(self, text: bytes, layout: Layout | None = None) -> Answer:
        """Does some document (in the layout, if one is given) begin with the text?"""
        return self._answer(lambda documents: documents.viable(text) == len(text), layout)

    def is_document(self, text: bytes, layout: Layout | None = None) -> Answer:
        """Is the text a document (in the layout, if one is given)?"""
        return self._answer(lambda documents: documents.accepts(text), layout)

    def is_outside(self, text: bytes, layout: Layout) -> bool:
        """Is this certainly no document in the layout?

        Where no automaton of the schema tells, the spelling alone decides: the layout's order and choice of
        names are not known without one, and leave nothing out.
        """
        answer = self.is_document(text, layout)
        if answer != "unknown":
            return answer == "no"
        try:
            return not self._any_json(layout).accepts(text)
        except NoOracle:
            return False

    def document(self, text: bytes, layout: Layout | None = None) -> bytes | None:
        """Returns a short document that begins with the text (in the layout, if one is given); None if
        none is found, or if its validity depends on formats."""
        if self.reason:
            return None
        try:
            mode = formats_asserted(self.case, self.formats)[-1]
            documents = self._documents(mode, layout, WITNESS_SECONDS)
            state = documents.run(documents.start, text)
            rest = short_completion(documents, state)
        except NoOracle:
            return None
        return text + rest if rest is not None and self.is_document(text + rest) == "yes" else None

    def cause(self, vocabulary: Vocabulary, before: bytes, token: int) -> str:
        """Returns what forbids a token behind a text: a keyword, `no_json`, or another cause of the check of
        documents."""
        case = self.case
        if self.formats:
            case = replace(case, options={**case.options, "format": "assert"})
        try:
            documents = self._documents(case.asserts_formats)
            ((cause, _),) = causes_of_wrong_tokens(case, vocabulary, documents, before, [token])
        except NoOracle:
            return "several_keywords"
        return "no_json" if cause in NO_JSON else cause.removeprefix("keyword_")

    def _answer(self, question: Callable[[JsonSchemaAutomaton], bool], layout: Layout | None) -> Answer:
        if self.reason:
            return "unknown"
        try:
            modes = formats_asserted(self.case, self.formats)
            answers = {question(self._documents(mode, layout)) for mode in modes}
        except NoOracle as why:
            if layout is None:
                self.reason = str(why)
            return "unknown"
        return "formats" if len(answers) > 1 else "yes" if True in answers else "no"

    def _any_json(self, layout: Layout) -> JsonSchemaAutomaton:
        """Returns the automaton of all JSON that is spelled as in the layout. Raises NoOracle."""
        if layout not in self._spellings:
            spelling = replace(layout, order="any", unlisted="anywhere", further_items=True)
            # Not the one of `documents_of`, which all cases share, and with it one budget of time.
            self._spellings[layout] = json_schema_automaton("{}", seconds=SPELLING_SECONDS, layout=spelling)
        return self._spellings[layout]

    def _documents(
        self, mode: bool, layout: Layout | None = None, seconds: float = SECONDS
    ) -> JsonSchemaAutomaton:
        return documents_of(self.case.grammar.text, self.case.draft, mode, seconds=seconds, layout=layout)
