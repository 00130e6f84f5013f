"""vLLM's own wrappers of other backends (`vllm.v1.structured_output`), without its engine."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, cast

import torch

from harness.backend import adapter_parts as parts
from harness.backend import known_tokens
from harness.backend.bridge.bare_package import bare_package
from harness.backend.bridge.from_vllm import VLLMAdapter, VLLMBackend
from harness.backend.bridge.huggingface import huggingface_tokenizer
from harness.backend.bridge.twins import Twins, twins
from harness.backend.grammar import CompiledGrammar, Dialect, Grammar, UnsupportedGrammar
from harness.backend.layout import STRICT, WHITE_SPACED, Layout, with_delete_escaped
from harness.backend.vocabulary import Vocabulary

from ._vllm_facts import FACTS
from ._vllm_manager import PLACE, ThinkingGrammar, manager_module, manager_of

# What each wrapper's `compile_grammar` asks of its library: any white space and, because it does not say
# otherwise, strict mode of xgrammar; flexible white space of llguidance; nothing of the others, whose
# defaults are one blank and runs of twelve characters. Each is what the library's own adapter declares for
# such options.
WRAPPERS: dict[str, tuple[str, str, str, Layout]] = {
    "xgrammar": ("backend_xgrammar", "XgrammarBackend", "xgrammar", STRICT),
    "guidance": ("backend_guidance", "GuidanceBackend", "llguidance", with_delete_escaped(WHITE_SPACED)),
    "outlines": (
        "backend_outlines",
        "OutlinesBackend",
        "outlines-core",
        replace(WHITE_SPACED, whitespace=b" ", longest_run=1, unlisted="never"),
    ),
    "lm-format-enforcer": (
        "backend_lm_format_enforcer",
        "LMFormatEnforcerBackend",
        "lm-format-enforcer",
        replace(WHITE_SPACED, longest_run=12, order="any", unlisted="never"),
    ),
}
"""For the engine's name of each wrapper: its module, its class, the distribution of the library behind it,
and how it writes JSON, in structural tags too where it has them."""

COMPACT_TAGS = {"xgrammar": False, "guidance": True}
"""The wrappers that have the engine's `disable_any_whitespace`, and whether it holds in structural tags
too."""

FIELDS: dict[Dialect, str] = {
    "json_schema": "json",
    "regex": "regex",
    "ebnf": "grammar",
    "lark": "grammar",
    "choice": "choice",
    "structural_tag": "structural_tag",
}
"""For each dialect, the name of its field in a request."""

SPECULATIVE_TOKENS = 200
"""How many tokens may be taken back; an engine without speculative decoding allows none."""


class VLLM(VLLMAdapter):
    """`wrapper` is the engine's name of the backend; `disable_any_whitespace` is its option of that name.

    A request is checked by the engine's own function before the backend sees it.

    The engine is configured as by default, but with speculative decoding, without which nothing is taken back
    (lm-format-enforcer's wrapper, which compiles nothing with it, has none). The tokenizer is the
    vocabulary's own, or one that is made of its tokens.
    """

    distribution = "vllm"
    loader = "library"
    engines: ClassVar = {
        "vllm": {
            "wrapper=xgrammar": "--structured-outputs-config.backend xgrammar",
            "wrapper=guidance": "--structured-outputs-config.backend guidance",
            "wrapper=outlines": "--structured-outputs-config.backend outlines",
        },
    }
    engine_facts: ClassVar = FACTS

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        wrapper: Literal["xgrammar", "guidance", "outlines", "lm-format-enforcer"] = "xgrammar",
        disable_any_whitespace: bool = False,
    ) -> None:
        self._name = wrapper
        self._no_manager = ""
        self._managers: dict[int, Any] = {}
        self._module, self._class, self.wraps, self.layout = parts.option_value("wrapper", wrapper, WRAPPERS)
        self._is_compact = disable_any_whitespace
        self.layout_in_tags = self.layout
        if disable_any_whitespace:
            if wrapper not in COMPACT_TAGS:
                raise ValueError(
                    f"the engine has disable_any_whitespace for {' and '.join(COMPACT_TAGS)} only"
                )
            self.layout = replace(self.layout, separators=(b"", b""))
            self.layout_in_tags = self.layout if COMPACT_TAGS[wrapper] else self.layout_in_tags
        if wrapper != "xgrammar":
            self.knows_one_end = (
                "The wrapper ignores stop_token_ids and asks the tokenizer (compile_grammar)."
            )
        super().__init__(vocabulary)

    def make_backend(self) -> VLLMBackend:
        os.environ.setdefault("VLLM_CONFIGURE_LOGGING", "0")
        # Importing the last one would load the engine's configuration and parsers.
        bare_package("vllm", "vllm.v1", PLACE)
        if not torch.cuda.is_available():
            utils: Any = import_module("vllm.utils.torch_utils")
            utils.PIN_MEMORY = False  # for copies to a device that is not here
        self._sampling = import_module("vllm.sampling_params")
        self._refusal = import_module("vllm.exceptions").VLLMValidationError
        self._key = import_module(f"{PLACE}.request").get_structured_output_key
        self._tokenizer: Any = huggingface_tokenizer(self.vocabulary)
        self.twins = Twins(twins(self.vocabulary))
        outputs = SimpleNamespace(backend=self._name, disable_additional_properties=False)
        outputs.disable_any_whitespace = self._is_compact
        speculative = (
            None
            if self._name == "lm-format-enforcer"
            else SimpleNamespace(num_speculative_tokens=SPECULATIVE_TOKENS)
        )
        self._config = SimpleNamespace(
            structured_outputs_config=outputs, speculative_config=speculative, model_config=None
        )
        make: Any = getattr(import_module(f"{PLACE}.{self._module}"), self._class)
        backend: VLLMBackend = make(self._config, self._tokenizer, self.vocabulary.size)
        # All import for seconds on first use; done here, a worker's children need not do it again.
        try:
            manager_module()
        except ImportError as error:
            self._no_manager = f"vLLM's manager of grammars cannot be imported: {error}"
        self.request(Grammar("regex", "a"))
        backend.allocate_token_bitmask(1)
        return backend

    def token_bytes(self) -> list[bytes] | None:
        size, backend = self.vocabulary.size, cast(Any, self._backend)
        match self._name:
            case "xgrammar":
                info = backend.compiler.compile_regex("a").tokenizer_info  # a compiler does not show it
                tokens = known_tokens.bytes_of_list(info, size)
            case "guidance":
                tokens = known_tokens.bytes_of_decoder(backend.ll_tokenizer, size)
            case "outlines":
                _, (stored, *_) = backend.vocabulary.inner.__reduce__()
                tokens = known_tokens.bytes_of_stored_map(stored, size)
            case _:
                tokens = known_tokens.bytes_of_texts(backend.tokenizer_data.regular_tokens, size)
        return self.twins.with_bytes(tokens)

    def reasoning(self, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
        if self._no_manager or len(end) > 1:
            raise UnsupportedGrammar(
                self._no_manager
                or "vLLM's reasoning parsers know only ends of one id; give one id that ends the thinking"
            )
        if end[0] not in self._managers:
            self._managers[end[0]] = manager_of(
                self._backend, self._name, self._config, self._tokenizer, self.vocabulary, end[0]
            )
        request = cast(Any, compiled).request
        return ThinkingGrammar(
            self._managers[end[0]], partial(self.grammar_of, request), self.vocabulary, self.twins
        )

    def request(self, grammar: Grammar) -> tuple[Any, str]:
        key: tuple[Any, str] = self._key(self.checked(grammar, self._name))
        return key

    def checked(self, grammar: Grammar, setting: str) -> Any:
        """Returns the request's `StructuredOutputsParams`, whose `_backend` names the library, after the
        engine's own check with this value of its option `backend`. Raises ValueError where that refuses."""
        value: Any = json.loads(grammar.text) if grammar.dialect == "choice" else grammar.text
        if grammar.dialect == "choice" and not (
            isinstance(value, list) and all(isinstance(choice, str) for choice in value)
        ):
            # The server's own model of a request says so, before all this.
            raise ValueError("choice must be a list of strings")
        outputs = self._sampling.StructuredOutputsParams(**{FIELDS[grammar.dialect]: value})
        parameters = self._sampling.SamplingParams(structured_outputs=outputs)
        model = SimpleNamespace(is_diffusion=False)
        try:
            parameters._validate_structured_outputs(model, SimpleNamespace(backend=setting), self._tokenizer)
        except self._refusal as error:
            raise ValueError(str(error)) from error
        return parameters.structured_outputs
