"""lm-format-enforcer: a parser of characters walked over a prefix tree of the tokens' texts, in Python, at
every step."""

from __future__ import annotations

import json
from typing import Literal

from interegular.patterns import InvalidSyntax, Unsupported
from lmformatenforcer import CharacterLevelParser, CharacterLevelParserConfig, JsonSchemaParser
from lmformatenforcer.exceptions import LMFormatEnforcerException
from lmformatenforcer.tokenenforcer import TokenEnforcer
from pydantic import ValidationError

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject, InvalidGrammar, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask, is_allowed
from harness.backend.known_tokens import Loader, bytes_of_texts
from harness.backend.vocabulary import Vocabulary

from ._lm_format_enforcer_forms import parser_of, tokenizer_data, whitespace_options


class _EnforcerObject(GrammarObject):
    __slots__ = ("_enforcer", "_mask", "_prefix", "_terminated", "_vocabulary")

    def __init__(self, enforcer: TokenEnforcer, vocabulary: Vocabulary) -> None:
        self._enforcer = enforcer
        self._vocabulary = vocabulary
        self._prefix: list[int] = []
        self._terminated = False
        self._mask: Bitmask | None = None

    def _allowed(self) -> Bitmask:
        """Returns the mask, which is all that the library says about a position.

        The library must be asked at each prefix in turn: it takes a prefix whose predecessor it does not know
        for a prompt.
        """
        if self._mask is None:
            self._mask = self._enforcer.get_allowed_tokens(self._prefix).allowed_tokens.numpy()
        return self._mask

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self._terminated:
            bitmask.fill(0)
        else:
            allowed = self._allowed()
            if bitmask.shape != allowed.shape:  # numpy would repeat a mask of one word
                raise ValueError(f"a bitmask of {allowed.shape} is filled, not one of {bitmask.shape}")
            bitmask[:] = allowed

    def accept_token(self, token: int) -> bool:
        # The library takes any token and has no word of refusal, so a token is refused if it is not among
        # those allowed.
        if (
            self._terminated
            or not 0 <= token < self._vocabulary.size
            or not is_allowed(self._allowed(), token)
        ):
            return False
        if token in self._vocabulary.eos_tokens:
            self._terminated = True
        else:
            self._prefix.append(token)
            self._mask = None
        return True

    def is_accepting(self) -> bool:
        return not self._terminated and is_allowed(self._allowed(), self._vocabulary.eos_token)

    def is_terminated(self) -> bool:
        return self._terminated

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._prefix) + self._terminated:
            raise ValueError(f"cannot roll back {count} of {len(self._prefix) + self._terminated} tokens")
        if self._terminated and count:
            self._terminated = False
            count -= 1
        if count:
            del self._prefix[-count:]
            self._mask = None

    def copy(self) -> GrammarObject:
        clone = _EnforcerObject(self._enforcer, self._vocabulary)
        clone._prefix = self._prefix.copy()
        clone._terminated = self._terminated
        clone._mask = self._mask
        return clone


class _EnforcerCompiled(CompiledGrammar):
    def __init__(self, adapter: LMFormatEnforcer, parser: CharacterLevelParser) -> None:
        self._adapter = adapter
        self._parser = parser
        self._shared: TokenEnforcer | None = None

    def start(self) -> GrammarObject:
        # An enforcer remembers the mask of every prefix that it has seen.
        adapter = self._adapter
        enforcer = self._shared or TokenEnforcer(adapter.tokenizer, self._parser)
        if adapter.is_shared:
            self._shared = enforcer
        if isinstance(self._parser, JsonSchemaParser):
            # A new enforcer replaces the configuration by one that knows the alphabet only.
            self._parser.config = adapter.config
        return _EnforcerObject(enforcer, adapter.vocabulary)


class LMFormatEnforcer(Adapter):
    """`whitespace` is how much of it may stand in a row in JSON: any amount, as much as the library's own 12
    characters, or none; `max_whitespace` bounds any amount (0: no bound).

    `property_order` makes required properties come in the schema's order; `max_array_length` bounds arrays
    that the schema does not bound (0: no bound; the default is the library's). With `shared_enforcer` all
    objects of a grammar ask one enforcer, as the sequences of a batch do in the library's integration with
    transformers: what one walk has seen is warm for the next. Without it each object has its own, as requests
    have in serving engines. `loader` says how the library comes to know a Hugging Face tokenizer
    (docs/tokenizers.md).
    """

    # No `engines`: vLLM has an option for it, and a wrapper that cannot be made (docs/engines.md).
    distribution = "lm-format-enforcer"
    dialects = frozenset({"json_schema", "regex", "choice"})

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "library", "compact"] = "any",
        max_whitespace: int = 0,
        property_order: bool = False,
        max_array_length: int = 20,
        shared_enforcer: bool = False,
        loader: Loader = "library",
    ) -> None:
        super().__init__(vocabulary)
        self.is_shared = shared_enforcer
        most_whitespace, self.layout = whitespace_options(whitespace, max_whitespace, property_order)
        self.loader, self.tokenizer = tokenizer_data(vocabulary, loader)
        self.config = CharacterLevelParserConfig(
            alphabet=self.tokenizer.tokenizer_alphabet,
            max_consecutive_whitespaces=most_whitespace,
            force_json_field_order=property_order,
            max_json_array_length=max_array_length,
        )

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        try:
            parser = parser_of(grammar, self.config)
        except (InvalidSyntax, ValidationError, json.JSONDecodeError) as error:
            raise InvalidGrammar(f"{type(error).__name__}: {error}") from error
        except (Unsupported, LMFormatEnforcerException) as error:
            raise UnsupportedGrammar(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            # The parser of schemas has no class for what it cannot do, only these words; whatever else it
            # raises is a fault.
            if str(error).startswith(("Unsupported type ", "Unsupported enum type ", "No definitions found")):
                raise UnsupportedGrammar(str(error)) from error
            raise
        return _EnforcerCompiled(self, parser)

    def token_bytes(self) -> list[bytes]:
        return bytes_of_texts(self.tokenizer.regular_tokens, self.vocabulary.size)

    def script(self, grammar: Grammar) -> str:
        parsers = {
            "json_schema": "JsonSchemaParser("
            "None if json.loads(grammar) is True else json.loads(grammar), config)",
            "regex": "RegexParser(grammar, config)",
            "choice": "UnionParser([StringParser(each) for each in json.loads(grammar)])",
        }
        return parts.script_of(
            "lm_format_enforcer",
            parser=parsers[grammar.dialect],
            whitespaces=str(self.config.max_consecutive_whitespaces),
            in_order=str(self.config.force_json_field_order),
            array_length=str(self.config.max_json_array_length),
        )
