"""xgrammar: an Earley parser over byte-level rules, with token masks prepared when a grammar is compiled."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import ClassVar, Literal, cast

import torch
import xgrammar
from xgrammar.tokenizer_info import VocabType

from harness.backend.adapter_parts import (
    LastBitmask,
    choices_of,
    require_a_row_for_each,
    script_of,
    structural_tag_of,
)
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    Kernel,
    UnsupportedGrammar,
)
from harness.backend.vocabulary import Vocabulary

NO_TENSOR = torch.empty(0)

HAS_ANY_ORDER = "any_order" in inspect.signature(xgrammar.GrammarCompiler.compile_json_schema).parameters
"""False in older releases, which keep the order of the schema."""

SEPARATORS = {"any": None, "json_dumps": (", ", ": "), "compact": (",", ":")}

KERNELS = {
    "cpu": ("cpu", ("cpu",)),
    "triton": ("triton", ("cuda",)),
    "cuda": ("cuda", ("cuda",)),
    "torch_compile": ("torch_compile", ("cpu", "cuda")),
    "torch_native": ("torch", ("cpu", "cuda")),
}
"""The library's kernels by its own names: the module of each, and the devices on which it exists."""

# Every refusal is a plain RuntimeError with a logged position: `[12:00:00] /project/cpp/file.cc:1: reason`.
# An internal check that gives no reason, and an error without a position (out of memory, a C++ exception), is
# a fault and escapes.
REFUSAL = re.compile(r"\[[\d:]+\] \S+:\d+: (?:Check failed: \(.*?\) is false: ?)?(?P<reason>.*)", re.DOTALL)

# The library does not tell "I cannot" from "you are wrong"; these are its words for the first.  `Unsupported
# type "foo"` is no JSON type and so the input's mistake; an unsatisfiable schema is called wrong too.
UNSUPPORTED = re.compile(
    r"not (?:yet )?supported|[Uu]nsupported (?!type \")|exceed(?:s|ed)\b|too "
    r"(?:large|many)"
)


class XgrammarObject(GrammarObject):
    def __init__(self, adapter: Xgrammar, matcher: xgrammar.GrammarMatcher) -> None:
        self.matcher = matcher
        self._adapter = adapter
        self._fill = matcher.fill_next_token_bitmask
        self._bitmask: Bitmask | None = None
        self._tensor = NO_TENSOR

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if bitmask is not self._bitmask:
            self._tensor = self._adapter.tensor_of(bitmask)
            self._bitmask = bitmask
        self._fill(self._tensor)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        return partial(self._fill, self._adapter.tensor_of(bitmask))

    def accept_token(self, token: int) -> bool:
        return self.matcher.accept_token(token)

    def is_accepting(self) -> bool:
        return self.matcher.is_completed()

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def rollback(self, count: int) -> None:
        self.matcher.rollback(count)

    def copy(self) -> XgrammarObject:
        return XgrammarObject(self._adapter, self.matcher.fork())

    def jump_forward(self) -> bytes:
        # A str: forced text that ends inside a character raises UnicodeDecodeError, and that is the library's
        # fault to show.
        return self.matcher.find_jump_forward_string().encode()


class XgrammarGrammar(CompiledGrammar):
    def __init__(self, adapter: Xgrammar, compiled: xgrammar.CompiledGrammar) -> None:
        self._adapter = adapter
        self._compiled = compiled

    def start(self) -> XgrammarObject:
        return XgrammarObject(self._adapter, xgrammar.GrammarMatcher(self._compiled))

    def serialize(self) -> bytes:
        return self._compiled.serialize_json().encode()


