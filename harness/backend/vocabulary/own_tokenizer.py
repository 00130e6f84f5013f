"""A Hugging Face tokenizer as users have it, made by transformers of its folder: what the loaders of
libraries and serving engines are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def own_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Returns the tokenizer of the folder. Nothing in the folder is executed, and nothing is downloaded.

    Raises ImportError if transformers is not installed, and whatever transformers raises of a folder that it
    does not take.
    """
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    return cast("PreTrainedTokenizerFast", tokenizer)
