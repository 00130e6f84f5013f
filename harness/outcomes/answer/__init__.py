"""What a run answers: which backend to use for these cases, how sure that is, and what can go wrong.

In: the rows of a run, folded by arm. Out: one `Answer`, plain data, which the page, the commands and the
terminal show in the same words.
"""

from harness.outcomes.answer.answer import Answer, answer_of, read_answer, read_answered, risks_by_backend
from harness.outcomes.answer.backends import BackendAnswer, backends_of
from harness.outcomes.answer.cases import CaseAnswer, Proofs, telling, together
from harness.outcomes.answer.risks import evidence

__all__ = [
    "Answer",
    "BackendAnswer",
    "CaseAnswer",
    "Proofs",
    "answer_of",
    "backends_of",
    "evidence",
    "read_answer",
    "read_answered",
    "risks_by_backend",
    "telling",
    "together",
]
