"""A conformance and benchmarking harness for grammar backends of constrained LLM decoding."""

from harness.grammar import Adapter as Adapter
from harness.grammar import CompiledGrammar as CompiledGrammar
from harness.grammar import Grammar as Grammar
from harness.grammar import GrammarObject as GrammarObject
from harness.grammar import InvalidGrammar as InvalidGrammar
from harness.grammar import Kernel as Kernel
from harness.grammar import UnsupportedGrammar as UnsupportedGrammar
from harness.vocabulary import Vocabulary as Vocabulary

__version__ = "0.1.0"