class Xgrammar(Adapter):
    """`whitespace`, `open_objects` and `any_order` shape JSON Schema; `threads` is for compiling and for
    batches.

    Structural tags take `any_order` only: the library keeps them strict (no property that the schema does not
    name) and free in whitespace.
    """

    distribution: ClassVar[str] = "xgrammar"
    dialects: ClassVar[frozenset[Dialect]] = frozenset(
        {"json_schema", "regex", "ebnf", "choice", "structural_tag"}
    )
    documented: ClassVar[Mapping[str, str]] = {
        "property_order": "Properties follow the schema's order unless any_order is set (docstring of "
        "compile_json_schema).",
        "regex_dialect_ecma": "The regex grammar follows JavaScript, ECMA 262 (docstring of "
        "xgrammar.testing._regex_to_ebnf).",
        "regex_dialect_javascript": "The same sentence does not say that the u flag is set: an escaped "
        "letter may be the letter.",
    }

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "json_dumps", "compact"] = "any",
        open_objects: bool = True,
        any_order: bool = False,
        threads: int = 1,
        cache: bool = False,
    ) -> None:
        super().__init__(vocabulary)
        if whitespace not in SEPARATORS:
            raise ValueError(f"whitespace is {whitespace!r}; xgrammar supports {', '.join(SEPARATORS)}")
        self._whitespace = whitespace
        self._open_objects = open_objects
        if any_order and not HAS_ANY_ORDER:
            raise ValueError(
                "this version of xgrammar has no any_order for JSON Schema; leave the option out"
            )
        self._any_order = any_order
        self.threads: int = threads
        # The library takes an empty token for a special one and allows neither, so specials and padding are
        # passed as they are.
        tokenizer = xgrammar.TokenizerInfo(
            list(vocabulary.tokens),
            VocabType.RAW,
            vocab_size=vocabulary.size,
            stop_token_ids=[vocabulary.eos_token],
        )
        self._compiler = xgrammar.GrammarCompiler(tokenizer, max_threads=threads, cache_enabled=cache)
        self.tensor_of = LastBitmask((vocabulary.size + 31) // 32, torch.from_numpy).of
        self._batches: dict[int, xgrammar.BatchGrammarMatcher] = {}
        """By threads; made on first use, because threads would not survive the fork of a worker."""

    def compile(self, grammar: Grammar) -> XgrammarGrammar:
        try:
            grammar.text.encode()
            return XgrammarGrammar(self, self._compile(grammar))
        except UnicodeEncodeError as error:
            raise InvalidGrammar(f"no Unicode text: {error}") from error
        except RuntimeError as error:
            refusal = REFUSAL.match(str(error))
            reason = refusal["reason"].strip() if refusal else ""
            if not reason:
                raise
            raise (UnsupportedGrammar if UNSUPPORTED.search(reason) else InvalidGrammar)(reason) from error

    def script(self, grammar: Grammar) -> str:
        any_order = ", any_order=True" if self._any_order else ""
        compile_lines = {
            "json_schema": f"compile_json_schema(grammar, any_whitespace={self._whitespace == 'any'}, "
            f"separators={SEPARATORS[self._whitespace]}, strict_mode={not self._open_objects}{any_order})",
            "regex": "compile_regex(grammar)",
            "ebnf": "compile_grammar(grammar)",
            "choice": f"compile_grammar({_rule_of(grammar.text)!r})" if grammar.dialect == "choice" else "",
            "structural_tag": f"compile_structural_tag({_structural_tag(grammar.text, self._any_order)!r})"
            if grammar.dialect == "structural_tag"
            else "",
        }
        return script_of("xgrammar", compile_call=compile_lines[grammar.dialect])

    def kernels(self) -> Mapping[str, Kernel]:
        beyond = (
            "The trailing logits are left unmasked, with a warning (docstring of "
            "apply_token_bitmask_inplace)."
        )
        return {
            name: Kernel(
                load=partial(_load_kernel, name, module),
                devices=frozenset(devices),
                dtypes=frozenset({"float32", "float16", "bfloat16"}),
                indices=True,
                documented={"logits_beyond_the_mask_are_forbidden": beyond},
            )
            for name, (module, devices) in KERNELS.items()
        }

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        require_a_row_for_each(len(objects), bitmasks)
        if self.threads not in self._batches:
            self._batches[self.threads] = xgrammar.BatchGrammarMatcher(self.threads)
        matchers = [each.matcher for each in cast(Sequence[XgrammarObject], objects)]
        self._batches[self.threads].batch_fill_next_token_bitmask(matchers, self.tensor_of(bitmasks))

    def _compile(self, grammar: Grammar) -> xgrammar.CompiledGrammar:
        match grammar.dialect:
            case "json_schema":
                separators = SEPARATORS[self._whitespace]
                return self._compiler.compile_json_schema(
                    grammar.text,
                    any_whitespace=separators is None,
                    separators=separators,
                    strict_mode=not self._open_objects,
                    **({"any_order": True} if self._any_order else {}),
                )
            case "regex":
                return self._compiler.compile_regex(grammar.text)
            case "ebnf":
                return self._compiler.compile_grammar(grammar.text)
            case "choice":
                return self._compiler.compile_grammar(_rule_of(grammar.text))
            case "structural_tag":
                if self._whitespace != "any":
                    raise UnsupportedGrammar("xgrammar has no whitespace option for structural tags")
                return self._compiler.compile_structural_tag(_structural_tag(grammar.text, self._any_order))


def _load_kernel(name: str, module: str) -> Callable[..., object]:
    import_module(f"xgrammar.kernels.apply_token_bitmask_inplace_{module}")  # what it lacks it says here
    function: Callable[..., object] = xgrammar.apply_token_bitmask_inplace
    return lambda logits, bitmask, rows=None: function(logits, bitmask, indices=rows, backend=name)


def _rule_of(text: str) -> str:
    """The choice as the library's EBNF."""
    return "root ::= " + " | ".join(map(_literal, choices_of(text)))


def _literal(text: str) -> str:
    """A GBNF string; all but plain ASCII is escaped with eight digits, so that no digit that follows is taken
    for the escape's."""
    plain = (char if " " <= char <= "~" and char not in '"\\' else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(plain)}"'


def _structural_tag(text: str, any_order: bool) -> str:
    triggers, structures = structural_tag_of(text)
    order = {"any_order": True} if any_order else {}
    tags = [
        {
            "type": "tag",
            "begin": tag.begin,
            "content": {"type": "json_schema", "json_schema": tag.schema, **order},
            "end": tag.end,
        }
        for tag in structures
    ]
    return json.dumps(
        {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": triggers, "tags": tags}}
    )
