"""Asks two validators for their verdicts on a document."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cases.case import Case
from harness.oracle.judge import Judge


@dataclass(frozen=True)
class DocumentVerdict:
    """Is the document valid?

    None where there is no verdict, or where it hangs on formats that need not be asserted.
    """

    judge: bool | None
    second: bool | None = None
    keyword: str = ""
    """The violated keyword, by the second validator."""
    formats_decide: bool = False

    @property
    def valid(self) -> bool | None:
        """Returns the verdict of both validators; None if they differ."""
        return self.judge if self.judge == self.second else None

    @property
    def disagree(self) -> bool:
        """Does one validator say valid and the other invalid?"""
        return None not in (self.judge, self.second) and self.judge != self.second


def formats_asserted(case: Case, formats: bool) -> tuple[bool, ...]:
    """Returns whether formats are asserted: where neither the caller (`formats`) nor the case wants it, both
    ways are to be tried of a schema that has formats, because backends differ in that."""
    if formats or case.asserts_formats:
        return (True,)
    return (False, True) if '"format"' in case.grammar.text else (False,)


class Validators:
    """The judge and the second validator, which is asked through the judge's process."""

    def __init__(self, judge: Judge, formats: bool) -> None:
        self.judge, self.formats = judge, formats

    def verdict(self, case: Case, document: bytes) -> DocumentVerdict:
        """Returns the verdict on a document. Without `formats`, it must be valid, or invalid, whether formats
        are assertions or not, because backends differ in that."""
        modes = formats_asserted(case, self.formats)
        draft = case.draft
        judged = [
            self.judge.verdict(case.grammar, document, draft=draft, assert_formats=mode) for mode in modes
        ]
        if None in judged:
            return DocumentVerdict(None)
        if len(set(judged)) > 1:
            return DocumentVerdict(None, formats_decide=True)
        seconds = [
            self.judge.second(case.grammar, document, draft=draft, assert_formats=mode) for mode in modes
        ]
        valid, keyword = seconds[0]
        if len({verdict for verdict, _ in seconds}) > 1:
            valid = None
        return DocumentVerdict(judged[0], valid, keyword)
