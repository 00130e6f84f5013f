"""vLLM's `StructuredOutputManager` without its engine: requests that think first, one id of which ends the
thinking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from harness.backend.bridge.twins import Twins
from harness.backend.grammar import (
    Bitmask,
    CompiledGrammar,
    GrammarObject,
    UnsupportedGrammar,
    is_allowed,
)
from harness.backend.vocabulary import Vocabulary

PLACE = "vllm.v1.structured_output"
REQUEST = "request"


def manager_module() -> ModuleType:
    """Returns the module that holds the manager: the `__init__` of the package, which is known by its folder
    only, run under another name. Raises ImportError."""
    name = f"{PLACE}.manager"
    if name not in sys.modules:
        spec = spec_from_file_location(name, Path(sys.modules[PLACE].__path__[0]) / "__init__.py")
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


class ThinkingGrammar(CompiledGrammar):
    """One grammar, for requests that go through a manager of their own kind of thinking."""

    def __init__(
        self, manager: Any, grammar: Callable[[], Any], vocabulary: Vocabulary, twins: Twins
    ) -> None:
        """`grammar` compiles the backend's grammar of one request."""
        self.manager, self.grammar = manager, grammar
        self.vocabulary, self.twins = vocabulary, twins

    def start(self) -> GrammarObject:
        return _Request(self)


def manager_of(backend: Any, name: str, config: Any, tokenizer: Any, vocabulary: Vocabulary, end: int) -> Any:
    """Returns a manager whose requests think up to this id, around a backend that is there already.

    Its configuration has the engine's defaults and one request. Raises UnsupportedGrammar where the tokenizer
    cannot have such an end.
    """
    module, parsers = manager_module(), import_module("vllm.reasoning.basic_parsers")
    begin = vocabulary.eos_token  # never among what is thought, and so in nobody's way
    names = [tokenizer.convert_ids_to_tokens(token) for token in (begin, end)]
    if [tokenizer.get_vocab().get(each) for each in names] != [begin, end]:
        raise UnsupportedGrammar(f"the tokenizer has no token of its own for id {end}")

    class Parser(parsers.BaseThinkingReasoningParser):  # type: ignore[misc, name-defined]
        """The engine's own parser, with these tokens; a model's differ from it in their names."""

        start_token, end_token = names

    outputs = SimpleNamespace(**vars(config.structured_outputs_config), enable_in_reasoning=False)
    model = SimpleNamespace(
        skip_tokenizer_init=True, is_diffusion=False, get_vocab_size=lambda: vocabulary.size
    )
    speculative = config.speculative_config
    manager = module.StructuredOutputManager(
        SimpleNamespace(
            structured_outputs_config=outputs,
            parallel_config=SimpleNamespace(distributed_executor_backend="external_launcher"),
            scheduler_config=SimpleNamespace(max_num_seqs=1),
            model_config=model,
            speculative_config=speculative,
            num_speculative_tokens=speculative.num_speculative_tokens if speculative else 0,
        )
    )
    manager.tokenizer, manager.reasoner_cls = tokenizer, Parser
    manager.backend, manager.backend_name = backend, name
    return manager


class _Request(GrammarObject):
    """One request of the engine, as its scheduler moves it. It has no rollback: the manager is asked how much
    of a draft may come, and the rest never reaches it."""

    def __init__(self, compiled: ThinkingGrammar) -> None:
        self._manager, self._vocabulary, self._twins = compiled.manager, compiled.vocabulary, compiled.twins
        sampling = import_module("vllm.sampling_params")
        # What is asked for stands in the grammar that was compiled; the request must only ask for something.
        asked = sampling.SamplingParams(
            structured_outputs=sampling.StructuredOutputsParams(regex="a"), max_tokens=1
        )
        request: Any = import_module("vllm.v1.request").Request
        self._request = request(REQUEST, [self._vocabulary.eos_token], asked, None)
        self._grammar = compiled.grammar()
        self._request.structured_output_request.grammar = self._grammar
        self._ended = False

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.is_terminated():
            bitmask.fill(0)
        else:
            bitmask[:] = self._rows(())[0]
            self._twins.spread(bitmask)

    def fill_draft(self, tokens: Sequence[int], bitmasks: Bitmask) -> int:
        valid = self._valid(tokens)
        bitmasks[: len(valid) + 1] = self._rows(valid)[: len(valid) + 1]
        for row in bitmasks[: len(valid) + 1]:
            self._twins.spread(row)
        return len(valid)

    def accept_token(self, token: int) -> bool:
        return not self.is_terminated() and self._take([self._twins.first.get(token, token)])

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        if self.is_terminated() or not tokens:
            return 0
        taken = self._valid(tokens)
        ends = [at for at, token in enumerate(taken, 1) if token in self._vocabulary.eos_tokens]
        taken = taken[: ends[0]] if ends else taken  # the scheduler cuts what is behind a stop
        return len(taken) if taken and self._take(taken) else 0

    def is_accepting(self) -> bool:
        return not self.is_terminated() and is_allowed(self._rows(())[0], self._vocabulary.eos_token)

    def is_terminated(self) -> bool:
        ended = self._request.structured_output_request.reasoning_ended
        return self._ended or bool(ended and self._grammar.is_terminated())

    def _valid(self, tokens: Sequence[int]) -> list[int]:
        first = self._twins.first
        valid: list[int] = self._manager.validate_tokens(
            self._request, [first.get(token, token) for token in tokens]
        )
        return valid

    def _rows(self, draft: Sequence[int]) -> Bitmask:
        drafts = {REQUEST: list(draft)} if draft else {}
        rows: Bitmask = self._manager.grammar_bitmask({REQUEST: self._request}, [REQUEST], drafts)
        return rows

    def _take(self, tokens: list[int]) -> bool:
        """Moves the request as the scheduler does with the tokens of a step; a refusal would end it."""
        request = self._request
        request.append_output_token_ids(tokens)
        if not self._manager.accept_tokens(request, tokens):
            del request._output_token_ids[-len(tokens) :], request._all_token_ids[-len(tokens) :]
            return False
        self._ended = tokens[-1] in self._vocabulary.eos_tokens
        return True
