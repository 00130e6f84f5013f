"""SGLang's own wrappers of other backends (`sglang.srt.constrained`), without its engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, cast

from harness.backend import adapter_parts as parts
from harness.backend import known_tokens
from harness.backend.bridge.bare_package import bare_package, stand_in
from harness.backend.bridge.from_sglang import SGLangAdapter, SGLangBackend
from harness.backend.bridge.huggingface import huggingface_tokenizer
from harness.backend.bridge.twins import Twins, twins
from harness.backend.grammar import CompiledGrammar, Grammar, UnsupportedGrammar
from harness.backend.layout import STRICT, WHITE_SPACED, Layout, with_delete_escaped
from harness.backend.vocabulary import Vocabulary

from ._sglang_facts import FACTS

PLACE = "sglang.srt.constrained"

# What each wrapper's `dispatch_json` asks of its library: any white space and, because it does not say
# otherwise, strict mode of xgrammar; flexible white space of llguidance; one blank, the default, of outlines.
# Each is what the library's own adapter declares for such options.
BLANKS = replace(WHITE_SPACED, whitespace=b" ", longest_run=1, unlisted="never")
KEYS = {"json_schema": "json", "regex": "regex", "ebnf": "ebnf", "structural_tag": "structural_tag"}
"""For each dialect, what the engine calls it in the key of a grammar."""
WRAPPERS: dict[str, tuple[str, str, str, Layout]] = {
    "xgrammar": ("xgrammar_backend", "XGrammarGrammarBackend", "xgrammar", STRICT),
    "llguidance": ("llguidance_backend", "GuidanceBackend", "llguidance", with_delete_escaped(WHITE_SPACED)),
    "outlines": ("outlines_backend", "OutlinesGrammarBackend", "outlines", BLANKS),
}
"""For the engine's name of each wrapper: its module, its class, the distribution of the library behind it,
and how it writes JSON, in structural tags too where it has them."""


class SGLang(SGLangAdapter):
    """`wrapper` is the engine's name of the backend.

    `disable_any_whitespace` is the engine's `--constrained-json-disable-any-whitespace`. `max_whitespace` is
    how many characters of it may stand in a row (0: no bound): `--constrained-json-max-whitespace-cnt` with
    xgrammar, and a `--constrained-json-whitespace-pattern` with the others. In structural tags none of the
    three holds: the wrappers do not hand them on.

    A grammar takes the engine's own way to it, with the checks that stand there.

    The engine is configured as by default. The tokenizer is the vocabulary's own, or one that is made of its
    tokens.
    """

    distribution = "sglang"
    dialects = SGLangAdapter.dialects | {"lark"}
    loader = "library"
    engines: ClassVar = {
        "sglang": {
            "wrapper=xgrammar": "--grammar-backend xgrammar",
            "wrapper=llguidance": "--grammar-backend llguidance",
        },
    }
    engine_facts: ClassVar = FACTS

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        wrapper: Literal["xgrammar", "llguidance", "outlines"] = "xgrammar",
        disable_any_whitespace: bool = False,
        max_whitespace: int = 0,
    ) -> None:
        self._name = wrapper
        self._reasoners: dict[tuple[int, ...], Any] = {}
        self._module, self._class, self.wraps, layout = parts.option_value("wrapper", wrapper, WRAPPERS)
        self.layout_in_tags = layout
        self._any, self._most = not disable_any_whitespace, max_whitespace
        self.layout = _layout(wrapper, layout, disable_any_whitespace, max_whitespace)
        if wrapper == "outlines":
            self.knows_one_end = (
                "The wrapper is given the tokenizer alone (create_grammar_backend of SGLang)."
            )
        super().__init__(vocabulary)

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        if grammar.dialect != "lark":
            return super().compile(grammar)
        if self._name != "llguidance":
            raise UnsupportedGrammar(f"the engine gives {self._name} no Lark")
        return super().compile(Grammar("ebnf", grammar.text))  # a request has one field for both

    def make_backend(self) -> SGLangBackend:
        bare_package("sglang", "sglang.srt", PLACE)  # importing them would load the engine's kernels
        # The wrappers take a type from one of these, and from the other the thinking before an answer;
        # neither is asked for here.
        stand_in("sglang.srt.parser.reasoning_parser", ("ReasoningParser",))
        stand_in("sglang.srt.server_args", ("ServerArgs",))
        make: Any = getattr(import_module(f"{PLACE}.{self._module}"), self._class)
        tokenizer: Any = huggingface_tokenizer(self.vocabulary)
        self.twins = Twins(twins(self.vocabulary))
        size, ends = self.vocabulary.size, list(self.vocabulary.eos_tokens)
        match self._name:
            case "xgrammar":
                bound = {"any_whitespace": self._any, "max_whitespace_cnt": self._most or None}
                backend = make(tokenizer, vocab_size=size, model_eos_token_ids=ends, **bound)
            case "llguidance":
                own = {"any_whitespace": self._any, "whitespace_pattern": self._pattern}
                backend = make(tokenizer=tokenizer, n_vocab=size, eos_token_ids=ends, **own)
            case _:
                backend = make(tokenizer, whitespace_pattern=self._pattern)
        return _Dispatching(backend, tokenizer)

    def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
        grammar, first = cast(Any, compiled).grammar, self.twins.first
        ids = tuple(first.get(token, token) for token in end)
        if ids not in self._reasoners:
            inner = cast(_Dispatching, self._backend)
            self._reasoners[ids] = _reasoner(inner.backend, inner.tokenizer, ids)
        key = (KEYS[grammar.dialect], grammar.text)
        found: CompiledGrammar = cast(Any, compiled).thinking(
            lambda: self._reasoners[ids]._init_value_dispatch(key, True)
        )
        return found

    @property
    def _pattern(self) -> str | None:
        """The expression for white space that the engine hands on; None is its default."""
        return rf"[ \n\r\t]{{{int(self._name == 'llguidance')},{self._most}}}" if self._most else None

    def token_bytes(self) -> list[bytes] | None:
        size, backend = self.vocabulary.size, cast(_Dispatching, self._backend).backend
        if self._name == "xgrammar":
            return self.twins.with_bytes(known_tokens.bytes_of_list(backend._tokenizer_info, size))
        if self._name == "llguidance":
            return self.twins.with_bytes(known_tokens.bytes_of_decoder(backend.llguidance_tokenizer, size))
        return None


def _reasoner(backend: Any, tokenizer: Any, end: tuple[int, ...]) -> Any:
    """Returns the engine's own backend of grammars that begin behind the thinking, around another.

    Of the parser of a model's thinking it asks the ids of the end, which are given, and whether the model
    frames its answers, which none does here.
    """
    stand_in("sglang.srt.parser.response_template", ("ResponseTemplateReasoningDetector",))
    make: Any = import_module(f"{PLACE}.reasoner_grammar_backend").ReasonerGrammarBackend
    detector = SimpleNamespace(
        get_think_end_token_ids=lambda tokenizer: list(end),
        get_answer_frame=lambda: None,
        think_end_token="",
        think_excluded_tokens=None,
    )
    return make(backend, SimpleNamespace(detector=detector), tokenizer)


def _layout(wrapper: str, layout: Layout, is_compact: bool, most: int) -> Layout:
    """Returns the layout of a wrapper with the engine's options. Raises ValueError for those that it has not,
    or that contradict each other."""
    if is_compact:
        if wrapper == "outlines":
            raise ValueError("the engine has disable_any_whitespace for xgrammar and llguidance only")
        # xgrammar is told no separators, and has those of `json.dumps`.
        layout = replace(layout, separators=(b" ", b" ") if wrapper == "xgrammar" else (b"", b""))
    if wrapper == "outlines" and most:
        layout = replace(WHITE_SPACED, unlisted="never")  # a pattern takes the place of the one blank
    return parts.bounded_white_space(layout, most)


class _Dispatching:
    """The backend as requests reach it: one way for all dialects, on which the engine refuses what it knows
    to be harmful."""

    def __init__(self, backend: Any, tokenizer: Any) -> None:
        self.backend = backend
        self.tokenizer = tokenizer

    def dispatch_json(self, key_string: str) -> Any:
        return self.backend._init_value_dispatch(("json", key_string), False)

    def dispatch_regex(self, key_string: str) -> Any:
        return self.backend._init_value_dispatch(("regex", key_string), False)

    def dispatch_ebnf(self, key_string: str) -> Any:
        return self.backend._init_value_dispatch(("ebnf", key_string), False)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        return self.backend._init_value_dispatch(("structural_tag", key_string), False)
