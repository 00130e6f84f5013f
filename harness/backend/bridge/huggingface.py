"""A vocabulary as serving engines know one: a fast tokenizer of Hugging Face's transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.backend.vocabulary import Vocabulary
from harness.backend.vocabulary.byte_level import letters_of_bytes
from harness.backend.vocabulary.own_tokenizer import own_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def huggingface_tokenizer(vocabulary: Vocabulary) -> PreTrainedTokenizerFast:
    """Returns the tokenizer itself where the vocabulary is one of Hugging Face's, else one that is made of
    its tokens.

    A made one spells tokens byte-level, has the ids of the vocabulary and finds the longest match. What such
    a tokenizer cannot have, empty tokens and all but the first of ids with the same bytes
    (`harness.backend.bridge.twins`), are reserved specials; padding it has not. Raises ImportError if
    transformers is not installed.
    """
    return _made(vocabulary) if vocabulary.folder is None else own_tokenizer(vocabulary.folder)


def _made(vocabulary: Vocabulary) -> PreTrainedTokenizerFast:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = {letters_of_bytes(text): token for text, token in vocabulary.ids_by_bytes.items()}
    names: dict[int, str] = {}
    for token in sorted(set(range(vocabulary.size)) - set(pieces.values()) - vocabulary.padding_tokens):
        name = vocabulary.special_tokens.get(token, f"<|reserved_{token}|>")
        # text that reads like a special is a token of its own in some vocabularies, and here each spelling is
        # one token
        names[token] = name if name not in pieces else f"<|special_{token}|>"
        pieces[names[token]] = token
    end = names[vocabulary.eos_token]
    tokenizer = Tokenizer(
        models.WordPiece(
            pieces, unk_token=end, max_input_chars_per_word=1 << 30, continuing_subword_prefix=""
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in names.values()]
    )
    make: Any = PreTrainedTokenizerFast
    made: PreTrainedTokenizerFast = make(
        tokenizer_object=tokenizer,
        eos_token=end,
        additional_special_tokens=[name for name in names.values() if name != end],
        clean_up_tokenization_spaces=False,
    )
    return made
