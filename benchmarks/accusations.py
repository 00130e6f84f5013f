"""What a run accuses the masks of JSON Schema of, token by token, with the document that shows it.

    python benchmarks/accusations.py RUN ...

RUN is a folder of `grammarbench run` with its cases. Every token that a finding names as wrongly allowed or
wrongly forbidden gets a document, which both validators judge:

- wrongly forbidden: the shortest document that is found in the backend's layout and goes on with the token.
  Both must call it valid.
- wrongly allowed: the shortest that is found once the keywords that the finding blames are left out of the
  schema, or any JSON. Both must call it invalid. Where no JSON goes on so, what closes the text
  before the token stands behind it, and neither parser may read the bytes.

A token that is no text needs no document. Counts are printed, then each accusation of which not
both validators say what they must; the exit code is 1 if both say the opposite of any.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.layout import Layout
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case
from harness.checks.documents import TOKENS_LEAD
from harness.checks.layouts import LAYOUT_IS_WRITTEN
from harness.errors import GATE_FAILED, OK
from harness.oracle.automaton import NoOracle
from harness.oracle.completion import short_completion
from harness.oracle.judge import Judge
from harness.oracle.language import documents_of
from harness.rows.row import Finding, Row
from harness.rows.store import read_cases, read_rows

JUDGE_SECONDS = 5.0
NO_TEXT = "the token is no text"
TOO_FAR = "no document is found: there is none by today's automaton, it is too far, or there is no automaton"
CONFIRMED = "both validators confirm it"
ONE = "one validator confirms it, the other has no verdict"
NONE = "no validator has a verdict"
DISAGREE = "the validators disagree"
AGAINST = "one validator contradicts it, the other has no verdict"
FALSE = "both validators contradict it"


@dataclass(frozen=True)
class Accusation:
    """One token that a mask wrongly allows or forbids."""

    case: Case = field(compare=False)
    is_forbidden: bool
    layout: Layout | None
    """The layout in which a forbidden token's document is spelled."""
    without: frozenset[str]
    """The keywords that are blamed for an allowed one."""
    before: bytes
    token: bytes
    """Empty for end-of-sequence."""

    def document(self) -> bytes | None:
        """Returns the document that shows it; None if none is found."""
        text = self.before + self.token
        if not self.token:
            return text
        variants = [self.without, None] if self.without else [None]
        if self.is_forbidden:
            return _completed(self.case, text, frozenset(), self.layout)
        for without in variants:
            if (found := _completed(self.case, text, without)) is not None:
                return found
        rest = _completed(self.case, self.before, None)
        return None if rest is None else text + rest[len(self.before) :]


def _completed(
    case: Case, text: bytes, without: frozenset[str] | None, layout: Layout | None = None
) -> bytes | None:
    """Returns a short document that begins with the text, of the schema without some keywords or, without a
    set of these, of any schema."""
    schema = "true" if without is None else case.grammar.text
    draft = None if without is None else case.draft
    try:
        documents = documents_of(schema, draft, case.asserts_formats, without or frozenset(), layout=layout)
        rest = short_completion(documents, documents.run(documents.start, text))
    except NoOracle:
        return None
    return None if rest is None else text + rest


def accusations(run: Path) -> Iterator[tuple[Row, Finding, Accusation | None]]:
    """Yields every accusation of the run's masks of JSON Schema; None for a token that is no text."""
    cases = {(suite, case.id): case for suite, _, case in read_cases(run)}
    for row in read_rows(run):
        if row.dialect != "json_schema":
            continue
        for finding in row.findings:
            if finding.check not in (TOKENS_LEAD, LAYOUT_IS_WRITTEN) or not finding.walk:
                continue
            vocabulary = _vocabulary(row.vocabulary)
            before = b"".join(vocabulary.tokens[token] for token in finding.walk[:-1])
            is_forbidden = finding.check == LAYOUT_IS_WRITTEN
            names = finding.cause.removeprefix("keyword_")
            without = frozenset(names.split("+")) if names != finding.cause else frozenset[str]()
            for example in finding.examples:
                token = bytes.fromhex(example)
                if finding.cause == "special_token":
                    yield row, finding, None
                    continue
                yield (
                    row,
                    finding,
                    Accusation(
                        cases[row.suite, row.case_id],
                        is_forbidden,
                        _layout(row.backend, row.options, row.vocabulary) if is_forbidden else None,
                        without,
                        before,
                        token,
                    ),
                )


_vocabulary = lru_cache(load_vocabulary)


@lru_cache
def _layout(backend: str, options: str, vocabulary: str) -> Layout | None:
    return make(parse_spec(":".join(filter(None, (backend, options)))), _vocabulary(vocabulary)).layout


def outcome(judge: Judge, accusation: Accusation, document: bytes) -> str:
    """Returns what both validators say of an accusation's document."""
    case, right = accusation.case, accusation.is_forbidden
    formats = case.asserts_formats
    first = judge.verdict(case.grammar, document, draft=case.draft, assert_formats=formats)
    second, _ = judge.second(case.grammar, document, draft=case.draft, assert_formats=formats)
    verdicts = {first, second} - {None}
    if len(verdicts) == 2:
        return DISAGREE
    if not verdicts:
        return NONE
    if None in (first, second):
        return ONE if verdicts == {right} else AGAINST
    return CONFIRMED if verdicts == {right} else FALSE


@script
def main(arguments: Sequence[str]) -> int:
    """Prints the counts and the accusations that are not confirmed. Exit code: 0, 1 where both validators
    contradict one, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    runs: list[Path] = parser.parse_args(arguments).runs
    counts: Counter[tuple[str, str, str]] = Counter()
    known: dict[tuple[str, Accusation], str] = {}
    doubted: list[str] = []
    with Judge(JUDGE_SECONDS) as judge:
        for run in runs:
            for row, finding, accusation in accusations(run):
                document = None
                if accusation is None:
                    said = NO_TEXT
                else:
                    key = (row.case_id, accusation)
                    if key not in known:
                        document = accusation.document()
                        known[key] = TOO_FAR if document is None else outcome(judge, accusation, document)
                    said = known[key]
                kind = "forbidden" if finding.check == LAYOUT_IS_WRITTEN else "allowed"
                counts[row.backend, kind, said] += 1
                if said in (AGAINST, DISAGREE, FALSE, NONE, TOO_FAR) and accusation is not None:
                    shown = accusation.before + accusation.token if document is None else document
                    line = f"{said}: {row.backend} {kind} {finding.cause} {row.suite} {row.case!r} {shown!r}"
                    doubted.append(line[:600])
    for (backend, kind, said), count in sorted(counts.items()):
        print(f"{backend:20} wrongly {kind:9} {count:6}  {said}")
    totals: Counter[str] = Counter()
    for (_, _, said), count in counts.items():
        totals[said] += count
    print(*(f"{count:6}  {said}" for said, count in totals.most_common()), sep="\n")
    print(*doubted, sep="\n")
    return GATE_FAILED if totals[FALSE] else OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
