"""Which backend for these schemas, on this engine, with this tokenizer; and what has to be changed.

In: cases of the user. Out: an `Advice`: the answer of a run over them, the option of the serving engine, and
rewrites of the schemas that do not work, proven to mean the same and tried on the same backends.
"""

from harness.diagnose.advise.advice import Advice, advise
from harness.diagnose.advise.stored import choice_of, no_document_sentence

__all__ = ["Advice", "advise", "choice_of", "no_document_sentence"]
