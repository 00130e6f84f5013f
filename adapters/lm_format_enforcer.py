"""lm-format-enforcer: a parser of characters walked over a prefix tree of the tokens' texts, in Python, at
every step."""

from __future__ import annotations

import json
import sys
from typing import ClassVar, Literal

from interegular.patterns import InvalidSyntax, Unsupported
from lmformatenforcer import (
    CharacterLevelParser,
    CharacterLevelParserConfig,
    JsonSchemaParser,
    RegexParser,
    StringParser,
    TokenEnforcer,
    TokenEnforcerTokenizerData,
    UnionParser,
)
from lmformatenforcer.exceptions import LMFormatEnforcerException
from pydantic import ValidationError

from harness.backend.adapter_parts import choices_of, plain_tokens, script_of
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
    is_allowed,
)
from harness.backend.vocabulary import Vocabulary

WHITESPACES = {"any": sys.maxsize, "library": 12, "compact": 0}
"""How many whitespace characters may follow each other."""


class _EnforcerObject(GrammarObject):
    __slots__ = ("_enforcer", "_mask", "_prefix", "_terminated", "_vocabulary")

    def __init__(self, enforcer: TokenEnforcer, vocabulary: Vocabulary) -> None:
        self._enforcer = enforcer
        self._vocabulary = vocabulary
        self._prefix: list[int] = []
        self._terminated = False
        self._mask: Bitmask | None = None

    def _allowed(self) -> Bitmask:
        """The library's only statement about a position.

        It must be asked at each prefix in turn: it takes the first one that it does not know the predecessor
        of for a prompt.
        """
        if self._mask is None:
            self._mask = self._enforcer.get_allowed_tokens(self._prefix).allowed_tokens.numpy()
        return self._mask

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self._terminated:
            bitmask.fill(0)
        else:
            bitmask[:] = self._allowed()

    def accept_token(self, token: int) -> bool:
        # The library takes any token and has no word of refusal, so a token is refused if it is not among
        # those allowed.
        if (
            self._terminated
            or not 0 <= token < self._vocabulary.size
            or not is_allowed(self._allowed(), token)
        ):
            return False
        if token == self._vocabulary.eos_token:
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
    def __init__(
        self,
        parser: CharacterLevelParser,
        data: TokenEnforcerTokenizerData,
        config: CharacterLevelParserConfig,
        vocabulary: Vocabulary,
        is_shared: bool,
    ) -> None:
        self._shared: TokenEnforcer | None = None
        self._is_shared = is_shared
        self._parser = parser
        self._data = data
        self._config = config
        self._vocabulary = vocabulary

    def start(self) -> GrammarObject:
        # It remembers the mask of every prefix that it has seen.
        enforcer = self._shared or TokenEnforcer(self._data, self._parser)
        if self._is_shared:
            self._shared = enforcer
        if isinstance(self._parser, JsonSchemaParser):
            self._parser.config = (
                self._config
            )  # the enforcer has just replaced it by one that knows the alphabet only
        return _EnforcerObject(enforcer, self._vocabulary)


class LMFormatEnforcer(Adapter):
    """`whitespace` is how much of it may stand in a row in JSON: any amount, as much as the library's own 12
    characters, or none.

    `property_order` makes required properties come in the schema's order; `max_array_length` bounds arrays
    that the schema does not bound (0: no bound; the default is the library's). With `shared_enforcer` all
    objects of a grammar ask one enforcer, as the sequences of a batch do in the library's integration with
    transformers: what one walk has seen is warm for the next. Without it each object has its own, as requests
    have in serving engines.
    """

    distribution: ClassVar[str] = "lm-format-enforcer"
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"json_schema", "regex", "choice"})

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "library", "compact"] = "any",
        property_order: bool = False,
        max_array_length: int = 20,
        shared_enforcer: bool = False,
    ) -> None:
        super().__init__(vocabulary)
        self._is_shared = shared_enforcer
        self._data = TokenEnforcerTokenizerData(
            _texts(vocabulary), self._decode, vocabulary.eos_token, True, vocabulary.size
        )
        self._config = CharacterLevelParserConfig(
            alphabet=self._data.tokenizer_alphabet,
            max_consecutive_whitespaces=WHITESPACES[whitespace],
            force_json_field_order=property_order,
            max_json_array_length=max_array_length,
        )

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        try:
            parser = self._parser(grammar)
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
        return _EnforcerCompiled(parser, self._data, self._config, self.vocabulary, self._is_shared)

    def script(self, grammar: Grammar) -> str:
        parsers = {
            "json_schema": "JsonSchemaParser(None if json.loads(grammar) is True else json.loads(grammar))",
            "regex": "RegexParser(grammar)",
            "choice": "UnionParser([StringParser(each) for each in json.loads(grammar)])",
        }
        return script_of(
            "lm_format_enforcer",
            parser=parsers[grammar.dialect],
            whitespaces=str(self._config.max_consecutive_whitespaces),
            in_order=str(self._config.force_json_field_order),
            array_length=str(self._config.max_json_array_length),
        )

    def _parser(self, grammar: Grammar) -> CharacterLevelParser:
        if grammar.dialect == "regex":
            return RegexParser(grammar.text, self._config)
        if grammar.dialect == "choice":
            return UnionParser([StringParser(choice) for choice in choices_of(grammar.text)])
        if grammar.dialect != "json_schema":
            raise UnsupportedGrammar(f"lm-format-enforcer has no {grammar.dialect}")
        schema = json.loads(grammar.text)
        if schema is False:
            raise UnsupportedGrammar("lm-format-enforcer takes a schema as an object, or None for any JSON")
        if schema is not True and not isinstance(schema, dict):
            raise InvalidGrammar("a schema must be an object or a boolean")
        return JsonSchemaParser(None if schema is True else schema, self._config)

    def _decode(self, tokens: list[int]) -> str:
        """Without the character that is not complete yet, as the library's integrations do."""
        return self.vocabulary.decode(tokens).decode("utf-8", "replace").rstrip("\ufffd")


def _texts(vocabulary: Vocabulary) -> list[tuple[int, str, bool]]:
    """Each plain token's id and text, and whether its text depends on no token before it, by the rule of the
    library's integrations.

    That rule asks whether the tokenizer drops a leading space when it decodes the token alone; our bytes are
    always whole, so: never.

    A token that is no UTF-8 by itself decodes to replacement characters, in the integrations too. To the
    library all such tokens are then the same character: whatever allows one (free text, a negated class)
    allows any broken bytes, and a grammar that names a non-ASCII character allows none of the tokens that
    begin it. That is how the library treats UTF-8, and it is left as it is.
    """
    return [
        (token, text.decode("utf-8", "replace"), False) for token, text in plain_tokens(vocabulary).items()
    ]
