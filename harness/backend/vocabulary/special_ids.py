"""What a file of ranks does not hold: the patterns that split a text before it is merged, and the ids of
control tokens and of added texts. The names and numbers are those of the published tokenizers."""

from __future__ import annotations

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CL100K_PATTERN = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
O200K_PATTERN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = CL100K_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35_PATTERN = QWEN_PATTERN.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"^\s\p{L}", r"^\s\p{L}\p{M}")
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK_PATTERNS = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)


def _numbered(first: int, names: list[str]) -> dict[int, str]:
    return dict(enumerate(names, first))


def llama3_specials() -> dict[int, str]:
    """Returns the 256 control ids of Llama 3.1 and later; only their names differ from those of Llama 3."""
    named = {
        0: "begin_of_text",
        1: "end_of_text",
        4: "finetune_right_pad_id",
        6: "start_header_id",
        7: "end_header_id",
        8: "eom_id",
        9: "eot_id",
        10: "python_tag",
    }
    reserved = (f"reserved_special_token_{number}" for number in range(256))
    return {
        128_000 + place: f"<|{named[place] if place in named else next(reserved)}|>" for place in range(256)
    }


def llama4_specials() -> dict[int, str]:
    """Returns the 2,048 control ids of Llama 4."""

    def reserved(kind: str, first: int, last: int) -> list[str]:
        return [f"{kind}reserved_special_token_{number}" for number in range(first, last + 1)]

    names = [
        *("begin_of_text", "end_of_text", "fim_prefix", "fim_middle", "fim_suffix"),
        *("header_start", "header_end", "eom", "eot", "step"),
        *reserved("text_post_train_", 0, 5),
        *("python_start", "python_end", "finetune_right_pad"),
        *reserved("text_post_train_", 8, 68),
        *("image_start", "image_end"),
        *reserved("vision_", 0, 1),
        *("tile_x_separator", "tile_y_separator"),
        *reserved("vision_", 2, 5),
        "image",
        *reserved("vision_", 6, 6),
        "patch",
        *reserved("vision_", 7, 1047),
        *reserved("reasoning_", 0, 7),
        *("reasoning_thinking_start", "reasoning_thinking_end"),
    ]
    names += reserved("", 0, 2047 - len(names))
    return _numbered(200_000, [f"<|{name}|>" for name in names])


def harmony_specials() -> dict[int, str]:
    """Returns the 1,090 control ids of o200k_harmony, as tiktoken's own definition has them."""
    named = {
        199_998: "startoftext",
        199_999: "endoftext",
        200_002: "return",
        200_003: "constrain",
        200_005: "channel",
        200_006: "start",
        200_007: "end",
        200_008: "message",
        200_012: "call",
    }
    return {token: f"<|{named.get(token, f'reserved_{token}')}|>" for token in range(199_998, 201_088)}


QWEN_SPECIALS = _numbered(
    151_643,
    [
        f"<|{name}|>"
        for name in (
            "endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start", "box_end",
            "quad_start", "quad_end", "vision_start", "vision_end", "vision_pad", "image_pad", "video_pad",
        )
    ],
)  # fmt: skip
QWEN_ADDED = _numbered(
    151_657,
    [
        "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
        "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
    ],
)  # fmt: skip
